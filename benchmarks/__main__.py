"""Run every benchmark, or those named: ``python -m benchmarks query``."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

from rich.console import Console
from rich.table import Table

from benchmarks.row import measured

# Each module has run() -> list[Row].
MODULES = [
    "start",
    "accounting",
    "selection",
    "pure",
    "query",
    "weighted",
    "pasted_sql",
    "ledger",
    "series",
    "applications",
    "service",
    "service_load",
]


def main() -> None:
    table = Table("what", "ours", "peer", "ratio", "target", "ok")
    fresh = multiprocessing.get_context("spawn")  # what one holds in memory is not the next one's
    for name in sys.argv[1:] or MODULES:
        with ProcessPoolExecutor(1, mp_context=fresh) as process:
            rows = process.submit(measured, name).result()
        for row in rows:
            table.add_row(
                row.what,
                f"{row.ours:.3g} s",
                f"{row.peer:.3g} s",
                f"{row.ratio:.3g}",
                f"≤ {row.target:g}",
                "yes" if row.met else "NO",
            )
    Console().print(table)


if __name__ == "__main__":
    main()
