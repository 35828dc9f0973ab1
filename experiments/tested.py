"""TestedTopK over long and short lists, beside its first form and LimitedDomain.

    python -m experiments.tested                 # all sets, about ten minutes on one core
    python -m experiments.tested --runs 20 Steam # measure one anew, the others stay

All mechanisms give the same guarantee, (ε, 10⁻⁶) under add-remove. Answers are drawn in floats
(``tested_simulation.py``) with the public numbers of the mechanisms themselves. The first form is
what the package had before: one list, all or nothing, k̄ = 20·k and constants of its own.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np

from experiments import data
from experiments.report import RESULTS, draw, markdown, write_table, write_verdict
from experiments.tested_simulation import Seen, simulate, simulate_limited
from topsecret.accounting import calibrate_limited_domain
from topsecret.exact.rounding import exact
from topsecret.mechanisms import TestedTopK
from topsecret.mechanisms.tested_schedule import Constants, schedule
from topsecret.planning.rule import SHORTEST_TESTED

DELTA = 1e-6
SIZES = (1, 3, 10, 50, 100, 200, 500, 1000)
EPSILONS = (0.1, 0.4, 1.0, 2.0)
FIRST, SECOND, LIMITED = "first form", "TestedTopK", "LimitedDomain"
FIRST_FORM = Constants(
    lists=(Fraction(1),),
    nearest=Fraction(1),
    test_share=Fraction(1, 5),
    test_failure=Fraction(1, 10),
    test_ease=Fraction(0),
    margin=Fraction(4),
    margin_growth=Fraction(0),
)
"""One list, lengths k·.85^j, other shares."""
MEASURES = ("recall", "named", "empty")
Key = tuple[str, str, int, float]
"""Data, mechanism, k, ε."""
Cells = dict[Key, dict[str, float]]


def measure(names: Iterable[str], runs: int) -> Cells:
    """Every set that has more items than k, every mechanism."""
    cells: Cells = {}
    for k, epsilon in product(SIZES, EPSILONS):
        tested = TestedTopK(k, epsilon, DELTA)
        limited = calibrate_limited_domain(k, 20 * k, epsilon, DELTA)
        before = schedule(k, exact(epsilon), exact(DELTA), True, replace(FIRST_FORM, longest=k))
        for name in names:
            counts, rng = data.counts(name), np.random.default_rng((k, int(10 * epsilon)))
            if len(counts) > k:
                seen = simulate(tested.schedule, counts, tested.slots, k, runs, rng)
                cells[name, SECOND, k, epsilon] = summary(seen)
                seen = simulate_limited(*limited, counts, 20 * k, k, runs, rng)
                cells[name, LIMITED, k, epsilon] = summary(seen)
                seen = simulate(before, counts, 20 * k, k, runs, rng)
                cells[name, FIRST, k, epsilon] = summary(seen)
    return cells


def summary(seen: Seen) -> dict[str, float]:
    """The three numbers of a cell."""
    return {"recall": seen.recall, "named": float(seen.named.mean()), "empty": seen.empty}


def read(name: str) -> Cells:
    """The cells of a table."""
    with (RESULTS / f"{name}.csv").open(encoding="utf-8") as file:
        return {
            (row["data"], row["mechanism"], int(row["k"]), float(row["epsilon"])): {
                what: float(row[what]) for what in MEASURES
            }
            for row in csv.DictReader(file)
        }


def write(name: str, cells: Cells) -> None:
    """The table of the cells."""
    rows = [
        [*key, *(f"{cell[what]:.4f}" for what in MEASURES)] for key, cell in sorted(cells.items())
    ]
    write_table(name, ["data", "mechanism", "k", "epsilon", *MEASURES], rows)


def main() -> None:
    """Run the grid and write table, picture and verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=list(data.SETS))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--verdict", action="store_true", help="only read the tables again")
    options = parser.parse_args()
    if not options.verdict:
        some = options.sets != list(data.SETS)  # the other rows stay as they are
        known = read("tested-top-k") if some else {}
        write("tested-top-k", known | measure(options.sets, options.runs))
    cells = read("tested-top-k")
    draw("tested-top-k", lambda figure: paint(figure, cells), 11, 7)
    write_verdict("tested-top-k", verdict(cells, options.runs))


