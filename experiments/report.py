"""What every experiment writes: a table, a picture and a page that opens with its verdict."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "docs" / "results"
_folders = [RESULTS]


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Send what is written to another folder, so that a trial run leaves the results alone."""
    _folders.append(folder)
    try:
        yield
    finally:
        _folders.pop()


def _path(name: str) -> Path:
    _folders[-1].mkdir(parents=True, exist_ok=True)
    return _folders[-1] / name


def write_table(name: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    """The rows as docs/results/NAME.csv."""
    path = _path(f"{name}.csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)
    return path


def write_verdict(name: str, text: str) -> Path:
    """The verdict as docs/results/NAME.md."""
    path = _path(f"{name}.md")
    path.write_text(text.rstrip() + "\n", encoding="utf-8")
    return path


def write_page(name: str, title: str, verdict: str, *parts: str) -> str:
    """docs/results/NAME.md: title, one line of verdict, then the parts; the verdict comes back.

    The index takes the verdict from the page, so it stands on a line of its own.
    """
    line = sentence(" ".join(verdict.split()))
    files = f"The numbers: [{name}.csv]({name}.csv)."
    body = "\n\n".join(part.strip() for part in (*parts, files))
    write_verdict(name, f"# {title}\n\n**Verdict.** {line}\n\n{body}\n\n![{title}]({name}.svg)")
    return line


def sentence(verdict: str) -> str:
    """With a capital letter, where it begins with a word and not with a symbol (ε, k̄)."""
    return verdict[:1].upper() + verdict[1:] if verdict[:2].isascii() else verdict


def figures(number: float, digits: int = 3) -> str:
    """The number to so many digits, never as 1e+04."""
    short = f"{number:.{digits}g}"
    return f"{float(short):.0f}" if "e+" in short else short


def markdown(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(map(str, head)) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines)


def draw(name: str, paint: Callable[[Any], None], width: float = 9, height: float = 5) -> Path:
    """A picture as docs/results/NAME.svg; ``paint`` gets a matplotlib figure."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "topsecret"  # the same picture gives the same file
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    paint(figure)
    path = _path(f"{name}.svg")
    figure.savefig(path, metadata={"Date": None})
    return path
