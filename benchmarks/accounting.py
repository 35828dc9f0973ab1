"""The accountant and calibration: seconds against the limit that a user will bear."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

from benchmarks.row import Row
from topsecret.accounting import calibrate_limited_domain, calibrate_picks, picks
from topsecret.calibration import Question
from topsecret.calibration.counts import CountsBudget, with_counts
from topsecret.mechanisms.tested_schedule import schedule
from topsecret.planning.summary import Summary, outlook, outlook_of
from topsecret.questions.answer import planned
from topsecret.questions.planned_lists import lists_within
from topsecret.questions.question import Question as GroupsOf
from topsecret.service.grouped_by import GroupedBy
from topsecret.service.ranked_by import RankedBy

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


def _public(k: int) -> Question:
    return Question.of(k=k, epsilon=1, domain_size=50_000)


def _of_groups(k: int, lists: int, epsilon: float, counts: CountsBudget | None) -> Summary:
    choose = "private" if counts is None else "public"
    question = Question.of(k=k, epsilon=epsilon, delta=1e-7, choose=choose)
    return outlook_of(lists_within(question, "auto", counts, None, lists, False).each)


def _of_groups_by_rows(k: int, lists: int, epsilon: float) -> Summary:
    groups = GroupedBy("by", tuple(map(str, range(lists)))).groups({"by": "text"})
    asked = GroupsOf.of(
        None,
        groups,
        item="item",
        person="person",
        k=k,
        epsilon=epsilon,
        delta=1e-7,
        **RankedBy(None, "1", ("1", "2", "3")).keywords,
    )
    return outlook_of(planned(asked.numbers, asked).each)


COLD: list[tuple[str, float, Callable[[], object]]] = [
    (
        "k=50 with counts, limit .3 s (.80 s before)",
        0.3,
        lambda: with_counts("gumbel", _public(50)),
    ),
    (
        "k=100 with counts, limit .5 s (1.5 s before)",
        0.5,
        lambda: with_counts("gumbel", _public(100)),
    ),
    (
        "k=1000 with counts, limit .2 s",
        0.2,
        lambda: with_counts("gumbel", _public(1000)),
    ),
    (
        "tested, k=50 with counts, limit .3 s (3.8 s before)",
        0.3,
        lambda: with_counts("tested", Question.of(k=50, epsilon=1.01)),
    ),
    (
        "tested, k=100 with counts, limit .5 s (3.5 s before)",
        0.5,
        lambda: with_counts("tested", Question.of(k=100, epsilon=1.02)),
    ),
    (
        "tested, k=1000 with counts, limit .2 s (5.6 s before)",
        0.2,
        lambda: with_counts("tested", Question.of(k=1000, epsilon=1.03)),
    ),
    (
        "preview, k=100, limit .1 s (.77 s before, and .2 s for half of the epsilons)",
        0.1,
        lambda: outlook(100, 1.04, 1e-6),
    ),
    (
        "preview, k=100, epsilon 8, limit .1 s (.28 s before)",
        0.1,
        lambda: outlook(100, 8.04, 1e-6),
    ),
    (
        "preview with counts, k=100, limit .1 s (.27 s before)",
        0.1,
        lambda: outlook(100, 1.05, 1e-6, counts=True),
    ),
    (
        "preview of 5 groups, k=100, limit .1 s (.6 s before)",
        0.1,
        lambda: _of_groups(100, 5, 1.06, None),
    ),
    (
        "preview of 20 groups with counts, k=10, limit .1 s (.3 s before)",
        0.1,
        lambda: _of_groups(10, 20, 1.07, CountsBudget()),
    ),
    (
        "preview of 10 groups, k=2, limit .1 s (.1 s before, for lists that need 1.7 times more)",
        0.1,
        lambda: _of_groups(2, 10, 1.08, None),
    ),
    (
        "preview, k=auto, limit .1 s (.3 s before)",
        0.1,
        lambda: outlook("auto", 1.09, 1e-6),
    ),
    (
        "preview, k=all, limit .1 s (.3 s before)",
        0.1,
        lambda: outlook("all", 1.11, 1e-6),
    ),
    (
        "preview of rows with a private bound, k=10, limit .1 s (.08 s before)",
        0.1,
        lambda: outlook(10, 1.12, 1e-6, measure=RankedBy().measure),
    ),
    (
        "preview of rows with a private bound, k=3, limit .1 s (.11 s before)",
        0.1,
        lambda: outlook(3, 1.14, 1e-6, measure=RankedBy().measure),
    ),
    (
        "preview of 20 groups by rows, k=100, limit .1 s (.085 s before)",
        0.1,
        lambda: _of_groups_by_rows(100, 20, 1.13),
    ),
    (
        "preview of 20 groups by rows, k=2, limit .1 s (.24 s before)",
        0.1,
        lambda: _of_groups_by_rows(2, 20, 1.15),
    ),
    (
        "LimitedDomain k=5,000, limit .1 s (k=1,000 took 13 s before)",
        0.1,
        lambda: calibrate_limited_domain(5000, 100_000, 1, 1e-6),
    ),
]
"""Cold calibrations in seconds of the processor; no two share an epsilon and so a cached price."""


def run() -> list[Row]:
    rows = []
    for what, limit, work in CASES:
        start = time.perf_counter()
        work()
        rows.append(Row(what, time.perf_counter() - start, limit, target=1.0))
    for what, limit, work in COLD:
        start = time.process_time()
        work()
        rows.append(Row(what, time.process_time() - start, limit, target=1.0))
    return rows
