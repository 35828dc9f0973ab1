"""`FixedThreshold`: those of the true top k that stand clearly above the next.

>>> from topsecret import Histogram
>>> mechanism = FixedThreshold(k=2, epsilon_per_pick=1.0, delta=1e-6)
>>> mechanism.select(Histogram.of({"a": 900, "b": 500, "c": 2})).items
('a', 'b')

**Statement** (Durfee & Rogers 2019, Alg. 8, corrected). For each j ≤ k with h₍ⱼ₎ > h₍k₊₁₎, include
item j if h₍ⱼ₎ + Lap(1/ε₀) > h₍k₊₁₎ + 1 + ln(1/(2δ))/ε₀, independently. The *unordered* set of the
included items is k steps of (ε₀, δ)-DP each (their Thm 5): the loss is k·approximate(ε₀, δ).

**Preconditions.** Whole counts of distinct people: one person moves each by at most 1, all in one
direction, so the gap h₍ⱼ₎ − h₍k₊₁₎ of an item moves by at most 1.

**Why each line matters.**
- *h₍ⱼ₎ > h₍k₊₁₎*: an item that is a candidate on one side only has a gap of exactly 1 there, for
  which noise alone passes with probability δ. (Counts are whole; a real gap could be anything.)
- *k steps*: let A, A′ be the candidates before and after one person more. If j is in A only, then
  h₍k₊₁₎ rose and h_j did not; an item in A′ only would have to rise by 2. So one of A, A′ contains
  the other and at most k items take part on either side, each an independent (ε₀, δ)-DP bit.
- *1 + ln(1/(2δ))/ε₀*: P[1 + Lap(1/ε₀) > 1 + ln(1/(2δ))/ε₀] = δ. Without the 1 it is δ·e^(ε₀).
- An item's place does not enter, so ties are harmless: a tie with h₍k₊₁₎ is never a candidate.
- The bits are independent Bernoullis of known probability: the bit is drawn, the noise never is.

**Printed wrongly.** "Draw only if h₍ᵢ₎ > h_⊥", the threshold itself. An item that crosses it by one
person goes from 0 to a probability of more than one half: δ = .63 where .01 is claimed.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import product

from flint import arb, ctx

from topsecret.accounting import Loss, approximate
from topsecret.counts.histogram import Histogram
from topsecret.errors import TooLarge
from topsecret.exact.ordering import as_a_set
from topsecret.exact.rounding import Number, exact, precision
from topsecret.mechanisms import parameters
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.propose_test_release import LaplaceChance
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.bits import BitSource, Real, SystemBits, bernoulli

_MOST = 16


@dataclass(frozen=True)
class FixedThreshold:
    """The items of the true top k that pass a fixed noisy threshold, as a set.

    Guarantee: k steps of (``epsilon_per_pick``, ``delta``)-DP.

    Parameters: ``epsilon_per_pick``: the epsilon of each of the k steps; ``delta``: of each of the
    k steps.
    """

    k: int
    epsilon_per_pick: Number
    delta: Number

    def __post_init__(self) -> None:
        parameters.whole(self.k, "k")
        parameters.positive(self.epsilon_per_pick, "epsilon_per_pick")
        parameters.probability(self.delta, "delta")

    @property
    def ordered(self) -> bool:
        """The answer is a set."""
        return False

    @property
    def meets_claim_exactly(self) -> bool:
        """With k = 1 and a gap of 1 against 0 the divergence is δ itself, at every epsilon."""
        return True

    @property
    def loss(self) -> Loss:
        """k steps of (ε₀, δ)-DP."""
        return self.k * approximate(self.epsilon_per_pick, self.delta)

    def _chances(self, histogram: Histogram) -> list[tuple[Hashable, Real]]:
        """Who may be included, and with what probability: P[Lap(1) > ln(1/(2δ)) − ε₀(gap − 1)]."""
        rows = histogram.ranked(self.k + 1)
        next_count = rows[self.k][1] if len(rows) > self.k else 0
        price, odds = exact(self.epsilon_per_pick), 1 / (2 * exact(self.delta))
        return [
            (item, LaplaceChance(odds, price * (count - next_count - 1)))
            for item, count in rows[: self.k]
            if count > next_count
        ]

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the set."""
        bits = SystemBits() if bits is None else bits
        chances = self._chances(histogram)
        return self._answer([item for item, chance in chances if bernoulli(chance, bits)])

    def _answer(self, items: list[Hashable]) -> Selection:
        return Selection(as_a_set(items), complete=len(items) == self.k, ordered=False)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The product of the Bernoullis."""
        if self.k > _MOST:
            raise TooLarge(f"the law of k={self.k} has 2^k outcomes; k may be at most {_MOST} here")
        law: dict[Outcome, arb] = {}
        with precision(max(128, ctx.prec)):
            chances = [(item, chance.ball(ctx.prec)) for item, chance in self._chances(histogram)]
            for included in product((True, False), repeat=len(chances)):
                items = [item for (item, _), stays in zip(chances, included, strict=True) if stays]
                probability = arb(1)
                for (_, chance), stays in zip(chances, included, strict=True):
                    probability *= chance if stays else 1 - chance
                law[self._answer(items).outcome] = probability
        return law

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the set on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[FixedThreshold, ...]:
        """The parameters that ``topsecret verify`` checks."""
        return (
            cls(1, 0.7, 0.01),
            cls(2, 0.7, 0.01),
            cls(3, 1.5, 0.1),
            cls(5, 0.4, 0.05),
        )
