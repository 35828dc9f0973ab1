"""Calibration: from a target (epsilon, delta) to the parameters that spend it.

Everything depends on public numbers only. The search may be rough; what is returned was checked
with the rigorous loss itself: ``loss.epsilon(delta) <= epsilon`` holds without tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from topsecret.accounting.absorption import calibrate_absorbed
from topsecret.accounting.bounds import is_closed
from topsecret.accounting.classical import about_log_delta
from topsecret.accounting.loss import Loss, failure, picks, slack, zcdp
from topsecret.accounting.optimal import Steps, optimal_epsilon
from topsecret.accounting.profile import gaussian_delta
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, ball, down, exact, precision, up

Adjacency = Literal["add-remove", "replace"]

FEW = 10
ROUGH, ROUGH_GRID = 1e-3, 5e-3
FINE = 1e-4  # how much of the target a calibration may leave unspent, relative
CREEPING = 24  # tries on one side of the target after which the slope is measured
FINEST = 2e-6  # the same where a try costs next to nothing


def calibrate(
    loss_of: Callable[[float], Loss],
    epsilon: Number,
    delta: Number,
    start: float = 1.0,
    tolerance: float = FINE,
) -> float:
    """The largest parameter, or nearly, whose loss keeps to (epsilon, delta).

    It is 0 when even the smallest is too much.

    Parameters: ``loss_of``: what a parameter costs; must not fall as it grows; ``epsilon``: the
    budget; ``delta``: the budget; ``start``: where the search begins; ``tolerance``: the share of
    epsilon that may be left unspent, never overspent.

    >>> from topsecret.accounting import gaussian
    >>> mu_squared = calibrate(gaussian, 1, 1e-6)
    >>> 0.9999 < gaussian(mu_squared).epsilon(1e-6) <= 1
    True
    """
    epsilon, delta = _target(epsilon, delta)
    return _largest(lambda value: loss_of(value).epsilon(delta), epsilon, start, tolerance)


def calibrate_picks(n: int, epsilon: Number, delta: Number) -> float:
    """The largest epsilon per pick with which ``n`` picks keep to (epsilon, delta).

    >>> 0.1531 < calibrate_picks(10, 1, 1e-6) < 0.1534
    True
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InvalidParameter(f"n={n!r} must be a whole number, 1 or more")
    return _picks(n, *_target(epsilon, delta))


def calibrate_gaussian(epsilon: Number, delta: Number) -> float:
    """The largest mu² of Gaussian steps that keeps to (epsilon, delta), within 10⁻⁸; 0 if none.

    >>> 0.0560 < calibrate_gaussian(1, 1e-6) < 0.0561
    True
    """
    return _gaussian(*_target(epsilon, delta))


def calibrate_zcdp(epsilon: Number, delta: Number) -> float:
    """The largest rho whose zCDP keeps to (epsilon, delta).

    >>> 0.0243 < calibrate_zcdp(1, 1e-6) < 0.0244
    True
    """
    return _zcdp(*_target(epsilon, delta))


def calibrate_limited_domain(
    k: int,
    k_bar: int,
    epsilon: Number,
    delta: Number,
    max_items: int | None = None,
    strict: bool = False,
    adjacency: Adjacency = "add-remove",
    tolerance: float = FINE,
) -> tuple[float, float]:
    """The price per pick and the threshold's share of delta that give the lowest threshold.

    Parameters: ``k``: how many items; ``k_bar``: how many leading items may be looked at;
    ``epsilon``: the budget; ``delta``: the budget; ``max_items``: how many items of a person are
    counted; None for any number; ``strict``: whether the threshold is for k_bar items, however few
    a person has; ``adjacency``: which datasets are neighbours: "add-remove" or "replace";
    ``tolerance``: the share of epsilon that may be left unspent, never overspent.

    The threshold lies s (1 + ln(M / threshold_delta) / epsilon_per_pick) over the next count,
    s = 1 for add-remove and 2 for replace (``mechanisms/limited_domain.py``), so only M decides
    the split.

    >>> price, share = calibrate_limited_domain(10, 200, epsilon=1, delta=1e-6)
    >>> limited_domain_loss(10, price, share).epsilon(1e-6) <= 1
    True
    """
    if not 1 <= k <= k_bar:
        raise InvalidParameter(f"k={k} must lie between 1 and k_bar={k_bar}")
    if max_items is not None and max_items < 1:
        raise InvalidParameter(f"max_items={max_items} must be at least 1, or None")
    if adjacency not in ("add-remove", "replace"):
        raise InvalidParameter(f"adjacency={adjacency!r} must be 'add-remove' or 'replace'")
    touched = k_bar if max_items is None else max_items * (2 if adjacency == "replace" else 1)
    affected = k_bar if strict else min(touched, k_bar)
    epsilon, delta = _target(epsilon, delta)
    if delta == 0:
        raise InvalidParameter("delta=0 leaves no threshold; choose a delta above 0")
    return _limited_domain(k, affected, epsilon, delta, tolerance)


