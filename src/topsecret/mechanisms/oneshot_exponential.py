"""`OneshotExponential`: the k largest of score + exponential noise, drawn once.

>>> from topsecret.counts.histogram import Histogram
>>> mechanism = OneshotExponential(k=2, epsilon=100)
>>> mechanism.select(Histogram.of({"a": 9, "b": 5}, domain=["a", "b", "c"])).items
('a', 'b')

**Statement.** Let v_i = h_i + τ·E_i with independent E_i ~ Exp(1) and τ = k·s·Δ_q/ε. The ordered
list of the k largest is ε-DP.

**Preconditions.** The domain is public and the same for all neighbours; each score moves by at
most Δ_q = ``sensitivity``; s = 1 only under add-remove with monotone scores, else s = 2. k ≤ the
size of the domain, which is public.

**Why.** Fix an outcome i₁, …, i_k and the noise of the other items; M is the largest of their
noisy scores. The outcome happens iff v_{i₁} > … > v_{i_k} > M. Pass from h to a neighbour h′ and
shift *all* k selected noisy scores by the same c, which keeps their order:
- scores fall (h′ ≤ h): c = 0; M does not rise, so the outcome stays. The noise of i_j becomes
  v − h′ = (v − h) + (h − h′): larger by an amount of [0, Δ_q].
- scores rise: c = Δ_q; M rises by at most Δ_q. The noise grows by Δ_q − (h′ − h), in [0, Δ_q].
- both directions (replace): c = Δ_q, the noise grows by an amount of [0, 2Δ_q].

So noise only grows: it never leaves [0, ∞), where the density e^(−x/τ)/τ lives, and each of the k
densities falls by at most e^(−s·Δ_q/τ). Integrating, P_h ≤ e^(k·s·Δ_q/τ)·P_h′ = e^ε·P_h′. With
two-sided noise the same shift would do, at twice the variance.

**Tight.** For k = 1 the scores (0, 1) give the first item e^(−ε)/2, and (1, 1) give ½.

Against ``PermuteAndFlip`` at the same ε: one pass over the groups instead of k, and a list whose
items have, in expectation, no fewer people on any of the small histograms of a test. There the
loss is kept as k steps, which composes better with other releases at δ > 0; here it is one step
of ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from topsecret.accounting import NO_LOSS, Loss, pure
from topsecret.counts.histogram import Histogram
from topsecret.exact.rounding import exact
from topsecret.mechanisms import parameters
from topsecret.mechanisms.best_items import best_items, oriented_scores
from topsecret.mechanisms.noiseless import ranked_law
from topsecret.mechanisms.order_laws import exponential, score_list_law
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.bits import BitSource
from topsecret.noise.distributions import EXPONENTIAL


@dataclass(frozen=True)
class OneshotExponential:
    """The k best items of a public domain, in order, by one draw of exponential noise.

    Guarantee: ε-DP for ``epsilon``. For scores that may move in both directions between
    neighbours pass ``adjacency="replace"``.
    """

    k: int
    epsilon: float
    sensitivity: float = 1
    adjacency: parameters.Adjacency = "add-remove"
    smallest: bool = False

    meets_claim_exactly: ClassVar[bool] = True
    """By the example above; it never exceeds it, by the proof."""

    def __post_init__(self) -> None:
        parameters.whole(self.k, "k")
        parameters.positive(self.epsilon, "epsilon")
        parameters.not_negative(self.sensitivity, "sensitivity")
        parameters.adjacency(self.adjacency)

    @property
    def ordered(self) -> bool:
        """The list is published best first."""
        return True

    @property
    def loss(self) -> Loss:
        """One pure step; nothing if no person can move a score."""
        return pure(self.epsilon) if self.scale else NO_LOSS

    @property
    def scale(self) -> Fraction:
        """τ = k·s·Δ_q/ε, exactly."""
        directions = parameters.directions(self.adjacency)
        return self.k * directions * exact(self.sensitivity) / exact(self.epsilon)

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the list."""
        histogram.require_domain("OneshotExponential", self.k)
        noise, scale = EXPONENTIAL, self.scale
        items = best_items(histogram, self.k, noise, scale, bits, smallest=self.smallest)
        return Selection(items, complete=True)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """Integrals of exponential polynomials."""
        histogram.require_domain("OneshotExponential", self.k)
        scores = oriented_scores(histogram, self.smallest)
        if self.scale == 0:
            return ranked_law(scores, self.k)
        return score_list_law(exponential, scores, self.scale, self.k)

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the list on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[OneshotExponential, ...]:
        """The parameters that ``topsecret verify`` checks: scales 10/7, 2/3, 3/7 among them."""
        return (
            cls(k=1, epsilon=0.7),
            cls(k=2, epsilon=3.0),
            cls(k=4, epsilon=28 / 3),
            cls(k=2, epsilon=3.0, smallest=True),
            cls(k=2, epsilon=1.0, sensitivity=2),
            cls(k=2, epsilon=2.0, sensitivity=3),
            cls(k=2, epsilon=2.8, adjacency="replace"),
        )
