"""docs/results/README.md: all experiments with the line of verdict that each page opens with."""

from __future__ import annotations

from pathlib import Path

from experiments.registry import EXPERIMENTS
from experiments.report import sentence, write_verdict

OTHERS = {
    "tested-top-k": "Recall of `TestedTopK` beside the others",
    "tested-constants": "How the constants of `TestedTopK` were chosen (a table)",
    "count-intervals": "How often the intervals of noisy counts hold",
    "weighted-sums": "Processor time of weighted people inside DuckDB and PostgreSQL",
    "k-bar": "Recall of `LimitedDomain` for other multiples of k than k̄ = 20·k",
}
"""Pages that are no table or figure of a paper."""


def write_index(folder: Path) -> Path:
    """The index of what is in the folder."""
    lines = []
    for name, experiment in EXPERIMENTS.items():
        page = folder / f"{experiment.page}.md"
        what = f"{name}: {experiment.source}"
        if page.is_file():
            lines.append(f"- **[{what}]({page.name})**  \n  {sentence(verdict_of(page))}")
        else:
            lines.append(f"- **{what}**  \n  Not run yet.")
    more = []
    for name, what in OTHERS.items():
        for ending in ("md", "csv"):
            if (folder / f"{name}.{ending}").is_file():
                more.append(f"- [{what}]({name}.{ending})")
                break
    parts = [
        "# Results",
        "The papers' tables and figures with ours beside every printed number, and comparisons of "
        "our own. `make reproduce` writes all of them, `topsecret reproduce E1` one; the same seed "
        "gives the same numbers, except times and memory, and except E7 and E7b, where each "
        "library draws its own noise. [Where the data are](data.md).",
        "\n".join(lines),
        "Read the verdicts with their pages: run counts, confidence intervals and what a dataset "
        "cannot support stand there.",
        *(["Beside them:\n\n" + "\n".join(more)] if more else []),
    ]
    return write_verdict("README", "\n\n".join(parts))


def verdict_of(page: Path) -> str:
    """The line that a page opens with."""
    lines = page.read_text(encoding="utf-8").splitlines()
    [marked] = [line for line in lines if line.startswith("**Verdict.** ")]
    return marked.removeprefix("**Verdict.** ")
