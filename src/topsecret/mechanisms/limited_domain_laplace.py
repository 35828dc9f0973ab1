"""`LimitedDomainLaplace`: `LimitedDomain` for people who touch few items.

>>> from topsecret import Histogram
>>> mechanism = LimitedDomainLaplace(k=2, k_bar=5, epsilon_per_pick=1.0, delta=1e-8, max_items=1)
>>> mechanism.select(Histogram.of({"a": 900, "b": 500, "c": 2})).items
('a', 'b')

**Statement** (Durfee & Rogers 2019, Alg. 4 and Lemma 6.1, corrected).
v_⊥ = h₍k̄₊₁₎ + 1 + ln(Δ/δ)/ε₀ + Lap(1/ε₀),
v_j = h₍ⱼ₎ + Lap(1/ε₀) for j ≤ k̄; report items by decreasing v until ⊥ or until k. The answer is
(Δε₀, (e^(Δε₀) + 1)·δ̄)-DP with δ̄ = (δ/4)·(2 + ln(Δ/δ)): the cost does not grow with k, so it is
worth it when Δ < k. The loss is approximate(Δε₀, (e^(Δε₀) + 1)·δ̄).

**Preconditions.** Counts of distinct people; Δ = ``max_items`` ≤ k̄ was enforced when they were
counted; add-remove; k̄ ≥ k is fixed before seeing data.

**Why each line matters.**
- *The noisy values of ⊥ and of the items that both neighbours may name* have L1 sensitivity Δ,
  not Δ + 1. Let one person more raise h₍k̄₊₁₎ = T to T + 1, so that ⊥ moves, and let a ≤ k̄ items
  have more than T before. At least k̄ + 1 − a items move from T to T + 1, and only k̄ − a of those
  with T were among the leading k̄: one of the Δ items that move was not among them, which leaves
  Δ − 1 of them and ⊥.
- *An item that only one neighbour may name* has a count of at most h₍k̄₊₁₎ + 1 there. It comes
  before ⊥ with probability P[Lap(1) − Lap(1) > ln(Δ/δ)] = (δ/(4Δ))·(2 + ln(Δ/δ)) at most. There are
  at most Δ such items: δ̄ in all. (The paper's bound of this tail has 3 instead of 2.)
- *(e^(Δε₀) + 1)·δ̄*: leaving those outcomes out costs δ̄ on one side and, through the ratio, at
  most e^(Δε₀)·δ̄ on the other.
- *Δ ≤ k̄*: a person with more items than places would make M = k̄ the right number, for which
  ``LimitedDomain`` is better anyway.

**Printed wrongly.** The threshold h₍k̄₊₁₎ + 1 + ln(Δ/ε): δ does not occur in it, and an item that
one person brings in comes before ⊥ with a probability that no δ bounds.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, ctx

from topsecret.accounting import Loss, approximate
from topsecret.counts.histogram import Histogram
from topsecret.exact.rounding import Number, ball, exact, precision, up
from topsecret.mechanisms import parameters
from topsecret.mechanisms.order_laws import laplace, list_law
from topsecret.mechanisms.piecewise import at, guard_bits
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import NOTHING, Outcome, Selection
from topsecret.noise.bits import BitSource, Log, SystemBits
from topsecret.noise.distributions import LAPLACE
from topsecret.noise.race import EXTRA, race
from topsecret.noise.screening import ScoreGroups


@dataclass(frozen=True)
class LimitedDomainLaplace:
    """At most k of the leading observed items, in order, until ⊥; its price does not grow with k.

    Guarantee: (Δε₀, (e^(Δε₀) + 1)·δ̄)-DP with Δ = ``max_items``, ε₀ = ``epsilon_per_pick`` and
    δ̄ = (``delta``/4)·(2 + ln(Δ/``delta``)).

    Parameters: ``epsilon_per_pick``: the ε₀ of the guarantee: the answer costs Δ·ε₀, however many
    items it names; ``delta``: what the threshold is made from; the answer's own is
    (e^(Δε₀) + 1)·δ̄; ``max_items``: how many items of one person are counted.
    """

    k: int
    k_bar: int
    epsilon_per_pick: Number
    delta: Number
    max_items: int

    def __post_init__(self) -> None:
        parameters.whole(self.k, "k")
        parameters.whole(self.k_bar, "k_bar")
        parameters.at_most(self.k, "k", self.k_bar, "k_bar")
        parameters.positive(self.epsilon_per_pick, "epsilon_per_pick")
        parameters.probability(self.delta, "delta")
        parameters.whole(self.max_items, "max_items")
        parameters.at_most(self.max_items, "max_items", self.k_bar, "k_bar")

    @property
    def ordered(self) -> bool:
        """The list is published best first."""
        return True

    @property
    def loss(self) -> Loss:
        """One step of (Δε₀, (e^(Δε₀) + 1)·δ̄)-DP, δ rounded up."""
        epsilon = self.max_items * exact(self.epsilon_per_pick)
        delta = exact(self.delta)
        with precision(128):
            tail = ball(delta) / 4 * (2 + ball(self.max_items / delta).log())
            failing = up((ball(epsilon).exp() + 1) * tail)
        return approximate(epsilon, min(failing, 1.0))

    def _threshold(self) -> Log:
        """(v_⊥'s centre − h₍k̄₊₁₎)·ε₀ = ε₀ + ln(Δ/δ)."""
        return Log(self.max_items / exact(self.delta), plus=exact(self.epsilon_per_pick))

    def _leads(self, histogram: Histogram) -> list[tuple[Hashable, int]]:
        """The leading items with their lead over h₍k̄₊₁₎."""
        rows = histogram.ranked(self.k_bar + 1)
        next_count = rows[self.k_bar][1] if len(rows) > self.k_bar else 0
        return [(item, count - next_count) for item, count in rows[: self.k_bar]]

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the list."""
        bits = SystemBits() if bits is None else bits
        candidates = self._leads(histogram)
        leads = [lead for _, lead in candidates]
        kind = np.int64 if all(lead < 2**62 for lead in leads) else np.object_
        scale = 1 / exact(self.epsilon_per_pick)
        field = ScoreGroups(np.array(leads, dtype=kind))
        finish = race(field, LAPLACE, scale, self.k, bits, extra=self._threshold())
        items = tuple(candidates[place][0] for place in finish if place != EXTRA)
        return Selection(items, complete=len(items) == self.k)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The law of sorting Laplace noise around the leads and the threshold, ended by ⊥."""
        price = exact(self.epsilon_per_pick)
        centres: dict[Hashable, Log] = {
            item: at(Fraction(price * lead)) for item, lead in self._leads(histogram)
        }
        centres[NOTHING] = self._threshold()
        bits = max(128, ctx.prec) + guard_bits(list(centres.values()), len(centres))
        with precision(bits):
            runners = {name: laplace(centre) for name, centre in centres.items()}
            return list_law(runners, self.k)

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the list on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[LimitedDomainLaplace, ...]:
        """The parameters that ``topsecret verify`` checks."""
        return (
            cls(1, 2, 0.7, 0.01, 1),
            cls(2, 3, 0.7, 0.01, 1),
            cls(3, 4, 0.5, 0.05, 2),
        )
