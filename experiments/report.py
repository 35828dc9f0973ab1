"""What every experiment writes: a table, a picture and one line of verdict."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def write_table(name: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    """The rows as docs/results/NAME.csv."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)
    return path


def write_verdict(name: str, text: str) -> Path:
    """The verdict as docs/results/NAME.md."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.md"
    path.write_text(text.rstrip() + "\n", encoding="utf-8")
    return path


def draw(name: str, paint: Callable[[Any], None], width: float = 9, height: float = 5) -> Path:
    """A picture as docs/results/NAME.svg; ``paint`` gets a matplotlib figure."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "topsecret"  # the same picture gives the same file
    from matplotlib.figure import Figure

    RESULTS.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(width, height), layout="constrained")
    paint(figure)
    path = RESULTS / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None})
    return path
