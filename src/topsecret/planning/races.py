"""Who comes first in the scene: k equal runners, ``others`` behind them, perhaps a bar.

Leads and bars are in units of the noise scale. A runner is *named* when it comes before all
others and before the bar; k runners are named when the last of them does.

>>> round(exponential(2.0, others=1, runners=1), 6)  # 1 − e^(−2)/2
0.932332
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Chance = Callable[[int], float]
Reals = NDArray[np.float64]

_NODES = 4000


def gumbel_odds(lead: float, others: int, bar: float | None = None) -> float:
    """The odds against a runner: the weights of the others and of the bar over its own."""
    odds = others * math.exp(-lead)
    return odds if bar is None else odds + math.exp(min(bar - lead, 700.0))


def gumbel_all(odds: float, k: int) -> float:
    """Plackett–Luce: with j runners left, one of them is next with probability j/(j + odds)."""
    if odds > 1e15:
        return 0.0
    # The product over j is k!·Γ(1 + odds)/Γ(k + 1 + odds).
    return math.exp(math.lgamma(k + 1) + math.lgamma(1 + odds) - math.lgamma(k + 1 + odds))


def exponential(lead: float, others: int, runners: int) -> float:
    """The last of the runners, h + E, before the first of the others."""
    share = math.exp(-lead)
    levels, weights = _levels()
    # The last runner's tail v has v^runners uniform; one of the others passes it with share·v.
    tail = levels ** (1 / runners)
    return _mean(np.exp(others * np.log1p(-share * np.minimum(tail, 1 - 1e-16))), weights)


def one_round(lead: float, others: int, runners: int) -> float:
    """One round of report-noisy-max with exponential noise: the first of all is a runner."""
    share = math.exp(-lead)
    levels, weights = _levels()
    best = -np.expm1(np.log(levels) / runners)
    return _mean(np.exp(others * np.log1p(-share * np.minimum(best, 1 - 1e-16))), weights)


def laplace(lead: float, others: int, runners: int, bar: float | None = None) -> float:
    """The last of the runners before the first of the others, and before the bar."""
    levels, weights = _levels()
    log_tail = np.log(levels) / runners
    # The quantile of a Laplace at the tail v: −ln 2v above the middle, ln 2(1 − v) below it.
    below = np.log(2 * np.maximum(-np.expm1(log_tail), 1e-300))
    last = np.where(log_tail < -math.log(2), -math.log(2) - log_tail, below) + lead
    wins = others * np.log1p(-_laplace_tails(last))
    if bar is not None:
        wins += np.log1p(-_laplace_tails(last - bar))
    return _mean(np.exp(wins), weights)


def gaussian(lead: float, others: int, runners: int) -> float:
    """The last of the runners, lead + Z, before the first of the others, on a grid of levels."""
    places = np.linspace(-10.0, 10.0 + lead, _NODES)
    first = np.array([normal_below(x) for x in places.tolist()]) ** others
    last = np.array([normal_below(lead - x) for x in places.tolist()]) ** runners
    # P[first ≤ x < last], summed over where the first of the others lies.
    return float(np.sum(np.diff(first) * (last[1:] + last[:-1]) / 2) + first[0] * last[0])


def normal_below(x: float) -> float:
    """Φ(x)."""
    return math.erfc(-x / math.sqrt(2)) / 2


def laplace_tail(x: float) -> float:
    """P[Lap(1) > x]."""
    return math.exp(-x) / 2 if x >= 0 else 1 - math.exp(x) / 2


def two_laplaces_tail(x: float, first: float, second: float) -> float:
    """P[Lap(first) + Lap(second) > x] for two different scales."""
    if x < 0:
        return 1 - two_laplaces_tail(-x, first, second)
    parts = first**2 * math.exp(-x / first) - second**2 * math.exp(-x / second)
    return parts / (2 * (first**2 - second**2))


def _laplace_tails(x: Reals) -> Reals:
    tails = np.where(x >= 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)
    return np.minimum(tails, 1 - 1e-16)


@lru_cache(maxsize=1)
def _levels() -> tuple[Reals, Reals]:
    """Nodes of (0, 1) and their weights, dense at both ends (tanh-sinh)."""
    steps = np.linspace(-3.4, 3.4, _NODES)
    bend = np.pi / 2 * np.sinh(steps)
    levels = 1 / (1 + np.exp(-2 * bend))
    weights = np.cosh(steps) / np.cosh(bend) ** 2
    return levels, weights / weights.sum()


def _mean(values: NDArray[Any], weights: Reals) -> float:
    return float(values @ weights)
