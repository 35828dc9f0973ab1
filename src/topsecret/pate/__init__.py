"""Multi-label PATE: private labels from the votes of teachers, and a student that learns them.

`Aggregator` answers queries by a rule (`StableLabels`, or the baselines in `NoisyMajority`) until
its budget is used; `stable_labels` and `noisy_majority` find the noise for a number of queries.
`PateClassifier`, in ``topsecret.pate.pipeline``, is the whole way from private rows to a student
as a scikit-learn estimator (extra ``pate``).

>>> rule = noisy_majority(labels=3, teachers=50, queries=20, epsilon=3, delta=1e-6)
>>> Aggregator(rule, epsilon=3, delta=1e-6, queries=20).left
20
"""

from topsecret.pate.aggregator import Aggregator, Answer, Guarantee
from topsecret.pate.calibration import noisy_majority, stable_labels
from topsecret.pate.rules import NoisyMajority, StableLabels, VoteRule

__all__ = [
    "Aggregator",
    "Answer",
    "Guarantee",
    "NoisyMajority",
    "StableLabels",
    "VoteRule",
    "noisy_majority",
    "stable_labels",
]
