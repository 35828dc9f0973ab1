"""`TestedTopK` in the two scenes, and its schedule in rough numbers for a search."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from topsecret.accounting import calibrate, gaussian
from topsecret.accounting.tested import Branch
from topsecret.exact.rounding import ball, precision
from topsecret.mechanisms.tested_schedule import (
    CONSTANTS,
    UNIT,
    Length,
    Pass,
    Schedule,
    length_scores,
    picks_of,
    sizes,
)
from topsecret.planning.hidden_picks import last_is_kept, unwanted_left

FAR = 10**9
"""A lead in persons that no noise overcomes."""


def tested_chances(schedule: Schedule, slots: int, lead: int, k: int) -> tuple[float, float]:
    """That the last item of the top k is named, the others far ahead; that all k are, level.

    A list is released when no null slot survived and the test passes. With m < k the last item
    is not in the list: it is pruned before the others.
    """
    if lead < 1:
        return 0.0, 0.0
    longest = schedule.lengths[0]
    prices = [price for count, price in longest.levels for _ in range(count)]
    strength = float(longest.price) * (lead - 1)
    passing = float(Pass(lead - 1, schedule.sigma, schedule.quantile).ball(64))
    kept = last_is_kept(slots - k, prices[k - 1 :], longest.prunes, lead, strength)
    left = unwanted_left(k, slots - k, longest.levels, longest.prunes, lead, strength)
    ahead, level = [FAR] * (k - 1) + [lead], [lead] * k
    return (
        _longest_is_chosen(schedule, ahead) * passing * kept,
        _longest_is_chosen(schedule, level) * passing * float(left[0]),
    )


def _longest_is_chosen(schedule: Schedule, leads: list[int]) -> float:
    scores = length_scores(schedule, leads)
    scale = float(schedule.choice) / (2 * UNIT)
    weights = [math.exp(scale * (score - max(scores))) for score in scores]
    return weights[0] / math.fsum(weights)


@lru_cache(maxsize=64)
def rough_schedule(k: int, epsilon: float, delta: float) -> Schedule:
    """About the schedule of (k, epsilon, delta), at once: prices by zCDP shares.

    The prices are within a few percent of the calibrated ones. For searching only: nothing is
    ever drawn with it.
    """
    failure = Fraction(delta) * CONSTANTS.test_failure
    mu_squared = Fraction(calibrate(gaussian, epsilon, Fraction(delta) - failure, tolerance=1e-3))
    sigma = Fraction(float(CONSTANTS.test_share * mu_squared) ** -0.5)
    with precision(64):
        quantile = Fraction(float((2 * ball(failure)).erfcinv()) * math.sqrt(2))
    wanted = sizes(k)
    choice = Fraction(2 * float(CONSTANTS.length_share * mu_squared) ** 0.5)
    shares = 1 - CONSTANTS.test_share - (CONSTANTS.length_share if len(wanted) > 1 else 0)
    lengths = tuple(_rough(size, shares * mu_squared / 2, sigma * quantile) for size in wanted)
    return Schedule(lengths, choice if len(wanted) > 1 else Fraction(0), sigma, quantile, failure)


def _rough(size: int, rho: Fraction, level: Fraction) -> Length:
    unit = picks_of(size, Fraction(1))
    whole = Branch((*unit.levels, (unit.prunes, Fraction(1)))).rho()
    price = Fraction(float(rho / whole) ** 0.5)
    plain = picks_of(size, price)
    offset = round(UNIT * (1 + level + CONSTANTS.margin / price))
    return Length(size, plain.prunes, price, plain.levels, offset)
