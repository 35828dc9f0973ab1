"""The mechanisms: each a pure function of a histogram and random bits, with its proof."""

from topsecret.mechanisms.gumbel import GumbelTopK
from topsecret.mechanisms.limited_domain import LimitedDomain
from topsecret.mechanisms.mechanism import Mechanism
from topsecret.mechanisms.noisy_counts import NoisyCounts
from topsecret.mechanisms.oneshot_exponential import OneshotExponential
from topsecret.mechanisms.oneshot_laplace import OneshotLaplace
from topsecret.mechanisms.permute_and_flip import PermuteAndFlip

__all__ = [
    "GumbelTopK",
    "LimitedDomain",
    "Mechanism",
    "NoisyCounts",
    "OneshotExponential",
    "OneshotLaplace",
    "PermuteAndFlip",
]
