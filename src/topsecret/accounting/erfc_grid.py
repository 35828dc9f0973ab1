"""The complementary error function on a grid: Taylor series in place of a call for every point.

>>> with precision(112):
...     [one, two] = erfc_on_grid(arb(1), arb(1) / 64, 18)[::17]
...     bool(one.overlaps(arb(1).erfc())), bool(two.overlaps((1 + arb(17) / 64).erfc()))
(True, True)
"""

from __future__ import annotations

import math
from functools import lru_cache

from flint import arb, arb_mat

from topsecret.exact.rounding import precision

_HALF = 8
"""Grid points on either side of the place that a series is about."""
_MOST_TERMS = 48
"""Longer series take more time than the calls that they replace."""


def erfc_on_grid(start: arb, step: arb, size: int, bits: int = 80) -> list[arb]:
    """erfc(start + i·step) for i = 0, 1, …, size − 1, enclosed at the precision of the moment.

    With T = 8·step and u in [−1, 1], erfc(z + Tu) = erfc(z) + Σ cₙ·uⁿ, c₁ = −(2/√π)·T·e^(−z²) and
    cₙ₊₁ = −(2T/(n + 1))·(z·cₙ + T·(n − 1)/n·cₙ₋₁): the recurrence of the Hermite polynomials, as
    cₙ = c₁·(−T)ⁿ⁻¹·Hₙ₋₁(z)/n!. What N terms leave out is at most (2/√π)·T^(N+1)/(N + 1)! times the
    largest e^(−ξ²)·|H_N(ξ)| nearby (Lagrange), where ξ² ≥ z² − 2|z|T, and |H_N(ξ)| is at most
    (2·max(|ξ|, √(2N)))^N: the roots of H_N lie in pairs ±r, and by Gershgorin's discs of its
    Jacobi matrix |r| ≤ √(2N). That is added; there are as many terms as make it 2^−bits or less.
    """
    reach = float(_HALF * step.mid())
    farthest = max(abs(float(start.mid())), abs(float((start + size * step).mid()))) + reach
    terms = _terms(reach, farthest, bits)
    if terms > _MOST_TERMS:
        return [(start + i * step).erfc() for i in range(size)]
    half = _HALF * step
    first = [-2 * half / (n + 1) for n in range(1, terms)]
    second = [factor * half * (n - 1) / n for n, factor in enumerate(first, 1)]
    places = [start + (i + _HALF) * step for i in range(0, size, 2 * _HALF + 1)]
    rows = []
    for place in places:
        slope = -2 / arb.pi().sqrt() * (-place * place).exp() * half
        row = [place.erfc() + _rest(place, half, slope, terms), slope]
        before, here = arb(0), slope
        for one, other in zip(first, second, strict=True):
            before, here = here, one * place * here + other * before
            row.append(here)
        rows.append(row)
    found = (arb_mat(rows) * _powers(terms)).entries()
    return found[:size]


def _rest(place: arb, half: arb, slope: arb, terms: int) -> arb:
    """What the series leaves out, as a ball about 0."""
    largest = (abs(place) + half).max(arb(2 * terms).sqrt())
    rest = slope * (2 * abs(place) * half).exp() * (2 * largest * half) ** terms
    return arb(0, (abs(rest) / math.factorial(terms + 1)).upper())


def _terms(reach: float, farthest: float, bits: int) -> int:
    """So many that the remainder is about 2^−bits of the value."""
    logarithm = 2 * farthest * reach
    for n in range(8, _MOST_TERMS + 1, 8):
        each = math.log(2 * reach * max(farthest, math.sqrt(2 * n)))
        if logarithm + n * each - math.lgamma(n + 2) < -bits * math.log(2):
            return n
    return _MOST_TERMS + 1


@lru_cache(maxsize=64)
def _powers(terms: int) -> arb_mat:
    """uⁿ for n = 0 … terms, a row each, at u = −1, −7/8, …, 1: exact, as they are dyadic."""
    with precision(3 * _MOST_TERMS):
        places = [arb(i / _HALF) for i in range(-_HALF, _HALF + 1)]
        rows = [[arb(1)] * len(places)]
        for _ in range(terms):
            rows.append([power * place for power, place in zip(rows[-1], places, strict=True)])
        return arb_mat(rows)
