"""The accountant and calibration: seconds against the limit that a user will bear."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

from benchmarks.row import Row
from topsecret.accounting import calibrate_limited_domain, calibrate_picks, picks
from topsecret.mechanisms.tested_schedule import schedule

CASES: list[tuple[str, float, Callable[[], object]]] = [
    ("100 picks of .1, limit 1 s", 1.0, lambda: picks(100, 0.1).epsilon(1e-6)),
    ("3,000 picks of .15, limit 20 s", 20.0, lambda: picks(3000, 0.15).epsilon(1e-6)),
    ("calibration of 50 picks, limit 3 s", 3.0, lambda: calibrate_picks(50, 1, 1e-6)),
    (
        "calibration of LimitedDomain, k=10, limit .5 s",
        0.5,
        lambda: calibrate_limited_domain(10, 200, 1, 1e-6),
    ),
    (
        "calibration of TestedTopK, k=1000, limit 2 s",
        2.0,
        lambda: schedule(1000, Fraction(1), Fraction(1, 10**6), private_length=True),
    ),
]


def run() -> list[Row]:
    rows = []
    for what, limit, work in CASES:
        start = time.perf_counter()
        work()
        rows.append(Row(what, time.perf_counter() - start, limit, target=1.0))
    return rows
