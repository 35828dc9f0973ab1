"""`TestedTopK` in the two scenes, what an empty answer takes, and rough numbers for a search."""

from __future__ import annotations

import math
from functools import lru_cache

from topsecret.exact.rounding import exact
from topsecret.mechanisms.pick_prune_test import Above
from topsecret.mechanisms.tested_prices import rough_price_of
from topsecret.mechanisms.tested_schedule import UNIT, Length, Schedule, planned
from topsecret.mechanisms.tested_top_k import length_scores
from topsecret.planning.hidden_picks import last_is_kept, unwanted_left

FAR = 10**9
"""A lead in people that no noise overcomes."""


def last_chance(schedule: Schedule, slots: int, lead: int, k: int) -> float:
    """That the last item of the top k is named, the others far ahead.

    Only the longest list can have it: in the shorter ones it is pruned before the others.
    """
    if lead < 1:
        return 0.0
    longest = schedule.lengths[0]
    prices = [price for count, price in longest.levels for _ in range(count)]
    strength = float(longest.price) * (lead - 1)
    kept = last_is_kept(slots - k, prices[k - 1 :], longest.prunes, lead, strength)
    chosen = _chosen(schedule, [FAR] * (k - 1) + [lead])[0]
    return chosen * chance_to_pass(longest, lead) * kept


def tested_chances(schedule: Schedule, slots: int, lead: int, k: int) -> tuple[float, float]:
    """That the last item of the top k is named, the others far ahead; that all k are, level.

    Only the longest list has all k items: it is released when no null slot survived in it and
    it passes.
    """
    if lead < 1:
        return 0.0, 0.0
    longest = schedule.lengths[0]
    strength = float(longest.price) * (lead - 1)
    left = unwanted_left(k, slots - k, longest.levels, longest.prunes, lead, strength)
    every = _chosen(schedule, [lead] * k)[0] * chance_to_pass(longest, lead) * float(left[0])
    return last_chance(schedule, slots, lead, k), every


def answer_chance(schedule: Schedule, slots: int, lead: int) -> float:
    """At least that some list is released when k items lead the other slots by this much.

    Whatever length is chosen, its longest list may pass; the shorter ones only add to it.
    """
    if lead < 1:
        return 0.0
    k = schedule.lengths[0].size
    shares = _chosen(schedule, [lead] * k)
    total = 0.0
    for share, length in zip(shares, schedule.lengths, strict=True):
        if share < 1e-6:
            continue
        strength = float(length.price) * (lead - 1)
        left = unwanted_left(k, slots - k, length.levels, length.prunes, lead, strength)
        total += share * chance_to_pass(length, lead) * float(left[0])
    return total


def chance_to_pass(length: Length, lead: int) -> float:
    """That the longest list passes when its weakest item has this lead."""
    level = length.test.levels([lead] * length.test.lists)[0]
    return float(Above(level).ball(64))


def _chosen(schedule: Schedule, leads: list[int]) -> list[float]:
    """How likely each length is."""
    scores = length_scores(schedule, leads)
    scale = float(schedule.choice) / (2 * UNIT)
    weights = [math.exp(scale * (score - max(scores))) for score in scores]
    return [weight / math.fsum(weights) for weight in weights]


@lru_cache(maxsize=64)
def rough_schedule(k: int, epsilon: float, delta: float) -> Schedule:
    """About the schedule of (k, epsilon, delta), at once: prices by the closed form alone.

    The prices are within a few percent of the calibrated ones. For searching only: nothing is
    ever drawn with it.
    """
    return planned(k, exact(epsilon), exact(delta), True, rough_price_of)
