"""``topsecret budget`` and ``topsecret ledger`` as their users meet them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

import command as topsecret_command
from topsecret.ledger import Ledger, Metered

METERED = Metered.of(epsilon=1, delta=1e-6, queries=4, picks=20)
Run = Callable[..., subprocess.CompletedProcess[str]]
ASK = ["--item", "place", "--person", "user", "--dataset", "checkins"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    events = ["user,place", *(f"u{n},park" for n in range(3000)), *(f"u{n},pier" for n in range(9))]
    (tmp_path / "events.csv").write_text("\n".join(events) + "\n")

    def command(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        settings = {"TOPSECRET_LEDGER": str(tmp_path / "ledger.db")} | environment
        return topsecret_command.run(*words, cwd=tmp_path, **settings)

    return command


@pytest.fixture
def opened(run: Run, tmp_path: Path) -> Run:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("checkins", METERED, person="user")
    ledger.close()
    return run


def test_an_allowance_of_nothing(opened: Run) -> None:
    said = opened("budget", "allow", "checkins", "eve", "--queries", "0", "--picks", "0").stdout
    assert said == "eve may ask nothing of checkins\n"
    asked = opened("top", "events.csv", *ASK, "-k", "2", "--analyst", "eve")
    assert asked.returncode != 0
    assert "nothing more fits" in asked.stderr
    shown = opened("budget", "show", COLUMNS="80").stdout
    assert "eve: 0 of 0 items left, 0 of 0 queries left" in shown


def test_a_metered_budget_from_opening_to_closing(run: Run) -> None:
    terms = ["--person", "user", "--epsilon", "1", "--queries", "4", "--picks", "20"]
    done = run("budget", "open", "checkins", *terms)
    assert done.stdout == (
        "checkins: epsilon 1 and delta 1e-06 for all answers from it together; "
        "20 of 20 items left, 4 of 4 queries left\n"
    ), done.stderr
    assert run("budget", "allow", "checkins", "ann", "--queries", "2", "--picks", "9").stdout == (
        "ann may ask checkins\n"
    )
    asked = run("top", "events.csv", *ASK, "-k", "5", "--analyst", "ann")
    words = " ".join(asked.stdout.split())
    assert (
        "2 items and 1 query of dataset 'checkins' (entry 3); all answers from it together, "
        "this one included: epsilon at most 1, delta at most 1e-06." in words
    )
    shown = run("budget", "show", COLUMNS="80").stdout
    assert "checkins (metered)" in shown
    assert "18 of 20 items left" in shown
    assert "3 of 4 queries left" in shown
    assert "█" in shown
    assert "ann: 7 of 9 items left, 1 of 2 queries left" in shown
    record = json.loads(run("budget", "show", "checkins", "--json").stdout)
    assert record["left"] == {"picks": "18", "queries": "3"}
    history = run("budget", "history", "checkins").stdout.splitlines()
    assert [line.split()[3] for line in history] == ["opened", "allowed", "reserved", "settled"]
    assert len(json.loads(run("budget", "history", "checkins", "--json").stdout)) == 4
    assert run("budget", "close", "checkins").stdout == "checkins: closed\n"
    assert "checkins (metered, closed)" in run("budget", "show").stdout
    checked = run("ledger", "check")
    assert checked.returncode == 0
    assert "5 entries checked: all is as it was written" in checked.stdout


def test_a_flexible_budget(run: Run) -> None:
    opened = run("budget", "open", "checkins", "--person", "user", "--epsilon", "1").stdout
    assert opened == (
        "checkins: epsilon 1 and delta 1e-06 for all answers from it together; "
        "nothing is used yet\n"
    )
    run("budget", "allow", "checkins", "ann", "--epsilon", "0.5")
    asked = run("top", "events.csv", *ASK, "--epsilon", ".3", "--delta", "1e-7", "--analyst", "ann")
    assert asked.returncode == 0, asked.stderr
    shown = run("budget", "show", "checkins").stdout
    assert "checkins (flexible)" in shown
    assert re.search(r"for epsilon \(rho\): [\d.]+% left", shown)
    assert re.search(r"ann: [\d.]+% of the budget left \(rho 0\.0", shown)
    again = run("top", "events.csv", *ASK, "--epsilon", ".9", "--delta", "1e-7", "--analyst", "ann")
    assert again.returncode == 2
    assert "the largest epsilon that fits is 0." in again.stderr


def test_the_command_that_receipts_recommend_is_enough(run: Run) -> None:
    """No delta is given, neither to the budget nor to the questions; epsilon runs out first."""
    run("budget", "open", "checkins", "--person", "user", "--epsilon", "1")
    for where in ("ann", "ben", "cid"):
        question = [*ASK, "--epsilon", ".4", "--where", f"user <> '{where}'"]
        asked = run("top", "events.csv", *question)
        assert asked.returncode == 0, asked.stderr
    assert re.search(r"[\d.]+% of the budget of dataset 'checkins'", " ".join(asked.stdout.split()))
    left = json.loads(run("budget", "show", "checkins", "--json").stdout)
    parts = {
        name: Fraction(left["left"][name]) / Fraction(left["limits"][name])
        for name in ("rho", "delta")
    }
    assert parts["rho"] < parts["delta"] < 1


def test_a_reservation_in_doubt_is_listed_and_written_off(opened: Run, tmp_path: Path) -> None:
    code = (
        "import os; from topsecret import top_k; from topsecret.ledger import Ledger\n"
        "class Crash:\n"
        "    name = 'crash'\n"
        "    def leading_counts(self, query): os._exit(1)\n"
        "top_k(Crash(), item='place', person='user', k=5, ledger=Ledger(), dataset='checkins')\n"
    )
    ledger = str(tmp_path / "ledger.db")
    subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"TOPSECRET_LEDGER": ledger}, check=False
    )
    (pending,) = json.loads(opened("budget", "show", "checkins", "--json").stdout)["in_doubt"]
    shown = opened("budget", "show", COLUMNS="120").stdout
    assert f"in doubt or under way: {pending['reservation']}" in shown
    assert "5 items and 1 query" in shown
    assert "15 of 20 items left" in shown
    assert opened("budget", "write-off", pending["reservation"]).returncode == 0
    assert "20 of 20 items left" in opened("budget", "show").stdout


def test_a_tampered_ledger_is_told_with_its_position(opened: Run, tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'ledger.db'}")
    with engine.begin() as connection:
        connection.execute(text("DROP TRIGGER entries_no_update"))
        connection.execute(text("UPDATE entries SET time = '2020-01-01'"))
    engine.dispose()
    checked = opened("ledger", "check")
    assert checked.returncode == 1
    assert (
        "FAULT: dataset 'checkins', entry 1: it was changed: "
        "its hash is not that of its content\n" in checked.stdout
    )
    assert json.loads(opened("ledger", "check", "--json").stdout)["faults"][0]["position"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["budget", "show", "none"], "dataset 'none' has no budget; open one with"),
        (
            ["budget", "open", "x", "--person", "user", "--epsilon", "1", "--picks", "5"],
            "a metered budget needs both --queries and --picks",
        ),
        (["budget", "allow", "checkins", "ann"], "a share of a metered budget needs --queries an"),
        (["top", "events.csv", *ASK, "--epsilon", "1"], "epsilon=1.0 must be left out"),
        (["top", "events.csv", *ASK, "-k", "30"], "the query may need 30 items, and dataset"),
        (["top", "events.csv", "--item", "place", "--person", "user"], "epsilon is missing; 1 is"),
        (["budget", "write-off", "abc"], "there is no reservation 'abc'"),
        (
            ["budget", "show", "--ledger", "events.csv"],
            "the ledger ",
        ),
    ],
)
def test_a_mistake_is_one_line(opened: Run, words: list[str], message: str) -> None:
    done = opened(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"topsecret: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_every_width(opened: Run, columns: str) -> None:
    for words in (["budget", "show"], ["budget", "--help"], ["budget", "open", "--help"]):
        lines = opened(*words, COLUMNS=columns).stdout.splitlines()
        assert max(len(line) for line in lines) <= int(columns)


def test_no_budget_yet(run: Run) -> None:
    assert run("budget", "show").stdout == "no budget is open; topsecret budget open opens one\n"
