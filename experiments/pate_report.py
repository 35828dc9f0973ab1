"""The page and the picture of E3b, from the rows that ``experiments.pate`` wrote."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from experiments.report import RESULTS, draw, write_verdict

TARGETS = (0.42, 0.43, 0.45, 0.47)

Cells = dict[tuple[str, str, str], list[dict[str, str]]]

TEMPLATE = Path(__file__).with_name("pate_template.md")


def write(rows: list[dict[str, str]]) -> str:
    """Draw and word the rows; the verdict comes back."""
    cells: Cells = defaultdict(list)
    for row in rows:
        cells[row["votes"], row["method"], row["epsilon"]].append(row)
    methods = list(dict.fromkeys(row["method"] for row in rows if row["epsilon"]))
    epsilons = list(dict.fromkeys(row["epsilon"] for row in rows if row["epsilon"]))
    found = {(m, t): aligned(cells, m, epsilons, t) for m in methods for t in TARGETS}

    def free(name: str, column: str = "student F1") -> str:
        return f"{average(cells, ('real', name, ''), column):.3f}"

    noiseless = "; ".join(
        f"{name.removesuffix(', no noise')}: {average(cells, ('real', name, ''), 'student F1'):.3f}"
        for name in dict.fromkeys(row["method"] for row in rows if not row["epsilon"])
    )
    text = TEMPLATE.read_text(encoding="utf-8").format(
        aligned=table(
            ["method", *(f"F1 = {target}" for target in TARGETS)],
            [[m, *(found[m, t] for t in TARGETS)] for m in methods],
        ),
        scores=table(
            ["method", *(f"ε = {e}" for e in epsilons)],
            [[m, *(spread(cells["real", m, e]) for e in epsilons)] for m in methods],
        ),
        noiseless=noiseless,
        simulated=table(
            ["method", *(f"ε = {e}" for e in epsilons)],
            [[m, *(simulated(cells["simulated", m, e]) for e in epsilons)] for m in methods],
        ),
        true_accuracy=free("the true labels", "accuracy"),
        stable_free=free("StableTopK, no noise"),
        pate_free=free("PATE, no noise"),
        stable_43=found["StableTopK", 0.43],
        tau_43=found["PATE-τ, τ = 4", 0.43],
        pate_43=found["PATE", 0.43],
        stable_45=found["StableTopK", 0.45],
        at_45=", ".join(
            f"{m} {_needed(found[m, 0.45])}" for m in ("StableTopK", "PATE", "PATE-τ, τ = 4")
        ),
        stable_ar_43=found["StableTopK, add-remove", 0.43],
        tau_ar_43=found["PATE-τ, τ = 4, add-remove", 0.43],
    )
    write_verdict("pate", text)
    draw("pate", lambda figure: _paint(figure, cells, methods, epsilons), 10, 5)
    line = next(line for line in text.splitlines() if line.startswith("**Verdict.** "))
    return line.removeprefix("**Verdict.** ")


def average(cells: Cells, key: tuple[str, str, str], column: str) -> float:
    """Mean over the seeds."""
    return mean(float(row[column]) for row in cells[key])


def aligned(cells: Cells, method: str, epsilons: list[str], target: float) -> str:
    """The smallest ε whose mean F1 reaches the target, interpolated in ln ε."""
    curve = [(float(e), average(cells, ("real", method, e), "student F1")) for e in epsilons]
    for i, (epsilon, score) in enumerate(curve):
        if score >= target:
            if i == 0:
                return f"≤ {epsilon:g}"
            before, low = curve[i - 1]
            part = (target - low) / (score - low)
            return f"{math.exp(math.log(before) + part * math.log(epsilon / before)):.1f}"
    return "–"


def _needed(epsilon: str) -> str:
    """ε in a sentence."""
    return "at no ε" if epsilon == "–" else epsilon


def spread(rows: list[dict[str, str]]) -> str:
    """Mean and standard deviation of the student's F1."""
    values = [float(row["student F1"]) for row in rows]
    return f"{mean(values):.3f} ± {stdev(values):.3f}"


def simulated(rows: list[dict[str, str]]) -> str:
    """Accuracy among the answered, and how many were answered."""
    answered = mean(float(row["answered"]) for row in rows)
    if answered < 0.01:
        return "– (0%)"
    return f"{mean(float(row['accuracy']) for row in rows):.3f} ({answered:.0%})"


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _paint(figure: Any, cells: Cells, methods: list[str], epsilons: list[str]) -> None:
    """Two panels: replace and add-remove."""
    panels = figure.subplots(1, 2, sharey=True)
    colours = list(dict.fromkeys(method.removesuffix(", add-remove") for method in methods))
    for panel, wanted in zip(panels, (False, True), strict=True):
        for method in methods:
            if ("add-remove" in method) != wanted:
                continue
            scores = [average(cells, ("real", method, e), "student F1") for e in epsilons]
            colour = colours.index(method.removesuffix(", add-remove"))
            panel.plot(
                [float(e) for e in epsilons], scores, marker="o", label=method, color=f"C{colour}"
            )
        best = average(cells, ("real", "the true labels", ""), "student F1")
        panel.axhline(best, color="grey", linestyle=":", label="student of the true labels")
        panel.set_xscale("log", base=2)
        panel.set_xlabel("epsilon")
        panel.set_title("add-remove (the paper's relation)" if wanted else "replace")
        panel.grid(alpha=0.3)
        panel.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.17))
    panels[0].set_ylabel("F1 of the student")
    panels[0].set_ylim(0.25, 0.54)


if __name__ == "__main__":  # word the committed numbers anew
    with (RESULTS / "pate.csv").open(encoding="utf-8") as file:
        write(list(csv.DictReader(file)))
