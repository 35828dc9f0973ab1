"""Float64 functions over arrays with proven error bounds, from IEEE arithmetic alone.

NumPy's ``log`` and ``exp`` promise nothing about their last digits, so they decide nothing here.
These are built from + − × ÷, ``frexp`` and ``ldexp``, which IEEE 754 defines exactly, and each
returns floats that *enclose* the true value. Write u = 2⁻⁵³ for the unit roundoff.

**Logarithm.** x = m·2ᵉ with m in [√½, √2); z = (m − 1)/(m + 1), |z| ≤ .1716, w = z² ≤ .02945 and ln
m = 2z·(1 + w/3 + … + w⁸/17 + r), 0 ≤ r ≤ w⁹/19/(1 − w) < 9·10⁻¹⁶ < 9u. m − 1 is exact (Sterbenz),
so z carries at most 2u + u² of relative error, w 5u + …; the Horner sum is at least 1 and its
coefficients add up to less than 1.011, so that it carries less than 2u (each step's error is
multiplied by w, and an error of 6u in w moves it by less than 6u·w·.35).

The product 2z·sum has less than 2.1u + 2u + u + 9u < 15u of relative error, in absolute terms below
15u·.3466 < 5.2u. e·LN2 carries 2u·|e|·.6932 (LN2 is the nearest float) and the last addition
u·(.3466 + .6932|e| + tiny). In all the absolute error is below u·(5.6 + 2.1|e|). We widen by 8u·(1
+ |e|) = 2⁻⁵⁰(1 + |e|), with room for the rounding of the widening itself.

**Arrival** −ln(1 − v). For v < ¼ with z = v/(2 − v) ≤ 1/7 the same series has no constant term,
and 2z·sum has relative error below 15u. We widen by the factor 1 ± 2⁻⁴⁸ = 1 ± 32u. For v ≥ ¼ it
is the logarithm of 1 − v (one rounding, relative error at most u where 1 − v ≥ ½ and none where
v ≥ ½), hence at most 2u more of absolute error beside a widening of at least 8u.

**Survival** 1 − e^(−s). For s < ¼ the Taylor series s·(1 − s/2 + s²/6 − …) to s¹³/14!, truncation
below s¹⁴/15! < 10⁻²⁰, alternating with decreasing terms, sum at least .87: relative error below 6u.
For s ≥ ¼: s = j·ln 2 + f with |f| ≤ .35 where f is computed as s − j·LN2 (relative error of the
product u, of LN2 u, so that f is off by at most 2u·s + u); e^(−f) by Taylor to f¹⁵/15! (truncation
below 10⁻²⁰, Horner error below 4u relative), times 2^(−j) exactly.

The absolute error of e^(−s) is at most e^(−s)·(4u + 2u·s + 2u) < 8u, and the subtraction adds u:
below 9u where the result is at least .22, hence relative error below 41u < 64u. We widen by the
factor 1 ± 2⁻⁴⁶ = 1 ± 128u.

**Decay** e^(−s) for 0 ≤ s ≤ 512: the same reduction and series, so the relative error is at most
4u + 2u·s + 2u < 1031u. We widen by the factor 1 ± 2⁻⁴² = 1 ± 2048u.

**One Gumbel** −ln(−ln(1 − V)/c) of a group of c < 2⁵³ items, in plain floats, from the word w of
the first 64 bits of V, where 2⁴⁴ ≤ w and v = fl(w)·2⁻⁶⁴ ≤ 1 − 2⁻¹². For v < ¼, |v/V − 1| is at
most u + 2⁻⁴⁴, which moves −ln(1 − V) by a factor within 1 ± 1.16·(u + 2⁻⁴⁴), and the series adds
15u: less than 2⁻⁴² in all.

For v ≥ ¼, |v − V| ≤ 1.01u, so fl(1 − v) is off by at most 2.1u, and ln(1 − V) by 2.2u/(1 − V) +
u·(5.6 + 2.1·12); −ln(1 − V) is at least .287, and 8.3 where 1 − V = 2⁻¹²: again less than a factor
1 ± 2⁻⁴². The division makes it 1 ± 2⁻⁴¹, and the second logarithm, whose argument lies between 2⁻⁷⁴
and 2⁴, adds u·(5.6 + 2.1·74) < 2⁻⁴⁵. We widen by 2⁻⁴⁰. Past 1 − 2⁻¹² the noise is smaller than
there; below 2⁴⁴ nothing is said. Arrays go the same way.

The proofs assume no overflow or underflow; arguments stay in [2⁻¹⁰⁰⁰, 2¹⁰⁰⁰] or are 0 or ∞.
``tests/noise/test_enclosures.py`` checks all bounds against ball arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bounds = tuple[Floats, Floats]

_LN2 = 0.6931471805599453
_SQRT_HALF = 0.7071067811865476
_ODD = tuple(1.0 / n for n in range(17, 2, -2))
_SMALL = 0.25
_EARLIEST = 2**44
_LATEST = 1.0 - 2.0**-12
WHOLE = 2**53
"""Every whole number up to here is a float."""


def _atanh_series(w: Floats) -> Floats:
    total = np.full_like(w, _ODD[0])
    for coefficient in _ODD[1:]:
        total *= w
        total += coefficient
    total *= w
    total += 1.0
    return total


def _split(x: Floats) -> Bounds:
    """x = m·2ᵉ with m in [√½, √2): z = (m − 1)/(m + 1), and e."""
    mantissa, exponent = np.frexp(x)
    low = mantissa < _SQRT_HALF
    mantissa += mantissa * low
    return (mantissa - 1.0) / (mantissa + 1.0), (exponent - low).astype(np.float64)


def log_bounds(lower: Floats, upper: Floats) -> Bounds:
    """Floats at most ln(lower) and at least ln(upper); −∞ at 0, ∞ at ∞."""
    x = np.concatenate([lower, upper])
    z, power = _split(np.minimum(x, 2.0**1000))  # ∞ is put back below
    value = 2.0 * z * _atanh_series(z * z) + power * _LN2
    error = 2.0**-50 * (1.0 + np.abs(power))
    value[: len(lower)] -= error[: len(lower)]
    value[len(lower) :] += error[len(lower) :]
    value[x == 0.0] = -np.inf
    value[x == np.inf] = np.inf
    return value[: len(lower)], value[len(lower) :]


def arrival_bounds(lower: Floats, upper: Floats) -> Bounds:
    """Floats around −ln(1 − v) for every v with lower ≤ v ≤ upper in [0, 1]."""
    v = np.concatenate([lower, upper])
    z, power = _split(1.0 - v)
    small = v < _SMALL
    z = np.where(small, v / (v - 2.0), z)
    power[small] = 0.0
    value = -2.0 * z * _atanh_series(z * z) - power * _LN2
    error = np.where(small, 2.0**-48 * value, 2.0**-50 * (1.0 + np.abs(power)))
    value[: len(lower)] -= error[: len(lower)]
    value[len(lower) :] += error[len(lower) :]
    value[v == 1.0] = np.inf
    return np.maximum(value[: len(lower)], 0.0), value[len(lower) :]


def gumbels_around(words: Sequence[int], sizes: Sequence[int]) -> list[tuple[float, float]]:
    """Floats around the Gumbel noise of the first of each ``size`` items, from 64 bits each."""
    found = []
    for word, size in zip(words, sizes, strict=True):
        if word < _EARLIEST or size >= WHOLE:
            found.append((-math.inf, math.inf))
            continue
        v = min(word * 2.0**-64, _LATEST)
        if v < _SMALL:
            z = v / (2.0 - v)
            arrival = 2.0 * z * _odd_series(z * z)
        else:
            arrival = -_logarithm(1.0 - v)
        noise = -_logarithm(arrival / size)
        found.append((noise - 2.0**-40 if v < _LATEST else -math.inf, noise + 2.0**-40))
    return found


def gumbel_bounds(words: NDArray[np.uint64], sizes: Floats) -> Bounds:
    """What ``gumbels_around`` says, for arrays; sizes are whole and below 2⁵³."""
    v: Floats = words.astype(np.float64)
    v *= 2.0**-64
    late = v >= _LATEST
    v[late] = _LATEST
    z, power = _split(1.0 - v)
    small = v < _SMALL
    z = np.where(small, v / (v - 2.0), z)
    power[small] = 0.0
    arrival = -2.0 * z * _atanh_series(z * z) - power * _LN2
    z, power = _split(arrival / sizes)
    noise = -2.0 * z * _atanh_series(z * z) - power * _LN2
    lower, upper = noise - 2.0**-40, noise + 2.0**-40
    lower[late] = -np.inf
    early = words < _EARLIEST
    lower[early], upper[early] = -np.inf, np.inf
    return lower, upper


def _logarithm(x: float) -> float:
    mantissa, exponent = math.frexp(x)
    if mantissa < _SQRT_HALF:
        mantissa += mantissa
        exponent -= 1
    z = (mantissa - 1.0) / (mantissa + 1.0)
    return 2.0 * z * _odd_series(z * z) + exponent * _LN2


def _odd_series(w: float) -> float:
    a, b, c, d, e, f, g, h = _ODD
    return ((((((((a * w + b) * w + c) * w + d) * w + e) * w + f) * w + g) * w + h) * w) + 1.0


@cache
def _reciprocal_factorials(last: int) -> tuple[float, ...]:
    values, factorial = [1.0], 1
    for n in range(1, last + 1):
        factorial *= n
        values.append(1.0 / factorial)
    return tuple(values)


def _survival(s: Floats) -> Floats:
    coefficients = _reciprocal_factorials(15)
    small = np.minimum(s, _SMALL)
    series = np.full_like(s, -coefficients[14])
    for n in range(13, 0, -1):
        series *= small
        series += coefficients[n] if n % 2 else -coefficients[n]
    series *= small
    large = 1.0 - _decay(np.minimum(s, 64.0))
    return np.where(s < _SMALL, series, large)


def _decay(s: Floats) -> Floats:
    coefficients = _reciprocal_factorials(15)
    steps = np.rint(s / _LN2)
    rest = s - steps * _LN2
    powers = np.full_like(s, -coefficients[15])
    for n in range(14, -1, -1):
        powers *= rest
        powers += -coefficients[n] if n % 2 else coefficients[n]
    return np.ldexp(powers, -steps.astype(np.int64))


def survival_bounds(lower: Floats, upper: Floats) -> Bounds:
    """Floats around 1 − e^(−s) for every s with 0 ≤ lower ≤ s ≤ upper ≤ ∞.

    Past s = 64 the function is evaluated at 64, which is below it, and bounded above by 1.
    """
    value = _survival(np.concatenate([lower, upper]))
    first = value[: len(lower)] * (1.0 - 2.0**-46)
    last = np.minimum(value[len(lower) :] * (1.0 + 2.0**-46), 1.0)
    last[upper >= 64.0] = 1.0
    return first, last


def decay_bounds(lower: Floats, upper: Floats) -> Bounds:
    """Floats at most e^(−upper) and at least e^(−lower), for 0 ≤ lower ≤ upper ≤ ∞.

    Past s = 512 the function is bounded by 0 and by its value at 512.
    """
    least = np.where(upper <= 512.0, _decay(np.minimum(upper, 512.0)) * (1.0 - 2.0**-42), 0.0)
    return least, _decay(np.minimum(lower, 512.0)) * (1.0 + 2.0**-42)
