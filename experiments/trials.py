"""Repeated draws of a mechanism: the mean of what is measured, with its confidence interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topsecret import Histogram
from topsecret.mechanisms import Mechanism
from topsecret.noise.bits import BitSource, ReplayableBits

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many steps are done, and of how many."""


def quiet(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over runs and the half width of its 95% confidence interval (normal)."""

    mean: float
    half_width: float
    runs: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """Of at least one value; one alone has an interval of unknown width."""
        spread = statistics.stdev(values) if len(values) > 1 else math.nan
        return cls(statistics.fmean(values), 1.96 * spread / math.sqrt(len(values)), len(values))

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.half_width:.3f}"


def repeat(
    draw: Callable[[BitSource], float], runs: int, seed: int, *label: Hashable
) -> tuple[Mean, list[float]]:
    """``draw`` on a stream of its own that the seed and the label name."""
    bits = ReplayableBits(repr((seed, *label)).encode())
    values = [draw(bits) for _ in range(runs)]
    return Mean.of(values), values


def public_histogram(counts: NDArray[np.int64]) -> Histogram:
    """All items are known; an item is named by its rank, from 0."""
    return Histogram.from_counts(counts)


def leading_histogram(counts: NDArray[np.int64], rows: int) -> Histogram:
    """Only the leading observed items, named by their rank, from 0."""
    observed = counts[:rows][counts[:rows] > 0].tolist()
    return Histogram.leading(list(enumerate(observed)), limit=rows)


def rows_of(mechanism: Mechanism, k: int) -> int:
    """How many leading counts the mechanism looks at: 20·k, or its own rule, and the next."""
    return int(getattr(mechanism, "slots", 20 * k)) + 1


def share_found(counts: NDArray[np.int64], items: Sequence[Hashable], k: int) -> float:
    """The share of the true top k that was named; an item tied with the k-th is as good.

    The (k+1)-th item is *not* counted as correct (one public evaluation does so).
    """
    least = max(int(counts[k - 1]), 1)
    right = sum(isinstance(item, int | np.integer) and counts[item] >= least for item in items)
    return min(right, k) / k


def score_lost(counts: NDArray[np.int64], items: Sequence[Hashable], k: int) -> float:
    """Which share of the summed counts of the true top k the named items do not have."""
    most = int(counts[:k].sum())
    return 1 - sum(int(counts[item]) for item in items) / most  # type: ignore[call-overload]


def recall(
    mechanism: Mechanism,
    histogram: Histogram,
    counts: NDArray[np.int64],
    k: int,
    runs: int,
    seed: int,
    *label: Hashable,
) -> Mean:
    """The mean share of the true top k over seeded runs."""

    def once(bits: BitSource) -> float:
        return share_found(counts, mechanism.select(histogram, bits).items, k)

    return repeat(once, runs, seed, *label)[0]
