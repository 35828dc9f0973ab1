"""Rényi divergences of the steps, and the best conversion of their sum to (epsilon, delta).

A curve maps an order alpha > 1 to a bound on the Rényi divergence of that order, both as balls.
Every order gives a valid conversion, so the order is searched in floats and the result is
evaluated once, rigorously.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from topsecret.exact.rounding import ball, precision, up

Curve = Callable[[arb], arb]

_BITS = 192  # the bounded-range curve loses about twice the bits of 1 / epsilon


@dataclass(frozen=True, slots=True)
class NamedCurve:
    """A Rényi curve with a name; two are equal when name and callable are.

    Make the callable a frozen dataclass with ``__call__`` rather than a lambda, so that two
    mechanisms with the same parameters have equal losses.
    """

    name: str
    curve: Curve


@dataclass(frozen=True, slots=True)
class GaussianSelection:
    """The argmax of ``candidates`` gaps with N(0, sigma²) noise (Zhu & Wang 2022, Cor. 9).

    ``joint`` adds the second bound: the argmax as post-processing of the whole Gaussian vector.
    ``sensitivity`` is how far one gap may move: 1 under add-remove, 2 under replace.
    """

    candidates: int
    sigma_squared: Fraction
    sensitivity: int = 1
    joint: bool = True

    def __call__(self, alpha: arb) -> arb:
        """The Rényi divergence of order alpha."""
        signal = ball(Fraction(self.sensitivity**2) / self.sigma_squared)
        selected = 2 * alpha * signal + arb(self.candidates).log() / (alpha - 1)
        if not self.joint:
            return selected
        return selected.min(self.candidates * alpha * signal / 2)


def bounded_range(epsilon: Fraction, alpha: arb) -> arb:
    """The largest Rényi divergence of one epsilon-bounded-range step.

    Proved in docs/proofs/accounting.md, section 4.

    >>> with precision(128):
    ...     float(bounded_range(Fraction(1), arb(2))) < 2 * 1 / 8
    True
    """
    e, order = ball(epsilon), alpha - 1
    first = order * (alpha * e).expm1() / (alpha * (order * e).expm1())
    second = (-alpha * e).expm1() / (alpha * (-e).expm1())
    tight = first.log() + second.log() / order
    # Cesar & Rogers 2021: alpha epsilon² / 8 always holds, whatever the ball above lost.
    return tight.min(alpha * e * e / 8)


def pure_dp(epsilon: Fraction, alpha: arb) -> arb:
    """The largest Rényi divergence of an epsilon-DP step: that of randomized response.

    Mironov 2017, Prop. 5: ln[cosh(epsilon (alpha - 1/2)) / cosh(epsilon / 2)] / (alpha - 1).
    """
    e = ball(epsilon)
    # ln cosh z = z + ln(1 + e^(-2z)) - ln 2 never overflows.
    wide, narrow = e * (2 * alpha - 1), e
    return (e * (alpha - 1) + (-wide).exp().log1p() - (-narrow).exp().log1p()) / (alpha - 1)


def epsilon_at(curve: Curve, delta: Fraction, order: float) -> arb:
    """The conversion at one order (Canonne, Kamath & Steinke 2020, Prop. 12)."""
    alpha = 1 + ball(order)
    over = alpha - 1
    return curve(alpha) + (-1 / alpha).log1p() - (ball(delta) * alpha).log() / over


def log_delta_at(curve: Curve, epsilon: Fraction, order: float) -> arb:
    """The same conversion solved for ln(delta)."""
    alpha = 1 + ball(order)
    over = alpha - 1
    return over * (curve(alpha) - ball(epsilon) + (-1 / alpha).log1p()) - alpha.log()


def renyi_epsilon(curve: Curve, delta: Fraction) -> float:
    """The smallest epsilon over all orders, rounded up.

    >>> round(renyi_epsilon(lambda alpha: alpha * ball(Fraction(1, 8)), Fraction(1, 10**6)), 3)
    2.419
    """
    if delta <= 0:
        return math.inf
    with precision(_BITS):
        order = _best_order(lambda value: _float(epsilon_at(curve, delta, value)))
        result = up(epsilon_at(curve, delta, order))
    return max(0.0, result) if not math.isnan(result) else math.inf


def mironov_epsilon(curve: Curve, delta: Fraction) -> float:
    """The older conversion (Mironov 2017, Prop. 3), for comparison with papers that use it."""

    def at(order: float) -> arb:
        alpha = 1 + ball(order)
        return curve(alpha) - ball(delta).log() / (alpha - 1)

    with precision(_BITS):
        return up(at(_best_order(lambda value: _float(at(value)))))


def renyi_delta(curve: Curve, epsilon: Fraction) -> float:
    """The smallest delta over all orders, rounded up, at most 1."""
    with precision(_BITS):
        order = _best_order(lambda value: _float(log_delta_at(curve, epsilon, value)))
        result = up(log_delta_at(curve, epsilon, order).exp())
    return min(1.0, result) if not math.isnan(result) else 1.0


def _float(value: arb) -> float:
    return float(value.mid()) if value.is_finite() else math.inf


def _best_order(objective: Callable[[float], float]) -> float:
    """The alpha - 1 that nearly minimises: a scan over ten decades, then golden sections."""
    exponents = [i / 3 for i in range(-10, 22)]
    values = [objective(10.0**exponent) for exponent in exponents]
    best = min(range(len(values)), key=values.__getitem__)
    low = exponents[max(best - 1, 0)]
    high = exponents[min(best + 1, len(values) - 1)]
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = objective(10.0**left), objective(10.0**right)
    for _ in range(24):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = objective(10.0**left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = objective(10.0**right)
    return float(10.0 ** ((low + high) / 2))
