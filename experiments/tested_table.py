"""Find the prices of TestedTopK for common budgets and write the table that the package ships.

python -m experiments.tested_table        # about three minutes
"""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path

from rich.progress import track

from topsecret.mechanisms.tested_schedule import schedule

SIZES = (1, 3, 5, 10, 20, 25, 50, 100)
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0)
DELTAS = (1e-6, 1e-8)
PATH = Path(__file__).parents[1] / "src" / "topsecret" / "mechanisms" / "tested_table.json"


def main() -> None:
    """Search every budget and write the prices."""
    rows = []
    for k, epsilon, delta in track(list(product(SIZES, EPSILONS, DELTAS))):
        found = schedule(k, Fraction(epsilon), Fraction(delta), private_length=True)
        rows.append([k, epsilon, delta, [float(length.price) for length in found.lengths]])
    lines = ",\n".join(json.dumps(row) for row in rows)
    PATH.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
