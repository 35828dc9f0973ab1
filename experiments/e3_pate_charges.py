"""E3: Zhu & Wang 2022, Table 2. What the multi-label PATE run costs, by every way to charge it.

    python -m experiments E3

600 queries over 40 labels, Gaussian selection σ₁ = 50, Gaussian test σ = 60, δ_t = 10⁻⁹, δ = 10⁻⁶.
The students' quality is another experiment (``experiments/pate.py``), on data that can be had.
"""

from __future__ import annotations

import textwrap

from experiments.report import draw, markdown, write_page, write_table
from experiments.trials import Progress, quiet
from topsecret.accounting.zhu_wang import Charge, relations, table

NAME = "e3-pate-charges"
TITLE = "E3. What the multi-label PATE run of Table 2 costs"
PRINTED = 3.6
EXPECTED = {
    "add-remove": (3.66, 71, 21.5, 20.5, 4.35, 3.92, 3.71),
    "replace": (None, None, None, None, None, 8.6, 8.16),
}
"""Known values in the order of the charges, where there are some."""

WORDS = (
    "Gaussian selection without its ln(m) term",
    "Gaussian selection by Corollary 9",
    "Gaussian selection, the better of Corollary 9 and the joint Gaussian",
    "Gaussian selection, the better bound, best conversion",
    "Gumbel selection of the same spread, the paper's conversion",
    "Gumbel selection, best conversion",
    "Gumbel selection, the optimal recursion",
)
"""The charges in their order, in words that stand alone."""


def run(
    smoke: bool = False, seed: int = 1, repetitions: int | None = None, progress: Progress = quiet
) -> str:
    """Nothing is random here: seed and repetitions change nothing."""
    kinds = relations()[:1] if smoke else relations()
    found = {kind: table(kind).charges for kind in kinds}
    rows = [
        [kind, f"{charge.epsilon:.4g}", "yes" if charge.valid else "no", words]
        for kind, charges in found.items()
        for words, charge in zip(WORDS, charges, strict=True)
    ]
    write_table(NAME, ["neighbours", "epsilon", "valid", "charge"], rows)
    draw(NAME, lambda figure: _paint(figure, found), 9, 5)
    return _write(found)


def _paint(figure, found) -> None:  # type: ignore[no-untyped-def]
    axes = figure.subplots(1, len(found), sharex=True, sharey=True, squeeze=False)[0]
    for axis, (kind, charges) in zip(axes, found.items(), strict=True):
        places = range(len(charges))
        colours = ["grey" if charge.valid else "tab:red" for charge in charges]
        axis.barh(places, [charge.epsilon for charge in charges], color=colours)
        axis.axvline(PRINTED, color="black", linestyle="--", label="printed")
        axis.set_xscale("log")
        axis.set_xticks([3, 5, 10, 20, 50, 100], ["3", "5", "10", "20", "50", "100"])
        axis.minorticks_off()
        axis.set_xlabel(f"ε at δ = 10⁻⁶, {kind}")
        axis.legend()
    shown = [textwrap.fill(words, 26) for words in WORDS]
    axes[0].set_yticks(range(len(found["add-remove"])), shown, fontsize="small")
    axes[0].invert_yaxis()


def _write(found: dict[str, tuple[Charge, ...]]) -> str:
    ours = found["add-remove"]
    valid = ours[WORDS.index("Gaussian selection, the better bound, best conversion")].epsilon
    best = {kind: charges[-1].epsilon for kind, charges in found.items()}
    also = f" ({best['replace']:.2f} under replace)" if "replace" in best else ""
    verdict = (
        f"the printed ε = {PRINTED} follows only from a charge that is not valid "
        f"({ours[0].epsilon:.2f} without the ln(m) term of the selection); the run as described "
        f"costs {ours[1].epsilon:.1f} by Corollary 9 of the paper, Zhu & Wang 2022, and "
        f"{valid:.1f} by the best "
        f"valid bound for Gaussian selection; with Gumbel selection of the same spread it costs "
        f"{best['add-remove']:.2f}{also}."
    )
    rows = []
    for kind, charges in found.items():
        for words, charge, known in zip(WORDS, charges, EXPECTED[kind], strict=True):
            rows.append(
                [
                    kind,
                    words,
                    f"{charge.epsilon:.4g}",
                    "–" if known is None else known,
                    "yes" if charge.valid else "**no**",
                ]
            )
    return write_page(
        NAME,
        TITLE,
        verdict,
        "Printed (CelebA, δ = 10⁻⁶): StableTopK ε = 3.6 with 85.0 ± 0.2% accuracy, PATE-τ 7.7 "
        "(85.1 ± 0.2%), PATE more than 10 (85.0 ± 0.1%).",
        markdown(["neighbours", "charge", "ε, ours", "known", "valid"], rows),
        '*Known* are values computed before, to check ours against; "–" where there is none. In '
        "the picture the charge that is not valid has the coloured bar.",
        "Differences. The Gaussian selection of the largest of 39 gaps costs 2α/σ₁² + ln(39)/(α − "
        "1) by Corollary 9; charging it α/(2σ₁²), as one Gaussian, gives the printed number and is "
        "false (there is an exact counterexample at three labels). The last known value, 3.71 and "
        "8.16, came from a coarser grid than ours. Where neighbours differ in one changed "
        "training record (replace), a gap moves by 2 and everything costs 2 to 2.5 times as much.",
        "The ε of PATE and PATE-τ in the paper's Table 2 cannot be recomputed: their noise is not "
        "printed. "
        "The accuracies cannot be reproduced: CelebA's images are not at hand, so no teachers can "
        "be trained on it. [Students on another real set, and simulated votes on CelebA's true "
        "attributes](pate.md) stand instead, with the paper's baselines at the same ε. Nothing is "
        "sampled here: no runs, no confidence intervals.",
    )
