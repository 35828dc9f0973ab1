"""``topsecret series`` as cron meets it."""

import json
from pathlib import Path
from typing import Any

from command import run
from topsecret.ledger import Flexible, Ledger


def test_the_commands_of_cron(tmp_path: Path) -> None:
    rows = "".join(f"2026-01-06,u{person},p\n" for person in range(300))
    (tmp_path / "visits.csv").write_text("day,user,place\n" + rows)
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("visits", Flexible.of(epsilon=9, delta=1e-3), person="user")
    here: Any = {"cwd": tmp_path, "TOPSECRET_LEDGER": str(tmp_path / "ledger.db")}
    words: str = "--item place --person user --time day --every week --start 2026-01-05"
    words += " --until 2026-02-01 -k 2 --epsilon 4 --delta 1e-4 --dataset visits --max-counts 3"
    started = run("series", "start", "visits.csv", *words.split(), **here)
    assert started.returncode == 0, started.stderr
    assert "4 periods, a list after each; every person has 3 counts for life" in started.stdout
    assert "rests on: the noise is computed from a secret key" in started.stdout
    again = ["series", "run", "visits.csv", "--dataset", "visits", "--now", "2026-01-28"]
    ran = run(*again, "--json", **here)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert (told["drawn_for"], told["release"]["items"]) == (3, ["p"])
    assert run(*again, "--json", **here).stdout == ran.stdout
    shown = run(*again, **here)
    assert shown.returncode == 0
    assert "period 3 of 4" in shown.stdout
    (tmp_path / "visits.csv").unlink()
    gone = run("series", "run", "visits.csv", "--dataset", "visits", "--now", "2026-02-28", **here)
    assert gone.returncode == 2
    assert gone.stdout == ""
    state = run(*["series", "status", "--dataset", "visits"], **here)
    assert state.stdout.startswith("series: 4 periods, 1 list\n")
    assert "period    3, rows until before 2026-01-26: drawn" in state.stdout
    other = run("schedule", "run", "visits.csv", "--dataset", "visits", "--name", "series", **here)
    assert other.returncode == 2
    assert "no schedule of this version" in other.stderr
