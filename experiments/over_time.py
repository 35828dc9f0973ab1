"""Lists over time: independent, on a schedule, or as a series, on sets whose weeks are simulated.

    python -m experiments E12

Every pair of person and item gets a period at random, since the sets have no times. Cumulative
lists, epsilon 1 and delta 1e-6 for all of them together, by the product's own accountant; recall of
the true top k so far, mean of six periods evenly spread. The series' noise has the product's sigma,
root and thresholds and is drawn by NumPy.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import data
from experiments.report import draw, markdown, write_page, write_table
from experiments.trials import Mean, Progress, quiet
from topsecret.calibration.series import UNIT, SeriesNumbers
from topsecret.counts.histogram import Histogram
from topsecret.counts.weights import Weights
from topsecret.mechanisms.tested_or_weighted import TestedOrWeighted
from topsecret.noise.bits import ReplayableBits
from topsecret.questions.answer import planned
from topsecret.questions.planned_lists import Plan
from topsecret.questions.question import Question
from topsecret.questions.schedule_terms import due_periods

Ints = NDArray[np.int64]
Pairs = tuple[Ints, Ints]
"""Persons and items, numbered from 0."""

EPSILON, DELTA = 1.0, 1e-6
POINTS = 6
RUNS = 20
NAME, TITLE = "over-time", "E12. Lists over time: independent, schedule, series"
HEADS = ["data", "copies", "periods", "k", "way", "recall", "half width", "published before"]


def _numbered(rows: list[tuple[str, str]]) -> Pairs:
    pairs = sorted(set(rows))
    persons = np.unique([person for person, _ in pairs], return_inverse=True)[1]
    items = np.unique([item for _, item in pairs], return_inverse=True)[1]
    return persons.astype(np.int64), items.astype(np.int64)


def _table(name: str, person: str, item: str) -> Pairs:
    rows = csv.DictReader(data._lines(name))
    return _numbered([(row[person], row[item]) for row in rows])


def _baskets(name: str) -> Pairs:
    lines = enumerate(data._lines(name))
    return _numbered([(str(n), item) for n, line in lines for item in line.split()])


SETS: dict[str, Callable[[], Pairs]] = {
    "Gowalla": lambda: _table("gowalla_10core/user_item.csv.gz", "user", "item"),
    "FIMI retail": lambda: _baskets("fimi_transactions/retail.dat.gz"),
    "BMS1": lambda: _baskets("fimi_transactions/BMS1.dat.gz"),
    "Online retail": lambda: _table("online_retail/customer_item.csv.gz", "customer", "stockcode"),
}


def _ranks(persons: Ints) -> Ints:
    """0, 1, 2, … within each run of entries of one person."""
    first = np.flatnonzero(np.diff(persons, prepend=-1))
    return np.arange(len(persons)) - np.repeat(first, np.diff(np.append(first, len(persons))))


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table, and what was found for it before: independent, schedule, series."""

    name: str
    periods: int
    k: int
    before: tuple[str, str, str] = ("", "", "")
    copies: int = 1
    """Each person so many times."""
    max_counts: int = 10


CASES = (
    Case("Gowalla", 52, 10, (".45", ".55", ".78")),
    Case("Gowalla", 12, 10, (".66", ".77", ".89")),
    Case("FIMI retail", 52, 10, (".80", ".94", ".92")),
    Case("Online retail", 52, 10),
    Case("Online retail", 52, 10, copies=10),
    Case("Online retail", 52, 10, copies=10, max_counts=50),
)
WAYS = ("independent", "schedule", "series")


