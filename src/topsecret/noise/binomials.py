"""ln C(n, m) in float64 with a proven error bound, for n up to 2⁶³.

>>> import numpy as np
>>> value, error = log_binomials(np.array([5, 10**18]), np.array([2, 1]))
>>> [round(float(v), 9) for v in value], bool((error < 1e-11).all())
([2.302585093, 41.446531674], True)

**Formula.** n! = √(2πn)·(n/e)ⁿ·e^(s(n)). With l = min(m, n − m) ≥ 1 and g = n − l ≥ n/2,

ln C(n, m) = l·ln(n/l) − g·ln(1 − l/n) + ½·ln(n/(2π·l·g)) + s(n) − s(l) − s(g).

Nothing large cancels: the first two terms are positive, and the second is at most l.
s is tabulated up to 31; beyond, s(n) = 1/(12n) − 1/(360n³) + 1/(1260n⁵) − 1/(1680n⁷) up to the
first term left out (the series envelops), 1/(1188n⁹) < 3·10⁻¹⁷.

**Error.** u = 2⁻⁵³, A = l·ln(n/l), H = |½·ln(…)|. (l = n − m is only used where l ≤ n/2, and a
conversion of an integer costs at most u.)
- A: n/l has a relative error of at most 3u; the logarithm adds 2⁻⁵⁰(1 + |e|), |e| ≤ 1 + log₂(n/l)
  (``enclosures.py``); the product u. Together below 2⁻⁴⁸(l + A).
- g·(−ln(1 − v)), v = l/n ≤ ½: v has a relative error of at most 3u, which moves −ln(1 − v) by at
  most 6u·v, hence the term by 6u·l; −ln(1 − v) itself is computed to a relative 2⁻⁴⁷·1.3 at worst
  (v ≥ ¼: 2⁻⁴⁹ of at least .287; below: 2⁻⁴⁸), g and the product add 3u. The term is at most l, so
  below 2⁻⁴⁶·.7·l.
- H: the argument has a relative error below 8u; below 2⁻⁵⁰(3 + 2H).
- s: below 3·(3·10⁻¹⁷ + u) < 4u.
- five additions: at most 5u·(A + l + H + 1).

Altogether below 2⁻⁴⁶·(l + A + H + 1), which is returned.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from topsecret.exact.rounding import precision
from topsecret.noise.enclosures import Bounds, Floats, arrival_bounds, log_bounds

Integers = NDArray[np.int64]

_TABULATED = 32
_UNIT = 2.0**-46


def log_binomials(n: Integers, m: Integers) -> Bounds:
    """ln C(n, m) for 0 ≤ m ≤ n, and how far each value may be off."""
    less = np.minimum(m, n - m)
    trivial = less == 0
    less = np.where(trivial, 1, less)
    n = np.where(trivial, 2, n)
    more = n - less
    size, few, many = (part.astype(np.float64) for part in (n, less, more))
    leading = few * _log(size / few)
    second = many * _arrival(few / size)
    half = 0.5 * _log(size / many / (few * (2 * math.pi)))
    value = leading + second + half + (_tail(n) - _tail(less) - _tail(more))
    error = _UNIT * (few + leading + np.abs(half) + 1.0)
    return np.where(trivial, 0.0, value), np.where(trivial, 0.0, error)


def log_binomial_ball(n: int, m: int, bits: int) -> arb:
    """A ball around ln C(n, m), to about ``bits`` bits."""
    # lgamma(n) is below n·ln n: what cancels is at most so many bits.
    with precision(bits + 16 + 2 * n.bit_length()):
        return arb(n + 1).lgamma() - arb(m + 1).lgamma() - arb(n - m + 1).lgamma()


def _log(x: Floats) -> Floats:
    lower, upper = log_bounds(x, x)
    return lower + (upper - lower) * 0.5


def _arrival(v: Floats) -> Floats:
    lower, upper = arrival_bounds(v, v)
    return lower + (upper - lower) * 0.5


def _tail(n: Integers) -> Floats:
    """s(n) = ln n! − ln(√(2πn)·(n/e)ⁿ)."""
    table = _tabulated()
    large = np.maximum(n, _TABULATED).astype(np.float64)
    inverse = 1.0 / large
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680))))
    return np.where(n < _TABULATED, table[np.minimum(n, _TABULATED - 1)], series)


@cache
def _tabulated() -> Floats:
    with precision(128):
        return np.array(
            [0.0]
            + [
                float(arb(n + 1).lgamma() - (2 * arb.pi() * n).log() / 2 - n * (arb(n).log() - 1))
                for n in range(1, _TABULATED)
            ]
        )
