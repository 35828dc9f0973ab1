"""E11: picks, weights, and the private choice between them, where it is known who has what.

    python -m experiments E11

k ∈ {10, 50, 100, 500} and ε ∈ {.1, .4, 1} at δ = 10⁻⁶ under add-remove, on every set with people:
the share of the true top k that `tested`, `weighted` and the private choice between them
(`mechanism="auto"`) name, each at the whole budget. Beside it what k="all" names. Picks are drawn
by the mechanism itself; weights, one Gaussian for each label, in floats and ten times as often.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from experiments import data
from experiments.report import draw, markdown, write_page, write_table
from experiments.trials import Progress, quiet, repeat, share_found
from topsecret import Histogram
from topsecret.counts.weights import UNIT, Weights, weighted_sums
from topsecret.mechanisms import (
    Mechanism,
    TestedOrWeighted,
    TestedTopK,
    WeightedHistogram,
)
from topsecret.mechanisms.tested_schedule import default_k_bar
from topsecret.noise.bits import BitSource

NAME = "e11-geometries"
TITLE = "E11. Picks or weights, and the private choice between them"
DELTA = 1e-6
SIZES, EPSILONS = (10, 50, 100, 500), (0.1, 0.4, 1.0)
SHARE = Weights.share()
UNKNOWN = ("tested", "weighted", "auto")
FLOATS = 10
"""How many times as often weights are drawn."""
LOSING = 0.03
"""A cell is named as losing where auto is this much below the better of the two."""


@dataclass(frozen=True)
class Set:
    """One dataset, counted once: items are named by their rank, from 0."""

    counts: NDArray[np.int64]
    leading: list[tuple[int, int]]
    sums: dict[int, int]
    median: float
    """How many items a person has, the median."""

    @classmethod
    def of(cls, pairs: set[tuple[str, str]]) -> Set:
        """Rank the items by people, ties by name; each person's cut is by the keyed hash."""
        persons = Counter(item for _, item in pairs)
        ranked = sorted(persons, key=lambda item: (-persons[item], item))
        place = {item: rank for rank, item in enumerate(ranked)}
        held: defaultdict[str, list[int]] = defaultdict(list)
        for person, item in sorted(pairs):
            held[person].append(place[item])
        sums: Mapping[object, int] = weighted_sums(held, SHARE, b"E11")
        counts = np.array([persons[item] for item in ranked], dtype=np.int64)
        return cls(
            counts,
            list(enumerate(counts.tolist())),
            {int(str(item)): total for item, total in sums.items()},
            statistics.median(map(len, held.values())),
        )

    def observed(self, rows: int) -> Histogram:
        """The leading counts, and all sums beside them."""
        leading = Histogram.leading(self.leading[:rows], limit=rows)
        return leading.beside(SHARE, Histogram.of(self.sums))


@cache
def counted(name: str) -> Set:
    """The set, read and counted once."""
    return Set.of(data.PERSONS[name]())


@cache
def mechanism(name: str, k: int, epsilon: float) -> Mechanism:
    """Each at the whole budget."""
    if name == "tested":
        return TestedTopK(k, epsilon, DELTA)
    if name == "weighted":
        return WeightedHistogram(k, epsilon, DELTA)
    return TestedOrWeighted(k, epsilon, DELTA)


@dataclass(frozen=True)
class Cell:
    """What was seen of one mechanism on one set."""

    recall: float
    weights: float
    """The chance that weights are drawn."""
    by_picks: float = math.nan
    by_weights: float = math.nan
    """Of the choice: what either branch finds."""


Key = tuple[str, str, int, float]
"""Data, mechanism, k, ε."""