class Trial:
    """One drawing of periods, and the three ways on it."""

    def __init__(self, case: Case, pairs: Pairs, seed: int) -> None:
        self.case = case
        self.random = np.random.default_rng(seed)
        self.bits = ReplayableBits(repr((NAME, seed, case)).encode())
        persons, items = pairs
        if case.copies > 1:
            shift = np.repeat(np.arange(case.copies) * (int(persons.max()) + 1), len(persons))
            persons, items = np.tile(persons, case.copies) + shift, np.tile(items, case.copies)
        self.persons, self.items = persons, items
        self.labels = int(items.max()) + 1
        self.when = self.random.integers(0, case.periods, len(items))
        self.counts = self._added(np.ones(len(items), dtype=bool)).cumsum(axis=1)
        self.mixed = self.random.permutation(len(items))
        """Which of a person's items are kept where not all are: here at random, not by a hash."""

    def _added(self, kept: NDArray[np.bool_]) -> Ints:
        """Labels by periods: how many pairs each period brings."""
        place = self.items[kept] * self.case.periods + self.when[kept]
        size = self.labels * self.case.periods
        return np.bincount(place, minlength=size).reshape(self.labels, self.case.periods)

    def recall(self, found: list[int], period: int) -> float:
        """Of the true top k after a period; an item tied with the k-th is as good."""
        counts = self.counts[:, period - 1]
        least = max(1, int(np.partition(counts, -self.case.k)[-self.case.k]))
        return min(self.case.k, sum(int(counts[item]) >= least for item in found)) / self.case.k

    def listed(self, plan: Plan, period: int) -> list[int]:
        """A list of the product's mechanism, of the counts so far."""
        counts = self.counts[:, period - 1]
        rows = plan.each.rows
        order = np.lexsort((np.arange(self.labels), -counts))[:rows]
        ranked = [(int(item), int(counts[item])) for item in order if counts[item] > 0]
        observed = Histogram.leading(ranked, limit=rows)
        mechanism = plan.each.selection.mechanism
        if isinstance(mechanism, TestedOrWeighted):
            observed = observed.beside(mechanism.weights, self._sums(mechanism.weights, period))
        chosen = mechanism.select(observed, self.bits)
        return [int(item) for item in chosen.items if isinstance(item, int)]

    def _sums(self, weights: Weights, period: int) -> Histogram:
        """The weighted people of each item so far."""
        seen = self.mixed[self.when[self.mixed] < period]
        order = seen[np.argsort(self.persons[seen], kind="stable")]
        kept = order[_ranks(self.persons[order]) < weights.most_items]
        held = np.bincount(self.persons[kept])
        table = np.array((0, *weights.table))
        each = table[held[self.persons[kept]]]
        sums = np.bincount(self.items[kept], weights=each, minlength=self.labels)  # below 2⁵³
        present = np.flatnonzero(sums)
        return Histogram.of(dict(zip(present.tolist(), map(int, sums[present]), strict=True)))

    def series(self, numbers: SeriesNumbers, periods: list[int]) -> list[list[int]]:
        """The lists of a series after these periods."""
        order = np.lexsort((self.random.random(len(self.items)), self.when, self.persons))
        kept = np.zeros(len(order), dtype=bool)
        kept[order[_ranks(self.persons[order]) < numbers.max_counts]] = True
        sums = self._added(kept).cumsum(axis=1)
        a = np.array([float(one.mid()) for one in numbers.coefficients()])
        root = np.array([np.concatenate([np.zeros(s), a[: len(a) - s]]) for s in range(len(a))])
        normals = self.random.standard_normal(sums.shape)
        values = sums + float(numbers.sigma) * (normals @ root)
        edges = [numbers.threshold(t) / UNIT for t in range(1, numbers.periods + 1)]
        known = np.logical_or.accumulate((sums >= 1) & (values > np.array(edges)), axis=1)
        lists = []
        for period in periods:
            named = np.flatnonzero(known[:, period - 1])
            best = named[np.argsort(-values[named, period - 1])][: self.case.k]
            lists.append([int(item) for item in best])
        return lists


