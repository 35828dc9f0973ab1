"""E1: Zhu & Wang 2022, Table 1. The share of the true top k on check-ins, δ = 1/persons.

    python -m experiments E1

Foursquare is a reconstruction with exact venue totals; BrightKite is a filtered substitute (the
full set was not to be had) and is called so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from experiments import data
from experiments.printed_accounting import largest, mironov, misprinted
from experiments.report import draw, markdown, write_page, write_table
from experiments.trials import (
    Mean,
    Progress,
    leading_histogram,
    public_histogram,
    quiet,
    recall,
    rows_of,
)
from topsecret import Histogram
from topsecret.accounting import calibrate, zcdp
from topsecret.calibration import Question, prepare
from topsecret.mechanisms import GumbelTopK, StableFixedK
from topsecret.mechanisms.selection import Selection
from topsecret.noise.bits import BitSource
from topsecret.planning.rule import recommend

NAME = "e1-recall-table"
TITLE = "E1. The share of the true top k on check-ins"
SIZES, EPSILONS = (3, 10, 50), (0.4, 0.8, 1.0)
PERSONS = {"Foursquare": 2293, "BrightKite filtered": 5766}
PRINTED = {
    ("Foursquare", "TS"): ((1.00, 0.64, 0.11), (1.00, 0.90, 0.18), (1.00, 0.90, 0.18)),
    ("Foursquare", "LD"): ((0.68, 0.62, 0.13), (0.75, 0.85, 0.24), (0.91, 0.94, 0.28)),
    ("Foursquare", "StableTopK"): ((1.00, 0.72, 0.48), (1.00, 1.00, 0.67), (1.00, 1.00, 0.67)),
    ("BrightKite filtered", "TS"): ((1.00, 0.77, 0.14), (1.00, 0.80, 0.16), (1.00, 0.80, 0.18)),
    ("BrightKite filtered", "LD"): ((1.00, 0.47, 0.10), (1.00, 0.79, 0.25), (1.00, 0.88, 0.28)),
    ("BrightKite filtered", "StableTopK"): (
        (1.00, 0.91, 0.61),
        (1.00, 1.00, 0.67),
        (1.00, 1.00, 0.67),
    ),
}
"""Table 1 by ε and then k. The paper's BrightKite is the full set, ours is not."""
SPLIT = "public: Alg. 3 as printed, ε_EM split"
EACH = "public: Alg. 3 as printed, ε_EM each (not private)"
PAPER = "public: StableFixedK, paper's conversion"
THEOREM = "public: StableFixedK, Theorem 11 as printed"
HALF = "public: StableFixedK, half of δ for the test"
STABLE = "public: StableFixedK"
PLANNED = "public: recommended"
NOTEBOOK = "public: StableFixedK, (k+1)-th counted as correct (not our measure)"
UNKNOWN = ("tested", "limited-domain", "stable-fixed-k", "top-stable")


@dataclass(frozen=True)
class PrintedFixedK:
    """Algorithm 3 as printed: after ``StableTopK``, n picks from a pure budget ε_EM = 2√ρ.

    The text does not say whether ε_EM is for all picks or for each. Split, it is private and
    wasteful; for each, it costs n times what is claimed.
    """

    fixed: StableFixedK
    split: bool

    def select(self, histogram: Histogram, bits: BitSource) -> Selection:
        """The stable set cut or filled to k by picks on h."""
        k, price = self.fixed.k, 2 * math.sqrt(float(self.fixed.rho))  # type: ignore[arg-type]
        stable = self.fixed.stable.select(histogram, bits).items
        count = k if len(stable) > k else k - len(stable)
        if count == 0:
            return Selection(stable, complete=True, ordered=False)
        scale = count / price if self.split else 1 / price
        if len(stable) > k:
            rows = dict(histogram.ranked(self.fixed.k_bar + 1))
            histogram = Histogram.of({item: rows[item] for item in stable}, domain=stable)
        picked = GumbelTopK(count, scale).select(histogram, bits).items
        kept = () if len(stable) > k else stable
        return Selection(tuple(dict.fromkeys((*kept, *picked))), complete=True, ordered=False)


