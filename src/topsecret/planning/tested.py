"""`TestedTopK` in the scene, and its schedule in rough numbers for a search."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from topsecret.accounting import calibrate, gaussian
from topsecret.accounting.tested import Branch
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
from topsecret.planning.hidden_picks import unwanted_left
from topsecret.rounding import ball, precision


def tested_chances(schedule: Schedule, slots: int, lead: int, k: int) -> tuple[float, float]:
    """That one of the k leading items is named, and that all are: summed over the lengths.

    A list is released when no other slot survived and the test passes. Its m items are then
    any m of the k, by symmetry.
    """
    if lead < 1:
        return 0.0, 0.0
    scores = length_scores(schedule, [lead] * k)
    scale = float(schedule.choice) / (2 * UNIT)
    weights = [math.exp(scale * (score - max(scores))) for score in scores]
    passing = float(Pass(lead - 1, schedule.sigma, schedule.quantile).ball(64))
    one = every = 0.0
    for length, weight in zip(schedule.lengths, weights, strict=True):
        share = weight / sum(weights)
        if share < 1e-12:
            continue
        strength = float(length.price) * (lead - 1)
        left = unwanted_left(k, slots - k, length.levels, length.prunes, lead, strength)
        released = share * passing * float(left[0])
        one += released * length.size / k
        every += released if length.size == k else 0.0
    return one, every


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
