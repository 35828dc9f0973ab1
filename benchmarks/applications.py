"""Labels for 10,000 queries of 1,000 teachers and 500 labels, against thirty seconds.

Shares may take twice as long as the majority that they replace, by the work of all threads.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.memory import peak
from benchmarks.row import Row, interleaved
from topsecret.pate import Aggregator, NoisyMajority, NoisyShares, StableLabels, VoteRule

TEACHERS, LABELS, QUERIES, LIMIT = 1_000, 500, 10_000, 30.0
ITEMS, COMPARISONS = 10**5, 10**7
PLAYERS, MATCHES = 7_500, 200_000


def ballots(queries: int) -> Iterator[NDArray[np.bool_]]:
    """A few matrices in turn: making new ones would take longer than counting them."""
    rng = np.random.default_rng(5)
    made = [rng.random((TEACHERS, LABELS)) < rng.random(LABELS) ** 8 for _ in range(8)]
    return (made[i % len(made)] for i in range(queries))


def seconds(rule: VoteRule, queries: int) -> tuple[float, int]:
    """How long the whole stream takes, and the peak memory in megabytes after it."""
    start = time.perf_counter()
    aggregator = Aggregator(rule, epsilon=10**4, delta=1e-3, queries=queries)
    for _ in aggregator.answers(ballots(queries)):
        pass
    took = time.perf_counter() - start
    return took, int(peak())


def run() -> list[Row]:
    stable = StableLabels(LABELS, TEACHERS, 150, 150, 1e-9)
    gaussian = StableLabels(LABELS, TEACHERS, 150, 150, 1e-9, selection="gaussian")
    rules: dict[str, VoteRule] = {
        "StableLabels, Gumbel": stable,
        "StableLabels, Gaussian": gaussian,
        "PATE": NoisyMajority(LABELS, TEACHERS, 1000),
        "PATE-τ, τ = 5": NoisyMajority(LABELS, TEACHERS, 200, max_votes=5),
    }
    _, before = seconds(stable, QUERIES // 10)
    rows = []
    for name, rule in rules.items():
        took, after = seconds(rule, QUERIES)
        what = f"{name}: {QUERIES:,} queries, +{after - before} MB over a tenth of them; limit 30 s"
        rows.append(Row(what, took, LIMIT, target=1.0))
    shares = {
        "whole ballots": (NoisyShares(LABELS, TEACHERS, 1000), rules["PATE"]),
        "τ = 5": (NoisyShares(LABELS, TEACHERS, 200, max_votes=5), rules["PATE-τ, τ = 5"]),
    }
    for name, (soft, hard) in shares.items():
        times = interleaved(
            partial(seconds, soft, QUERIES // 10),
            partial(seconds, hard, QUERIES // 10),
            3,
            time.process_time,
        )
        rows.append(Row(f"shares of {QUERIES // 10:,} queries, {name}, against PATE", *times, 2.0))
    return [*rows, ranking(), strengths()]


def games(items: int, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Winners and losers of made games."""
    rng = np.random.default_rng(6)
    strength = np.exp(rng.normal(size=items))
    first = rng.integers(0, items, number)
    second = (first + rng.integers(1, items, number)) % items
    won = rng.random(number) < strength[first] / (strength[first] + strength[second])
    return np.where(won, first, second), np.where(won, second, first)


def strengths() -> Row:
    """The totals, the fit and the error bars of a whole ranking."""
    from topsecret.ranking import Comparisons, strength

    winners, losers = games(PLAYERS, MATCHES)
    start = time.process_time()
    played = Comparisons.from_codes(winners, losers, items=range(PLAYERS), schedule="public")
    strength(played, k=20, epsilon=1)
    took = time.process_time() - start
    return Row("strengths of 7,500 players, 200,000 matches; limit 3 s", took, 3.0, target=1.0)


def ranking() -> Row:
    """10⁵ items, 10⁷ comparisons: the matrix, the solver, the list."""
    from topsecret.ranking import Comparisons, spectral

    winners, losers = games(ITEMS, COMPARISONS)
    start = time.perf_counter()
    played = Comparisons.from_codes(winners, losers, items=range(ITEMS), schedule="public")
    spectral(played, k=10, epsilon=1, teleport=0.3)
    took = time.perf_counter() - start
    return Row("spectral ranking of 10⁵ items, 10⁷ comparisons; limit 60 s", took, 60.0, target=1.0)
