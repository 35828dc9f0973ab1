"""E11: picks, weights, and the private choice between them, where it is known who has what.

    python -m experiments E11

k ∈ {10, 50, 100, 500} and ε ∈ {.1, .4, 1} at δ = 10⁻⁶ under add-remove, on every set with persons:
the share of the true top k that `tested`, `weighted` and the private choice between them name, each
at the whole budget, and on a public domain `pruned` and `weighted`. Beside it what k="all" names.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from experiments import data
from experiments.report import draw, markdown, write_page, write_table
from experiments.trials import Mean, Progress, quiet, repeat, share_found
from topsecret import Histogram
from topsecret.calibration import Question, prepare
from topsecret.counts.weights import Weights, weighted_sums
from topsecret.mechanisms import Mechanism, TestedOrWeighted, TestedTopK, WeightedHistogram
from topsecret.mechanisms.tested_schedule import default_k_bar
from topsecret.noise.bits import BitSource

NAME = "e11-geometries"
TITLE = "E11. Picks or weights, and the private choice between them"
DELTA = 1e-6
SIZES, EPSILONS = (10, 50, 100, 500), (0.1, 0.4, 1.0)
SHARE = Weights.share()
UNKNOWN = ("tested", "weighted", "auto")
PUBLIC = ("pruned", "public weighted")
LOSING = 0.03
"""A cell is named as losing where auto is this much below the better of the two."""


@dataclass(frozen=True)
class Set:
    """One data set, counted once: items are named by their rank, from 0."""

    counts: NDArray[np.int64]
    leading: list[tuple[int, int]]
    sums: dict[int, int]
    median: float
    """How many items a person has, the median."""

    @classmethod
    def of(cls, pairs: set[tuple[str, str]]) -> Set:
        """Rank the items by persons, ties by name; each person's cut is by the keyed hash."""
        persons = Counter(item for _, item in pairs)
        ranked = sorted(persons, key=lambda item: (-persons[item], item))
        place = {item: rank for rank, item in enumerate(ranked)}
        held: defaultdict[str, list[int]] = defaultdict(list)
        for person, item in pairs:
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

    def public(self) -> Histogram:
        """Every item is known beforehand."""
        domain = range(len(self.counts))
        sums = Histogram.of(self.sums, domain)
        return Histogram.from_counts(self.counts).beside(SHARE, sums)


@cache
def counted(name: str) -> Set:
    """The set, read and counted once."""
    return Set.of(data.PERSONS[name]())


@cache
def mechanism(name: str, k: int, epsilon: float, size: int | None = None) -> Mechanism:
    """Each at the whole budget."""
    if name == "tested":
        return TestedTopK(k, epsilon, DELTA)
    if name == "weighted":
        return WeightedHistogram(k, epsilon, DELTA)
    if name == "auto":
        return TestedOrWeighted(k, epsilon, DELTA)
    if name == "public weighted":
        return WeightedHistogram(k, epsilon, DELTA, domain="public")
    question = Question.of(k=k, epsilon=epsilon, delta=DELTA, domain_size=size)
    return prepare(name, question).mechanism


@dataclass(frozen=True)
class Cell:
    """What was seen of one mechanism on one set."""

    found: Mean
    weights: float
    """How often weights were drawn."""


Key = tuple[str, str, int, float]
"""Data, mechanism, k, ε."""


def run(
    smoke: bool = False, seed: int = 1, repetitions: int | None = None, progress: Progress = quiet
) -> str:
    """Ten runs per cell: the mean over all cells is what is judged."""
    runs = repetitions or (2 if smoke else 10)
    names = ["Groceries", "Steam"] if smoke else list(data.PERSONS)
    sizes, epsilons = ((10,), (0.4, 1.0)) if smoke else (SIZES, EPSILONS)
    cells: dict[Key, Cell] = {}
    everything: dict[str, Mean] = {}
    for turn, name in enumerate(names):
        found = counted(name)
        everything[name] = _named(found, runs, seed, name)
        for k, epsilon in product(sizes, epsilons):
            progress(f"E11 {name}, k = {k}, ε = {epsilon}", turn, len(names))
            if len(found.counts) <= k:
                continue
            for asked in (*UNKNOWN, *PUBLIC):
                key = (name, asked, k, epsilon)
                cells[key] = _measure(found, key, runs, seed)
    rows = [
        [*key, f"{c.found.mean:.4f}", f"{c.found.half_width:.4f}", f"{c.weights:.2f}", runs]
        for key, c in sorted(cells.items())
    ]
    head = ["data", "mechanism", "k", "epsilon", "recall", "95% half width", "weights drawn"]
    write_table(NAME, [*head, "runs"], rows)
    draw(NAME, lambda figure: _paint(figure, cells), 9, 5)
    return _write(names, cells, everything, runs)


