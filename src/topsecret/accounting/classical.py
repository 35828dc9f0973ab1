"""Bounds in closed form: basic, Durfee & Rogers, optimal pure composition, one Gaussian.

All return balls or floats rounded up; none needs a grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from flint import arb

from topsecret.accounting.profile import gaussian_delta
from topsecret.exact.rounding import ball, precision, up

Run = tuple[int, Fraction]
"""How many steps, and the epsilon of each."""


def durfee_rogers_epsilon(picks: Iterable[Run], pures: Iterable[Run], delta: Fraction) -> float:
    """Durfee & Rogers 2019, Lemma 4.4; with pure steps only its part for pure DP holds.

    >>> round(durfee_rogers_epsilon([(10, Fraction(1, 10))], [], Fraction(1, 10**6)), 3)
    0.881
    """
    picks, pures = tuple(picks), tuple(pures)
    if delta <= 0:
        return math.inf
    with precision(96):
        surprise = -ball(delta).log()
        steps = (*picks, *pures)
        squares = ball(sum((n * e * e for n, e in steps), Fraction(0)))
        # Kairouz, Oh & Viswanath 2015, Thm 3.5 with the exact mean of randomized response.
        drift = sum((n * ball(e) * (ball(e) / 2).tanh() for n, e in steps), arb(0))
        bounds = [drift + (2 * squares * surprise).sqrt()]
        if not pures:
            bounds.append(squares / 2 + (squares * surprise / 2).sqrt())
        return min(up(bound) for bound in bounds)


def pure_rho(epsilon: Fraction) -> arb:
    """The zCDP of an epsilon-DP step, epsilon tanh(epsilon / 2), tight.

    Bun & Steinke 2016, Prop. 3.3 has epsilon² / 2. With z = epsilon² (alpha - 1/2)² the Rényi
    divergence of randomized response is a difference of ln cosh(sqrt z), concave in z; its
    tangent at z = epsilon² / 4 gives alpha epsilon tanh(epsilon / 2), and alpha -> 1 attains it.
    """
    e = ball(epsilon)
    return e * (e / 2).tanh()


def optimal_pure_epsilon(count: int, epsilon: Fraction, delta: Fraction) -> float:
    """The optimal composition of equal pure steps (Kairouz, Oh & Viswanath 2015, Thm 3.3).

    >>> round(optimal_pure_epsilon(50, Fraction(1, 10), Fraction(1, 10**6)), 3)
    3.173
    """
    with precision(96 + 2 * count.bit_length()):
        target = ball(delta)
        for first, second, place in _tails(count, epsilon):
            # delta(x) = first - e^x second for x between (place - 2) epsilon and place epsilon.
            lower = ball((place - 2) * epsilon)
            if place > 2 and first - lower.exp() * second <= target:
                continue
            if first <= target:
                return max(0.0, up((place - 2) * epsilon))
            end = up(place * epsilon)
            crossing = up(((first - target) / second).log().max(lower))
            return max(0.0, min(crossing, end)) if math.isfinite(crossing) else end
    return 0.0


def optimal_pure_delta(count: int, epsilon: Fraction, x: Fraction) -> float:
    """The same profile at x >= 0, rounded up."""
    with precision(96 + 2 * count.bit_length()):
        result = arb(0)
        for first, second, place in _tails(count, epsilon):
            if place * epsilon <= x:
                break
            result = first - ball(x).exp() * second
        return min(1.0, max(0.0, up(result)))


def _tails(count: int, epsilon: Fraction) -> Iterable[tuple[arb, arb, int]]:
    """Masses under P and Q of {loss >= place epsilon} for place = count, count - 2, ..."""
    e = ball(epsilon)
    likely = 1 / (1 + (-e).exp())
    mass_p, mass_q = likely**count, (1 - likely) ** count
    odds = (-e).exp()
    first, second = arb(0), arb(0)
    for i in range(count + 1):
        first, second = first + mass_p, second + mass_q
        yield first, second, count - 2 * i
        if count - 2 * i <= 0:
            return
        ratio = ball(Fraction(count - i, i + 1))
        mass_p, mass_q = mass_p * odds * ratio, mass_q / odds * ratio


def gaussian_epsilon(mu_squared: Fraction, delta: Fraction) -> float:
    """The exact epsilon of one Gaussian step, rounded up.

    >>> round(gaussian_epsilon(Fraction(1, 4), Fraction(1, 10**6)), 3)
    2.254
    """
    if delta <= 0:
        return math.inf
    below, above = -math.inf, math.inf
    with precision(160):
        target = ball(delta)

        def holds(x: float) -> bool:
            """Whether delta(x) ≤ delta; it falls with x, so that what is known decides more."""
            nonlocal below, above
            if below < x < above:
                if gaussian_delta(mu_squared, Fraction(x)) <= target:
                    above = x
                else:
                    below = x
            return x >= above

        if holds(0.0):
            return 0.0
        about = _about_gaussian_epsilon(math.exp(_log(mu_squared) / 2), _log(delta))
        for near in (about * (1 + 2.0**-44), about * (1 - 2.0**-44)):
            holds(near)
        low, high = 0.0, 1.0
        while not holds(high):
            low, high = high, 2 * high
        while math.nextafter(low, high) < high and high - low > 2.0**-50 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high


def _about_gaussian_epsilon(mu: float, log_delta: float) -> float:
    """The same in floats, for searching."""
    if mu == 0:
        return 0.0
    low, high = 0.0, 1.0
    while about_log_delta(mu, high) > log_delta and high < 1e300:
        low, high = high, 2 * high
    for _ in range(56):
        middle = (low + high) / 2
        low, high = (low, middle) if about_log_delta(mu, middle) <= log_delta else (middle, high)
    return high


def about_log_delta(mu: float, x: float) -> float:
    """About ln delta(x) of a Gaussian; from scaled tails, so that small deltas do not cancel."""
    below, above = x / mu - mu / 2, x / mu + mu / 2
    if below < -25:
        return 0.0
    difference = _scaled_tail(below) - _scaled_tail(above)
    return math.log(difference) - below * below / 2 if difference > 0 else -math.inf


def _scaled_tail(z: float) -> float:
    """About e^(z²/2)·Φ(−z)."""
    if z < 25:
        return math.exp(z * z / 2) * math.erfc(z / math.sqrt(2)) / 2
    small = 1 / (z * z)
    return (1 - small + 3 * small * small) / (z * math.sqrt(2 * math.pi))


def _log(value: Fraction) -> float:
    """ln of a fraction that may be beyond all floats."""
    return math.log(value.numerator) - math.log(value.denominator)
