"""The hockey-stick divergence of two laws: bounds in float64, decisions in balls.

For laws P and Q and a real x, D(x) = Σ (P(o) − e^x·Q(o))₊ over the outcomes o is the smallest
delta with which P is (x, delta)-indistinguishable from Q in this direction.

**The float bounds are bounds.** Let u = 2⁻⁵³, and lower ≤ p ≤ upper the tabulated floats; each is 0
or at least ``TINY``, and |x| ≤ ``LARGEST_EPSILON``, so nothing below is subnormal. For the upper
bound e^x is taken two floats below a lower bound E of it: that factor is at most E(1 − 2u), so its
rounded product with lower(q) is at most E(1 − 2u)(1 + u)·lower(q) < e^x·q.

Hence each rounded difference is at least (upper(p) − e^x·q)(1 − u) where that is positive, and the
rounded sum of n such terms, in any order, is at least the exact one times (1 − u)^(n+1). The factor
1 + (n + 4)·2u makes up for it (n < 2²⁰). A term that is not positive adds exactly 0, so a
divergence that is 0 because every ratio stays clearly below e^x is *proved* to be 0. The lower
bound is the mirror image.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache

import numpy as np
from flint import arb

from topsecret.exact.rounding import down, precision, up
from topsecret.mechanisms.selection import Outcome
from topsecret.verify.laws import Floats, Laws
from topsecret.verify.neighbours import Indices

LARGEST_EPSILON = 64.0
"""The largest |x| that is looked at."""

DECIDING_BITS = (128, 256, 1024)
"""The precisions at which a comparison is tried, one after the other."""

_BLOCK = 1 << 16
_ULP = 2.0**-52


class Verdict(Enum):
    """Whether a divergence is at most its claim."""

    HOLDS = "holds"
    """The divergence is at most the claim, for certain."""
    BROKEN = "broken"
    """The divergence exceeds the claim, for certain."""
    UNDECIDED = "undecided"
    """Equal as far as ``DECIDING_BITS`` see: balls cannot tell equal numbers from close ones."""


def upper_bounds(laws: Laws, first: Indices, second: Indices, epsilons: list[float]) -> Floats:
    """A float above D(x) for every pair (rows) and every x (columns)."""
    return _bounds(
        laws.upper,
        laws.lower,
        first,
        second,
        [_two_below(_exp_bounds(epsilon)[0]) for epsilon in epsilons],
        1 + (len(laws.outcomes) + 4) * _ULP,
    )


def lower_bounds(laws: Laws, first: Indices, second: Indices, epsilons: list[float]) -> Floats:
    """A float below D(x) for every pair (rows) and every x (columns)."""
    return _bounds(
        laws.lower,
        laws.upper,
        first,
        second,
        [_two_above(_exp_bounds(epsilon)[1]) for epsilon in epsilons],
        1 - (len(laws.outcomes) + 4) * _ULP,
    )


def decide(
    laws: Laws, first: int, second: int, epsilon: float, claim: float
) -> tuple[Verdict, arb]:
    """Whether D(epsilon) ≤ claim for one pair, as a theorem, and a ball around D(epsilon)."""
    divergence = arb(0)
    for bits in DECIDING_BITS:
        divergence = divergence_ball(
            laws.balls(first, bits), laws.balls(second, bits), epsilon, bits
        )
        if divergence <= arb(claim):
            return Verdict.HOLDS, divergence
        if divergence > arb(claim):
            return Verdict.BROKEN, divergence
    return Verdict.UNDECIDED, divergence


def divergence_ball(
    first: Mapping[Outcome, arb], second: Mapping[Outcome, arb], epsilon: float, bits: int
) -> arb:
    """A ball around D(epsilon); an outcome that a law does not list has probability 0 under it.

    >>> third = arb(1) / 3
    >>> law, other = {("a",): third, ("b",): 2 * third}, {("b",): arb(1)}
    >>> divergence_ball(law, other, 0.0, 64).overlaps(third)
    True
    """
    with precision(bits):
        factor, total = arb(epsilon).exp(), arb(0)
        for outcome, probability in first.items():
            other = second.get(outcome)
            term = probability if other is None else probability - factor * other
            total += term.nonnegative_part()
        return total


def largest_ratio(laws: Laws, first: Indices, second: Indices) -> float:
    """A float above every finite |ln(P(o)/Q(o))| of the pairs."""
    largest = 1.0
    for block in _blocks(len(first), len(laws.outcomes)):
        above, below = laws.upper[first[block]], laws.lower[second[block]]
        both = (below > 0) & (above > 0)
        ratios = np.divide(above, below, out=np.ones_like(above), where=both)
        largest = max(largest, float(ratios.max(initial=1.0)))
    return up(arb(largest).log()) + 2.0**-40


def _bounds(
    tops: Floats,
    bottoms: Floats,
    first: Indices,
    second: Indices,
    factors: list[float],
    correction: float,
) -> Floats:
    result = np.empty((len(first), len(factors)))
    for block in _blocks(len(first), tops.shape[1]):
        top, bottom = tops[first[block]], bottoms[second[block]]
        term = np.empty_like(top)
        for column, factor in enumerate(factors):
            np.multiply(bottom, -factor, out=term)
            np.add(term, top, out=term)
            np.maximum(term, 0.0, out=term)
            result[block, column] = term.sum(axis=1)
    return result * correction


def _blocks(rows: int, columns: int) -> list[slice]:
    height = max(1, _BLOCK // max(1, columns))
    return [slice(start, start + height) for start in range(0, rows, height)]


@lru_cache(maxsize=4096)
def _exp_bounds(epsilon: float) -> tuple[float, float]:
    with precision(128):
        power = arb(epsilon).exp()
    return down(power), up(power)


def _two_below(value: float) -> float:
    return math.nextafter(math.nextafter(value, 0.0), 0.0)


def _two_above(value: float) -> float:
    return math.nextafter(math.nextafter(value, math.inf), math.inf)
