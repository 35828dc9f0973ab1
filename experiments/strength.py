"""E5c: rankings by strength of real contests: what of the noiseless list is found.

    python -m experiments E5c

The same contests as E5b. The list is the top 20 (5 of the arena's 20 models) of the Bradley–Terry
fit without noise; found is the share of it that the private fit names, mean of 20 seeded runs (5 of
tennis away from epsilon = 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments import applied
from experiments.report import draw, markdown, write_page, write_table
from experiments.trials import Progress, quiet
from topsecret.noise.bits import ReplayableBits
from topsecret.ranking import Comparisons
from topsecret.ranking.bradley_terry import BradleyTerry
from topsecret.ranking.win_totals import NoisyTotals

EPSILONS = (0.1, 0.5, 1, 2)
RUNS, FEW = 20, 5
CONTESTS = {"arena": 5, "football": 20, "tennis": 20}
NAME, TITLE = "strength", "E5c. Rankings by strength: what of the noiseless list is found"
HEADS = ["contest", "k", "method", "epsilon", "found", "half width", "runs"]


def contest(name: str, runs: int, epsilons: tuple[float, ...] = EPSILONS) -> list[list[Any]]:
    """One contest at every epsilon."""
    k = CONTESTS[name]
    results = getattr(applied, name)()
    games = Comparisons.from_rows(*zip(*results, strict=True), schedule="public")
    halves = games.half_wins()
    truth = set(best(BradleyTerry(games.games, 0.0).strengths(halves / 2), k))
    rows = []
    for epsilon in epsilons:
        totals = NoisyTotals(epsilon)
        model = BradleyTerry(games.games, totals.variance)
        shares = []
        for run in range(min(runs, FEW) if name == "tennis" and epsilon != 1 else runs):
            bits = ReplayableBits(f"{name} {epsilon:g} {run}".encode())
            found = best(model.strengths(totals.release(halves, bits) / 2), k)
            shares.append(len(truth.intersection(found)) / k)
        error = float(np.std(shares, ddof=1)) / len(shares) ** 0.5
        rows.append([name, k, "strength", epsilon, np.mean(shares), 1.96 * error, len(shares)])
    return rows


def best(strengths: np.ndarray, k: int) -> list[int]:
    """The places of the k largest."""
    return [int(place) for place in np.argsort(-strengths, kind="stable")[:k]]


def run(
    smoke: bool = False, seed: int = 1, repetitions: int | None = None, progress: Progress = quiet
) -> str:
    """Run all contests and write the table, the picture and the page."""
    rows: list[list[Any]] = []
    names = ["arena"] if smoke else [*CONTESTS]
    for done, name in enumerate(names):
        progress(f"E5c {name}", done, len(names))
        rows += contest(name, repetitions or (2 if smoke else RUNS))
    return report(rows)


def report(rows: list[list[Any]]) -> str:
    """Word and draw the rows."""
    shown = [[*row[:4], f"{row[4]:.3f}", f"{row[5]:.3f}", row[6]] for row in rows]
    write_table(NAME, HEADS, shown)
    cells = {(row[0], float(row[3])): float(row[4]) for row in rows}
    names = list(dict.fromkeys(row[0] for row in rows))
    at_one = ", ".join(f"{cells[name, 1.0]:.3f} ({name})" for name in names)
    verdict = (
        f"at ε = 1, with pure privacy, strength finds {at_one} of the list of the fit without "
        "noise, where spectral finds .00 of its own on tennis."
    )
    draw(NAME, lambda figure: _paint(figure, cells, names), 6, 3.6)
    lines = [
        [name, CONTESTS[name], *(_shown(cells.get((name, float(e)))) for e in EPSILONS)]
        for name in names
    ]
    heads = ["contest", "k", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)]
    return write_page(NAME, TITLE, verdict, markdown(heads, lines), TEXT)


def _shown(found: float | None) -> str:
    return "–" if found is None else f"{found:.3f}"


def _paint(figure: Any, cells: dict[tuple[str, float], float], names: list[str]) -> None:
    panel = figure.subplots()
    for name in names:
        known = [epsilon for epsilon in EPSILONS if (name, float(epsilon)) in cells]
        panel.plot(known, [cells[name, float(e)] for e in known], "o-", label=name)
    panel.set_xscale("log")
    panel.set_xlabel("epsilon")
    panel.set_ylabel("share of the noiseless list")
    panel.grid(alpha=0.3)
    panel.legend()


TEXT = """
Neighbours differ in one outcome; the schedule is public. The noiseless list is that of the same
fit with no noise at all, so the table says what privacy costs and not how well Bradley–Terry
describes a contest. Without noise the list of tennis begins Djokovic, Nadal, Federer, Borg;
counting wins begins with Connors, who played most. Means of 20 private lists, of 5 for tennis away
from ε = 1; "–" was not run.
"""