def limited_domain_loss(k: int, epsilon_per_pick: Number, threshold_delta: Number) -> Loss:
    """What a limited-domain query costs, with the slack k ln(1 + delta) rounded up.

    Statement and proof stand in ``mechanisms/limited_domain.py``.
    """
    share = exact(threshold_delta, "threshold_delta")
    with precision(96):
        extra = up(k * ball(share).log1p())
    return picks(k, epsilon_per_pick) + slack(extra) + failure(share)


@lru_cache(maxsize=1024)
def _picks(n: int, epsilon: Fraction, delta: Fraction) -> float:
    closed = _closed_price(n, epsilon, delta)
    if closed and is_closed(picks(n, closed)):
        return closed  # the recursion would not sharpen it
    start = _rough_pick(n, epsilon, delta)

    def spent(price: float) -> float:
        return picks(n, price).epsilon(delta)

    # Where basic composition wins, the quotient itself is the answer.
    quotient = down(epsilon / n)
    found = 0.0 if delta == 0 else _largest(spent, epsilon, start, FINE)
    if quotient > found and spent(quotient) <= epsilon:
        return quotient
    return found or _largest(spent, epsilon, start, FINE)


@lru_cache(maxsize=1024)
def _gaussian(epsilon: Fraction, delta: Fraction) -> float:
    if delta == 0:
        return 0.0
    x, target = float(epsilon), math.log(delta)
    low, high = math.log(x) - 60, math.log(x + 1) + 60
    for _ in range(100):
        middle = (low + high) / 2
        fits = about_log_delta(math.exp(middle), x) <= target
        low, high = (middle, high) if fits else (low, middle)
    # A little below: what the accountant reports of it is rounded up.
    mu_squared = math.exp(2 * low) * (1 - 1e-9)
    for _ in range(60):  # the search may be rough; what is returned was checked in balls
        with precision(256):
            if gaussian_delta(Fraction(mu_squared), epsilon) <= ball(delta):
                return mu_squared
        mu_squared *= 1 - 1e-9 if mu_squared > math.exp(2 * low) * (1 - 1e-8) else 0.5
    return 0.0


@lru_cache(maxsize=1024)
def _zcdp(epsilon: Fraction, delta: Fraction) -> float:
    start = _rho_guess(epsilon, delta)
    return _largest(lambda rho: zcdp(rho).epsilon(delta), epsilon, start, FINEST)


@lru_cache(maxsize=1024)
def _limited_domain(
    k: int, affected: int, epsilon: Fraction, delta: Fraction, tolerance: float
) -> tuple[float, float]:
    def height(share: float) -> float:
        """About the threshold over the next count when this share of delta goes to it."""
        price = _rough_pick(k, epsilon, delta * (1 - Fraction(share)))
        return math.log(affected / (share * float(delta))) / price

    # With D = ln(1/delta) and prices near 1/sqrt(D) the optimum is near 2D / (ln(M/delta) + 2D)
    # and flat. Share 1 leaves basic composition, which wins for few picks.
    surprise = math.log(1 / float(delta))
    guess = 2 * surprise / (math.log(affected) + 3 * surprise)
    shares = [guess, (1 + guess) / 2, guess / 2, (1 + 3 * guess) / 4, 0.97, 1.0]
    share = min(shares, key=height)
    threshold_delta = down(delta * Fraction(share))
    own = limited_domain_loss(k, 0, threshold_delta)
    if epsilon > own.slack and delta > own.failures:
        closed = _closed_price(k, epsilon - own.slack, delta - own.failures)
        loss = limited_domain_loss(k, closed, threshold_delta)
        if closed and is_closed(loss) and loss.keeps_to(epsilon, delta):
            return closed, threshold_delta
    start = _rough_pick(k, epsilon, delta * (1 - Fraction(share)))
    if tolerance > FINE:  # the first try is to be the last
        start *= 1 - tolerance / 2

    def spent(price: float) -> float:
        return limited_domain_loss(k, price, threshold_delta).epsilon(delta)

    return _largest(spent, epsilon, start, tolerance), threshold_delta