def run(
    smoke: bool = False,
    seed: int = 1,
    repetitions: int | None = None,
    progress: Progress = quiet,
) -> str:
    """Twenty runs per cell: the mean over all cells is what is judged."""
    runs = repetitions or (2 if smoke else 20)
    names = ["Groceries"] if smoke else list(data.PERSONS)
    sizes, epsilons = ((10,), (0.4, 1.0)) if smoke else (SIZES, EPSILONS)
    cells: dict[Key, Cell] = {}
    everything: dict[str, float] = {}
    for turn, name in enumerate(names):
        found = counted(name)
        everything[name] = _named(found, runs, seed, name)
        for k, epsilon in product(sizes, epsilons):
            progress(f"E11 {name}, k = {k}, ε = {epsilon}", turn, len(names))
            if len(found.counts) <= k:
                continue
            for asked in UNKNOWN:
                key = (name, asked, k, epsilon)
                cells[key] = _measure(found, key, runs, seed)
    return report(cells, everything, runs)


def report(cells: dict[Key, Cell], everything: dict[str, float], runs: int) -> str:
    """The table, the picture and the page."""
    rows = [
        [*key, f"{cell.recall:.4f}", f"{cell.weights:.2f}", runs]
        for key, cell in sorted(cells.items())
    ]
    head = ["data", "mechanism", "k", "epsilon", "recall", "weights drawn", "runs"]
    write_table(NAME, head, rows)
    draw(NAME, lambda figure: _paint(figure, cells), 9, 5)
    return _write(cells, everything, runs)


def _measure(found: Set, key: Key, runs: int, seed: int) -> Cell:
    _, asked, k, epsilon = key
    made, where = mechanism(asked, k, epsilon), found.observed(default_k_bar(k) + 1)

    def recall(of: Mechanism, *label: str) -> float:
        if isinstance(of, WeightedHistogram):
            drawn = _weights_drawn(found, of, FLOATS * runs, repr((seed, *key, *label)))
            return statistics.fmean(share_found(found.counts, items[:k], k) for items in drawn)

        def once(bits: BitSource) -> float:
            return share_found(found.counts, of.select(where, bits).items, k)

        return repeat(once, runs, seed, *key, *label)[0].mean

    if not isinstance(made, TestedOrWeighted):
        return Cell(recall(made), float(asked == "weighted"))
    # The chance of each branch is known exactly: only what the branches find is drawn.
    tested, weighted, choice = made.branches.parts
    weights = float(choice.law(made.scores(where))[1])
    by_picks, by_weights = recall(tested, "picks"), recall(weighted, "weights")
    return Cell((1 - weights) * by_picks + weights * by_weights, weights, by_picks, by_weights)


def _weights_drawn(
    found: Set, release: WeightedHistogram, runs: int, label: str
) -> Iterator[list[int]]:
    """What weights name, best first, again and again."""
    generator = np.random.default_rng(list(label.encode()))
    items = np.array(list(found.sums), dtype=np.int64)
    sums = np.array(list(found.sums.values()), dtype=float) / UNIT
    for _ in range(runs):
        values = sums + float(release.sigma) * generator.standard_normal(len(sums))
        above = np.flatnonzero(values > float(release.threshold or 0))
        yield items[above[np.argsort(-values[above])]].tolist()


def _named(found: Set, runs: int, seed: int, name: str) -> float:
    """How many items k="all" names at ε = 1."""
    drawn = _weights_drawn(found, WeightedHistogram(None, 1.0, DELTA), runs, repr((seed, name)))
    return statistics.fmean(len(items) for items in drawn)


def _paint(figure, cells) -> None:  # type: ignore[no-untyped-def]
    axis = figure.subplots()
    keys = [key for key in cells if key[1] == "auto"]
    points = [
        (cells[n, "tested", k, e].recall, cells[n, "auto", k, e].recall) for n, _, k, e in keys
    ]
    best = [
        max(cells[n, asked, k, e].recall for asked in ("tested", "weighted")) for n, _, k, e in keys
    ]
    axis.plot([0, 1], [0, 1], color="#999999", linewidth=1)
    axis.scatter([x for x, _ in points], best, s=18, color="#888888", label="better in hindsight")
    axis.scatter([x for x, _ in points], [y for _, y in points], s=14, label="auto")
    axis.set_xlabel("recall of tested picks alone")
    axis.set_ylabel("recall")
    axis.legend()


