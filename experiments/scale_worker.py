"""One measurement in a process of its own: CPU seconds and the peak of its memory, as JSON.

python -m experiments.scale_worker rows 1000000 events.parquet
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from benchmarks.memory import peak
from numpy.typing import NDArray

from topsecret import Histogram, top_k
from topsecret.accounting import picks
from topsecret.calibration import Question, prepare
from topsecret.mechanisms import GumbelTopK, LimitedDomain

Measured = tuple[Callable[[], object], int]
"""What is timed, and how often; the shortest time counts."""


def rows(size: int, path: str) -> Measured:
    """``top_k`` on a Parquet file, calibration left to the first call."""
    prepare("limited-domain", Question.of(k=10, epsilon=1.0))

    def ask() -> object:
        return top_k(
            Path(path), item="place", person="user", k=10, epsilon=1.0, mechanism="limited-domain"
        )

    return ask, 3 if size <= 10**7 else 1


def shuffled(size: int) -> NDArray[np.int64]:
    """Counts size/rank in random places."""
    counts = (size / np.arange(1, size + 1)).astype(np.int64)
    np.random.default_rng(7).shuffle(counts)
    return counts


def items(size: int, _: str) -> Measured:
    """k = 100 of so many items, all public, with counts of Zipf's law."""
    counts = shuffled(size)
    return lambda: GumbelTopK(100, 10.0).select(Histogram.from_counts(counts)), 5


def domain(size: int, _: str) -> Measured:
    """k = 100 of a public domain of so many items of which 10⁵ were observed."""
    counts = {i: 10**5 // (i + 1) for i in range(10**5)}
    return lambda: GumbelTopK(100, 10.0).select(Histogram.of(counts, domain=range(size))), 5


def k(size: int, _: str) -> Measured:
    """So many of 10⁶ items."""
    counts = shuffled(10**6)
    return lambda: GumbelTopK(size, 10.0).select(Histogram.from_counts(counts)), 5


def queries(size: int, _: str) -> Measured:
    """So many limited-domain answers of k = 10 on the same leading counts."""
    where = Histogram.leading([(i, 10**5 // (i + 1)) for i in range(201)])
    mechanism = LimitedDomain(10, 200, 0.1, 1e-7)
    return lambda: [mechanism.select(where) for _ in range(size)], 3


def accounting(size: int, _: str) -> Measured:
    """The best epsilon of so many queries of ten picks each."""
    return lambda: picks(10 * size, 0.01).epsilon(1e-6), 1


AXES: dict[str, Callable[[int, str], Measured]] = {
    "rows": rows,
    "items": items,
    "domain": domain,
    "k": k,
    "queries": queries,
    "accounting": accounting,
}


def main() -> None:
    """Measure what the arguments name."""
    axis, size = sys.argv[1], int(sys.argv[2])
    work, times = AXES[axis](size, sys.argv[3] if len(sys.argv) > 3 else "")
    before = peak()
    shortest = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        shortest = min(shortest, time.process_time() - start)
    found = {"seconds": shortest, "peak": peak(), "before": before}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
