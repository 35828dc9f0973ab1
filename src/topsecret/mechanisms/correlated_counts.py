"""`CorrelatedCounts`: counts of released items with one common part in their noise.

>>> from topsecret.counts.histogram import Histogram
>>> counts = CorrelatedCounts(mu=0.5)
>>> noisy = counts.release(Histogram.of({"a": 900, "b": 500, "c": 2}), ("a", "b"), persons=1200)
>>> all(abs(n - true) < 40 for n, true in zip(noisy.counts, (900, 500)))
True
>>> abs(noisy.persons - 1200) < 60
True

**Statement.** m released items, of which one person has at most Δ (``max_items``; None: m). Fix a
rational λ ≤ ½, S = Δ − 2Δλ + mλ², and a, b with S/a + 1/b ≤ μ². Draw Z_i ~ N(0, a) for every item
and one W ~ N(0, b); publish the integers nearest to h_i + Z_i + λW and, if wanted, the one nearest
to N + W, where N is the number of distinct people. Under add-remove this costs what one Gaussian
step of signal-to-noise ratio μ costs: ``gaussian(mu²)``.

**Proof.** Publish X_i = h_i − λN + Z_i and Y = N + W instead: what is published is a function of
them, h_i + Z_i + λW = X_i + λY. One person more moves N by 1 and the h_i of the v ≤ Δ items that
the person has by 1, so these X_i move by 1 − λ and the other m − v by −λ. The squared
signal-to-noise ratio is (v(1 − λ)² + (m − v)λ²)/a + 1/b = (v(1 − 2λ) + mλ²)/a + 1/b.

It grows with v, as λ ≤ ½, so it is at most S/a + 1/b ≤ μ². One person less: the same with the other
sign. ∎

**The noise.** The best split for a given λ is a = √S(√S + λ)/μ², b = (√S + λ)/(λμ²); each count
then has the deviation (√S + λ)/μ, and λ = (Δ − √(Δ(m − Δ)/(m − 1)))/m, at most ½, makes it
smallest: (√m + 1)/(2μ) without a cap, where independent noise needs √m/μ.

**Preconditions.** The items are public: a selection released them and paid for that. ``max_items``
was enforced when the histogram was counted. Counts are of distinct people.

**Why each line matters.**
- N must be the number of *all* people that the counts are of (a weaker filter is allowed, a
  stricter one is not): it must move whenever a count does. A fixed or rounded number of people in
  its place breaks the proof, and the tests say so.
- One W for all counts of a person: a second one, for another list of the same people, would
  reveal differences. Lists of overlapping groups are one release of all their items.
- Under replace counts move both ways and N stays: λ = 0, independent noise of a = min(m, 2Δ)/μ².
- Rounding is post-processing. Integers: a float could reveal the count by its last digits.
- m is known only after the selection, but μ is fixed beforehand and the noise follows from m.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from flint import arb, ctx

from topsecret.accounting import Loss, gaussian
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, ball, exact, precision, root_up
from topsecret.mechanisms import parameters
from topsecret.mechanisms.count_noise import CountNoise
from topsecret.mechanisms.noisy_counts import ClampedCounts, no_repetition
from topsecret.mechanisms.selection import Outcome
from topsecret.noise.bits import FIRST_BITS, BitSource, Noisy, Rational, Real, SystemBits
from topsecret.noise.distributions import GAUSSIAN

_ZERO = Rational(Fraction(0))
_GRID = 1 << 40
"""λ is a multiple of 2⁻⁴⁰: any rational of at most ½ serves, and short ones stay fast."""


@dataclass(frozen=True, slots=True)
class ReleasedCounts:
    """Noisy counts, already private. They may be negative: cutting them at 0 costs nothing."""

    counts: tuple[int, ...]
    """The noisy count of each item, in the items' order."""
    persons: int | None
    """The noisy number of people; None where it was not asked for or there is none."""
    noise: CountNoise | None
    """The law of the noise, public; None where no item was released."""


