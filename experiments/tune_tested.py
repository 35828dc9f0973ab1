"""How the constants of TestedTopK were chosen: mean recall over synthetic shapes, one at a time.

    python -m experiments.tune_tested            # about five minutes, writes the table

No real data set is read. The shapes are Zipf–Mandelbrot curves c/(rank + shift)^exponent over a
grid of exponents, shifts and sizes. Prices come from the zCDP budget rather than from the optimal
accountant (the same for all variants, and a thousand times faster), and noise from NumPy: this
is a comparison of constants, not a release.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topsecret.accounting import calibrate, gaussian
from topsecret.mechanisms.tested_schedule import CONSTANTS, Constants, picks_of, sizes

RUNS = 40
SIZES = (10, 50, 100)
EPSILONS = (0.4, 1.0)
DELTA = Fraction(1, 10**6)

VARIANTS: dict[str, list[object]] = {
    "prune": [Fraction(0), Fraction(1, 10), Fraction(1, 5), Fraction(3, 10)],
    "levels": [1, 2, 4, 8, 16],
    "exponent": [1, 2, 4, 8],
    "ratio": [Fraction(7, 10), Fraction(4, 5), Fraction(17, 20), Fraction(9, 10)],
    "length_share": [Fraction(1, 20), Fraction(1, 10), Fraction(1, 5)],
    "test_share": [Fraction(1, 10), Fraction(3, 20), Fraction(1, 5), Fraction(1, 4)],
    "test_failure": [Fraction(1, 100), Fraction(1, 10), Fraction(1, 2)],
    "margin": [0, 2, 4, 6],
    "width": [5, 10, 20, 40],
}


def shapes() -> Iterator[NDArray[np.int64]]:
    """Counts over 20,000 items: exponent, shift and the largest count vary."""
    ranks = np.arange(1, 20_001)
    for exponent, shift, top in itertools.product((0.5, 0.8, 1.1), (0, 10), (500, 2000, 10_000)):
        curve = ((1 + shift) / (ranks + shift)) ** exponent
        yield np.floor(top * curve).astype(np.int64)


def recall(constants: Constants, k: int, epsilon: float, rng: np.random.Generator) -> float:
    """The mean share of the true top k over all shapes and runs."""
    failure = float(DELTA * constants.test_failure)
    mu_squared = calibrate(gaussian, epsilon, DELTA * (1 - constants.test_failure))
    sigma = 1 / math.sqrt(float(constants.test_share) * mu_squared)
    quantile = _quantile(failure)
    choice = 2 * math.sqrt(float(constants.length_share) * mu_squared)
    rest = float(1 - constants.test_share - constants.length_share) * mu_squared / 2
    lengths = []
    for size in sizes(k, constants):
        unit = picks_of(size, Fraction(1), constants)
        price = math.sqrt(rest / float(unit.branch.rho()))
        levels = [(n, price * float(e)) for n, e in unit.levels]
        lengths.append(
            (size, unit.prunes, price, levels, 1 + sigma * quantile + constants.margin / price)
        )
    total, count = 0.0, 0
    for counts in shapes():
        slots = constants.width * k
        leads = np.maximum(counts[:slots] - counts[slots], 0).astype(np.float64)
        kth = counts[k - 1] - counts[slots]
        comfort = np.array([leads[length[0] - 1] - length[4] for length in lengths])
        ahead = np.concatenate([[0.0], comfort[:-1]])
        scores = -np.maximum.reduce([np.zeros(len(comfort)), -comfort, ahead])
        for _ in range(RUNS):
            chosen = int(np.argmax(choice / 2 * scores + rng.gumbel(size=len(scores))))
            total += _run(leads, lengths[chosen], sigma, quantile, kth, rng) / k
            count += 1
    return total / count


def _run(leads, length, sigma, quantile, kth, rng) -> int:  # type: ignore[no-untyped-def]
    _, prunes, price, levels, _ = length
    left = np.ones(len(leads), dtype=bool)
    picked: list[int] = []
    for n, epsilon in levels:
        noisy = np.where(left, epsilon * leads + rng.gumbel(size=len(leads)), -np.inf)
        best = np.argpartition(-noisy, n - 1)[:n]
        left[best] = False
        picked += best.tolist()
    strengths = np.maximum(leads[picked], 1)
    drop = np.argsort(price * strengths - rng.gumbel(size=len(strengths)))[:prunes]
    kept = np.delete(leads[picked], drop)
    if kept.min() <= 0:
        return 0
    if kept.min() - 1 + sigma * rng.normal() <= sigma * quantile:
        return 0
    return int((kept >= kth).sum())


def _quantile(failure: float) -> float:
    from statistics import NormalDist

    return -NormalDist().inv_cdf(failure)


def main() -> None:
    """Vary one constant at a time and write the table."""
    rows = []
    for name, values in VARIANTS.items():
        for value in values:
            constants = replace(CONSTANTS, **{name: value})  # type: ignore[arg-type]
            rng = np.random.default_rng(11)
            cells = [recall(constants, k, e, rng) for k in SIZES for e in EPSILONS]
            rows.append(
                [name, str(value), value == getattr(CONSTANTS, name), float(np.mean(cells)), *cells]
            )
            print(*rows[-1][:4], *(f"{cell:.3f}" for cell in cells), flush=True)  # noqa: T201
    path = Path(__file__).parents[1] / "docs" / "results" / "tested-constants.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        heads = [f"k={k} epsilon={e}" for k in SIZES for e in EPSILONS]
        writer.writerow(["constant", "value", "in use", "mean recall", *heads])
        writer.writerows([row[:3] + [f"{cell:.4f}" for cell in row[3:]] for row in rows])


if __name__ == "__main__":
    main()
