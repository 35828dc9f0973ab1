"""`WeightedHistogram`: weighted people, Gaussian noise, and everything above a threshold.

>>> from topsecret.counts.histogram import Histogram
>>> holdings = {person: ["tea", "jam"] if person < 300 else ["tea"] for person in range(900)}
>>> histogram = Histogram.of_holdings(holdings, Weights.share())
>>> WeightedHistogram(k=None, epsilon=1.0, delta=1e-6).select(histogram).items
('tea', 'jam')

Picks cost the same however many items a person has. Here a person's influence is bounded instead:
who has few items counts in full, who has many counts less for each, so that the vector that one
person adds has a bounded length. One release then answers for the best k, for all items that can be
named safely, and for values. The proof, for a referee, is docs/proofs/weighted-histogram.md.

**Statement.** Every observed label draws v = S + N(0, σ²), S its sum of weights, and is named iff
v > T; names and v rounded to 1/1024 are released. Under add-remove its delta at every x is that of
:class:`~topsecret.accounting.thresholded_gaussian.ThresholdedGaussian`, exactly. Several releases
add up as gaussian(μ²) + failure(δ_t). On a public domain every label may be named, there is no T,
and it is a Gaussian release. Under replace it is gaussian(2μ²) + failure(δ_t).

**Preconditions.** The sums were counted with these weights: each person was cut to N items by a
function of their own items, and adds w(n) to each of the n that are left.

**Why each line matters.**
- *Weights from a table by the number of kept items.* Believed instead of enforced, one person with
  a hundred items moves a hundred sums by 1.
- *The threshold covers all n labels of a person, and their weight.* A label that nobody else has is
  named with probability Φ((w − T)/σ), and there may be n of them.
- *Values are rounded after the comparison, and to the nearest.* Rounding is post-processing.
- *b = 0 and b = n.* The noise is tightest for a person who shares every label, the threshold for
  one who shares none; both must hold, and everything between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from flint import arb
from numpy.typing import NDArray

from topsecret.accounting import Loss, failure, gaussian
from topsecret.accounting.thresholded_gaussian import ThresholdedGaussian
from topsecret.counts.histogram import Histogram
from topsecret.counts.weights import UNIT, Weights
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, exact
from topsecret.mechanisms import parameters
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.mechanisms.weighted_bounds import persons_at_least
from topsecret.mechanisms.weighted_law import BinnedValues
from topsecret.mechanisms.weighted_schedule import gaussian_alone, joint, replaced
from topsecret.noise.above_threshold import NoisyScore, above
from topsecret.noise.bits import BitSource, SystemBits
from topsecret.noise.distributions import GAUSSIAN
from topsecret.noise.screening import ScoreGroups


@dataclass(frozen=True)
class WeightedHistogram:
    """The k best labels by noisy weighted people, or all that can be named safely (``k=None``).

    Guarantee: (epsilon, delta)-DP under ``adjacency``. ``at_least`` keeps the labels that surely
    have so many people: all of them do with probability .95.
    """

    k: int | None
    epsilon: Number
    delta: Number
    weights: Weights = Weights.share()  # noqa: RUF009  # frozen, and the same for everybody
    domain: Literal["unknown", "public"] = "unknown"
    adjacency: parameters.Adjacency = "add-remove"
    at_least: int | None = None

    def __post_init__(self) -> None:
        if self.k is not None:
            parameters.whole(self.k, "k")
        parameters.positive(self.epsilon, "epsilon")
        parameters.probability(self.delta, "delta")
        parameters.one_of(self.domain, "domain", ("unknown", "public"))
        parameters.adjacency(self.adjacency)
        if self.at_least is not None:
            parameters.whole(self.at_least, "at_least")
        if self.k is None and self.domain == "public" and self.at_least is None:
            raise InvalidParameter(
                "k=None names everything above a threshold, and a public domain has none; "
                "pass k, or at_least"
            )

    @property
    def ordered(self) -> bool:
        """The labels are published by their noisy values, best first."""
        return True

    @cached_property
    def release(self) -> ThresholdedGaussian | None:
        """Noise and threshold; None on a public domain. Public."""
        if self.domain == "public":
            return None
        calibrated = joint if self.adjacency == "add-remove" else replaced
        return calibrated(self.weights, exact(self.epsilon), exact(self.delta))

    @property
    def sigma(self) -> Fraction:
        """The standard deviation of the noise, in people. Public."""
        if self.release is not None:
            return self.release.sigma
        squared = self._directions * self.weights.squared_norm
        return gaussian_alone(squared, exact(self.epsilon), exact(self.delta))

    @property
    def threshold(self) -> Fraction | None:
        """T, in people; None on a public domain. Public."""
        return None if self.release is None else self.release.threshold

    @property
    def loss(self) -> Loss:
        """The Gaussian release and the threshold's failure; alone, both together exactly."""
        parts = gaussian(self._directions * self.weights.squared_norm / self.sigma**2)
        if self.release is None:
            return parts
        parts += failure(self.release.failure)
        return parts if self.adjacency == "replace" else replace(parts, joint=self.release)

    @property
    def _directions(self) -> int:
        """Two people's vectors without negative entries are at most √2 norms apart."""
        return parameters.directions(self.adjacency)

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the noisy values that may be named, and the names of those that are wanted."""
        bits = SystemBits() if bits is None else bits
        sums = self._sums(histogram)
        field, groups = self._field(sums)
        passed = self._drawn(field, bits, self._most)
        labels = len(passed) if self.threshold is not None else int(sums.domain_size or 0)
        passed = passed[: self.k]
        surely = persons_at_least([one.value for one in passed], labels, self.sigma, self.threshold)
        if self.at_least is not None:
            wanted = sum(bound >= self.at_least for bound in surely)  # they fall along the list
            passed, surely = passed[:wanted], surely[:wanted]
        names = sums.names([int(groups[one.group]) for one in passed], bits)
        return Selection(
            names,
            complete=self.k is None or len(names) == self.k,
            values=tuple(one.value for one in passed),
            at_least=surely,
        )

    @property
    def _most(self) -> int | None:
        """How many values are drawn: all above the threshold, since bounds need their number."""
        return None if self.threshold is not None else self.k

    def _sums(self, histogram: Histogram) -> Histogram:
        sums = histogram.weighted(self.weights)
        if self.domain == "public":
            sums.require_domain("WeightedHistogram", self.k or 1)
        return sums

    def _field(self, sums: Histogram) -> tuple[ScoreGroups, NDArray[Any]]:
        """The groups that take part, and their numbers: without a domain only observed labels."""
        field = sums.field()
        if self.domain == "public":
            return field, np.arange(len(field.scores))
        seen = np.flatnonzero(field.scores > 0)
        sizes = None if field.sizes is None else field.sizes[seen]
        return ScoreGroups(field.scores[seen], sizes), seen

    def _drawn(self, field: ScoreGroups, bits: BitSource, most: int | None) -> list[NoisyScore]:
        level = None if self.threshold is None else self.threshold * UNIT
        return above(field, GAUSSIAN, self.sigma * UNIT, level, most, bits)

    def binned(self, *cuts: int) -> BinnedValues:
        """The same release with each value known only as how many of the ``cuts`` it reaches."""
        return BinnedValues(self, tuple(cuts))

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The law of the *set* of named labels; :meth:`binned` has that of the values too."""
        return self.binned().probabilities(histogram)

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The law of the set of named labels on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[BinnedValues, ...]:
        """The parameters that ``topsecret verify`` checks: budgets so large that errors show."""
        share, cut, cap = Weights("share", 3, 1), Weights("share", 2, 1), Weights.cap(2)
        return (
            cls(None, 1.0, 0.2, share).binned(4 * UNIT, 8 * UNIT),
            cls(None, 2.0, 0.05, share).binned(3 * UNIT),
            cls(None, 3.0, 0.3, cut).binned(2 * UNIT, 4 * UNIT),
            cls(None, 1.0, 0.1, cap).binned(5 * UNIT, 9 * UNIT),
            cls(None, 2.0, 0.3, Weights.cap(1)).binned(3 * UNIT),
            cls(4, 2.0, 0.1, share, domain="public").binned(0, 2 * UNIT),
            cls(4, 2.0, 0.1, cap, domain="public").binned(UNIT, 3 * UNIT),
            cls(None, 2.0, 0.2, share, adjacency="replace").binned(4 * UNIT),
        )