@dataclass(frozen=True)
class CorrelatedCounts:
    """Noisy counts of released items, and of people, at a fixed price.

    Guarantee: the loss is ``gaussian(mu²)``, whatever the number of items.
    """

    mu: Number
    """The signal-to-noise ratio that one person has."""
    max_items: int | None = None
    adjacency: parameters.Adjacency = "add-remove"

    meets_claim_exactly: ClassVar[bool] = False

    def __post_init__(self) -> None:
        parameters.positive(self.mu, "mu")
        parameters.cap(self.max_items)
        parameters.adjacency(self.adjacency)

    @property
    def loss(self) -> Loss:
        """The fixed cost."""
        return gaussian(exact(self.mu) ** 2)

    def noise(self, released: int) -> CountNoise:
        """The noise on ``released`` counts. Public.

        >>> CorrelatedCounts(mu=1).noise(released=1).weight
        Fraction(1, 2)
        """
        m, mu = parameters.whole(released, "released"), exact(self.mu)
        touched = m if self.max_items is None else min(m, self.max_items)
        if self.adjacency == "replace":
            moved = m if self.max_items is None else min(m, 2 * self.max_items)
            return CountNoise(m, Fraction(0), root_up(Fraction(moved)) / mu, None)
        weight = self.weight(m, touched)
        root = root_up(touched - 2 * touched * weight + m * weight**2)
        if weight == 0:
            return CountNoise(m, weight, root / mu, None)
        item = root_up(root * (root + weight)) / mu
        return CountNoise(m, weight, item, root_up((root + weight) / weight) / mu)

    @staticmethod
    def weight(released: int, touched: int) -> Fraction:
        """λ for ``released`` items of which one person has at most ``touched``, rounded down."""
        if touched == released:
            return Fraction(1, 2)
        spread = root_up(Fraction(touched * (released - touched), released - 1))
        best = (touched - spread) / released
        return max(Fraction(0), min(Fraction(1, 2), Fraction(int(best * _GRID), _GRID)))

    def release(
        self,
        histogram: Histogram,
        items: Sequence[Hashable],
        persons: int | None = None,
        bits: BitSource | None = None,
    ) -> ReleasedCounts:
        """The noisy count of each item, in the order given, and of ``persons`` if passed.

        ``persons`` is the exact number of all people that the counts are of. Secret.
        """
        no_repetition(items)
        if not items:
            return ReleasedCounts((), None, None)
        if persons is not None and self.adjacency == "replace":
            raise InvalidParameter(
                "persons cannot be published under replace, where their number is public; "
                "leave people out"
            )
        noise = self.noise(len(items))
        common, each = drawn(noise, SystemBits() if bits is None else bits)
        counts = tuple(
            count + shift for count, shift in zip(histogram.counts_of(items), each, strict=True)
        )
        whole = None if persons is None or common is None else persons + common
        return ReleasedCounts(counts, whole, noise)

    def counts_alone(
        self, histogram: Histogram, items: Sequence[Hashable], bits: BitSource | None
    ) -> tuple[int, ...]:
        """The noisy counts; the number of people is not published with them."""
        return self.release(histogram, items, bits=bits).counts

    def clamped_law(self, counts: Sequence[int], window: tuple[int, int]) -> dict[Outcome, arb]:
        """The law of the noisy counts, each clamped to the window.

        Given W the counts are independent; their product is integrated over W.

        Parameters: ``counts``: the exact count of each item, before noise.
        """
        return dict(_law(self.noise(len(counts)), tuple(counts), window, max(128, ctx.prec) + 32))

    def of(self, items: Sequence[Hashable], window: tuple[int, int]) -> ClampedCounts:
        """The same release for fixed items, each count clamped to the window: a finite law."""
        return ClampedCounts(self, tuple(items), window)

    @classmethod
    def verification_cases(cls) -> tuple[ClampedCounts, ...]:
        """The parameters that ``topsecret verify`` checks."""
        one, two, window = ("a",), ("a", "b"), (2, 5)
        return (
            cls(mu=1).of(one, window),
            cls(mu=1).of(two, window),
            cls(mu=2, max_items=1).of(two, window),
            cls(mu=1, adjacency="replace").of(two, window),
        )


def drawn(noise: CountNoise, bits: BitSource) -> tuple[int | None, tuple[int, ...]]:
    """The rounded W and the rounded Z_i + λW, exactly.

    Guarantee: the endless digits of independent normals are refined until every rounding is
    decided; the integers have exactly the law of the rounded real numbers.
    """
    if noise.common_scale is None:
        return None, tuple(
            _nearest(Noisy(_ZERO, GAUSSIAN, noise.item_scale, bits)) for _ in range(noise.released)
        )
    common = Noisy(_ZERO, GAUSSIAN, noise.common_scale, bits)
    each = tuple(
        _nearest(Noisy(_ZERO, GAUSSIAN, noise.item_scale, bits), common, noise.weight)
        for _ in range(noise.released)
    )
    return _nearest(common), each


def _nearest(own: Real, common: Real | None = None, weight: Fraction = Fraction(0)) -> int:
    """The integer nearest to own + weight·common; a tie has probability 0."""
    bits = FIRST_BITS
    while True:
        with precision(bits + 32):
            total = own.ball(bits) + arb(0.5)
            if common is not None:
                total += ball(weight) * common.ball(bits)
            found = total.floor().unique_fmpz()
        if found is not None:
            return int(found)
        bits *= 2


@lru_cache(maxsize=4096)
def _law(
    noise: CountNoise, counts: tuple[int, ...], window: tuple[int, int], bits: int
) -> Mapping[Outcome, arb]:
    """The law of clamped counts: a product given W, summed over the nodes of W's integral."""
    with precision(bits):
        nodes, error = noise.nodes()
        law: dict[Outcome, arb] = {}
        for shift, mass in nodes:
            given: dict[Outcome, arb] = {(): mass}
            for count in counts:
                cells = noise.cell_masses(count, *window, shift)
                given = {(*o, x): p * q for o, p in given.items() for x, q in cells}
            for outcome, chance in given.items():
                law[outcome] = law.get(outcome, arb(0)) + chance
        return {outcome: chance + error for outcome, chance in law.items()}
