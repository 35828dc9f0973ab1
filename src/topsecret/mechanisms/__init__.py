"""The mechanisms: each a pure function of a histogram and random bits, with its proof."""

from topsecret.mechanisms.canonical_set import CanonicalSet
from topsecret.mechanisms.chosen_bound import ChosenBound
from topsecret.mechanisms.clipped_sums import ClippedSums
from topsecret.mechanisms.correlated_counts import CorrelatedCounts
from topsecret.mechanisms.fixed_threshold import FixedThreshold
from topsecret.mechanisms.gumbel import GumbelTopK
from topsecret.mechanisms.laplace_ranking import LaplaceRanking
from topsecret.mechanisms.leading_rises import LeadingRises
from topsecret.mechanisms.limited_domain import LimitedDomain
from topsecret.mechanisms.limited_domain_laplace import LimitedDomainLaplace
from topsecret.mechanisms.mechanism import Mechanism
from topsecret.mechanisms.noisy_counts import NoisyCounts
from topsecret.mechanisms.oneshot_exponential import OneshotExponential
from topsecret.mechanisms.oneshot_laplace import OneshotLaplace
from topsecret.mechanisms.oneshot_private_length import OneshotPrivateLength
from topsecret.mechanisms.optimal_threshold import OptimalThreshold
from topsecret.mechanisms.permute_and_flip import PermuteAndFlip
from topsecret.mechanisms.pruned_top_k import PrunedTopK
from topsecret.mechanisms.stability import StableTopK
from topsecret.mechanisms.stable_fixed_k import StableFixedK
from topsecret.mechanisms.tested_or_weighted import TestedOrWeighted
from topsecret.mechanisms.tested_top_k import TestedTopK
from topsecret.mechanisms.top_stable import TopStable
from topsecret.mechanisms.weighted_histogram import WeightedHistogram

__all__ = [
    "CanonicalSet",
    "ChosenBound",
    "ClippedSums",
    "CorrelatedCounts",
    "FixedThreshold",
    "GumbelTopK",
    "LaplaceRanking",
    "LeadingRises",
    "LimitedDomain",
    "LimitedDomainLaplace",
    "Mechanism",
    "NoisyCounts",
    "OneshotExponential",
    "OneshotLaplace",
    "OneshotPrivateLength",
    "OptimalThreshold",
    "PermuteAndFlip",
    "PrunedTopK",
    "StableFixedK",
    "StableTopK",
    "TestedOrWeighted",
    "TestedTopK",
    "TopStable",
    "WeightedHistogram",
]
