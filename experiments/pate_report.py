"""docs/results/pate.md and pate.png from the rows that ``experiments.pate`` wrote."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev

RESULTS = Path(__file__).parents[1] / "docs" / "results"
TARGETS = (0.42, 0.43, 0.45, 0.47)

Cells = dict[tuple[str, str, str], list[dict[str, str]]]

TEXT = """# Multi-label PATE (E3)

Made by `python -m experiments.pate`. 400 teachers, 500 queries, δ = 10⁻⁶, five seeds; every ε is that of the optimal accountant for the noise that was drawn. Neighbours differ in one training record (`replace`) unless a row says add-remove, the relation of Zhu & Wang 2022.

**Real data.** tmc2007-500 (22 labels, 2.2 per row): ridge classifiers as teachers on 52 rows each, another as student on the answered queries, scored on the 7,077 test rows by micro-averaged F1. (Per-label accuracy is nearly constant here: no label at all has .911, the true labels teach .924. It is in `pate.csv`.)

![F1 of the student against epsilon](pate.png)

## Epsilon at aligned F1

Interpolated on the grid of ε; "–" where no ε of the grid reaches it.

{aligned}

## F1 of the student (mean ± standard deviation of five seeds)

{scores}

Without noise: {noiseless}.

## What this says

- **At a modest F1 StableTopK does not need less ε than PATE-τ** under `replace`: at F1 = .43 it needs {stable_43} against {tau_43} for PATE-τ (τ = 4) and {pate_43} for PATE. It answers only where the largest gap exceeds about 5½ standard deviations of its test (δ_t = 10⁻⁹), and that noise is doubled under `replace`, where a gap moves by 2. PATE-τ with a small τ has little noise per label, answers everything, and the student averages what is left of it.
- **At a higher F1 StableTopK is the only one that arrives**: F1 = .45 costs {stable_45}, and neither baseline reaches it at any ε. Its labels are better without noise too (F1 of the student .473 against .438): the largest gap adapts to weak teachers, of whom fewer than half may name a label that is right, while the baselines ask for half of them.
- **Under the paper's relation** (add-remove) StableTopK needs {stable_ar_43} at F1 = .43 against {pate_43} for PATE and {tau_ar_43} for PATE-τ: the paper's order against PATE holds, against PATE-τ it does not on these data.
- Gaussian selection, which the paper uses, costs about twice the ε of Gumbel selection: its Rényi curve has a term in the number of labels.
- These ε are large. With 21,000 rows for 400 teachers the gaps are small; the cost per query does not depend on the data, so more teachers, each as good, would lower every ε in proportion.

## Simulated votes: CelebA's attributes

No images, so no teachers: 40 true attributes (9 per image), 400 simulated teachers that err independently with a probability drawn from Beta(1, 9) per image and label. Share of correct labels among the answered queries, and the share of queries answered:

{simulated}

With many labels per record PATE-τ is held back by its cut whatever the budget, as in the paper; StableTopK is right on nearly all it answers, and answers few below ε = 16. PATE answers all with more errors. Independent errors are kind to everybody: nothing here says how real teachers would do.
"""


def write() -> None:
    """Draw and word what is in ``pate.csv``."""
    with (RESULTS / "pate.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    cells: Cells = defaultdict(list)
    for row in rows:
        cells[row["votes"], row["method"], row["epsilon"]].append(row)
    methods = list(dict.fromkeys(row["method"] for row in rows if row["epsilon"]))
    epsilons = list(dict.fromkeys(row["epsilon"] for row in rows if row["epsilon"]))
    found = {(m, t): aligned(cells, m, epsilons, t) for m in methods for t in TARGETS}
    noiseless = ", ".join(
        f"{name.removesuffix(', no noise')} {average(cells, ('real', name, ''), 'student F1'):.3f}"
        for name in dict.fromkeys(row["method"] for row in rows if not row["epsilon"])
    )
    text = TEXT.format(
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
        stable_43=found["StableTopK", 0.43],
        tau_43=found["PATE-τ, τ = 4", 0.43],
        pate_43=found["PATE", 0.43],
        stable_45=found["StableTopK", 0.45],
        stable_ar_43=found["StableTopK, add-remove", 0.43],
        tau_ar_43=found["PATE-τ, τ = 4, add-remove", 0.43],
    )
    (RESULTS / "pate.md").write_text(text, encoding="utf-8")
    draw(cells, methods, epsilons)


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


def draw(cells: Cells, methods: list[str], epsilons: list[str]) -> None:
    """Two panels: replace and add-remove."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, wanted in zip(panels, (False, True), strict=True):
        for method in methods:
            if ("add-remove" in method) != wanted:
                continue
            scores = [average(cells, ("real", method, e), "student F1") for e in epsilons]
            panel.plot([float(e) for e in epsilons], scores, marker="o", label=method)
        best = average(cells, ("real", "the true labels", ""), "student F1")
        panel.axhline(best, color="grey", linestyle=":", label="student of the true labels")
        panel.set_xscale("log", base=2)
        panel.set_xlabel("epsilon")
        panel.set_title("add-remove (the paper's relation)" if wanted else "replace")
        panel.grid(alpha=0.3)
        panel.legend(fontsize=8, loc="lower right")
    panels[0].set_ylabel("F1 of the student")
    panels[0].set_ylim(0.25, 0.54)
    figure.savefig(RESULTS / "pate.png", dpi=110)


if __name__ == "__main__":
    write()
