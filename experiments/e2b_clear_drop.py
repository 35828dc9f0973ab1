"""E2b: Zhu & Wang 2022, Figure 1(b). One clear drop after k items, for k from 10 to 1,500.

    python -m experiments E2b

15,000 items, the first k with 700 people each, the others with none; (0.15, 10⁻⁶).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from experiments.printed_accounting import largest, mironov
from experiments.report import draw, markdown, write_page, write_table
from experiments.trials import Mean, Progress, leading_histogram, public_histogram, quiet, repeat
from experiments.trials import share_found as share
from topsecret import Histogram
from topsecret.accounting import calibrate, calibrate_picks
from topsecret.mechanisms import GumbelTopK, StableTopK, TopStable
from topsecret.mechanisms.selection import Selection
from topsecret.noise.bits import BitSource

NAME = "e2b-clear-drop"
TITLE = "E2b. One clear drop: recall against k"
ITEMS, HEIGHT = 15_000, 700
EPSILON, DELTA = 0.15, 1e-6
SIZES = (10, 20, 30, 50, 100, 200, 300, 500, 700, 1000, 1500)
K_BAR = 3000
"""How far StableTopK looks for the drop: public, the same for all k."""
STABLE, PICKED, PRINTED_EM = "StableTopK", "EM, optimal accounting", "EM-CDP, as printed"
SPLIT, WHOLE = "TS, half of ε for EM", "TS told k, all of ε"


@dataclass(frozen=True)
class StableOrPicks:
    """TS as the paper runs it: half of the budget for the gap, the rest for picks if that fails.

    (ε/2, δ/2) for the gap and (ε/2, δ/2) for k picks, charged whether they are made or not. The
    1e-9 that TopStable asks for refining is never spent: no longer set can come out.
    """

    stable: TopStable
    picking: GumbelTopK

    @classmethod
    def of(cls, k: int) -> StableOrPicks:
        """Half of ε for each, half of δ for each."""
        each = EPSILON / 2
        price = calibrate_picks(k, each, DELTA / 2)
        # k̄ = k: no set longer than k can be released, so nothing is left to refine.
        stable = TopStable(k, k, each, DELTA / 2, 1e-9)
        return cls(stable, GumbelTopK(k, 1 / price))

    def select(self, histogram: Histogram, bits: BitSource) -> Selection:
        """The stable set, or picks among all items."""
        found = self.stable.select(histogram, bits)
        return found if found.complete else self.picking.select(histogram, bits)


def mechanisms(k: int) -> dict[str, object]:
    """Each at (0.15, 10⁻⁶)."""
    failing = DELTA / 10
    rho = calibrate(lambda part: StableTopK(2, part, failing).loss, EPSILON, DELTA, 1e-3)
    printed_rho = largest(lambda part: mironov(part, DELTA), EPSILON)
    return {
        STABLE: StableTopK(K_BAR, rho, failing),
        PRINTED_EM: GumbelTopK(k, (k / (8 * printed_rho)) ** 0.5),
        PICKED: GumbelTopK(k, 1 / calibrate_picks(k, EPSILON, DELTA)),
        SPLIT: StableOrPicks.of(k),
        WHOLE: TopStable(k, k, EPSILON * (1 - 1e-6), DELTA, EPSILON * 1e-6),
    }


def run(
    smoke: bool = False, seed: int = 1, repetitions: int | None = None, progress: Progress = quiet
) -> str:
    """100 runs per point, as in the paper; the recall of StableTopK exactly as well."""
    sizes = (10, 100) if smoke else SIZES
    runs = repetitions or (3 if smoke else 100)
    found: dict[tuple[str, int], Mean] = {}
    exact: dict[int, float] = {}
    for place, k in enumerate(sizes):
        counts = np.zeros(ITEMS, dtype=np.int64)
        counts[:k] = HEIGHT
        for name, mechanism in mechanisms(k).items():
            progress(f"E2b k = {k}, {name}", place, len(sizes))
            # TS costs k comparisons a run; its recall is 0 or 1, or that of the picks.
            fewer = max(2, min(runs, 20_000 // k)) if name in (SPLIT, WHOLE) else runs
            histogram = (
                leading_histogram(counts, k + 1) if name == WHOLE else public_histogram(counts)
            )

            def once(bits: BitSource, m=mechanism, h=histogram, c=counts, k=k) -> float:  # type: ignore[no-untyped-def]
                return share(c, m.select(h, bits).items[:k], k)

            found[name, k] = repeat(once, fewer, seed, name, k)[0]
        exact[k] = exact_recall(counts, k, mechanisms(k)[STABLE])  # type: ignore[arg-type]
    names = list(dict.fromkeys(name for name, _ in found))
    rows = [
        [name, k, f"{mean.mean:.4f}", f"{mean.half_width:.4f}", mean.runs]
        for (name, k), mean in found.items()
    ]
    rows += [[f"{STABLE}, exact", k, f"{value:.6f}", "0", ""] for k, value in exact.items()]
    write_table(NAME, ["mechanism", "k", "recall", "95% half width", "runs"], rows)
    draw(NAME, lambda figure: _paint(figure, names, sizes, found))
    return _write(names, sizes, found, exact, runs)


def exact_recall(counts: np.ndarray, k: int, mechanism: StableTopK) -> float:
    """From the law itself: the chance of each length times the share of the top k it holds."""
    law = mechanism.distribution(leading_histogram(counts, K_BAR + 1))
    return sum(
        chance * min(len([i for i in outcome if isinstance(i, int)]), k) / k
        for outcome, chance in law.items()
    )


def _paint(figure, names, sizes, found) -> None:  # type: ignore[no-untyped-def]
    axis = figure.subplots()
    for name in names:
        line = [found[name, k] for k in sizes]
        axis.errorbar(
            sizes,
            [mean.mean for mean in line],
            [mean.half_width for mean in line],
            marker="o",
            markersize=7 if name == STABLE else 3,  # seen under the line that covers it
            linewidth=4 if name == STABLE else None,
            label=name,
        )
    axis.set_xscale("log")
    axis.set_xlabel("k")
    axis.set_ylabel("recall at (0.15, 10⁻⁶)")
    axis.set_ylim(-0.02, 1.03)
    axis.grid(alpha=0.3)
    axis.legend()


def _write(names, sizes, found, exact, runs) -> str:  # type: ignore[no-untyped-def]
    least = math.floor(min(exact.values()) * 1e5) / 1e5  # "at least" is rounded down
    seen = min(found[STABLE, k].mean for k in sizes)
    lifted = max(found[PICKED, k].mean for k in sizes if k >= 100)
    met = "met" if least >= 0.99 else "**missed**"
    verdict = (
        f"StableTopK finds at least {least:.5f} of the top k in expectation (exact law; least "
        f"mean of {runs} runs {seen:.3f}) for every k tried from {sizes[0]} to {sizes[-1]}; wanted "
        f".99: {met}. As the paper runs them, EM {_course(sizes, found, PRINTED_EM)}, and TS "
        f"{_course(sizes, found, SPLIT)}. With the optimal "
        f"accountant EM finds at most {lifted:.3f} from k = 100 on; TS that is told k and spends "
        f"all of ε on the gap keeps {min(found[WHOLE, k].mean for k in sizes):.2f}."
    )
    table = [[k, f"{exact[k]:.6f}", *(str(found[name, k]) for name in names)] for k in sizes]
    return write_page(
        NAME,
        TITLE,
        verdict,
        "Printed in Zhu & Wang 2022: StableTopK near 1 for all k; EM-CDP and TS fall with k (a "
        "picture, no numbers). EM-CDP is picks by the exponential mechanism, accounted for by "
        "concentrated privacy (CDP); TS is the top stable set, which is named if the gap after it "
        "passes a test.",
        markdown(["k", "StableTopK, exact", *names], table),
        "Recall is the share of the true top k that is named. "
        f"15,000 items, {HEIGHT} people for each of the first k, 0 for the others, "
        f"(0.15, 10⁻⁶), {runs} runs (TS at most 20,000/k), ± is the half width of the 95% "
        f"interval; ± 0.000 means that all runs agreed. StableTopK looks for the drop among k̄ = "
        f"{K_BAR} places without being told k, with a tenth of δ for its test and the optimal "
        "accountant for its choice and its test.",
        "Differences. The paper's EM-CDP is calibrated by zCDP with ρ + 2√(ρ ln(1/δ)); the optimal "
        "accountant makes it better but does not stop its fall, since the noise of k picks grows "
        "like √k. TS falls in the paper's form because half of ε goes to the picks that replace a "
        "failed test: the threshold then lies near 700 and rises with ln k. Told k (k̄ = k, nothing "
        "to refine) it keeps all of ε and passes like StableTopK: the weakness is the split and "
        "not the test. What EM names at random among 15,000 items is k/15,000 of the top k: a "
        "tenth at k = 1500, so that recall rises again there.",
    )


def _course(sizes, found, name) -> str:  # type: ignore[no-untyped-def]
    """From the first k to the lowest point, and from there to the last k."""
    means = {k: found[name, k].mean for k in sizes}
    lowest, last = min(means, key=means.__getitem__), sizes[-1]
    words = f"falls from {means[sizes[0]]:.3f} at k = {sizes[0]} to {means[lowest]:.3f} at k = "
    words += f"{lowest}"
    return words if lowest == last else f"{words} and has {means[last]:.3f} at k = {last}"