def _measure(found: Set, key: Key, runs: int, seed: int) -> Cell:
    _, asked, k, epsilon = key
    size = len(found.counts)
    made = mechanism(asked, k, epsilon, size if asked == "pruned" else None)
    where = found.public() if asked in PUBLIC else found.observed(default_k_bar(k) + 1)
    drawn: list[bool] = []

    def once(bits: BitSource) -> float:
        selection = made.select(where, bits)
        drawn.append(selection.branch == "weighted")
        return share_found(found.counts, selection.items, k)

    return Cell(repeat(once, runs, seed, *key)[0], statistics.fmean(drawn))


def _named(found: Set, runs: int, seed: int, name: str) -> Mean:
    """How many items k="all" names at ε = 1."""
    release, where = WeightedHistogram(None, 1.0, DELTA), found.observed(1)
    number, _ = repeat(lambda bits: float(len(release.select(where, bits).items)), runs, seed, name)
    return number


def _paint(figure, cells) -> None:  # type: ignore[no-untyped-def]
    axis = figure.subplots()
    keys = [key for key in cells if key[1] == "auto"]
    points = [
        (cells[n, "tested", k, e].found.mean, cells[n, "auto", k, e].found.mean)
        for n, _, k, e in keys
    ]
    best = [
        max(cells[n, asked, k, e].found.mean for asked in ("tested", "weighted"))
        for n, _, k, e in keys
    ]
    axis.plot([0, 1], [0, 1], color="#999999", linewidth=1)
    axis.scatter([x for x, _ in points], best, s=18, color="#dddddd", label="better in hindsight")
    axis.scatter([x for x, _ in points], [y for _, y in points], s=14, label="auto")
    axis.set_xlabel("recall of tested picks alone")
    axis.set_ylabel("recall")
    axis.legend()


def _write(  # one page, made of many means
    names: list[str], cells: dict[Key, Cell], everything: dict[str, Mean], runs: int
) -> str:
    settings = sorted(
        {(n, k, e) for n, _, k, e in cells}, key=lambda s: (names.index(s[0]), *s[1:])
    )

    def recall(asked: str, setting: tuple[str, int, float]) -> float:
        name, k, epsilon = setting
        return cells[name, asked, k, epsilon].found.mean

    def mean(asked: str, among: list[tuple[str, int, float]] = settings) -> float:
        return statistics.fmean(recall(asked, setting) for setting in among)

    best = {s: max(recall("tested", s), recall("weighted", s)) for s in settings}
    hindsight = statistics.fmean(best.values())
    losing = [s for s in settings if recall("auto", s) < best[s] - LOSING]
    below = [s for s in settings if recall("auto", s) < recall("tested", s) - LOSING]
    worst = min(settings, key=lambda s: recall("auto", s) - recall("tested", s))
    verdict = (
        f"mean recall over {len(settings)} cells: tested {mean('tested'):.3f}, weighted "
        f"{mean('weighted'):.3f}, the private choice between them {mean('auto'):.3f}, the better "
        f"of the two in hindsight {hindsight:.3f}. The choice is more than {LOSING} below tested "
        f"in {len(below)} cells (worst {recall('auto', worst) - recall('tested', worst):+.3f}) and "
        f"more than {LOSING} below the better in {len(losing)}."
    )
    head = ["data", "items each", "k", "ε", *UNKNOWN, "weights drawn", "better", *PUBLIC]
    rows = [
        [
            name,
            f"{counted(name).median:g}",
            k,
            f"{epsilon:g}",
            *(f"{recall(asked, (name, k, epsilon)):.2f}" for asked in UNKNOWN),
            f"{cells[name, 'auto', k, epsilon].weights:.0%}",
            f"{best[name, k, epsilon]:.2f}" + (" (loses)" if (name, k, epsilon) in losing else ""),
            *(f"{recall(asked, (name, k, epsilon)):.2f}" for asked in PUBLIC),
        ]
        for name, k, epsilon in settings
    ]
    sizes = sorted({k for _, k, _ in settings})
    by_size = [
        [
            k,
            *(
                f"{mean(asked, [s for s in settings if s[1] == k]):.3f}"
                for asked in (*UNKNOWN, *PUBLIC)
            ),
        ]
        for k in sizes
    ]
    lost = "; ".join(
        f"{n} k = {k} ε = {e:g} ({recall('auto', (n, k, e)) - best[n, k, e]:+.2f})"
        for n, k, e in losing
    )
    return write_page(
        NAME,
        TITLE,
        verdict,
        f"Share of the true top k that was named, at (ε, 10⁻⁶) under add-remove, {runs} runs per "
        "cell. *Items each* is the median number of items of a person, *better* the better of "
        "tested and weighted in hindsight, each at the whole budget; *auto* chose between them "
        "with a twentieth of it. The last two columns have a public list of all items.",
        markdown(head, rows),
        "Means by k:",
        markdown(["k", *UNKNOWN, *PUBLIC], by_size),
        f"Cells in which auto is more than {LOSING} below the better of the two: {lost or 'none'}.",
        'Items that `k="all"` names at ε = 1:',
        markdown(
            ["data", "named"], [[n, f"{number.mean:,.0f}"] for n, number in everything.items()]
        ),
    )