@lru_cache(maxsize=64)  # the share that is chosen is asked for again
def _rough_pick(n: int, epsilon: Fraction, delta: Fraction) -> float:
    """About the largest epsilon per pick: that of a Gaussian of the same variance, or basic."""
    most = float(epsilon / n)
    if n == 1 or delta <= 0:
        return most
    if n < FEW:  # the Gaussian is far from few picks, and the recursion is quick

        def spent(price: float) -> float:
            step = Fraction(price)
            steps = Steps(((n, step),), (), Fraction(0))
            return min(up(n * step), optimal_epsilon(steps, delta, ROUGH_GRID))

        start = 1.12 * math.sqrt(8 * _rho_guess(epsilon, delta) / n)
        return _largest(spent, epsilon, max(start, most), ROUGH)
    # Few picks cost a little less than the Gaussian that many tend to.
    return max(most, math.sqrt(4 * _gaussian(epsilon, delta) / n) * (1 + 2.4 / n**2))


def _closed_price(n: int, epsilon: Fraction, delta: Fraction) -> float:
    """The price that absorption allows, evaluated; 0 where it allows none."""
    if delta <= 0:
        return 0.0
    whole = _gaussian(epsilon, delta)
    price = down(calibrate_absorbed(lambda each: ((n, each),), 0, whole))
    return price if price > 0 and picks(n, price).keeps_to(epsilon, delta) else 0.0


def _rho_guess(epsilon: Fraction, delta: Fraction) -> float:
    if delta <= 0:
        return float(epsilon)
    surprise = max(1.0, -math.log(delta))
    return (math.sqrt(surprise + float(epsilon)) - math.sqrt(surprise)) ** 2


def _largest(
    spent: Callable[[float], float], target: Fraction, start: float, tolerance: float
) -> float:
    """The largest x with spent(x) <= target, within a relative tolerance below it, else 0.

    Secants of ln spent against ln x, with a bracket; what is returned was itself evaluated. On one
    side of the target steps are in proportion to what is missing, which suits a cost that grows
    with x; where most of the cost is another's they creep, and the slope is measured.
    """
    low = high = 0.0
    low_spent, high_spent = 0.0, math.inf
    aim = float(target) * (1 - tolerance / 2)
    x, before, still = start, math.nan, 0
    x_before = math.nan
    for turn in range(200):
        value = spent(x)
        power = _steepness(x_before, before, x, value) if turn >= CREEPING else 1.0
        x_before = x
        # Far from the target and no longer moving: the parameter is not what costs.
        still = still + 1 if abs(value - before) <= 1e-9 * value else 0
        if still == 3 and not (low and high):
            break
        before = value
        if value <= target:
            low, low_spent = x, value
        else:
            high, high_spent = x, value
        if low_spent >= float(target) * (1 - tolerance):
            break
        if low and high and high <= low * (1 + tolerance / 4):
            break
        if low and high:
            known = low_spent > 0 and math.isfinite(high_spent) and turn % 4 != 3
            weight = math.log(aim / low_spent) / math.log(high_spent / low_spent) if known else 0.5
            x = low * (high / low) ** min(max(weight, 0.01), 0.99)
        elif low:
            more = max(aim / low_spent, 1 + tolerance) if low_spent > 0 else 16.0
            x = low * min(16.0, min(16.0, more) ** power)
            if x > 1e300:
                break
        else:
            x = high * max(1 / 16, (aim / high_spent) ** power)
            if x < 1e-300:
                return 0.0
    return low


def _steepness(x_before: float, before: float, x: float, value: float) -> float:
    """By which power of what is missing x has to move, by the last two tries; 1 where unknown."""
    if not (0 < before < math.inf and 0 < value < math.inf) or value == before or x == x_before:
        return 1.0
    return min(max(math.log(x / x_before) / math.log(value / before), 1.0), 64.0)


def _target(epsilon: Number, delta: Number) -> tuple[Fraction, Fraction]:
    epsilon, delta = exact(epsilon, "epsilon"), exact(delta, "delta")
    if epsilon <= 0:
        raise InvalidParameter(f"epsilon={float(epsilon)} must be above 0")
    if not 0 <= delta < 1:
        raise InvalidParameter(f"delta={float(delta)} must be at least 0 and below 1")
    return epsilon, delta
