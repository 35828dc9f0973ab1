"""docs/results/README.md: all experiments with the line of verdict that each page opens with."""

from __future__ import annotations

from pathlib import Path

from experiments.registry import EXPERIMENTS
from experiments.report import markdown, write_verdict

OTHERS = {
    "tested-top-k": "recall of `TestedTopK` beside the others",
    "tested-constants": "how the constants of `TestedTopK` were chosen",
    "k-bar": "recall of `LimitedDomain` for other multiples of k than k̄ = 20k",
}
"""Pages that are no table or figure of a paper."""


def write_index(folder: Path) -> Path:
    """The index of what is in the folder."""
    rows = []
    for name, experiment in EXPERIMENTS.items():
        page = folder / f"{experiment.page}.md"
        table = folder / f"{experiment.page}.csv"
        if page.is_file():
            rows.append([f"[{name}]({experiment.page}.md)", experiment.source, verdict_of(page)])
        elif table.is_file():
            rows.append([f"[{name}]({table.name})", experiment.source, "the numbers alone"])
        else:
            rows.append([name, experiment.source, "not run yet"])
    more = []
    for name, what in OTHERS.items():
        for ending in ("md", "csv"):
            if (folder / f"{name}.{ending}").is_file():
                more.append(f"- [{name}.{ending}]({name}.{ending}): {what}")
                break
    parts = [
        "# Results",
        "The papers' tables and figures with ours beside every printed number, and comparisons of "
        "our own. `make reproduce` writes all of them, `topsecret reproduce E1` one; the same seed "
        "gives the same numbers, except times and memory. [Where the data are](data.md).",
        markdown(["experiment", "source", "verdict"], rows),
        "Read the verdicts with their pages: run counts, confidence intervals and what a data set "
        "cannot support stand there.",
        *(["Beside them:\n\n" + "\n".join(more)] if more else []),
    ]
    return write_verdict("README", "\n\n".join(parts))


def verdict_of(page: Path) -> str:
    """The line that a page opens with."""
    lines = page.read_text(encoding="utf-8").splitlines()
    marked = [line for line in lines if line.startswith("**Verdict.** ")]
    if marked:
        return marked[0].removeprefix("**Verdict.** ").replace("|", "\\|")
    words = [line for line in lines[1:] if line.startswith("- **")]
    return " ".join(words[0].removeprefix("- ").split("**")[1].split()) if words else "see the page"
