"""`OneshotLaplace`: the *set* of the k largest of score + Laplace noise.

>>> from topsecret.counts.histogram import Histogram
>>> mechanism = OneshotLaplace(k=2, epsilon=100)
>>> answer = mechanism.select(Histogram.of({"b": 9, "a": 5}, domain=["a", "b", "c"]))
>>> answer.items, answer.ordered
(('a', 'b'), False)

**Statement** (Qiao, Su & Zhang 2021, Theorems 2.1 and 2.2, sharpened). Let v_i = h_i + Lap(λ),
independent, over m candidates. The unordered set of the k largest is
- ε-DP for λ = s·min(k, m − k)·Δ_q/ε;
- (ε, δ)-DP for λ = 8·Δ_q·√(k·ln(m/δ))/ε if ε ≤ 0.2, δ ≤ 0.05 and m ≥ 2 (Thm 2.2), for any scores
  that move by at most Δ_q each, in whatever direction.

**Preconditions.** The domain of m items is public and the same for all neighbours; each score
moves by at most Δ_q = ``sensitivity``; s = 1 only under add-remove with monotone scores, else 2.

**Why, pure.** The set S comes out iff the smallest noisy score in S exceeds the largest outside.
- *k*: fix the noise outside S and shift all noisy scores of S by one c, as in
  ``OneshotExponential``: each of these k noises moves by an amount of [0, s·Δ_q].
- *m − k*: fix the noise in S and shift all noisy scores outside by one −c. If scores rise, c = 0
  will do (the smallest of S does not fall); if they fall or move both ways, c = Δ_q. Each of
  these m − k noises moves by an amount of [−s·Δ_q, 0].
- A Laplace density changes by at most e^(|shift|/λ) under a shift; the smaller number of shifts
  counts.
- The order *within* S would reveal more: a published order needs λ = s·k·Δ_q/ε. So the set is
  published in the canonical order of the items, which carries nothing.
- k = m: the set is everything, λ = 0, and no noise is drawn.

**Why, approximate.** Thm 2.2 as printed. A larger λ is the theorem at a smaller ε, so λ, which is
irrational, is rounded *up*. Where the pure λ is the smaller of the two (k ≤ 64·ln(m/δ) for s = 1 at
least), the pure one is used: ε-DP is (ε, δ)-DP.

**Printed wrongly.** Algorithm 1 returns the noisy *values* of the selected items together with the
set, at one λ. The theorems do not cover that: the values cost extra, and verification rejects the
printed form. Counts of the released items are a second release, ``NoisyCounts``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from topsecret.accounting import NO_LOSS, Loss, approximate, pure
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import ball, exact, precision, up
from topsecret.mechanisms import parameters
from topsecret.mechanisms.best_items import best_items, oriented_scores
from topsecret.mechanisms.noiseless import ranked_law
from topsecret.mechanisms.order_laws import in_canonical_order, laplace, score_set_law
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.bits import BitSource
from topsecret.noise.distributions import LAPLACE

_LARGEST_EPSILON = Fraction(1, 5)
_LARGEST_DELTA = Fraction(1, 20)


@dataclass(frozen=True)
class OneshotLaplace:
    """The set of the k best items of a public domain, by one draw of Laplace noise.

    Guarantee: ε-DP for ``epsilon``; with ``delta``, (ε, δ)-DP with less noise when k is large.
    For scores that may move in both directions between neighbours pass ``adjacency="replace"``.

    Parameters: ``delta``: of the whole release; None for a pure ε.
    """

    k: int
    epsilon: float
    delta: float | None = None
    sensitivity: float = 1
    adjacency: parameters.Adjacency = "add-remove"
    smallest: bool = False

    def __post_init__(self) -> None:
        parameters.whole(self.k, "k")
        parameters.positive(self.epsilon, "epsilon")
        parameters.not_negative(self.sensitivity, "sensitivity")
        parameters.adjacency(self.adjacency)
        if self.delta is None:
            return
        parameters.probability(self.delta, "delta")
        # Qiao, Su & Zhang 2021, Thm 2.2 is proved for these only. The floats 0.2 and 0.05 lie a
        # little above the decimals: ``scale`` then uses the decimals, which promise more.
        if exact(self.epsilon) > exact(float(_LARGEST_EPSILON)):
            raise InvalidParameter(
                f"epsilon={self.epsilon} must be at most 0.2 when delta is given; "
                "lower epsilon, or leave delta out for pure privacy at any epsilon"
            )
        if exact(self.delta) > exact(float(_LARGEST_DELTA)):
            raise InvalidParameter(f"delta={self.delta} must be at most 0.05; lower delta")

    @property
    def ordered(self) -> bool:
        """The answer is a set; it is published in the canonical order of the items."""
        return False

    @property
    def loss(self) -> Loss:
        """One pure or approximate step, whatever the size of the domain."""
        if exact(self.sensitivity) == 0:
            return NO_LOSS
        if self.delta is None:
            return pure(self.epsilon)
        return approximate(self.epsilon, self.delta)

    def scale(self, domain_size: int) -> Fraction:
        """λ for a public domain of this size; 0 when no noise is needed.

        >>> OneshotLaplace(k=3, epsilon=0.5).scale(domain_size=10)
        Fraction(6, 1)
        >>> OneshotLaplace(k=3, epsilon=0.5).scale(domain_size=4)
        Fraction(2, 1)
        """
        sensitivity, epsilon = exact(self.sensitivity), exact(self.epsilon)
        directions = parameters.directions(self.adjacency)
        pure_scale = directions * min(self.k, domain_size - self.k) * sensitivity / epsilon
        if self.delta is None:
            return pure_scale
        epsilon = min(epsilon, _LARGEST_EPSILON)
        delta = min(exact(self.delta), _LARGEST_DELTA)
        with precision(128):
            root = (self.k * ball(domain_size / delta).log()).sqrt()
            approximate_scale = Fraction(up(8 * ball(sensitivity / epsilon) * root))
        return min(pure_scale, approximate_scale)

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the set."""
        scale = self.scale(self._domain_size(histogram))
        items = best_items(histogram, self.k, LAPLACE, scale, bits, smallest=self.smallest)
        return Selection(in_canonical_order(items), complete=True, ordered=False)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """Integrals of exponential polynomials."""
        scale = self.scale(self._domain_size(histogram))
        scores = oriented_scores(histogram, self.smallest)
        if scale > 0:
            return score_set_law(laplace, scores, scale, self.k)
        law: dict[Outcome, arb] = {}
        for outcome, chance in ranked_law(scores, self.k).items():
            chosen = in_canonical_order(outcome)
            law[chosen] = law.get(chosen, arb(0)) + chance
        return law

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the set on a small histogram."""
        return as_floats(self.probabilities(histogram))

    def _domain_size(self, histogram: Histogram) -> int:
        size = histogram.require_domain("OneshotLaplace", self.k)
        if self.delta is not None and size < 2:
            raise InvalidParameter(
                f"the public domain has {size} item, and delta needs at least 2; leave delta out"
            )
        return size

    @classmethod
    def verification_cases(cls) -> tuple[OneshotLaplace, ...]:
        """The parameters that ``topsecret verify`` checks: scales 10/7, 2/3, 3/7 among them."""
        return (
            cls(k=1, epsilon=0.7),
            cls(k=2, epsilon=3.0),
            cls(k=3, epsilon=7 / 3),
            cls(k=2, epsilon=3.0, smallest=True),
            cls(k=2, epsilon=0.2, delta=0.05),
            cls(k=2, epsilon=1.0, sensitivity=2),
            cls(k=2, epsilon=2.0, sensitivity=3),
            cls(k=2, epsilon=2.8, adjacency="replace"),
        )