def served(cells: Cells, name: str, k: int, epsilon: float) -> dict[str, float] | None:
    """What mechanism="auto" answers: LimitedDomain for the shortest lists."""
    return cells.get((name, SECOND if k >= SHORTEST_TESTED else LIMITED, k, epsilon))


def paint(figure, cells) -> None:  # type: ignore[no-untyped-def]
    """Mean recall and mean share of empty answers against k, a column for each ε."""
    axes = figure.subplots(2, len(EPSILONS), sharex=True, sharey="row")
    for (row, what), (column, epsilon) in product(
        enumerate(("recall", "empty")), enumerate(EPSILONS)
    ):
        axis = axes[row][column]
        for kind, marker in ((SECOND, "o-"), (FIRST, "s--"), (LIMITED, "v:")):
            values = [_mean(cells, kind, k, epsilon, what) for k in SIZES]
            axis.plot(SIZES, values, marker, label=kind)
        axis.set_xscale("log")
        axis.grid(alpha=0.3)
        if row == 0:
            axis.set_title(f"ε = {epsilon:g}")
        else:
            axis.set_xlabel("k")
    axes[0][0].set_ylabel("mean recall")
    axes[1][0].set_ylabel("share of empty answers")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _mean(cells: Cells, kind: str, k: int, epsilon: float | None, what: str) -> float:
    found = [
        cell[what]
        for (_, mechanism, size, price), cell in cells.items()
        if mechanism == kind and size == k and epsilon in (None, price)
    ]
    return statistics.fmean(found)


def verdict(cells: Cells, runs: int | str) -> str:
    """What was wanted, what was seen, and every cell that misses."""
    names = sorted({key[0] for key in cells})
    table = [
        [
            str(k),
            *(f"{_mean(cells, kind, k, None, 'recall'):.3f}" for kind in (FIRST, SECOND, LIMITED)),
            *(f"{_mean(cells, kind, k, None, 'empty'):.3f}" for kind in (FIRST, SECOND, LIMITED)),
        ]
        for k in sorted({key[2] for key in cells})
    ]
    head = ["k", *(f"recall, {kind}" for kind in (FIRST, SECOND, LIMITED))]
    head += [f"empty, {kind}" for kind in (FIRST, SECOND, LIMITED)]
    sections = [
        f"# TestedTopK: recall, length and empty answers ({runs} runs per cell)",
        f"Means over {len(names)} data sets and ε ∈ {{.1, .4, 1, 2}} at δ = 10⁻⁶, for sets with "
        "more than k items, drawn in floats with the public numbers of the mechanisms. The "
        "constants come from settings that were tried on ten real sets, some of them here, and on "
        'synthetic shapes: these figures may flatter them. What `mechanism="auto"` answers is held '
        f"against the wishes below: LimitedDomain for k < {SHORTEST_TESTED}, else TestedTopK.",
        f"**The switch at k = {SHORTEST_TESTED - 1} was moved after these evaluation sets had been "
        "seen.** On the synthetic shapes the two mechanisms are level at three items and do not "
        "decide it. So the rows for k = 3 are no independent evaluation of that choice.",
        markdown(head, table),
        *_misses("Mean recall against the first form", _means(cells)),
        *_misses(
            "Empty answers: at most 2% where k = 1 is answered 99% of the time", _empty(cells)
        ),
        *_misses("Asking for more never names clearly fewer (at most 5%)", _falls(cells, names)),
        "Why cells miss. *Empty*: where the largest lead lies near what the test asks for, even "
        "the shortest list fails now and then; beside each cell stands by how many standard "
        "deviations of its test the strongest item leads what gives an even chance (below 2, one "
        "item alone fails in 2% and more). Where that is well above 2, a length that is a little "
        "too long was chosen, and none of its four lists passed. At k = 3 it is LimitedDomain "
        "whose list ends at once.",
        "*Fewer named*: with k larger the same length competes "
        "with more others and keeps a little more distance (3 + .4·ln(k/m) noise scales); "
        "at k = 3 LimitedDomain's threshold is higher than at k = 1; "
        "for a handful of items also the noise of the runs.",
        *_misses("Recall at most .03 below LimitedDomain", _below(cells)),
        "![Recall and empty answers](tested-top-k.svg)",
    ]
    return "\n\n".join(sections)


