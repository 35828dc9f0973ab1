"""One line of the table: what was measured, against whom, and the target."""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    what: str
    ours: float
    """Seconds, median."""
    peer: float
    """Seconds, median."""
    target: float
    """The largest ratio ours / peer that is good enough."""

    @property
    def ratio(self) -> float:
        return self.ours / self.peer

    @property
    def met(self) -> bool:
        return self.ratio <= self.target


def interleaved(
    ours: Callable[[], object],
    peer: Callable[[], object],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, float]:
    """Median seconds of each, measured in turns so that both meet the same machine.

    ``clock=time.process_time`` counts the work of all threads, however busy the machine is.
    """
    pair: list[tuple[Callable[[], object], list[float]]] = [(ours, []), (peer, [])]
    for turn in range(rounds + 1):
        for function, times in pair if turn % 2 else reversed(pair):
            start = clock()
            function()
            if turn > 0:  # the first round warms the caches
                times.append(clock() - start)
    return statistics.median(pair[0][1]), statistics.median(pair[1][1])


def measured(module: str) -> list[Row]:
    """The rows of a module of benchmarks."""
    rows: list[Row] = importlib.import_module(f"benchmarks.{module}").run()
    return rows
