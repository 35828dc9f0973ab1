"""The exact law of small series, by quadrature: what is shown of each label in each period.

A label shows nothing until it becomes known, then a bin of its value in every period. Labels are
independent given the rows. Rows of a later period may depend on what was shown before: the worst
such dependence is found by taking, after each thing that can be shown, the rows that are worst.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from topsecret.accounting.profile import gaussian_delta
from topsecret.counts.weights import UNIT
from topsecret.exact.rounding import exact, up
from topsecret.mechanisms.series_numbers import SeriesNumbers

Floats = NDArray[np.float64]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(80)
FAR = 9.0
HIDDEN = 0
Sums = tuple[int, ...]
Rows = tuple[tuple[int, ...], tuple[int, ...]]
"""What one period adds to each label: by the others, and by the person who may be missing."""


@dataclass(frozen=True)
class Setting:
    """A series as it was calibrated, its thresholds in persons, and cuts between bins."""

    numbers: SeriesNumbers
    thresholds: tuple[float, ...]
    cuts: tuple[float, ...]

    @classmethod
    def of(cls, numbers: SeriesNumbers, cuts: Sequence[float], lower: float = 0.0) -> Setting:
        """The product's own numbers; ``lower`` takes so much from its thresholds."""
        edges = [
            (numbers.threshold(period) + 0.5) / UNIT - lower
            for period in range(1, numbers.periods + 1)
        ]
        return cls(numbers, tuple(edges), tuple(cuts))

    @property
    def symbols(self) -> int:
        """What one label can show in one period."""
        return len(self.cuts) + 2

    def present(self, added: Sequence[int]) -> Sums:
        """The sums of a label from what each period added."""
        reach = self.numbers.window if self.numbers.kind == "window" else len(added)
        return tuple(sum(added[max(0, t + 1 - reach) : t + 1]) for t in range(len(added)))

    def law(self, added: Sequence[int]) -> Floats:
        """P[path] of one label, an axis for each period; nothing is known before the first."""
        return _law(self, self.present(added))


@lru_cache(maxsize=100_000)
def _law(setting: Setting, sums: Sums) -> Floats:
    law = np.zeros((setting.symbols,) * len(sums))
    for path in itertools.product(range(setting.symbols), repeat=len(sums)):
        law[path] = _mass(setting, sums, path)
    assert abs(law.sum() - 1) < 1e-9
    return law


def _mass(setting: Setting, sums: Sums, path: Sequence[int]) -> float:
    intervals = []
    known = False
    for period, (total, shown) in enumerate(zip(sums, path, strict=True)):
        edge = setting.thresholds[period]
        if not known and shown == HIDDEN:
            # Nothing can be shown of a label that nobody has.
            intervals.append((-np.inf, edge if total >= 1 else np.inf))
            continue
        if shown == HIDDEN or (not known and total < 1):
            return 0.0
        cuts = (-np.inf, *setting.cuts, np.inf)
        low, high = cuts[shown - 1], cuts[shown]
        intervals.append((low if known else max(low, edge), high))
        known = True
        if intervals[-1][0] >= high:
            return 0.0
    a = [float(one.mid()) for one in setting.numbers.coefficients()]
    sigma = float(setting.numbers.sigma)
    bounds = [
        ((low - total) / sigma, (high - total) / sigma)
        for (low, high), total in zip(intervals, sums, strict=True)
    ]
    return _inside(bounds, a)


def _inside(bounds: Sequence[tuple[float, float]], a: Sequence[float]) -> float:
    """P[low_t < Σ_j a_j·Z_(t−j) < high_t for all t], integrated over all Z but the last."""
    weights, drawn = np.ones(1), np.zeros((1, 0))
    for period, (low, high) in enumerate(bounds):
        past = drawn @ np.array([a[period - s] for s in range(period)]) if period else np.zeros(1)
        lows, highs = (low - past) / a[0], (high - past) / a[0]
        if period == len(bounds) - 1:
            return float(weights @ (ndtr(highs) - ndtr(lows)))
        lows, highs = np.clip(lows, -FAR, FAR), np.clip(highs, -FAR, FAR)
        half = (highs - lows) / 2
        points = ((highs + lows) / 2)[:, None] + half[:, None] * NODES
        density = np.exp(-(points**2) / 2) / np.sqrt(2 * np.pi)
        weights = (weights[:, None] * half[:, None] * WEIGHTS * density).ravel()
        drawn = np.column_stack([np.repeat(drawn, len(NODES), axis=0), points.ravel()])
    raise AssertionError("no period")