def cells(name: str, k: int, epsilon: float) -> dict[str, tuple[object, bool]]:
    """Every mechanism at (ε, 1/persons), and whether it knows the list of venues."""
    counts, delta = data.counts(name), 1 / PERSONS[name]
    paper = StableFixedK(k, 2 * k, paper_rho(epsilon, delta), delta / 2, 0)
    theorem = largest(lambda part: misprinted(part, delta / 2), epsilon)
    half = calibrate(lambda r: StableFixedK(k, 2 * k, r, delta / 2, 1).loss, epsilon, delta, 0.02)
    public = Question.of(k=k, epsilon=epsilon, delta=delta, domain_size=len(counts))
    unknown = Question.of(k=k, epsilon=epsilon, delta=delta)
    found: dict[str, tuple[object, bool]] = {
        SPLIT: (PrintedFixedK(paper, split=True), True),
        EACH: (PrintedFixedK(paper, split=False), True),
        PAPER: (paper, True),
        THEOREM: (StableFixedK(k, 2 * k, theorem, delta / 2, 0), True),
        HALF: (StableFixedK(k, 2 * k, half, delta / 2, 1), True),
        STABLE: (prepare("stable-fixed-k", public).mechanism, True),
        PLANNED: (prepare(recommend(public).name, public).mechanism, True),
        NOTEBOOK: (prepare("stable-fixed-k", public).mechanism, True),
    }
    found |= {f"unknown: {n}": (prepare(n, unknown).mechanism, False) for n in UNKNOWN}
    return found


def paper_rho(epsilon: float, delta: float) -> float:
    """ρ by the paper's RDP conversion at δ − δ_t = δ/2."""
    return largest(lambda part: mironov(part, delta / 2), epsilon)