def _write(cells: dict[Key, Cell], everything: dict[str, float], runs: int) -> str:
    names = list(everything)
    settings = sorted(
        {(n, k, e) for n, _, k, e in cells}, key=lambda s: (names.index(s[0]), *s[1:])
    )

    def recall(asked: str, setting: tuple[str, int, float]) -> float:
        name, k, epsilon = setting
        return cells[name, asked, k, epsilon].recall

    def mean(asked: str, among: list[tuple[str, int, float]]) -> float:
        return statistics.fmean(recall(asked, setting) for setting in among)

    best = {s: max(recall("tested", s), recall("weighted", s)) for s in settings}
    losing = [s for s in settings if recall("auto", s) < best[s] - LOSING]
    below = [s for s in settings if recall("auto", s) < recall("tested", s) - LOSING]
    worst = min(settings, key=lambda s: recall("auto", s) - recall("tested", s))
    verdict = (
        f"mean recall over {len(settings)} cells: tested {mean('tested', settings):.3f}, weighted "
        f"{mean('weighted', settings):.3f}, the private choice between them "
        f"{mean('auto', settings):.3f}, the better of the two in hindsight "
        f"{statistics.fmean(best.values()):.3f}. The choice is more than {LOSING} below tested in "
        f"{len(below)} cells (worst {recall('auto', worst) - recall('tested', worst):+.3f}) and "
        f"more than {LOSING} below the better of the two in {len(losing)}."
    )
    rows = [
        [
            name,
            f"{counted(name).median:g}",
            k,
            f"{epsilon:g}",
            *(f"{recall(asked, (name, k, epsilon)):.2f}" for asked in UNKNOWN[:-1]),
            f"{recall('auto', (name, k, epsilon)):.2f}"
            + (" (loses)" if (name, k, epsilon) in losing else ""),
            f"{cells[name, 'auto', k, epsilon].weights:.0%}",
            f"{best[name, k, epsilon]:.2f}",
        ]
        for name, k, epsilon in settings
    ]
    by_size = [
        [
            k,
            *(f"{mean(asked, [s for s in settings if s[1] == k]):.3f}" for asked in UNKNOWN),
        ]
        for k in sorted({k for _, k, _ in settings})
    ]
    lost = [
        [n, k, f"{e:g}", f"{recall('auto', (n, k, e)) - best[n, k, e]:+.2f}"] for n, k, e in losing
    ]
    return write_page(
        NAME,
        TITLE,
        verdict,
        f"Share of the true top k that was named, at (ε, 10⁻⁶) under add-remove, {runs} runs of "
        f"picks and {FLOATS * runs} of weights per cell. *Tested* is `TestedTopK`, picks by counts "
        "of people and a test of them; *weighted* is `WeightedHistogram`, where a person with many "
        "items counts less for each.",
        "*Items each* is the median number of "
        "items of a person, *better* the better of tested and weighted in hindsight, each at the "
        'whole budget; *auto* is `mechanism="auto"`, which chooses between them with a twentieth '
        "of it: the recall of either branch, weighted with its exact probability. *Weights drawn* "
        f"is the probability of weights. *Loses*: auto is more than {LOSING} below the better of "
        "the two. It can also exceed it, by chance: each column has runs of its own.",
        markdown(["data", "items each", "k", "ε", *UNKNOWN, "weights drawn", "better"], rows),
        "Means by k:",
        markdown(["k", *UNKNOWN], by_size),
        f"Cells in which auto is more than {LOSING} below the better of the two:",
        markdown(["data", "k", "ε", "auto less the better"], lost) if lost else "none",
        'Items that `k="all"` names at ε = 1:',
        markdown(["data", "named"], [[n, f"{named:,.0f}"] for n, named in everything.items()]),
    )