def claimed(numbers: SeriesNumbers, x: float) -> float:
    """The delta at x that the ledger is told: gaussian(μ²) + failure."""
    return up(gaussian_delta(numbers.mu_squared, exact(x))) + float(numbers.failure)


def worst(setting: Setting, plays: Sequence[Sequence[Rows]], x: float, allowed: Rule) -> float:
    """The largest divergence at x, both directions, where rows may depend on what was shown.

    ``plays`` has the rows that each period may bring; ``allowed`` says which rows the person may
    bring after those before. Rows of the first period are public: the largest of them counts.
    """
    factor = float(np.exp(x))
    best = 0.0
    for sign in (1, -1):
        for first in plays[0]:
            if allowed((first,)):
                best = max(best, _tree(setting, (first,), (), plays, factor, sign, allowed))
    return best


class Rule:
    """Which rows a person may bring: at most D counts, a label again only W periods later."""

    def __init__(self, limit: int, again: int) -> None:
        self.limit, self.again = limit, again

    def __call__(self, rows: Sequence[Rows]) -> bool:
        mine = [one[1] for one in rows]
        if sum(map(sum, mine)) > self.limit:
            return False
        for label in range(len(mine[0])):
            times = [t for t, counts in enumerate(mine) if counts[label]]
            if any(b - a < self.again for a, b in itertools.pairwise(times)):
                return False
        return True


def _tree(
    setting: Setting,
    rows: tuple[Rows, ...],
    shown: tuple[tuple[int, ...], ...],
    plays: Sequence[Sequence[Rows]],
    factor: float,
    sign: int,
    allowed: Rule,
) -> float:
    """Σ over what this period shows of the worst that may follow."""
    labels = range(len(rows[0][0]))
    if len(rows) == len(plays):
        without, with_ = (_joint(setting, rows, shown, who) for who in (False, True))
        p, q = (with_, without) if sign > 0 else (without, with_)
        return float(np.maximum(p - factor * q, 0).sum())
    total = 0.0
    for now in itertools.product(range(setting.symbols), repeat=len(labels)):
        path = (*shown, now)
        if _forgets(path):
            continue
        choices = [(*rows, more) for more in plays[len(rows)] if allowed((*rows, more))]
        total += max(_tree(setting, c, path, plays, factor, sign, allowed) for c in choices)
    return total


def _forgets(path: Sequence[Sequence[int]]) -> bool:
    """Whether a label that was known shows nothing later: that cannot happen."""
    steps = itertools.pairwise(path)
    return any(
        b == HIDDEN and a != HIDDEN
        for before, now in steps
        for a, b in zip(before, now, strict=True)
    )


def _joint(
    setting: Setting, rows: tuple[Rows, ...], shown: tuple[tuple[int, ...], ...], person: bool
) -> Floats:
    """The law of what the last period shows together with what was shown before."""
    joint = np.ones(1)
    for label in range(len(rows[0][0])):
        added = [others[label] + (mine[label] if person else 0) for others, mine in rows]
        law = setting.law(added)[tuple(one[label] for one in shown)]
        joint = np.multiply.outer(joint, law).ravel()
    return joint


def fixed(
    setting: Setting, others: Sequence[Sequence[int]], mine: Sequence[Sequence[int]], x: float
) -> float:
    """The larger direction for rows that depend on nothing: one sequence for each label."""
    p, q = np.ones(1), np.ones(1)
    for base, own in zip(others, mine, strict=True):
        p = np.multiply.outer(p, setting.law(base)).ravel()
        q = np.multiply.outer(
            q, setting.law([a + b for a, b in zip(base, own, strict=True)])
        ).ravel()
    factor = np.exp(x)
    return float(max(np.maximum(p - factor * q, 0).sum(), np.maximum(q - factor * p, 0).sum()))
