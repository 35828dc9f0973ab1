"""`StableFixedK`: k items, the ones that a drop near k sets apart at half the price.

>>> from topsecret import Histogram
>>> counts = {f"item {i}": 900 for i in range(3)} | {f"other {i}": 20 for i in range(9)}
>>> mechanism = StableFixedK(k=3, k_bar=6, rho=0.2, failure=1e-6, closeness=1, delta=1e-6)
>>> mechanism.select(Histogram.of(counts)).items
('item 0', 'item 1', 'item 2')

**Statement** (Zhu & Wang 2022, Alg. 3, corrected). Run ``StableTopK`` with ρ/2 and the
regulariser r(j) = −λ|j − k|. Let it release k̃ items, or nothing. Spend the other ρ/2 on n picks
of ε₀ = 2√(ρ/n):

- nothing: n = k picks among all items;
- k̃ = k: the released set, no picks;
- k̃ > k: n = k picks among the released items;
- k̃ < k: the released items and n = k − k̃ picks among the *other* items.

The answer is an unordered set. Its loss is that of ``StableTopK`` at ρ/2, plus zcdp(ρ/2).

**Two kinds of picks**, by a public parameter. ``delta=None``: the items are a public domain, and
picks are those of ``GumbelTopK``; a histogram without a domain is refused. With a ``delta``: only
observed items can be named, picks among items that were not released are those of
``LimitedDomain``, the loss has failure(δ) + slack(k·ln(1 + δ)) on top, and the set may be shorter
than k. (Picks among released items need no threshold: the set is public by then.)

**Why each line matters.**
- *zcdp(ρ/2), never picks(n, ε₀)*: n depends on what was released, and bounds for picks need n
  fixed beforehand. n·ε₀²/8 = ρ/2 for every n, and zCDP composes adaptively.
- *Gumbel(1/ε₀)* is enough because counts are monotone under add-remove (s = 1). 1/ε₀ is rounded up.
- On the event that the released set is not the same on both neighbours nothing is promised; it is
  part of ``failure``. Given the same set, the items left are the same on both.
- *The other items*: the leading k̄ − k̃ of them are looked at by ``LimitedDomain``, so k̄ + 1 rows
  serve for all cases.

**Printed wrongly.** "Total pure-DP budget ε_EM = 2√ρ" for n picks: with ε_EM for each pick the loss
is n times too large and the verification says so; with ε_EM/n for each it is private and wastes
most of the budget. Picks "on h" when k̃ < k may name released items again: private, but the set
then has fewer than k items.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import arb, ctx

from topsecret.accounting import Loss, failure, slack, zcdp
from topsecret.counts.histogram import Histogram
from topsecret.exact.ordering import as_a_set
from topsecret.exact.rounding import Number, ball, exact, precision, root_up, up
from topsecret.mechanisms import parameters
from topsecret.mechanisms.gumbel import GumbelTopK
from topsecret.mechanisms.limited_domain import LimitedDomain
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import NOTHING, Outcome, Selection
from topsecret.mechanisms.stability import (
    Rows,
    StableTopK,
    gaps_of,
    places,
    proposal_law,
    propose,
)
from topsecret.noise.bits import BitSource, SystemBits


@dataclass(frozen=True)
class StableFixedK:
    """The unordered top ``k``, cheaper where the counts drop near k.

    ``closeness`` is λ: how many people of gap one place away from k is worth. ``delta=None``
    needs a public domain; a ``delta`` names observed items only.

    Parameters: ``delta``: of the threshold of the picks that complete the set, beside ``failure``;
    None on a public domain, where there is no threshold.

    Guarantee: a (``failure`` + ``delta``)-approximate ``rho``-zCDP release, up to
    k·ln(1 + ``delta``) in epsilon.
    """

    k: int
    k_bar: int
    rho: Number
    failure: Number
    closeness: Number
    delta: Number | None = None

    def __post_init__(self) -> None:
        parameters.whole(self.k, "k")
        parameters.whole(self.k_bar, "k_bar")
        parameters.at_most(self.k, "k", self.k_bar, "k_bar")
        parameters.positive(self.rho, "rho")
        parameters.probability(self.failure, "failure")
        parameters.not_negative(self.closeness, "closeness")
        if self.delta is not None:
            parameters.probability(self.delta, "delta")

    @property
    def ordered(self) -> bool:
        """The answer is a set."""
        return False

    @cached_property
    def stable(self) -> StableTopK:
        """The first step, with half of the budget."""
        weight = exact(self.closeness)
        bonus = tuple(-weight * abs(j - self.k) for j in range(1, self.k_bar + 1))
        return StableTopK(self.k_bar, exact(self.rho) / 2, self.failure, bonus)

    @property
    def loss(self) -> Loss:
        """The first step, ρ/2 for the picks, and what their threshold costs."""
        loss = self.stable.loss + zcdp(exact(self.rho) / 2)
        if self.delta is None:
            return loss
        delta = exact(self.delta)
        with precision(128):
            excess = up(self.k * ball(1 + delta).log())
        return loss + slack(excess) + failure(delta)

    def scale_of(self, count: int) -> Fraction:
        """The noise of ``count`` picks: 1/ε₀ = √(n/ρ)/2, rounded up."""
        return root_up(count / (4 * exact(self.rho)))

    def _rows(self, histogram: Histogram) -> Rows:
        if self.delta is None:
            histogram.require_domain("StableFixedK without a delta", self.k)
        return histogram.ranked(self.k_bar + 1)

    def _completion(self, histogram: Histogram, rows: Rows, length: int | None) -> _Completion:
        """What is still to be picked after the first step released the top ``length``."""
        kept = tuple(item for item, _ in rows[: length or 0])
        if len(kept) > self.k:
            released = Histogram.of(dict(rows[:length]), as_a_set(kept))
            return _Completion((), released, GumbelTopK(self.k, self.scale_of(self.k)), self.k)
        if length is not None and length >= self.k:
            return _Completion(kept, histogram, None, 0)
        count = self.k - (length or 0)
        if self.delta is None:
            # Of k picks among all items at most k̃ are released ones; the others, in their
            # order, are the noisy ranking of the other items alone.
            picks = GumbelTopK(self.k, self.scale_of(count))
            return _Completion(kept, histogram, picks, self.k - len(kept))
        others = Histogram.leading(rows[length or 0 :])
        price = 1 / self.scale_of(count)
        limited = LimitedDomain(count, self.k_bar - (length or 0), price, exact(self.delta))
        return _Completion(kept, others, limited, count)

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the set."""
        bits = SystemBits() if bits is None else bits
        rows = self._rows(histogram)
        length = propose(self.stable, gaps_of(rows, places(self.k_bar, histogram)), bits)
        completion = self._completion(histogram, rows, length)
        if completion.mechanism is None:
            return self._answer(completion.kept)
        picked = completion.mechanism.select(completion.histogram, bits).items
        return self._answer(completion.join(picked))

    def _answer(self, items: tuple[Hashable, ...]) -> Selection:
        return Selection(as_a_set(items), complete=len(items) == self.k, ordered=False)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The law of the first step times the laws of the picks, gathered by set."""
        rows = self._rows(histogram)
        law: dict[Outcome, arb] = {}
        with precision(max(128, ctx.prec)):
            gaps = gaps_of(rows, places(self.k_bar, histogram))
            for length, chance in proposal_law(self.stable, gaps).items():
                completion = self._completion(histogram, rows, length)
                for picked, more in completion.law().items():
                    outcome = self._answer(completion.join(picked)).outcome
                    law[outcome] = law.get(outcome, arb(0)) + chance * more
        return law

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the answer on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[StableFixedK, ...]:
        """The parameters that ``topsecret verify`` checks, on public and unknown domains."""
        return (
            cls(1, 2, 0.5, 0.05, 1),
            cls(2, 3, 1.0, 0.05, 0.5),
            cls(1, 3, 0.5, 0.05, 0.5, delta=0.02),
            cls(2, 4, 1.0, 0.05, 0.25, delta=0.02),
        )


@dataclass(frozen=True, slots=True, repr=False)
class _Completion:
    """The released items that stay, and the picks that fill up the set. Secret."""

    kept: tuple[Hashable, ...]
    histogram: Histogram
    mechanism: GumbelTopK | LimitedDomain | None
    count: int

    def join(self, picked: Sequence[Hashable]) -> tuple[Hashable, ...]:
        """The kept items and the first ``count`` picked ones that are not among them."""
        taken = {*self.kept, NOTHING}
        return (*self.kept, *[item for item in picked if item not in taken][: self.count])

    def law(self) -> Mapping[Outcome, arb]:
        """The law of the picks."""
        return (
            {(): arb(1)} if self.mechanism is None else self.mechanism.probabilities(self.histogram)
        )
