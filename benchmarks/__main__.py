"""Run every benchmark, or those named: ``python -m benchmarks query``."""

from __future__ import annotations

import importlib
import sys

from rich.console import Console
from rich.table import Table

# Each module has run() -> list[Row].
MODULES = ["accounting", "selection", "pure", "query", "ledger", "applications", "service"]


def main() -> None:
    table = Table("what", "ours", "peer", "ratio", "target", "ok")
    for name in sys.argv[1:] or MODULES:
        for row in importlib.import_module(f"benchmarks.{name}").run():
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
