"""The epsilon after every one of many equal steps, cheaply: one Rényi curve, tabulated once.

The full accountant takes up to seconds for one number of steps. Here the Rényi curve of *one* step
is evaluated in balls at 96 orders and rounded up; after n steps

    epsilon(n) = min over alpha of n·curve(alpha) + constant(alpha) + ln(1/delta_n)/(alpha − 1),

constant(alpha) = ln(1 − 1/alpha) − ln(alpha)/(alpha − 1) (Canonne, Kamath & Steinke 2020, Prop.
12), is a few additions of floats. Every order is valid, so a table of orders loses a little and
breaks nothing. delta_n is delta less the failures of n steps, an exact fraction.

**Rounding.** The floats curve, constant, 1/(alpha − 1) and ln(1/delta_n) are each rounded up. Two
products and two additions of floats follow, each with a relative error of at most u = 2⁻⁵³ of
numbers that are at most the sum A of the absolute values: together below 6u·A. Adding 2⁻⁵⁰·A = 8u·A
covers that and the rounding of A.

>>> from topsecret.accounting import failure, gaussian, picks
>>> running = RunningEpsilon(picks(1, 0.02) + gaussian(0.0001) + failure(1e-9), delta=1e-6)
>>> loss = 100 * (picks(1, 0.02) + gaussian(0.0001) + failure(1e-9))
>>> loss.epsilon(1e-6) <= running.after(100) < 1.3 * loss.epsilon(1e-6)
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from topsecret.accounting import bounds
from topsecret.accounting.loss import NO_LOSS, Loss
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, ball, exact, precision, up

Floats = NDArray[np.float64]

_ORDERS = tuple(10.0 ** (step / 12) for step in range(-36, 60))
_WIDEN = 2.0**-50
_BITS = 192


class RunningEpsilon:
    """A valid epsilon after n steps of one loss at a fixed total ``delta``, for every n.

    Guarantee: ``after(n)`` is at least a Rényi bound of n adaptively chosen steps. Like every
    bound of a sequence it speaks of a number n of steps that does not depend on the answers.
    """

    def __init__(self, step: Loss, delta: Number) -> None:
        self.step = step
        self.delta = exact(delta, "delta")
        if not 0 <= self.delta < 1:
            raise InvalidParameter(f"delta={delta} must be at least 0 and below 1")
        self._curve = _curve_of(step)
        _, self._constant, self._weight = _of_orders()

    def after(self, steps: int) -> float:
        """The epsilon after this many steps; infinite when the failures alone exceed delta."""
        left = self.delta - steps * self.step.failures
        if left < 0:
            return math.inf
        if steps == 0 or self.step == NO_LOSS:
            return 0.0
        slack = steps * self.step.slack
        basic = bounds.pure_total(self.step)
        found = math.inf if basic is None else up(steps * basic + slack)
        if left > 0:
            with precision(96):
                surprise = up(-ball(left).log())
            parts = (steps * self._curve, self._constant, surprise * self._weight)
            total: Floats = parts[0] + parts[1] + parts[2]
            total += _WIDEN * (np.abs(parts[0]) + np.abs(parts[1]) + np.abs(parts[2]))
            least = max(0.0, float(total.min()))
            if math.isfinite(least):
                found = min(found, up(Fraction(least) + slack))
        return found


@cache
def _of_orders() -> tuple[tuple[arb, ...], Floats, Floats]:
    """What depends on the orders alone: each alpha, constant(alpha) and 1/(alpha − 1)."""
    with precision(_BITS):
        alphas = tuple(1 + ball(order) for order in _ORDERS)
        constant = [up((-1 / alpha).log1p() - alpha.log() / (alpha - 1)) for alpha in alphas]
        weight = [up(1 / (alpha - 1)) for alpha in alphas]
    return alphas, np.array(constant), np.array(weight)


def _curve_of(step: Loss) -> Floats:
    curve = bounds.renyi_of(step)
    with precision(_BITS):
        values = [up(curve(alpha)) for alpha in _of_orders()[0]]
    return np.array([math.inf if math.isnan(value) else value for value in values])


def most_steps(step: Loss, epsilon: Number, delta: Number, limit: int = 10**9) -> int:
    """How many steps of one loss keep to (epsilon, delta): never too many.

    The Rényi table gives a number that surely fits; the full accountant is then asked at a few
    larger numbers. What is returned was itself evaluated. ``limit`` bounds the answer.

    >>> from topsecret.accounting import gaussian
    >>> n = most_steps(gaussian(0.001), epsilon=1, delta=1e-6)
    >>> (n * gaussian(0.001)).epsilon(1e-6) <= 1 < ((n + 1) * gaussian(0.001)).epsilon(1e-6)
    True
    """
    target, delta = exact(epsilon, "epsilon"), exact(delta, "delta")
    running = RunningEpsilon(step, delta)
    if step.failures:
        limit = min(limit, math.floor(delta / step.failures))
    fits = _bisect(lambda n: running.after(n) <= target, 0, limit)
    known: dict[int, bool] = {}

    def fully(n: int) -> bool:
        if n not in known:
            known[n] = (n * step).epsilon(delta) <= target
        return known[n]

    step_up = max(1, fits // 16)
    while fits < limit and fully(min(fits + step_up, limit)):
        fits = min(fits + step_up, limit)
        step_up *= 2
    # Within a thousandth: each question may take seconds, and fewer steps are always allowed.
    return _bisect(fully, fits, min(fits + step_up, limit), fits // 1024)


def _bisect(fits: Callable[[int], bool], low: int, high: int, tolerance: int = 0) -> int:
    """A number that fits, within the tolerance of the largest, given that ``low`` does."""
    if low == high or fits(high):
        return high
    while high - low > 1 + tolerance:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
