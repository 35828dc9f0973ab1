"""The questions of the golden ledger, and the data that they were asked of.

``ledger.db`` was written by topsecret 0.1.0.dev0, with the parameters below, by ``ask_all``. It is
never written again: a version that cannot find its answers would let people pay twice.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from topsecret import Expression, top_k, top_k_by
from topsecret.ledger import Flexible, Ledger, Metered

HERE = Path(__file__).parent
WRITTEN = 1_790_000_000_000_000_000
"""When the files were written, in nanoseconds: a checkout does not keep it."""

FLEXIBLE: dict[str, dict[str, Any]] = {
    "plain": {"k": 3, "epsilon": 0.5},
    "auto": {"k": "auto", "epsilon": 0.5},
    "capped": {"k": 3, "epsilon": 0.5, "max_items": 2, "mechanism": "limited-domain"},
    "filtered": {"k": 3, "epsilon": 0.5, "where": [("country", "in", ["FR", "DE"]), "age >= '30'"]},
    "expression": {"item": Expression("lower(place)"), "k": 3, "epsilon": 0.5, "delta": 1e-7},
    "pair": {"item": ("place", "country"), "k": 2, "epsilon": 0.5, "k_bar": 30},
    "listed": {"k": 2, "epsilon": 0.5, "domain": ["park", "museum", "station"], "counts": True},
    "from a file": {"k": 2, "epsilon": 0.5, "domain": "items.txt", "counts_share": 0.4,
                    "counts": True, "mechanism": "gumbel"},
    "table": {"source": "sqlite:///shop.sqlite", "table": "visits", "k": 3, "epsilon": 0.5},
}  # fmt: skip
GROUPED: dict[str, dict[str, Any]] = {
    "disjoint": {"k": 2, "epsilon": 0.5, "disjoint": True, "max_items": 3},
    # The ledger also has overlapping groups at epsilon 0.5. Version 0.1 wrote down what its
    # calibration had given each of them and not what was asked: they are paid for again.
}


def place_data(folder: Path) -> None:
    """Copy the data, with the time at which they were written."""
    for name in ("events.csv", "items.txt", "shop.sqlite", "ledger.db"):
        if (HERE / name).exists():
            shutil.copy(HERE / name, folder / name)
            os.utime(folder / name, ns=(WRITTEN, WRITTEN))


def ask_all(ledger: Ledger) -> Iterator[tuple[str, Any]]:
    """Every question, in a folder with the data."""
    plain: dict[str, Any] = {"source": "events.csv", "item": "place", "person": "user"}
    for name, more in FLEXIBLE.items():
        yield name, top_k(**plain | more, ledger=ledger, dataset="flexible")
    for name, more in GROUPED.items():
        groups = {"by": "country", "groups": ["FR", "DE"], "ledger": ledger}
        yield name, top_k_by(**plain | groups | more, dataset="flexible")
    yield "metered", top_k(**plain, k=2, ledger=ledger, dataset="metered")


def write(folder: Path) -> None:
    """Make the ledger anew: only ever run with the version that is named above."""
    place_data(folder)
    os.chdir(folder)
    with closing(Ledger("ledger.db")) as ledger:
        ledger.open_budget("flexible", Flexible.of(epsilon=40, delta=1e-4), person="user")
        budget = Metered.of(epsilon=4, delta=1e-4, queries=3, picks=9)
        ledger.open_budget("metered", budget, person="user")
        list(ask_all(ledger))
