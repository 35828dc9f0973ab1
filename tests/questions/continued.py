"""Runs of a series as processes of their own, each killed at another step: ``continued.py``."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from topsecret.ledger import Ledger, contributions, publications
from topsecret.questions import series

STEPS = {
    "opening": (publications.Publications, "open", True),
    "opened": (publications.Publications, "open", False),
    "begin": (publications.Publications, "begin", True),
    "begun": (publications.Publications, "begin", False),
    "read": (series.Series, "_found", False),
    "sealing": (contributions.Contributions, "_write", False),
    "sealed": (contributions.Contributions, "seal", False),
    "drawn": (series, "drawn_values", False),
    "storing": (publications.Publications, "_move", False),
    "stored": (publications.Publications, "store", False),
    "shown": (series, "shown_list", False),
}
"""Where a run may end, and whether before the step or after it."""


def terms(folder: Path) -> dict[str, Any]:
    return {
        "item": "place",
        "person": "user",
        "time": "day",
        "every": "week",
        "start": "2026-01-05",
        "until": "2026-02-01",
        "k": 2,
        "epsilon": 4.0,
        "delta": 1e-4,
        "max_counts": 3,
        "ledger": Ledger(folder / "ledger.db"),
        "dataset": "visits",
        "name": "weekly",
    }


def ending(step: str, end: Callable[[], None]) -> tuple[Any, str, Any]:
    """The step, ended: whose it is, its name, and what stands in for it."""
    owner, name, before = STEPS[step]
    real = getattr(owner, name)

    def stand_in(*given: object, **named: object) -> object:
        if before:
            end()
        result = real(*given, **named)
        end()
        return result

    return owner, name, stand_in


def kill_at(folder: Path, step: str) -> int:
    """How a process ends that runs the first period in ``folder`` and is killed at the step."""
    child = os.fork()
    if child == 0:
        try:
            setattr(*ending(step, lambda: os.kill(os.getpid(), signal.SIGKILL)))
            begun = series.Series(str(folder / "visits.csv"), **terms(folder))
            (folder / "shown").write_text(begun.run("2026-01-12").to_json())
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    for step in STEPS:  # one process for each: starting Python again for each takes longer
        sys.stdout.write(f"{step} {kill_at(Path(sys.argv[1]) / step, step)}\n")
        sys.stdout.flush()
