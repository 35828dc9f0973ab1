"""The lists of one question, calibrated so that together they keep to its budget. All public."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from topsecret.calibration.calibrated import calibrated
from topsecret.calibration.counts import CountsBudget
from topsecret.calibration.prepared import Calibrated
from topsecret.calibration.question import Question as Numbers
from topsecret.calibration.rises import LEADING_RISES
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import down, exact, up
from topsecret.mechanisms.mechanism import Mechanism

STEPS = 6
"""How often the price of one of several lists over time is bisected."""
TRIES, ENOUGH = 6, 0.97
"""How often the budget of one of several lists is tried, and which part of all is spent enough."""


@dataclass(frozen=True, slots=True, eq=False)  # kept and compared as the object that it is
class Plan:
    """How a question is answered: each of its lists, and what all of them cost together."""

    each: Calibrated
    lists: int
    """How many lists one person can be in: their losses add up."""
    epsilon: float
    delta: float


@lru_cache(maxsize=256)
def lists_within(
    numbers: Numbers,
    mechanism: str | Mechanism,
    counts: CountsBudget | None,
    at: tuple[float, float] | None,
    lists: int,
    over_time: bool,
) -> Plan:
    """The costliest lists, or nearly, that the budget can afford together.

    δ is divided evenly. ε/lists is always affordable (basic composition); the sum of all losses
    is usually far smaller than the sum of their epsilons, so that more is tried.
    """

    def each_at(epsilon: float, delta: float) -> Calibrated:
        asked = replace(numbers, epsilon=epsilon, delta=delta)
        return calibrated(_named(mechanism, asked, at), asked, counts, at)

    epsilon, delta = numbers.epsilon, numbers.delta
    if lists == 1:
        best = each_at(epsilon, delta)
        return Plan(best, 1, best.epsilon, delta)
    share, least = down(exact(delta) / lists), down(exact(epsilon) / lists)
    if over_time:
        best = _bisected(each_at, least, epsilon, share, lambda one: _together(one, lists, delta))
        return Plan(best, lists, _together(best, lists, delta), delta)
    if at is not None or delta == 0 or not isinstance(mechanism, str):
        best = each_at(least, share)  # prices that others fixed, or that add up one by one
        return Plan(best, lists, _together(best, lists, delta), delta)
    from topsecret.planning.several_lists import calibrated_together, epsilon_of_each, likely_name

    name = likely_name(replace(numbers, epsilon=least, delta=share), mechanism)
    first = None if counts is not None else calibrated_together(mechanism, numbers, lists)
    x = 0.0 if first is not None else epsilon_of_each(name, numbers, lists, counts is not None)
    found: list[tuple[float, Calibrated]] = []
    for _ in range(TRIES):
        tried = first or each_at(min(max(x, least), epsilon), share)
        spent = _together(tried, lists, delta)
        if spent <= epsilon:
            found.append((spent, tried))
            if first is not None or spent >= ENOUGH * epsilon:
                break
        # What lists cost together is nearly in proportion to what one costs.
        more = (1 + ENOUGH) / 2 * epsilon / max(spent, epsilon / 16)
        x, first = tried.question.epsilon * more, None
    if not found:
        found = [(_together(best := each_at(least, share), lists, delta), best)]
    spent, best = max(found, key=lambda one: one[0])
    return Plan(best, lists, spent, delta)


def _bisected(
    each_at: Callable[[float, float], Calibrated],
    low: float,
    high: float,
    share: float,
    together: Callable[[Calibrated], float],
) -> Calibrated:
    """As lists over time are priced: their plan is made anew for each, and must not change."""
    best, epsilon = each_at(low, share), high
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        tried = each_at(middle, share)
        if together(tried) <= epsilon:
            best, low = tried, middle
        else:
            high = middle
    return best


def _together(each: Calibrated, lists: int, delta: float) -> float:
    """What so many lists cost at delta: by their summed losses, or one by one."""
    return min(up(lists * exact(each.epsilon)), (lists * each.loss).epsilon(delta))


def _named(mechanism: str | Mechanism, numbers: Numbers, at: object) -> str | Mechanism:
    """The mechanism that "auto" stands for, by a public rule."""
    if not isinstance(mechanism, str) and at is not None:
        raise InvalidParameter(
            "a metered budget needs a mechanism by its name: it sets the parameters itself"
        )
    if mechanism != "auto":
        return mechanism
    if numbers.two_periods:
        return LEADING_RISES
    if at is not None:
        return "limited-domain"
    from topsecret.planning.rule import recommended_name

    return recommended_name(numbers)
