"""E13b: by rows and sums, picks, bounded sums, and the private choice between them.

    python -m experiments E13b

At δ = 10⁻⁶ under add-remove, on every set of which it is known how much each person adds, with a
few public bounds on one item: the share of the true top k, by all rows or the whole sum, that
`tested` picks, sums of which all that one person adds is bounded together, and the private choice
between them (`mechanism="auto"`) name, each at the whole budget. Picks are drawn by the mechanism
itself; sums, one Gaussian for each label, in floats and ten times as often.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from experiments import data
from experiments.private_bound import steam_tenths
from experiments.report import draw, markdown, write_page, write_table
from experiments.trials import Progress, quiet, repeat, share_found
from topsecret import Histogram
from topsecret.counts.clip import Clip
from topsecret.counts.weights import MOST_ITEMS, kept_items
from topsecret.mechanisms import ClippedSums, TestedOrWeighted, TestedTopK
from topsecret.mechanisms.tested_schedule import default_k_bar
from topsecret.noise.bits import BitSource

NAME = "e13b-measured-geometries"
TITLE = "E13b. By rows and sums: picks, bounded sums, and the private choice between them"
DELTA = 1e-6
SIZES, EPSILONS = (10, 50), (0.4, 1.0)
BOUNDS = {"visits": (2, 5, 20), "order lines": (2, 5, 20), "hours": (10, 100, 1000)}
"""Chosen beforehand: few, some and many rows; one, ten and a hundred hours, in tenths."""
SETS = {
    "Jakarta": "visits",
    "Online retail": "order lines",
    "Kuala Lumpur": "visits",
    "New York 2019": "visits",
    "Steam": "hours",
}
FLOATS = 10
"""How many times as often sums are drawn."""
LOSING = 0.03
"""A cell is named as losing where the choice is this much below the better of the two."""


@dataclass(frozen=True)
class Set:
    """What each person adds to each item; items are named by their true rank, from 0."""

    amounts: dict[str, dict[int, int]]
    truth: NDArray[np.int64]
    """All that everybody adds to each item."""

    @property
    def median(self) -> float:
        """To how many items a person adds, the median."""
        return statistics.median(map(len, self.amounts.values()))

    def observed(self, clip: Clip, rows: int) -> Histogram:
        """The leading scores at a bound, and all sums of parts beside them."""
        scores: Counter[int] = Counter()
        sums: Counter[object] = Counter()
        for person, mine in self.amounts.items():
            kept = kept_items(person, mine, MOST_ITEMS, b"E13b")
            scores.update({item: min(amount, clip.bound) for item, amount in mine.items()})
            sums.update(clip.parts({item: mine[item] for item in kept}))  # type: ignore[index]
        leading = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:rows]
        listed = Histogram.leading(leading, limit=rows)
        return Histogram(listed._table, (clip, Histogram.of(sums)._table))


def counted(name: str, persons: int | None = None) -> Set:
    """The set, read and counted once; of so many people, if not of all."""
    read = steam_tenths() if name == "Steam" else data.AMOUNTS[name]()
    totals: Counter[str] = Counter()
    for (_, item), added in read.items():
        totals[item] += added
    ranked = sorted(totals, key=lambda item: (-totals[item], item))
    place = {item: rank for rank, item in enumerate(ranked)}
    amounts: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for (person, item), added in sorted(read.items()):
        if added > 0:
            amounts[person][place[item]] = added
    return Set(
        dict(list(amounts.items())[:persons]),
        np.array([totals[item] for item in ranked], dtype=np.int64),
    )


@dataclass(frozen=True)
class Cell:
    """One set, k, ε and bound: what each finds, and the chance that sums are drawn."""

    tested: float
    bounded: float
    auto: float
    sums: float

    @property
    def better(self) -> float:
        """The better of the two in hindsight, at the whole budget."""
        return max(self.tested, self.bounded)


Key = tuple[str, int, float, int]
"""Data, k, ε, bound."""


def run(
    smoke: bool = False,
    seed: int = 1,
    repetitions: int | None = None,
    progress: Progress = quiet,
) -> str:
    """Twenty runs per cell: the mean over all cells is what is judged."""
    runs = repetitions or (2 if smoke else 20)
    names = ["Jakarta"] if smoke else list(SETS)
    settings = [(10, 1.0)] if smoke else list(product(SIZES, EPSILONS))
    cells: dict[Key, Cell] = {}
    sets = {name: counted(name, 500 if smoke else None) for name in names}
    for turn, name in enumerate(names):
        for bound in BOUNDS[SETS[name]][: 2 if smoke else None]:
            progress(f"E13b {name}, bound {bound}", turn, len(names))
            for k, epsilon in settings:
                key = (name, k, epsilon, bound)
                cells[key] = _measured(sets[name], key, runs, seed)
    rows = [
        [*key, *(f"{part:.4f}" for part in (cell.tested, cell.bounded, cell.auto, cell.sums)), runs]
        for key, cell in cells.items()
    ]
    head = ["data", "k", "epsilon", "bound", "tested", "bounded sums", "auto", "sums drawn", "runs"]
    write_table(NAME, head, rows)
    draw(NAME, lambda figure: _paint(figure, cells), 9, 5)
    return _write(cells, {name: found.median for name, found in sets.items()}, runs)


def _measured(found: Set, key: Key, runs: int, seed: int) -> Cell:
    _, k, epsilon, bound = key
    clip = Clip.of(bound)
    where = found.observed(clip, default_k_bar(k) + 1)
    made = TestedOrWeighted(k, epsilon, DELTA, weights=clip)
    picks, sums, choice = made.branches.parts
    assert isinstance(sums, ClippedSums)

    def picked(of: TestedTopK, label: str) -> float:
        def once(bits: BitSource) -> float:
            return share_found(found.truth, of.select(where, bits).items, k)

        return repeat(once, runs, seed, *key, label)[0].mean

    def summed(of: ClippedSums, label: str) -> float:
        drawn = _sums_drawn(where.weighted(clip), of, FLOATS * runs, repr((seed, *key, label)))
        return statistics.fmean(share_found(found.truth, items, k) for items in drawn)

    limits = clip.most, clip.total, clip.items
    chance = float(choice.law(made.scores(where))[1])
    by_choice = picked(picks, "picks"), summed(sums, "sums")
    return Cell(
        picked(TestedTopK(k, epsilon, DELTA, sensitivity=bound), "tested"),
        summed(ClippedSums(k, epsilon, DELTA, *limits), "bounded"),
        (1 - chance) * by_choice[0] + chance * by_choice[1],
        chance,
    )


def _sums_drawn(sums: Histogram, release: ClippedSums, runs: int, label: str) -> list[list[int]]:
    """The k best that exceed the threshold, again and again."""
    generator = np.random.default_rng(list(label.encode()))
    ranked = sums.ranked(10**9)
    items = np.array([item for item, _ in ranked], dtype=np.int64)
    totals = np.array([total for _, total in ranked], dtype=float)
    named = []
    for _ in range(runs):
        values = totals + float(release.sigma) * generator.standard_normal(len(totals))
        above = np.flatnonzero(values > float(release.threshold or 0))
        named.append(items[above[np.argsort(-values[above])]][: release.k].tolist())
    return named


def _paint(figure, cells) -> None:  # type: ignore[no-untyped-def]
    axis = figure.subplots()
    tested = [cell.tested for cell in cells.values()]
    axis.plot([0, 1], [0, 1], color="#999999", linewidth=1)
    better = [cell.better for cell in cells.values()]
    axis.scatter(tested, better, s=18, color="#888888", label="better in hindsight")
    axis.scatter(tested, [cell.auto for cell in cells.values()], s=14, label="auto")
    axis.set_xlabel("recall of tested picks alone")
    axis.set_ylabel("recall")
    axis.legend()


def _write(cells: dict[Key, Cell], medians: dict[str, float], runs: int) -> str:
    def mean(part: str) -> float:
        return statistics.fmean(getattr(cell, part) for cell in cells.values())

    losing = [key for key, cell in cells.items() if cell.auto < cell.better - LOSING]
    below = [key for key, cell in cells.items() if cell.auto < cell.tested - LOSING]
    worst = min(cell.auto - cell.tested for cell in cells.values())
    most = max(cell.auto - cell.tested for cell in cells.values())
    verdict = (
        f"mean recall over {len(cells)} cells: tested {mean('tested'):.3f}, bounded sums "
        f"{mean('bounded'):.3f}, the private choice between them {mean('auto'):.3f}, the better of "
        f"the two in hindsight {mean('better'):.3f}. The choice finds from {-worst:.3f} "
        f"less to {most:.3f} more than tested, is more than {LOSING} below it in {len(below)} "
        f"cells, and more than {LOSING} below the better of the two in {len(losing)}."
    )
    rows = [
        [
            name,
            f"{SETS[name]}, {medians[name]:g}",
            k,
            f"{epsilon:g}",
            bound,
            *(f"{part:.2f}" for part in (cell.tested, cell.bounded)),
            f"{cell.auto:.2f}" + (" (loses)" if (name, k, epsilon, bound) in losing else ""),
            f"{cell.sums:.0%}",
            f"{cell.better:.2f}",
        ]
        for (name, k, epsilon, bound), cell in cells.items()
    ]
    head = ["data", "by, items each", "k", "ε", "bound", "tested", "bounded", "auto", "sums drawn"]
    return write_page(
        NAME,
        TITLE,
        verdict,
        f"Share of the true top k, by all rows or the whole sum of every person, that was named at "
        f"(ε, 10⁻⁶) under add-remove, {runs} runs of picks and {FLOATS * runs} of sums per cell. "
        "*Items each* is the median number of items that a person adds to; bounds of Steam are in "
        "tenths of an hour.",
        "*Bounded* are sums of which all that one person adds is bounded "
        "together, at √3 times the bound; *better* is the better of it and tested in hindsight, "
        'each at the whole budget. *Auto* is `mechanism="auto"`: the recall of either branch, '
        "weighted with its exact probability. *Sums drawn* is the probability of sums. *Loses*: "
        f"auto is more than {LOSING} below the better of the two. It can also exceed it, by "
        "chance: each column has runs of its own.",
        "The bounds were fixed before the first run, and all constants of the choice are those of "
        "lists by people. Parts are scaled down exactly here; an engine does it by a table of "
        "fractions, by up to 8% more.",
        markdown([*head, "better"], rows),
    )
