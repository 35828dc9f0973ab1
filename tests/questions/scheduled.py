"""One run of a schedule as a process of its own, killed at a named step: ``scheduled.py``."""

import os
import signal
import sys
from pathlib import Path

from topsecret.ledger import Ledger, publications
from topsecret.questions import schedule

STEPS = ("opening", "opened", "begin", "begun", "drawn", "stored", "shown")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def terms(folder: Path) -> dict[str, object]:
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
        "ledger": Ledger(folder / "ledger.db"),
        "dataset": "visits",
        "name": "weekly",
    }


def plant(step: str) -> None:
    """Let the process die just before or just after the step."""
    books = publications.Publications
    places = {
        "opening": (books, "open", True),
        "opened": (books, "open", False),
        "begin": (books, "begin", True),
        "begun": (books, "begin", False),
        "drawn": (schedule, "drawn", False),
        "stored": (books, "store", False),
        "shown": (schedule, "shown_list", False),
    }
    owner, name, before = places[step]
    real = getattr(owner, name)

    def dying(*given: object, **named: object) -> None:
        if not before:
            real(*given, **named)
        die()

    setattr(owner, name, dying)


if __name__ == "__main__":
    folder, step = Path(sys.argv[1]), sys.argv[2]
    if step:
        plant(step)
    asked = schedule.Schedule(str(folder / "visits.csv"), **terms(folder))  # type: ignore[arg-type]
    sys.stdout.write(asked.run("2026-01-12").to_json())