def _misses(what: str, found: list[tuple[int, str]]) -> list[str]:
    total, misses = found[0][0], [text for _, text in found[1:]]
    head = f"**{what}**: {total - len(misses)} of {total} cells keep to it"
    return [
        head + (":" if misses else "."),
        *(["\n".join(f"- {t}" for t in misses)] if misses else []),
    ]


def _empty(cells: Cells) -> list[tuple[int, str]]:
    looked, found = 0, []
    for (name, kind, k, epsilon), _ in sorted(cells.items()):
        one, cell = cells.get((name, LIMITED, 1, epsilon)), served(cells, name, k, epsilon)
        if kind == LIMITED and one and cell and one["empty"] <= 0.01:
            looked += 1
            if cell["empty"] > 0.02:
                where = f"{name}, k = {k}, ε = {epsilon:g}: {cell['empty']:.1%} empty"
                found.append((0, where + _strongest(name, k, epsilon)))
    return [(looked, ""), *found]


def _strongest(name: str, k: int, epsilon: float) -> str:
    """How far the strongest item is above an even chance of the shortest list, in deviations."""
    if k < SHORTEST_TESTED or not data.available():
        return ""
    tested, counts = TestedTopK(k, epsilon, DELTA), data.counts(name)
    lead = int(counts[0]) - (int(counts[tested.slots]) if len(counts) > tested.slots else 0)
    test = tested.schedule.lengths[-1].test
    return f" ({(lead - 1) / float(test.sigma) - float(test.quantile):.1f})"


def _means(cells: Cells) -> list[tuple[int, str]]:
    """What "auto" answers against the first form: at most .005 below, above for k ≤ 10, ≥ 200."""
    looked, found = 0, []
    for k in SIZES:
        kind = SECOND if k >= SHORTEST_TESTED else LIMITED
        ours, first = (_mean(cells, mechanism, k, None, "recall") for mechanism in (kind, FIRST))
        looked += 1
        if ours < first - 0.005 or (not 10 < k < 200 and ours <= first):
            found.append((0, f"k = {k}: {ours:.3f} against {first:.3f}"))
    return [(looked, ""), *found]


def _falls(cells: Cells, names: list[str]) -> list[tuple[int, str]]:
    looked, found = 0, []
    for name, epsilon in product(names, EPSILONS):
        row = [(k, cell["named"]) for k in SIZES if (cell := served(cells, name, k, epsilon))]
        for (_, before), (k, named) in pairwise(row):
            looked += 1
            if named < 0.95 * before:
                where = f"{name}, ε = {epsilon:g}"
                found.append((0, f"{where}: {before:.1f} named, then {named:.1f} at k = {k}"))
    return [(looked, ""), *found]


def _below(cells: Cells) -> list[tuple[int, str]]:
    looked, found = 0, []
    for (name, kind, k, epsilon), cell in sorted(cells.items()):
        ours = served(cells, name, k, epsilon)
        if kind == LIMITED and ours:
            looked += 1
            if ours["recall"] < cell["recall"] - 0.03:
                recalls = f"{ours['recall']:.3f} against {cell['recall']:.3f}"
                found.append((0, f"{name}, k = {k}, ε = {epsilon:g}: {recalls}"))
    return [(looked, ""), *found]


if __name__ == "__main__":
    main()
