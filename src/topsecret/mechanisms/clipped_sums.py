"""`ClippedSums`: rows or sums of which one person adds a vector of bounded length, and noise.

>>> from topsecret import Histogram
>>> release = ClippedSums(k=2, epsilon=1.0, delta=1e-6, most=5, total=10, items=100)
>>> release.select(Histogram.of({"tea": 9_000, "jam": 4_000, "rye": 3})).items
('tea', 'jam')

Picks pay for a person who adds the whole bound to every item. Here a person's amounts are bounded
together: each is at most c = ``most``, at most N = ``items`` of them count, and where the root of
the sum of their squares exceeds C = ``total`` all are scaled down to that. Whoever adds to few
items counts in full. The proof, for a referee, is docs/proofs/weighted-histogram.md.

**Statement.** Every observed label draws v = S + N(0, σ²), S the sum of what all people add, and
is named iff v > T; the k largest are published in order. Under add-remove this costs
gaussian(C²/σ²) + failure(δ_t), δ_t the largest probability with which a label of one person alone
is named (:class:`~topsecret.accounting.own_labels.OwnLabels`). On a public domain every label may
be named, there is no T, and it costs gaussian(C²/σ²).

**Preconditions.** Scores are sums of whole amounts of at least 0, cut and scaled person by person,
by a function of that person's rows alone; a label to which nobody adds anything is not observed.

**Why each line matters.**
- *Scaled in the query*: one person with a hundred items moves a hundred sums by c.
- *Rounded down after scaling*: rounded to the nearest the vector may be longer than C.
- *δ_t covers every vector*, not the flat ones alone: some amounts at c and the rest small are named
  more often.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from flint import arb
from numpy.typing import NDArray

from topsecret.accounting import Loss, failure, gaussian
from topsecret.accounting.own_labels import OwnLabels
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, exact
from topsecret.mechanisms import parameters
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.mechanisms.weighted_schedule import gaussian_alone
from topsecret.noise.above_threshold import above
from topsecret.noise.bits import BitSource, SystemBits
from topsecret.noise.distributions import GAUSSIAN
from topsecret.noise.screening import ScoreGroups

if TYPE_CHECKING:
    from topsecret.mechanisms.clipped_sums_law import BinnedSums

FAILURE = Fraction(1, 10)
"""The usual part of delta for the threshold. A person may share one label and have many of their
own, of tiny amounts: noise and threshold are then needed in full at once, and delta is divided."""


@dataclass(frozen=True)
class ClippedSums:
    """The k best labels by noisy sums of which one person's part has a bounded length.

    Guarantee: (epsilon, delta)-DP under add-remove.
    """

    precondition: ClassVar[str] = "all that one person adds is scaled down to a total, together"
    """What the source must see to, beside adjacency, a cap and a sensitivity."""

    k: int
    epsilon: Number
    delta: Number
    most: int
    """What one person adds to one label, at most."""
    total: int
    """The root of the sum of squares of what one person adds, at most."""
    items: int
    """To how many labels one person adds, at most."""
    domain: Literal["unknown", "public"] = "unknown"
    failure: Number = FAILURE
    """The part of delta for the threshold, of an unknown domain."""

    def __post_init__(self) -> None:
        for name in ("k", "most", "total", "items"):
            parameters.whole(getattr(self, name), name)
        parameters.positive(self.epsilon, "epsilon")
        parameters.probability(self.delta, "delta")
        parameters.probability(self.failure, "failure")
        parameters.one_of(self.domain, "domain", ("unknown", "public"))
        if self.most > self.total:
            raise InvalidParameter(
                f"most={self.most} must be at most total={self.total}; lower it or raise total"
            )

    @property
    def ordered(self) -> bool:
        """The labels are published by their noisy sums, best first."""
        return True

    @property
    def sigma(self) -> Fraction:
        """The standard deviation of the noise, in units of the sums. Public."""
        left = exact(self.delta)
        left = left if self.domain == "public" else (1 - exact(self.failure)) * left
        return self.total * gaussian_alone(Fraction(1), exact(self.epsilon), left)

    @property
    def own(self) -> OwnLabels | None:
        """The threshold with its failure; None on a public domain. Public."""
        if self.domain == "public":
            return None
        fails = exact(self.failure) * exact(self.delta)
        return _threshold(self.most, self.total, self.items, self.sigma, fails)

    @property
    def threshold(self) -> Fraction | None:
        """T, in units of the sums; None on a public domain. Public."""
        return None if self.own is None else self.own.threshold

    @property
    def loss(self) -> Loss:
        """The Gaussian release, and the threshold's failure."""
        parts = gaussian(Fraction(self.total) ** 2 / self.sigma**2)
        return parts if self.own is None else parts + failure(exact(self.own.chance))

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the noisy sums that may be named, and the names of the largest."""
        bits = SystemBits() if bits is None else bits
        if self.domain == "public":
            histogram.require_domain("ClippedSums", self.k)
        field, groups = self._field(histogram)
        drawn = above(field, GAUSSIAN, self.sigma, self.threshold, self.k, bits)
        names = histogram.names([int(groups[one.group]) for one in drawn], bits)
        return Selection(names, complete=len(names) == self.k)

    def _field(self, histogram: Histogram) -> tuple[ScoreGroups, NDArray[Any]]:
        """The groups that take part, and their numbers: without a domain only observed labels."""
        field = histogram.field()
        if self.domain == "public":
            return field, np.arange(len(field.scores))
        seen = np.flatnonzero(field.scores > 0)
        sizes = None if field.sizes is None else field.sizes[seen]
        return ScoreGroups(field.scores[seen], sizes), seen

    def binned(self, *cuts: int) -> BinnedSums:
        """All that is drawn, each noisy sum known as how many of the ``cuts`` it reaches."""
        from topsecret.mechanisms.clipped_sums_law import BinnedSums

        return BinnedSums(self, cuts)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The law of the *set* of labels above the threshold, of which the best k are shown."""
        return self.binned().probabilities(histogram)

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The law as floats."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[BinnedSums, ...]:
        """The parameters that ``topsecret verify`` checks: budgets so large that errors show."""
        return (
            cls(4, 1.0, 0.2, 2, 3, 3).binned(4, 9),
            cls(4, 2.0, 0.1, 3, 3, 2).binned(6),
            cls(4, 2.0, 0.3, 1, 2, 3).binned(5),
            cls(2, 2.0, 0.1, 3, 3, 3, "public").binned(0, 3),
            cls(2, 2.0, 0.1, 2, 3, 3, "public").binned(0, 2),
            cls(4, 1.0, 0.2, 3, 5, 3).binned(6, 12),
        )


@lru_cache(maxsize=256)
def _threshold(most: int, total: int, items: int, sigma: Fraction, fails: Fraction) -> OwnLabels:
    """The least threshold, in 1024ths of the deviation, that fails with at most ``fails``."""

    def own(steps: int) -> OwnLabels:
        return OwnLabels(most, total, items, sigma, steps * sigma / 1024)

    low, high = 0, 1024
    while exact(chance := own(high).chance) > fails:
        low, high = high, 2 * high
    tried = high
    while high - low > 1:
        # ln p falls nearly as −z²/2: so the next try is close, and seven do where bisecting takes
        # fourteen. Only what was tried decides.
        ratio = math.log(max(chance, 1e-300)) - math.log(float(fails))
        near = round(math.sqrt(max(0.0, tried**2 + 2 * 1024**2 * ratio)))
        tried = min(max(near, low + 1), high - 1)
        chance = own(tried).chance
        if exact(chance) > fails:
            low = tried
        else:
            high = tried
    return own(high)
