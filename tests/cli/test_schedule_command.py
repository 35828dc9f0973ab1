"""``topsecret schedule`` as cron meets it."""

import json
from pathlib import Path
from typing import Any

from command import run
from topsecret.ledger import Flexible, Ledger
from topsecret.ledger.publications import Publications


def test_the_commands_of_cron(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("day,user,place\n" + "2026-01-06,u,p\n")
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("visits", Flexible.of(epsilon=9, delta=1e-3), person="user")
    here: Any = {"cwd": tmp_path, "TOPSECRET_LEDGER": str(tmp_path / "ledger.db")}
    words: str = "--item place --person user --time day --every week --start 2026-01-05"
    words += " --until 2026-02-01 -k 2 --epsilon 4 --delta 1e-4 --dataset visits"
    started = run("schedule", "start", "visits.csv", *words.split(), **here)
    assert started.returncode == 0, started.stderr
    assert "4 periods, 3 lists, held in between" in started.stdout
    ran = run(
        *["schedule", "run", "visits.csv", "--dataset", "visits", "--now", "2026-01-28", "--json"],
        **here,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["drawn_for"] == 2
    books = Publications(ledger)
    publication = books.find("visits", "schedule")
    assert publication is not None
    books.begin(publication, 4)
    late = run(
        *["schedule", "run", "visits.csv", "--dataset", "visits", "--now", "2026-02-28"], **here
    )
    assert late.returncode == 1
    assert "the list of period 4 was cut short" in late.stderr
    state = run(*["schedule", "status", "--dataset", "visits"], **here)
    assert "under way or cut short" in state.stdout
    off = run(*["schedule", "write-off", "4", "--dataset", "visits"], **here)
    assert off.returncode == 0, off.stderr
