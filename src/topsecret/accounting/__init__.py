"""What releases cost: losses that add, the smallest provable epsilon, calibration.

>>> loss = picks(50, 0.1) + failure(1e-7)
>>> 1.53 < loss.epsilon(1e-6) < 1.55
True
>>> loss.bound_used(1e-6)
'optimal'
"""

from topsecret.accounting.absorption import (
    absorbed,
    absorbed_after,
    calibrate_absorbed,
    delta_after_pick,
)
from topsecret.accounting.calibration import (
    calibrate,
    calibrate_gaussian,
    calibrate_limited_domain,
    calibrate_picks,
    calibrate_zcdp,
    limited_domain_loss,
)
from topsecret.accounting.explanation import Bound, Explanation
from topsecret.accounting.loss import (
    NO_LOSS,
    Loss,
    approximate,
    discrete_gaussian,
    failure,
    gaussian,
    picks,
    picks_in_order,
    pure,
    rdp,
    slack,
    zcdp,
)
from topsecret.accounting.profile import Profile, gaussian_profile, identity_profile, maximum
from topsecret.accounting.renyi import GaussianSelection

__all__ = [
    "NO_LOSS",
    "Bound",
    "Explanation",
    "GaussianSelection",
    "Loss",
    "Profile",
    "absorbed",
    "absorbed_after",
    "approximate",
    "calibrate",
    "calibrate_absorbed",
    "calibrate_gaussian",
    "calibrate_limited_domain",
    "calibrate_picks",
    "calibrate_zcdp",
    "delta_after_pick",
    "discrete_gaussian",
    "failure",
    "gaussian",
    "gaussian_profile",
    "identity_profile",
    "limited_domain_loss",
    "maximum",
    "picks",
    "picks_in_order",
    "pure",
    "rdp",
    "slack",
    "zcdp",
]
