"""`NoisyCounts`: counts of items that were already released, with fresh integer noise.

>>> from topsecret.counts.histogram import Histogram
>>> histogram = Histogram.of({"a": 900, "b": 500, "c": 2})
>>> counts = NoisyCounts(epsilon=1.0, max_items=1)
>>> noisy = counts.release(histogram, ("a", "b"))
>>> all(abs(n - true) < 60 for n, true in zip(noisy, (900, 500)))
True
>>> counts.half_width(released=2)
3

**Statement.** Let n items be released, and let one person change at most c of their counts, by 1
each: c = min(n, Δ) under add-remove, min(n, 2Δ) under replace (Δ items leave, Δ others come).
- ``epsilon``: discrete Laplace noise of scale b = c/ε on each count is ε-DP: the weight q^|x| with
  q = e^(−1/b) changes by at most e^(1/b) for each of the c counts.
- ``rho``: discrete Gaussian noise of variance σ² = c/(2ρ) is ρ-zCDP (Canonne, Kamath & Steinke
  2020, Thm 4 in several dimensions): the squared distance of the counts is at most c.

**Preconditions.** The items are public: a selection released them and paid for that. ``max_items``
was enforced when the histogram was counted. Counts are of distinct people.

**Why each line matters.**
- *Fresh* noise: the noise that selected an item is large because it was selected; publishing it
  breaks the selection's proof (Qiao, Su & Zhang's Algorithm 1 does so).
- n is known only after the selection, but the *cost* is fixed beforehand and b, σ follow from n. So
  the loss is the same number whatever came out, and adaptive composition applies.
- The discrete Gaussian is filed as zcdp(ρ). It is not a continuous Gaussian, whose profile can be
  smaller by a factor of two and more.
- Integers: a float could reveal the count by its last digits; there is none.
- n = 0 releases nothing and still costs what was announced, so that the cost reveals nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from flint import arb, ctx

from topsecret.accounting import Loss, pure, zcdp
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter, TooLarge
from topsecret.exact.rounding import exact, precision
from topsecret.mechanisms import parameters
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.bits import BitSource, SystemBits
from topsecret.noise.lattice import DiscreteGaussian, DiscreteLaplace, IntegerNoise

if TYPE_CHECKING:
    from topsecret.mechanisms.correlated_counts import CorrelatedCounts

_MOST = 200_000


@dataclass(frozen=True)
class NoisyCounts:
    """Noisy counts of released items, for a fixed ``epsilon`` or a fixed ``rho``.

    Guarantee: ``epsilon``-DP or ``rho``-zCDP, whatever the number of items. The results are
    integers and may be negative: cutting them at 0 afterwards costs nothing.
    """

    epsilon: float | None = None
    rho: float | None = None
    max_items: int | None = None
    adjacency: parameters.Adjacency = "add-remove"

    meets_claim_exactly: ClassVar[bool] = True
    """q^|x| against q^(|x + 1|) is e^(1/b) exactly; none exceeds it, by the note above."""

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            given = "both were" if self.rho is not None else "neither was"
            raise InvalidParameter(
                f"pass exactly one of epsilon and rho; {given} given: epsilon for discrete "
                "Laplace noise, rho for discrete Gaussian noise"
            )
        if self.epsilon is not None:
            parameters.positive(self.epsilon, "epsilon")
        if self.rho is not None:
            parameters.positive(self.rho, "rho")
        parameters.cap(self.max_items)
        parameters.adjacency(self.adjacency)

    @property
    def loss(self) -> Loss:
        """The fixed cost."""
        if self.rho is not None:
            return zcdp(self.rho)
        assert self.epsilon is not None
        return pure(self.epsilon)

    def moved(self, released: int) -> int:
        """c: how many of the released counts one person can change."""
        if self.max_items is None:
            return released
        return min(released, parameters.directions(self.adjacency) * self.max_items)

    def noise(self, released: int) -> IntegerNoise:
        """The noise on each of ``released`` counts. Public.

        >>> NoisyCounts(rho=0.5, max_items=3).noise(released=10)
        DiscreteGaussian(variance=Fraction(3, 1))
        """
        changed = self.moved(parameters.whole(released, "released"))
        if self.rho is not None:
            return DiscreteGaussian(changed / (2 * exact(self.rho)))
        assert self.epsilon is not None
        return DiscreteLaplace(changed / exact(self.epsilon))

    def half_width(self, released: int, confidence: float = 0.95) -> int:
        """w such that each count lies within ± w of its noisy one with this probability. Public."""
        return self.noise(released).half_width(parameters.probability(confidence, "confidence"))

    def release(
        self, histogram: Histogram, items: Sequence[Hashable], bits: BitSource | None = None
    ) -> tuple[int, ...]:
        """The noisy count of each item, in the order given."""
        no_repetition(items)
        if not items:
            return ()
        bits = SystemBits() if bits is None else bits
        noise = self.noise(len(items))
        return tuple(count + noise.draw(bits) for count in histogram.counts_of(items))

    def counts_alone(
        self, histogram: Histogram, items: Sequence[Hashable], bits: BitSource | None
    ) -> tuple[int, ...]:
        """The noisy counts, as ``release`` draws them."""
        return self.release(histogram, items, bits)

    def clamped_law(self, counts: Sequence[int], window: tuple[int, int]) -> dict[Outcome, arb]:
        """The law of the noisy counts, each clamped to the window: a product of one for each.

        Parameters: ``counts``: the exact count of each item, before noise.
        """
        law: dict[Outcome, arb] = {(): arb(1)}
        noise = self.noise(len(counts))
        with precision(max(128, ctx.prec) + 64):
            for count in counts:
                masses = _clamped(noise, count, *window)
                law = {(*o, x): p * q for o, p in law.items() for x, q in masses.items()}
        return law

    def of(self, items: Sequence[Hashable], window: tuple[int, int]) -> ClampedCounts:
        """The same release for fixed items, each count clamped to the window: a finite law."""
        return ClampedCounts(self, tuple(items), window)

    @classmethod
    def verification_cases(cls) -> tuple[ClampedCounts, ...]:
        """The parameters that ``topsecret verify`` checks."""
        one, two, window = ("a",), ("a", "b"), (3, 7)
        return (
            cls(epsilon=0.7).of(one, window),
            cls(epsilon=3.0, max_items=1).of(two, window),
            cls(epsilon=28 / 3, max_items=1, adjacency="replace").of(two, window),
            cls(rho=0.5, max_items=1).of(two, window),
            cls(rho=0.5, adjacency="replace").of(two, window),
        )


@dataclass(frozen=True)
class ClampedCounts:
    """Noisy counts of fixed items, clamped to a window: what verification can enumerate.

    The items are public, so it asks for a public domain. Clamping is post-processing: its loss
    is at most that of the counts. The ends of the window carry the whole tails, so that no mass
    is left out.
    """

    counts: NoisyCounts | CorrelatedCounts
    items: tuple[Hashable, ...]
    window: tuple[int, int]

    def __post_init__(self) -> None:
        no_repetition(self.items)
        low, high = self.window
        if low > high:
            raise InvalidParameter(f"window={self.window} must not be empty; swap its ends")

    @property
    def meets_claim_exactly(self) -> bool:
        """As the counts do."""
        return self.counts.meets_claim_exactly

    @property
    def max_items(self) -> int | None:
        """How many items one person may touch."""
        return self.counts.max_items

    @property
    def adjacency(self) -> parameters.Adjacency:
        """Which datasets are neighbours: "add-remove" or "replace"."""
        return self.counts.adjacency

    @property
    def ordered(self) -> bool:
        """The counts stand in the order of the items."""
        return True

    @property
    def loss(self) -> Loss:
        """The fixed cost of the counts."""
        return self.counts.loss

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the counts and clamp them."""
        histogram.require_domain("ClampedCounts", 0)
        low, high = self.window
        noisy = self.counts.counts_alone(histogram, self.items, bits)
        return Selection(tuple(max(low, min(high, count)) for count in noisy), complete=True)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The exact law of the clamped counts, in balls."""
        histogram.require_domain("ClampedCounts", 0)
        low, high = self.window
        if (high - low + 1) ** len(self.items) > _MOST:
            raise TooLarge(
                f"{len(self.items)} counts in {self.window} have more than {_MOST} outcomes; "
                "take a narrower window"
            )
        if not self.items:
            return {(): arb(1)}
        return self.counts.clamped_law(histogram.counts_of(self.items), self.window)

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the clamped counts."""
        return as_floats(self.probabilities(histogram))


def _clamped(noise: IntegerNoise, count: int, low: int, high: int) -> dict[int, arb]:
    if low == high:
        return {low: arb(1)}
    masses = {x: noise.mass(x - count) for x in range(low + 1, high)}
    # Both noises are symmetric: P[count + noise ≤ low] = P[noise ≥ count − low].
    return {low: noise.at_least(count - low), **masses, high: noise.at_least(high - count)}


def no_repetition(items: Sequence[Hashable]) -> None:
    """Each item's count is released once."""
    if len(set(items)) != len(items):
        raise InvalidParameter("items must not name one twice; each further count would cost more")