def measured(case: Case, runs: int, seed: int) -> Iterator[tuple[float, ...]]:
    """The recall of each way, run by run."""
    # By picks, as a Schedule draws its lists: no noisy look at the data chooses a method.
    question = Question.of(
        item="item", person="person", k=case.k, epsilon=EPSILON, delta=DELTA, choose="public"
    )
    due = due_periods("cumulative", case.periods, 1)
    every = planned(question.numbers, question, None, case.periods)
    few = planned(question.numbers, question, None, len(due))
    numbers = SeriesNumbers.calibrated(
        "cumulative", case.periods, 1, case.max_counts, EPSILON, DELTA
    )
    points = [-(-case.periods * i // POINTS) for i in range(1, POINTS + 1)]
    pairs = SETS[case.name]()
    for run in range(runs):
        trial = Trial(case, pairs, 1000 * seed + run)
        drawn = {p: trial.listed(few, p) for p in {max(d for d in due if d <= p) for p in points}}
        held = [drawn[max(d for d in due if d <= p)] for p in points]
        lists = [
            [trial.listed(every, p) for p in points],
            held,
            trial.series(numbers, points),
        ]
        yield tuple(
            sum(trial.recall(one, p) for one, p in zip(shown, points, strict=True)) / POINTS
            for shown in lists
        )


def run(
    smoke: bool = False, seed: int = 1, repetitions: int | None = None, progress: Progress = quiet
) -> str:
    """Run all cases and write the table, the picture and the page."""
    runs = repetitions or (2 if smoke else RUNS)
    cases = (Case("BMS1", 4, 5),) if smoke else CASES
    rows: list[list[Any]] = []
    for done, case in enumerate(cases):
        progress(f"E12 {case.name}", done, len(cases))
        found = zip(*measured(case, runs, seed), strict=True)
        for way, values, before in zip(WAYS, found, case.before, strict=True):
            mean = Mean.of(values)
            name = way if way != "series" else f"series, D = {case.max_counts}"
            numbers = [case.copies, case.periods, case.k]
            rows.append([case.name, *numbers, name, mean.mean, mean.half_width, before])
    shown = [[f"{cell:.3f}" if isinstance(cell, float) else cell for cell in row] for row in rows]
    write_table(NAME, HEADS, shown)
    draw(NAME, lambda figure: _paint(figure, rows), 10, 4.5)
    best = [max(rows[i : i + 3], key=lambda row: row[5])[4] for i in range(0, len(rows), 3)]
    won = {way: sum(name.startswith(way) for name in best) for way in WAYS}
    level = sum(
        name == "schedule" and _overlap(*rows[3 * place + 1 : 3 * place + 3])
        for place, name in enumerate(best)
    )
    meaning = (
        "no way is best everywhere, so `topsecret series plan` compares them."
        if max(won.values()) < len(best)
        else "weeks at random hardly change the true list, so that one that is held loses little."
    )
    verdict = (
        f"of {len(best)} settings the series is best in {won['series']}, the schedule in "
        f"{won['schedule']} (in {level} of them level with the series), independent lists in "
        f"{won['independent']} (simulated weeks, {runs} runs): {meaning}"
    )
    table = [
        [_titled(row), row[2], row[3], row[4], f"{row[5]:.2f} ± {row[6]:.2f}", row[7] or "–"]
        for row in rows
    ]
    heads = ["data", "periods", "k", "way", "recall", "earlier"]
    return write_page(NAME, TITLE, verdict, markdown(heads, table), TEXT.format(runs=runs))


def _overlap(one: list[Any], other: list[Any]) -> bool:
    """Whether the intervals of two rows overlap."""
    return bool(abs(one[5] - other[5]) < one[6] + other[6])


def _titled(row: list[Any]) -> str:
    return f"{row[0]} ×{row[1]}" if row[1] > 1 else str(row[0])


def _paint(figure: Any, rows: list[list[Any]]) -> None:
    """Bars in groups of three."""
    panel = figure.subplots()
    names = [f"{_titled(row)}\n{row[2]} periods, k = {row[3]}\n{row[4][8:]}" for row in rows[2::3]]
    for place, way in enumerate(WAYS):
        mine = rows[place::3]
        panel.bar(
            [x + (place - 1) * 0.27 for x in range(len(mine))],
            [row[5] for row in mine],
            width=0.25,
            yerr=[row[6] for row in mine],
            label=way,
        )
    panel.set_xticks(range(len(names)), names, fontsize=9)
    panel.set_ylim(0, 1.02)
    panel.set_ylabel("recall, mean of six periods")
    figure.legend(loc="outside upper center", ncols=3)


TEXT = """
*Independent* lists have noise of their own in each period. A [schedule](../schedules.md) draws few
lists and shows each until the next is due. A [series](../series.md) has a list after each period,
with noise that is correlated from period to period; *D* is how many items of one person it counts.

**The weeks are simulated**: none of these sets has times here, so every pair of person and item
got a period at random, drawn anew in each of {runs} runs. Real dates may tell another story:
people come and go. ×10: each person copied tenfold. Cumulative lists, (1, 10⁻⁶) for all together by
the product's accountant; recall of the true top k so far, mean of six periods evenly spread, ± half
the width of its 95% interval over runs; where intervals overlap, two ways are level. Independent
lists and schedules are by picks, as `Schedule` draws them.

*Earlier*: a prototype's numbers, of 2 to 4 runs and of six weeks that were not written down; "–"
where it has none. [Read at early weeks](early-weeks.md), its numbers of the series are found again
within .02.
"""
