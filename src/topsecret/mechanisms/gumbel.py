"""`GumbelTopK`: the k largest of score + Gumbel noise over a public domain, in order.

>>> from topsecret import Histogram
>>> mechanism = GumbelTopK(k=2, scale=0.01)
>>> mechanism.select(Histogram.of({"a": 9, "b": 5}, domain=["a", "b", "c"])).items
('a', 'b')

**Statement.** Let v_i = h_i + Gumbel(τ), independent. The ordered list of the k largest is
distributed as k rounds of the exponential mechanism without replacement (Durfee & Rogers 2019,
Lemma 4.2): given the earlier picks, item i is next with probability w_i / Σ_(left) w_j,
w_i = e^(h_i/τ) (Plackett–Luce). One round is ε₀-bounded-range with ε₀ = s·Δ_q/τ (their Lemma 4.3;
OpenDP's proof of its noisy top k, Thm 2.1, charges the same rounds by zCDP).

**Preconditions.** The domain is public and the same for all neighbours. Each score moves by at
most Δ_q = ``sensitivity`` between neighbours. s = 1 only under add-remove with *monotone* scores
(all move in the same direction, as counts of people do); else s = 2.

**Why.** Between neighbours log w_i moves by a number of [0, s·Δ_q/τ] up to a common constant: in
[0, Δ_q/τ] when all move in one direction, in [−Δ_q/τ, Δ_q/τ] otherwise. Normalising adds a constant
too, so the log-ratios of the probabilities of one round lie in an interval of length ε₀: this is
what bounded range means. It holds given any earlier picks, so the k picks compose adaptively.

**Not printed wrongly anywhere**, but easily done wrongly: floating-point Gumbel noise has holes
and ties that reveal the score; here the comparison of real numbers is exact (``noise/race.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb, ctx

from topsecret.accounting import Loss, failure, picks
from topsecret.counts.histogram import Histogram
from topsecret.exact.rounding import Number, ball, exact, precision
from topsecret.mechanisms import parameters
from topsecret.mechanisms.best_items import best_items, oriented_scores
from topsecret.mechanisms.noiseless import ranked_law
from topsecret.mechanisms.plackett_luce import as_floats, plackett_luce
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.bits import BitSource
from topsecret.noise.distributions import GUMBEL


@dataclass(frozen=True)
class GumbelTopK:
    """The k best items of a public domain, in order, by Gumbel noise of the given scale.

    Guarantee: k picks of ε₀ = s·sensitivity/scale each, s = 1 for counts under add-remove and
    2 under replace; ``loss`` says what that costs. For scores that are not counts of people
    and may move in both directions, pass ``adjacency="replace"``.
    """

    k: int
    scale: Number
    smallest: bool = False
    sensitivity: Number = 1
    adjacency: parameters.Adjacency = "add-remove"

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
        """k bounded-range picks; a scale of 0 has no privacy at all."""
        range_over_scale = parameters.directions(self.adjacency) * exact(self.sensitivity)
        if range_over_scale == 0:
            return picks(self.k, 0)
        if self.scale == 0:
            return failure(1)
        return picks(self.k, range_over_scale / exact(self.scale))

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the list."""
        histogram.require_domain("GumbelTopK", self.k)
        scale = exact(self.scale)
        items = best_items(histogram, self.k, GUMBEL, scale, bits, smallest=self.smallest)
        return Selection(items, complete=True)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """Plackett–Luce with weights e^(h/τ)."""
        histogram.require_domain("GumbelTopK", self.k)
        scores = oriented_scores(histogram, self.smallest)
        if self.scale == 0:
            return ranked_law(scores, self.k)
        best = max(score for _, score in scores)
        with precision(max(128, ctx.prec)):
            weights = [
                (item, ball((score - best) / exact(self.scale)).exp()) for item, score in scores
            ]
            return plackett_luce(weights, self.k)

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the list on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[GumbelTopK, ...]:
        """The parameters that ``topsecret verify`` checks."""
        return (
            cls(k=1, scale=10 / 7),
            cls(k=2, scale=10 / 7),
            cls(k=4, scale=10 / 7),
            cls(k=2, scale=2 / 3),
            cls(k=4, scale=3 / 7),
            cls(k=3, scale=2 / 3, smallest=True),
            cls(k=2, scale=4, sensitivity=2),
            cls(k=2, scale=4, sensitivity=3),
            cls(k=1, scale=2 / 3, adjacency="replace"),
            cls(k=2, scale=10 / 7, adjacency="replace"),
        )
