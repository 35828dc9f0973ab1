"""`TopStable`: the largest stable top i, found by a sparse vector of gaps.

>>> from topsecret import Histogram
>>> counts = {f"item {i}": 900 for i in range(3)} | {f"other {i}": 20 for i in range(9)}
>>> mechanism = TopStable(k=3, k_bar=6, epsilon=1.0, delta=1e-6, epsilon_refine=0.5)
>>> mechanism.select(Histogram.of(counts)).items
('item 0', 'item 1', 'item 2')

**Statement** (Carvalho et al. 2020, TS, with an exact tail). ε₁ = .37ε, ε₂ = .63ε, c = 2ε₁/ε₂.
T̂ = (2/ε₂)·ln(1/δ_q) + Lap(1/ε₁), drawn once. For i = k̄, …, 1: if
max(0, h₍ᵢ₎ − h₍ᵢ₊₁₎ − 1) + Lap(2/ε₂) > T̂, stop. Release the unordered top i when i ≤ k; when i > k,
k of those i by picks of ε_EM/k each (``epsilon_refine`` is ε_EM). The loss is
approximate(ε, δ) + picks(k, ε_EM/k); the picks are charged whether they are made or not.

**Preconditions.** Counts of distinct people, add-remove. k̄ ≥ k is fixed before seeing data.

**Why each line matters.**
- *The gap after i* is h₍ᵢ₎ − h₍ᵢ₊₁₎. If it is above 1 the set of the top i is the same on every
  neighbour. The authors' public code tests the gap of the next place: the set that is released
  is then not the one whose stability was tested, and it is not private.
- *max(0, gap − 1)* moves by at most 1, up or down, hence Lap(2/ε₂) beside Lap(1/ε₁): the sparse
  vector technique with one answer is (ε₁ + ε₂)-DP for a release that is the same on both sides.
- *T̂ is shared* by all i. Fresh noise for each comparison would be charged for each.
- *δ_q*: a set that is not stable has a score of 0 on both sides. It is released with probability
  at most P[Lap(2/ε₂) − Lap(1/ε₁) > (2/ε₂)·ln(1/δ_q)] = ½(c²δ_q − δ_q^c)/(c² − 1). δ_q is the
  largest for which this is at most δ/k̄, rounded down (a higher threshold); k̄ sets make δ. The
  paper's [2δ_q^c + δ_q − c(δ_q^c + 2δ_q)]/(4(1 − c)) is another bound of this tail.
- *Picks among the released i*: the set is public by then; counts are monotone, so Gumbel(k/ε_EM)
  makes each of k picks ε_EM/k-bounded-range.
- Past the observed items counts are 0, and so are the scores there; a set that is released all the
  same (within δ) holds the observed names only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx

from topsecret.accounting import Loss, approximate, picks
from topsecret.counts.histogram import Histogram
from topsecret.exact.ordering import as_a_set
from topsecret.exact.rounding import Number, ball, exact, precision
from topsecret.mechanisms import parameters
from topsecret.mechanisms.gumbel import GumbelTopK
from topsecret.mechanisms.piecewise import (
    at,
    constant,
    guard_bits,
    laplace_cdf,
    laplace_density,
)
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.mechanisms.stability import Rows, gaps_of
from topsecret.noise.bits import BitSource, Log, Noisy, Rational, SystemBits, is_less
from topsecret.noise.distributions import LAPLACE

_SHARE = Fraction(37, 100)  # ε₁/ε of the paper
RATIO = 2 * _SHARE / (1 - _SHARE)  # c = 74/63: it is not 1, and no power of δ_q meets another


@dataclass(frozen=True)
class TopStable:
    """At most ``k`` items of the largest top i ≤ ``k_bar`` that is stable, as a set, or nothing.

    Guarantee: (``epsilon`` + ``epsilon_refine``, ``delta``)-DP; ``loss`` keeps the stronger form.

    Parameters: ``epsilon``: of finding the set; ``delta``: of the whole release.
    """

    k: int
    k_bar: int
    epsilon: Number
    delta: Number
    epsilon_refine: Number

    def __post_init__(self) -> None:
        parameters.whole(self.k, "k")
        parameters.whole(self.k_bar, "k_bar")
        parameters.at_most(self.k, "k", self.k_bar, "k_bar")
        parameters.positive(self.epsilon, "epsilon")
        parameters.probability(self.delta, "delta")
        parameters.positive(self.epsilon_refine, "epsilon_refine")

    @property
    def ordered(self) -> bool:
        """The answer is a set."""
        return False

    @property
    def loss(self) -> Loss:
        """The sparse vector, and the picks that may follow."""
        return approximate(self.epsilon, self.delta) + picks(
            self.k, exact(self.epsilon_refine) / self.k
        )

    @property
    def _unit(self) -> Fraction:
        """ε₂/2: all values below are counts times this, so that the gaps' noise is Lap(1)."""
        return (1 - _SHARE) * exact(self.epsilon) / 2

    def _threshold(self) -> Log:
        """T̂'s centre in these units: ln(1/δ_q)."""
        return Log(1 / tail_argument(exact(self.delta) / self.k_bar))

    def _leads(self, rows: Rows) -> list[Fraction]:
        """max(0, gap − 1) in these units for i = 1, …, k̄."""
        return [self._unit * max(0, gap - 1) for gap in gaps_of(rows, self.k_bar)]

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the set."""
        bits = SystemBits() if bits is None else bits
        rows = histogram.ranked(self.k_bar + 1)
        length = self._stop(self._leads(rows), bits)
        names = tuple(item for item, _ in rows[:length])
        if len(names) > self.k:
            where, refining = self._refinement(rows[:length])
            names = refining.select(where, bits).items
        return self._answer(names)

    def _stop(self, leads: list[Fraction], bits: BitSource) -> int:
        """The i at which the sparse vector stops; 0 when it never does."""
        level = Noisy(self._threshold(), LAPLACE, 1 / RATIO, bits)
        for length in range(self.k_bar, 0, -1):
            value = Noisy(Rational(leads[length - 1]), LAPLACE, Fraction(1), bits)
            if is_less(level, value):
                return length
        return 0

    def _refinement(self, released: Rows) -> tuple[Histogram, GumbelTopK]:
        """k picks among the released items, which are a public domain by now."""
        domain = as_a_set(item for item, _ in released)
        picking = GumbelTopK(self.k, self.k / exact(self.epsilon_refine))
        return Histogram.of(dict(released), domain), picking

    def _answer(self, items: Outcome) -> Selection:
        return Selection(as_a_set(items), complete=len(items) == self.k, ordered=False)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The law of where it stops, an integral over T̂, times that of the picks."""
        rows = histogram.ranked(self.k_bar + 1)
        law: dict[Outcome, arb] = {}
        for length, chance in self._stopping_law(self._leads(rows)).items():
            for items, more in self._refined(rows[:length]).items():
                outcome = self._answer(items).outcome
                law[outcome] = law.get(outcome, arb(0)) + chance * more
        return law

    def _refined(self, released: Rows) -> Mapping[Outcome, arb]:
        if len(released) <= self.k:
            return {tuple(item for item, _ in released): arb(1)}
        where, picking = self._refinement(released)
        return picking.probabilities(where)

    def _stopping_law(self, leads: list[Fraction]) -> dict[int, arb]:
        """P[stop at i] = ∫ f_T̂(t)·(1 − F_i(t))·Π_{j > i} F_j(t) dt, F_j the cdf of value j."""
        centre = self._threshold()
        values = [at(lead) for lead in leads]
        law: dict[int, arb] = {}
        with precision(max(128, ctx.prec) + guard_bits([centre, *values], 2 * len(values))):
            going_on = laplace_density(centre, 1 / RATIO)
            for length in range(self.k_bar, 0, -1):
                below = laplace_cdf(values[length - 1])
                law[length] = (going_on * (constant(1) - below)).integral().limit()
                going_on *= below
            law[0] = going_on.integral().limit()
        return law

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the set on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[TopStable, ...]:
        """The parameters that ``topsecret verify`` checks."""
        return (
            cls(1, 1, 1.0, 0.05, 0.5),
            cls(1, 3, 2.0, 0.1, 0.5),
            cls(2, 2, 0.7, 0.05, 0.5),
            cls(2, 4, 2.0, 0.2, 1.0),
        )


@lru_cache(maxsize=256)
def tail_argument(limit: Fraction) -> Fraction:
    """δ_q: a fraction just below the largest x ≤ 1 with ½(c²x − x^c)/(c² − 1) ≤ limit.

    The left side rises in x, is at least x/2 and at most ½c²x/(c² − 1) < 2x.

    >>> limit = Fraction(1, 10**6)
    >>> x = tail_argument(limit)
    >>> bool(tail(x) <= ball(limit) <= tail(x * (1 + limit)))
    True
    """
    low, high = limit / 2, min(2 * limit, Fraction(1))
    with precision(256):
        if tail(high) <= ball(limit):
            return high
        for _ in range(48):
            middle = (low + high) / 2
            if tail(middle) <= ball(limit):
                low = middle
            else:
                high = middle
    return low


def tail(x: Fraction) -> arb:
    """P[Lap(2/ε₂) − Lap(1/ε₁) > (2/ε₂)·ln(1/x)]."""
    square = ball(RATIO**2)
    return (square * ball(x) - (ball(RATIO) * ball(x).log()).exp()) / (2 * (square - 1))