def run(
    smoke: bool = False, seed: int = 1, repetitions: int | None = None, progress: Progress = quiet
) -> str:
    """200 runs per cell (the published baselines have 2,000); slow mechanisms a quarter."""
    runs = repetitions or (3 if smoke else 200)
    sets = ["Foursquare"] if smoke else list(PERSONS)
    sizes, epsilons = ((3, 10), (1.0,)) if smoke else (SIZES, EPSILONS)
    found: dict[tuple[str, float, int, str], Mean] = {}
    for name, epsilon, k in product(sets, epsilons, sizes):
        counts = data.counts(name)
        for label, (mechanism, public) in cells(name, k, epsilon).items():
            progress(f"E1 {name}, ε = {epsilon}, k = {k}, {label}", len(found), 216)
            slow = "stable" in label.lower() and k == 50
            rows = rows_of(mechanism, k)  # type: ignore[arg-type]
            where = public_histogram(counts) if public else leading_histogram(counts, rows)
            found[name, epsilon, k, label] = recall(
                mechanism,  # type: ignore[arg-type]  # the printed form only selects
                where,
                _raised(counts, k) if label == NOTEBOOK else counts,
                k,
                max(2, runs // 4) if slow else runs,
                seed,
                name,
                epsilon,
                k,
                label,
            )
    rows = [[*key, f"{m.mean:.4f}", f"{m.half_width:.4f}", m.runs] for key, m in found.items()]
    head = ["data", "epsilon", "k", "mechanism", "recall", "95% half width", "runs"]
    write_table(NAME, head, rows)
    draw(NAME, lambda figure: _paint(figure, sets, sizes, epsilons, found), 11, 4 + 3 * len(sets))
    return _write(sets, sizes, epsilons, found, runs)


def _raised(counts: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Counts in which the (k+1)-th item passes as one of the top k: the notebooks' measure."""
    raised = counts.copy()
    raised[k] = raised[k - 1]
    return raised


def printed(name: str, who: str, epsilon: float, k: int) -> float:
    """The number of Table 1."""
    return PRINTED[name, who][EPSILONS.index(epsilon)][SIZES.index(k)]


def _paint(figure, sets, sizes, epsilons, found) -> None:  # type: ignore[no-untyped-def]
    import matplotlib as mpl

    axes = figure.subplots(len(sets), 1, squeeze=False)[:, 0]
    labels = dict.fromkeys(key[3] for key in found if "(not" not in key[3])
    colours = mpl.colormaps["tab20"].colors
    places = list(product(epsilons, sizes))
    width = 0.85 / (len(labels) + 1)
    for axis, name in zip(axes, sets, strict=True):
        marks = [printed(name, "StableTopK", e, k) for e, k in places]
        axis.bar(range(len(places)), marks, width, label="printed StableTopK", color="black")
        for turn, label in enumerate(labels, 1):
            heights = [found[name, e, k, label].mean for e, k in places]
            errors = [found[name, e, k, label].half_width for e, k in places]
            shifted = [place + turn * width for place in range(len(places))]
            colour = colours[2 * turn % 20 + turn // 10]
            shown = label.replace("ε_EM", "$ε_{EM}$")
            axis.bar(shifted, heights, width, yerr=errors, label=shown, color=colour)
        axis.set_xticks([p + 0.4 for p in range(len(places))], [f"ε={e}\nk={k}" for e, k in places])
        axis.set_ylabel("share of the true top k")
        axis.set_title(name if name == "Foursquare" else f"{name} (a substitute for the full set)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _write(sets, sizes, epsilons, found, runs) -> str:  # type: ignore[no-untyped-def]
    grid = list(product(epsilons, sizes))
    misses = []
    for label, (e, k) in product((HALF, STABLE, PLANNED), grid):
        seen, wanted = found["Foursquare", e, k, label], printed("Foursquare", "StableTopK", e, k)
        if seen.mean < wanted - 0.005:  # the printed number has two digits
            name = label.removeprefix("public: ")
            misses.append(f"{name}, ε = {e}, k = {k}: {seen.mean:.3f} against {wanted:.2f}")

    def line(label: str) -> str:
        means = {(e, k): found["Foursquare", e, k, label].mean for e, k in grid}
        return ", ".join("/".join(f"{means[e, k]:.2f}" for k in sizes) for e in epsilons)

    verdict = (
        f"share of the true top k found on Foursquare with a public list of venues, δ = 1/n, "
        f"k = {'/'.join(map(str, sizes))} at ε = {', '.join(map(str, epsilons))}: StableFixedK "
        f"{line(STABLE)} (half of δ for the test: {line(HALF)}), the recommended mechanism "
        f"{line(PLANNED)}; "
        + (
            "every cell is at or above the printed StableTopK."
            if not misses
            else f"below the printed StableTopK in {len(misses)} of the {3 * len(grid)} cells of "
            f"these three ({'; '.join(misses)}): the third venue is only 23 people ahead of the "
            "fourth."
        )
        + f" Without a list, tested: {line('unknown: tested')}."
    )
    parts = []
    for name in sets:
        head = ["mechanism", *(f"ε={e} k={k}" for e, k in grid)]
        rows = [
            [f"printed {who}", *(f"{printed(name, who, e, k):.2f}" for e, k in grid)]
            for who in ("TS", "LD", "StableTopK")
        ]
        labels = dict.fromkeys(key[3] for key in found)
        rows += [[label, *(_cell(found[name, e, k, label]) for e, k in grid)] for label in labels]
        parts.append(f"## {_title(name)}\n\n{markdown(head, rows)}")
    printed_in = (
        "Printed are the numbers of Zhu & Wang 2022, Table 1; TS there is the top stable set, LD "
        "the limited domain of Durfee & Rogers 2019."
    )
    return write_page(NAME, TITLE, verdict, printed_in, *parts, _conversion(), _notes(runs))


def _title(name: str) -> str:
    if name == "Foursquare":
        return "Foursquare (100,191 venues, 2,293 people, δ = 1/2293)"
    return "BrightKite, 5,766 people as a substitute, δ = 1/5766; printed rows for reference"


def _cell(mean: Mean) -> str:
    return f"{mean.mean:.2f} ± {mean.half_width:.2f}"


def _conversion() -> str:
    delta = 1 / PERSONS["Foursquare"] / 2
    rows = []
    for epsilon in EPSILONS:
        wrong = largest(lambda part: misprinted(part, delta), epsilon)
        rows.append(
            [
                epsilon,
                f"{wrong:.4f}",
                f"{zcdp(wrong).epsilon(delta):.3f}",
                f"{paper_rho(epsilon, 2 * delta):.4f}",
                f"{largest(lambda part: zcdp(part).epsilon(delta), epsilon):.4f}",
            ]
        )
    head = [
        "ε",
        "ρ by Theorem 11 as printed",
        "what that ρ really costs",
        "ρ by ρ + 2√(ρ ln 1/δ), used here",
        "ρ by the best conversion",
    ]
    return (
        "## The printed conversion\n\nTheorem 11 converts by ρ + √(2ρ ln(1/δ)), which is not "
        "implied. Calibrated with it a run would cost more than it says:\n\n" + markdown(head, rows)
    )


def _notes(runs: int) -> str:
    return (
        "## How to read this\n\n"
        f"{runs} runs per cell (a quarter for the stability mechanisms at k = 50); ± is the half "
        "width of the 95% interval. A named item is correct when its count is at least the k-th; "
        "the (k+1)-th item is not, unlike in the published notebooks, whose numbers for TS and LD "
        "(Foursquare ε = .4: 1.00/.65/.11 and .67/.69/.14; .8: 1.00/.90/.18 and .76/.86/.24; 1.0: "
        "1.00/.90/.18 and .91/.96/.29) are near the printed ones. TS there tests the gap of the "
        "wrong place and is not private, so our `top-stable` row need not match it: it is the "
        "corrected mechanism, half of ε for refining, without a public list.\n\n"
        "*Paper's conversion*: StableFixedK with r = 0, half of δ for the test, ρ by ρ + "
        "2√(ρ ln 1/δ), k̄ = 2k (not given in the paper), picks at ε₀ = 2√(ρ/n). *Theorem 11 as "
        "printed*: the same with the larger ρ of that theorem, which costs a little more than ε "
        "(table above); the paper's .48 at ε = .4 and k = 50 lies between these two rows. "
        "*Half of δ for the test*: the paper's split with the accountant's best bound, which "
        "allows 1.7 to 2 times the ρ of the paper's conversion and is proven.\n\n*As printed*: "
        'Algorithm 3 gives a "total pure-DP budget ε_EM = 2√ρ" for n picks "on h". Split over the '
        "picks it is private and loses most of the budget at k = 50; taken for each pick the claim "
        "is wrong by a factor of up to n in ρ, and its recall is shown for that reason only. In "
        "both, picks on h name released items again, which costs recall at k = 3 and 10. The "
        "printed .67 at k = 50, the same for both datasets and both larger ε, is below what the "
        "corrected algorithm reaches on Foursquare.\n\n"
        "*Below print*, ε = .4, k = 3: the third venue has 1,035 people and the "
        "fourth 1,012; half of the budget goes to a drop that is not there, and picks at a noise "
        "of about 9 people confuse the two now and then. With the (k+1)-th item counted as "
        "correct such runs score as the last public row says; the recommended mechanism "
        "spends nothing on a drop.\n\n"
        "*Without suffix*: a tenth of δ for the test, one person of gap per place away from k, "
        "the accountant's best bound. *Recommended* is what `plan` proposes for these public "
        "numbers. The number of people is taken as public, since δ is set from it. Rows marked "
        "*unknown* need no list of venues; they look at the 20·k leading ones. δ = 1/n is far too "
        "large for practice (one person in n may be exposed outright); it is the paper's setting."
    )
