"""`PermuteAndFlip`: k rounds of report-noisy-max with fresh exponential noise.

>>> from topsecret.counts.histogram import Histogram
>>> mechanism = PermuteAndFlip(k=2, scale=0.01)
>>> mechanism.select(Histogram.of({"a": 9, "b": 5}, domain=["a", "b", "c"])).items
('a', 'b')

**Statement.** A round reports the item left with the largest h_i + τ·E_i, E_i ~ Exp(1) fresh. It
is (s·Δ_q/τ)-DP, and k rounds without replacement are k such steps: k times ``pure`` of s·Δ_q/τ.

**The law of a round** (McKenna & Sheldon 2020 call it permute-and-flip; Ding et al. 2021 found the
noise). With p_i = e^((h_i − h_(max))/τ), the noisy score of i passes h_(max) with probability p_i,
that of the best item always. By memorylessness the excesses are i.i.d., so the winner is uniform
among those that pass. Let u be the quantile of the winner's excess: each other item stays below it
with probability 1 − u·p_j, hence P[i] = p_i·∫₀¹ Π_{j≠i}(1 − u·p_j) du: a polynomial, integrated
exactly.

**Preconditions.** The domain is public and the same for all neighbours; each score moves by at
most Δ_q = ``sensitivity``; s = 1 only under add-remove with monotone scores, else s = 2.

**Why.** Fix the noise of all items but i; i wins iff its noisy score exceeds their largest, M.
From h to a neighbour h′ raise the noisy score of i by c and its noise changes by c − (h′_i − h_i).
- If scores fall, c = 0 will do: M does not rise. If they rise, c = Δ_q: M rises by at most Δ_q.
  Either way the noise of i grows by an amount of [0, Δ_q]: it stays ≥ 0, where the density is
  positive, and the density falls by at most e^(−Δ_q/τ). Under replace take c = Δ_q: [0, 2Δ_q].
- Fresh noise in every round is what makes the rounds compose. One set of noise for all rounds is
  ``OneshotExponential``, which has a proof of its own.

**Tight.** For k = 1 the scores (0, 1) give the first item e^(−1/τ)/2, and (1, 1) give ½.

**Easily done wrongly.** The log-ratios of a round lie in [−ε₀, ε₀] but in no interval of length
ε₀: it is not ε₀-bounded-range, so ε₀²/8 per pick, right for Gumbel noise, undercharges it, and so
do all bounds for picks. Verification rejects that charge.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from math import perm
from typing import ClassVar

from flint import arb, arb_poly, ctx

from topsecret.accounting import NO_LOSS, Loss, failure, pure
from topsecret.counts.histogram import Histogram
from topsecret.errors import TooLarge
from topsecret.exact.rounding import ball, exact, precision
from topsecret.mechanisms import parameters
from topsecret.mechanisms.best_items import best_items, oriented_scores
from topsecret.mechanisms.noiseless import ranked_law
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.bits import BitSource
from topsecret.noise.distributions import EXPONENTIAL
from topsecret.noise.peeling import peel

_MOST = 200_000


@dataclass(frozen=True)
class PermuteAndFlip:
    """The k best items of a public domain, in order, one round of exponential noise for each.

    Guarantee: k pure steps of ε₀ = s·sensitivity/scale, s = 1 for counts under add-remove and 2
    under replace. For scores that may move in both directions pass ``adjacency="replace"``.
    """

    k: int
    scale: float
    sensitivity: float = 1
    adjacency: parameters.Adjacency = "add-remove"
    smallest: bool = False

    meets_claim_exactly: ClassVar[bool] = True
    """At k = 1, by the example above; it never exceeds it, by the proof."""

    def __post_init__(self) -> None:
        parameters.whole(self.k, "k")
        parameters.not_negative(self.scale, "scale")
        parameters.not_negative(self.sensitivity, "sensitivity")
        parameters.adjacency(self.adjacency)

    @property
    def ordered(self) -> bool:
        """The list is published best first."""
        return True

    @property
    def loss(self) -> Loss:
        """k pure steps; a scale of 0 has no privacy at all."""
        most = parameters.directions(self.adjacency) * exact(self.sensitivity)
        if most == 0:
            return NO_LOSS
        if self.scale == 0:
            return failure(1)
        return self.k * pure(most / exact(self.scale))

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the list."""
        histogram.require_domain("PermuteAndFlip", self.k)
        items = best_items(
            histogram,
            self.k,
            EXPONENTIAL,
            exact(self.scale),
            bits,
            smallest=self.smallest,
            ranking=peel,
        )
        return Selection(items, complete=True)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The product of the rounds' laws."""
        size = histogram.require_domain("PermuteAndFlip", self.k)
        if perm(size, self.k) > _MOST:
            raise TooLarge(
                f"the law of {self.k} rounds among {size} items has more than {_MOST} outcomes; "
                "ask for it on a smaller histogram"
            )
        scores = oriented_scores(histogram, self.smallest)
        if self.scale == 0:
            return ranked_law(scores, self.k)
        with precision(max(128, ctx.prec) + 64):
            return _rounds(dict(scores), exact(self.scale), self.k)

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the list on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[PermuteAndFlip, ...]:
        """The parameters that ``topsecret verify`` checks."""
        return (
            cls(k=1, scale=10 / 7),
            cls(k=2, scale=2 / 3),
            cls(k=4, scale=3 / 7),
            cls(k=2, scale=2 / 3, smallest=True),
            cls(k=2, scale=4, sensitivity=2),
            cls(k=2, scale=4, sensitivity=3),
            cls(k=2, scale=10 / 7, adjacency="replace"),
        )


def _rounds(scores: dict[Hashable, Fraction], scale: Fraction, k: int) -> dict[Outcome, arb]:
    law: dict[Outcome, arb] = {(): arb(1)}
    known: dict[frozenset[Hashable], dict[Hashable, arb]] = {}
    for _ in range(k):
        longer: dict[Outcome, arb] = {}
        for taken, chance in law.items():
            left = frozenset(scores).difference(taken)
            if left not in known:
                known[left] = _round({item: scores[item] for item in scores if item in left}, scale)
            for item, share in known[left].items():
                longer[(*taken, item)] = chance * share
        law = longer
    return law


def _round(scores: dict[Hashable, Fraction], scale: Fraction) -> dict[Hashable, arb]:
    """P[i] = p_i·∫₀¹ Π_{j≠i}(1 − u·p_j) du."""
    highest = max(scores.values())
    passes = {item: ball((score - highest) / scale).exp() for item, score in scores.items()}
    law = {}
    for item, chance in passes.items():
        others = arb_poly([1])
        for other, rival in passes.items():
            if other != item:
                others *= arb_poly([arb(1), -rival])
        law[item] = chance * others.integral()(arb(1))
    return law
