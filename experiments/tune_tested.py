"""How the constants of TestedTopK were chosen: mean recall over synthetic shapes, one at a time.

    python -m experiments.tune_tested            # about ten minutes, writes the table

No real dataset is read. The shapes are Zipf–Mandelbrot curves c/(rank + shift)^exponent over a
grid of exponents, shifts and sizes. Prices come from the closed form alone (the same for all
variants), and noise from NumPy: this is a comparison of constants, not a release.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.tested_simulation import Seen, simulate
from topsecret.mechanisms.tested_prices import rough_price_of
from topsecret.mechanisms.tested_schedule import CONSTANTS, Constants, default_k_bar, planned

SIZES = (3, 10, 50, 100, 200, 1000)
EPSILONS = (0.1, 0.4, 1.0)
DELTA = Fraction(1, 10**6)


def _shares(*shares: float) -> tuple[Fraction, ...]:
    return tuple(Fraction(share).limit_denominator(100) for share in shares)


VARIANTS: dict[str, list[object]] = {
    "prune": [Fraction(0), Fraction(1, 10), Fraction(1, 5), Fraction(3, 10)],
    "lists": [
        _shares(1),
        _shares(1, 0.6),
        _shares(1, 0.7, 0.4),
        _shares(1, 0.75, 0.5, 0.3),
        _shares(1, 0.6, 0.3, 0.1),
    ],
    "later": [Fraction(1, 4), Fraction(1, 2), Fraction(1)],
    "ratio": [Fraction(4, 5), Fraction(17, 20), Fraction(9, 10)],
    "length_share": [Fraction(1, 20), Fraction(1, 10), Fraction(3, 20)],
    "test_share": [Fraction(3, 20), Fraction(22, 100), Fraction(3, 10)],
    "test_failure": [Fraction(1, 10), Fraction(1, 5), Fraction(2, 5)],
    "test_ease": [Fraction(0), Fraction(2, 5), Fraction(4, 5)],
    "margin": [Fraction(2), Fraction(3), Fraction(4)],
    "margin_growth": [Fraction(0), Fraction(2, 5), Fraction(4, 5)],
}


def shapes() -> Iterator[NDArray[np.int64]]:
    """Counts over 20,000 items: exponent, shift and the largest count vary."""
    ranks = np.arange(1, 20_001)
    for exponent, shift, top in itertools.product((0.5, 0.8, 1.1), (0, 10), (500, 2000, 10_000)):
        curve = ((1 + shift) / (ranks + shift)) ** exponent
        yield np.floor(top * curve).astype(np.int64)


def look(constants: Constants, k: int, epsilon: float, runs: int) -> list[Seen]:
    """The answers on all shapes."""
    schedule = planned(k, Fraction(epsilon), DELTA, True, rough_price_of, constants)
    rng = np.random.default_rng(11)
    return [simulate(schedule, counts, default_k_bar(k), k, runs, rng) for counts in shapes()]


def main() -> None:
    """Vary one constant at a time and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(VARIANTS))
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    rows = []
    for name in options.names:
        for value in VARIANTS[name]:
            constants = replace(CONSTANTS, **{name: value})  # type: ignore[arg-type]
            seen = {
                (k, epsilon): look(constants, k, epsilon, options.runs)
                for k, epsilon in itertools.product(SIZES, EPSILONS)
            }
            recalls = [
                float(np.mean([s.recall for e in EPSILONS for s in seen[k, e]])) for k in SIZES
            ]
            empty = float(np.mean([s.empty for cell in seen.values() for s in cell]))
            shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            used = value == getattr(CONSTANTS, name)
            rows.append([name, shown, used, float(np.mean(recalls)), *recalls, empty])
            print(*rows[-1][:3], *(f"{cell:.3f}" for cell in rows[-1][3:]), flush=True)  # noqa: T201
    path = Path(__file__).parents[1] / "docs" / "results" / "tested-constants.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        head = ["constant", "value", "in use", "mean recall", *(f"k={k}" for k in SIZES), "empty"]
        writer.writerow(head)
        writer.writerows([*row[:3], *(f"{cell:.4f}" for cell in row[3:])] for row in rows)


if __name__ == "__main__":
    main()
