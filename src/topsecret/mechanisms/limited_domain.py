"""`LimitedDomain`: the leading observed items, ended by ⊥ when the rest is too close to call.

>>> from topsecret import Histogram
>>> mechanism = LimitedDomain(k=2, k_bar=5, epsilon_per_pick=1.0, delta=1e-6)
>>> answer = mechanism.select(Histogram.of({"a": 900, "b": 500, "c": 2}))
>>> answer.items, answer.complete
(('a', 'b'), True)

**Statement** (Durfee & Rogers 2019, Algorithms 1 and 5 and Thm 1, corrected). Let h₍ⱼ₎ be the
ranked counts of the observed items, ties in a fixed order of the items. With
t = h₍k̄₊₁₎ + 1 + ln(M/δ)/ε₀, M = min(Δ, k̄), draw v_⊥ = t + Gumbel(1/ε₀) and
v_j = h₍ⱼ₎ + Gumbel(1/ε₀) for j ≤ k̄; report items by decreasing v until ⊥ or until k. The answer is
(ε′(δ′) + k·ln(1 + δ), δ + δ′)-DP for every bound (ε′, δ′) on k picks of ε₀: the loss is
picks(k, ε₀) + slack(k·ln(1 + δ)) + failure(δ).

**Preconditions.** Counts are of distinct people: one person moves each by at most 1, all in one
direction (add-remove), at most Δ = ``max_items`` of them. k̄ ≥ k is fixed before seeing data.
Other scores that a person moves by at most c = ``sensitivity``, such as clipped rows or sums, are
counts in units of c: Gumbel(c/ε₀) and t = h₍k̄₊₁₎ + c + c·ln(M/δ)/ε₀. The argument below is the
same with c for 1: ranked scores move by [0, c] too, and so do t and the score of every candidate.

**Why each line matters.**
- *h₍k̄₊₁₎ + 1*: an item that enters the leading k̄ with one more person has a count of at most
  h₍k̄₊₁₎ + 1 there. At most M items can be in one leading set and not in the other: a person
  touches Δ, and there are k̄ places.
- *ln(M/δ)/ε₀*: ⊥ has at least M/δ times the weight of each of these M items, so that one of them
  comes before ⊥ with probability at most M·(δ/M) = δ. That is ``failure(δ)``. Without the "+ 1" the
  weight of ⊥ is too small by the factor e^(ε₀), and the verification says so.
- On outcomes that name common items only, each pick is an ε₀-bounded-range pick over the
  common items and ⊥, up to the share of the other items in the normaliser, which is at most δ
  times the weight of ⊥: a factor in [1/(1 + δ), 1] per pick, hence k·ln(1 + δ) in all. The paper's
  proof (Lemmas C.3, 5.6) treats this law as an exact product; it is one up to that factor.
- ``strict`` (Algorithm 5) keeps items with h > h₍k̄₊₁₎ only. Then ties at the edge can drop up to
  k̄ items at once even for small Δ, so M = k̄; with M = Δ it is *not* private.
- Fewer than k̄ + 1 observed items: h₍k̄₊₁₎ = 0, no padding is needed, since an item that nobody
  has is never a candidate on either side.
- Under replace a count moves in both directions: Gumbel(2/ε₀), t = h₍k̄₊₁₎ + 2 + 2·ln(M/δ)/ε₀,
  M = min(2Δ, k̄). (With c: Gumbel(2c/ε₀), t = h₍k̄₊₁₎ + 2c + 2c·ln(M/δ)/ε₀.)
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, ctx

from topsecret.accounting import Loss, limited_domain_loss
from topsecret.counts.histogram import Histogram
from topsecret.exact.rounding import Number, ball, exact, precision
from topsecret.mechanisms import parameters
from topsecret.mechanisms.plackett_luce import as_floats, plackett_luce
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.bits import BitSource, Log, SystemBits
from topsecret.noise.distributions import GUMBEL
from topsecret.noise.race import EXTRA, race
from topsecret.noise.screening import ScoreGroups


@dataclass(frozen=True)
class LimitedDomain:
    """At most k of the leading observed items, in order, until ⊥.

    Guarantee: picks(k, ``epsilon_per_pick``) + k·ln(1 + ``delta``) + a failure of ``delta``;
    ``max_items`` and ``sensitivity``, the most that one person moves a score by, must have been
    enforced when the histogram was counted.

    Parameters: ``delta``: of the threshold: the loss has it as a failure, and k·ln(1 + delta) as
    slack.
    """

    k: int
    k_bar: int
    epsilon_per_pick: Number
    delta: Number
    max_items: int | None = None
    strict: bool = False
    adjacency: parameters.Adjacency = "add-remove"
    sensitivity: int = 1

    def __post_init__(self) -> None:
        parameters.whole(self.k, "k")
        parameters.whole(self.k_bar, "k_bar")
        parameters.at_most(self.k, "k", self.k_bar, "k_bar")
        parameters.positive(self.epsilon_per_pick, "epsilon_per_pick")
        parameters.probability(self.delta, "delta")
        parameters.cap(self.max_items)
        parameters.adjacency(self.adjacency)
        parameters.sensitivity(self.sensitivity)

    @property
    def ordered(self) -> bool:
        """The list is published best first."""
        return True

    @property
    def loss(self) -> Loss:
        """k picks, the slack of the common normaliser, and the threshold's failure."""
        return limited_domain_loss(self.k, self.epsilon_per_pick, self.delta)

    @property
    def _directions(self) -> int:
        return 1 if self.adjacency == "add-remove" else 2

    @property
    def _scale(self) -> Fraction:
        return self._directions * self.sensitivity / exact(self.epsilon_per_pick)

    @property
    def _reach(self) -> int:
        """M: how many items can be in one neighbour's leading set and not in the other's."""
        if self.strict or self.max_items is None:
            return self.k_bar
        return min(self._directions * self.max_items, self.k_bar)

    def _threshold(self) -> Log:
        """t − h₍k̄₊₁₎ over the noise scale: s·c/scale + ln(M/δ), where s·c/scale is ε₀."""
        return Log(self._reach / exact(self.delta), plus=exact(self.epsilon_per_pick))

    def _candidates(self, histogram: Histogram) -> list[tuple[Hashable, int]]:
        """The leading items with their lead over h₍k̄₊₁₎."""
        rows = histogram.ranked(self.k_bar + 1)
        next_count = rows[self.k_bar][1] if len(rows) > self.k_bar else 0
        leads = [(item, count - next_count) for item, count in rows[: self.k_bar]]
        return [(item, lead) for item, lead in leads if lead > 0] if self.strict else leads

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the list."""
        bits = SystemBits() if bits is None else bits
        candidates = self._candidates(histogram)
        leads = [lead for _, lead in candidates]
        kind = np.int64 if all(lead < 2**62 for lead in leads) else np.object_
        field = ScoreGroups(np.array(leads, dtype=kind))
        finish = race(field, GUMBEL, self._scale, self.k, bits, extra=self._threshold())
        items = tuple(candidates[place][0] for place in finish if place != EXTRA)
        return Selection(items, complete=len(items) == self.k)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """Plackett–Luce over the leading items and ⊥, ended by ⊥."""
        candidates = self._candidates(histogram)
        most = max((lead for _, lead in candidates), default=0)
        bits = max(128, ctx.prec)
        with precision(bits):
            weights = [(item, ball((lead - most) / self._scale).exp()) for item, lead in candidates]
            nothing = (self._threshold().ball(bits) - ball(most / self._scale)).exp()
            return plackett_luce(weights, self.k, nothing)

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the list on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[LimitedDomain, ...]:
        """The parameters that ``topsecret verify`` checks: k̄ below, at and above the items."""
        price, delta = 0.7, 0.01
        return (
            cls(1, 4, price, delta),
            cls(2, 2, price, delta),
            cls(2, 3, price, delta, max_items=1),
            cls(3, 4, price, delta, max_items=2),
            cls(4, 6, price, delta),
            cls(2, 3, 1.5, 0.1, max_items=2),
            cls(1, 3, 3.0, delta),
            cls(3, 3, 3.0, 0.05, max_items=1),
            cls(2, 2, price, delta, strict=True),
            cls(2, 3, price, delta, max_items=1, strict=True),
            cls(1, 2, price, delta, max_items=1, adjacency="replace"),
            cls(2, 3, price, delta, adjacency="replace"),
            cls(2, 3, price, delta, adjacency="replace", strict=True),
            cls(2, 3, price, delta, max_items=2, sensitivity=2),
            cls(2, 3, 1.5, delta, sensitivity=3),
            cls(2, 2, price, delta, strict=True, sensitivity=2),
            cls(2, 3, price, delta, max_items=1, strict=True, sensitivity=3),
            cls(1, 2, price, delta, max_items=1, adjacency="replace", sensitivity=2),
            cls(2, 3, price, delta, adjacency="replace", sensitivity=3),
        )
