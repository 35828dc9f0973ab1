"""Whoever takes a budget warns of a weak one and refuses a void one, in one wording."""

import json
import secrets
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topsecret
from command import run
from topsecret import Schedule, Series, plan, sql, top_k, top_k_by
from topsecret.errors import InvalidParameter, WeakPrivacy
from topsecret.ledger import Flexible, Ledger, Metered
from topsecret.pate import Aggregator, StableLabels
from topsecret.questions.rank_file import rank_file
from topsecret.ranking import Comparisons, counting, spectral, strength

MORE = "one person may make an answer more than 22,026 times as likely"
LARGE = f"epsilon = 20 is above 10: {MORE}"
LIKELY = "delta = 0.01 is above 0.001: that would allow publishing all rows of one in every 100"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weak")
    days = [f"2026-01-{day:02}" for day in range(1, 21)]
    events = [f"p{person},{item},{days[person % 20]}" for person in range(40) for item in "ab"]
    (folder / "events.csv").write_text("\n".join(["user,place,day", *events, ""]))
    (folder / "games.csv").write_text("\n".join(["winner,loser", *["a,b", "b,c", "c,a"] * 9, ""]))
    votes = np.zeros((2, 50, 2), dtype=bool)
    votes[:, :, 0] = True
    np.savez(folder / "votes.npz", votes=votes)
    return folder


Budget = dict[str, float]
COLUMNS: dict[str, Any] = {"item": "place", "person": "user", "k": 1}
TIMES: dict[str, Any] = {"time": "day", "every": "week", "start": "2026-01-01", "kind": "window"}
TEXT = "SELECT place, COUNT(DISTINCT user) AS n FROM events GROUP BY place ORDER BY n DESC LIMIT 1"
RULE = StableLabels(labels=2, teachers=50, selection_scale=1, test_scale=1, failure=1e-9)


def books(place: Path) -> dict[str, Any]:
    ledger = Ledger(place / f"{secrets.token_hex(8)}.db")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakPrivacy)
        ledger.open_budget("d", Flexible.of(epsilon=5000, delta=0.05), person="user")
    return {"ledger": ledger, "dataset": "d", "until": "2026-02-01"}


def games() -> Comparisons:
    return Comparisons.from_rows("abc" * 9, "bca" * 9, schedule="public")


WAYS: dict[str, Callable[[Path, Budget], Any]] = {
    "top_k": lambda at, budget: top_k(at / "events.csv", **COLUMNS, **budget),
    "top_k_by": lambda at, budget: top_k_by(
        at / "events.csv", by="day", groups=["2026-01-01", "2026-01-02"], **COLUMNS, **budget
    ),
    "sql": lambda at, budget: sql(TEXT, at / "events.csv", person="user", **budget),
    "Schedule": lambda at, budget: Schedule(
        at / "events.csv", **COLUMNS, **TIMES, **books(at), **budget
    ).shown(0),
    "Series": lambda at, budget: Series(
        at / "events.csv", **COLUMNS, **TIMES, **books(at), **budget
    ).shown(0),
    "rank_file": lambda at, budget: rank_file(
        at / "games.csv", winner="winner", loser="loser", **budget
    ),
    "strength": lambda _, budget: strength(games(), **budget),
    "spectral": lambda _, budget: spectral(games(), k=1, teleport=0.3, **budget),
    "Aggregator": lambda _, budget: Aggregator(RULE, queries=1, **budget),
    "plan": lambda _, budget: plan(k=1, **budget),
    "Flexible": lambda _, budget: Flexible.of(**budget),
    "Metered": lambda _, budget: Metered.of(queries=1, picks=1, **budget),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_warns_at_the_callers_line(way: str, place: Path) -> None:
    with pytest.warns(WeakPrivacy) as seen:
        answer = WAYS[way](place, {"epsilon": 20, "delta": 0.01})
    assert {str(one.message) for one in seen} == {f"{LARGE}; {LIKELY} people"}
    assert {one.filename for one in seen} == {__file__}
    if way in ("top_k", "sql", "rank_file", "strength"):
        assert dict(answer.receipt)["Weak"].endswith(f" is above 10: {MORE}; {LIKELY} people.")
    if way in ("top_k_by", "Schedule", "Series"):
        assert "This is weak: epsilon = " in answer.together


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_refuses_what_protects_nobody(way: str, place: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"delta=(0\.1|1/10|\d+/\d+) must be below 0\.1"):
        WAYS[way](place, {"epsilon": 1, "delta": 0.1})


@pytest.mark.parametrize("way", WAYS)
def test_the_usual_is_not_warned_of(way: str, place: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeakPrivacy)
        WAYS[way](place, {"epsilon": 10, "delta": 1e-3})


def test_a_warning_that_is_an_error_costs_nothing(place: Path, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book.db")
    budget = Flexible.of(epsilon=900, delta=1e-3)
    ledger.open_budget("games", budget, person="each comparison", adjacency="outcomes")
    ledger.open_budget("visits", Flexible.of(epsilon=900, delta=1e-3), person="user")
    pays: dict[str, Any] = {"ledger": ledger, "dataset": "visits"}
    asked = {"epsilon": 20, "until": "2026-02-01", **pays, **COLUMNS, **TIMES}
    Series(place / "events.csv", **asked)
    left = [ledger.account(name).left for name in ("games", "visits")]
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeakPrivacy)
        columns = {"winner": "winner", "loser": "loser"}
        with pytest.raises(WeakPrivacy):
            rank_file(place / "games.csv", **columns, epsilon=20, ledger=ledger, dataset="games")
        with pytest.raises(WeakPrivacy):
            top_k(place / "events.csv", **COLUMNS, epsilon=20, **pays)
        with pytest.raises(WeakPrivacy):
            Series.resume(place / "events.csv", **pays)
    assert [ledger.account(name).left for name in ("games", "visits")] == left
    assert Series.resume(place / "events.csv", **pays).run("2026-01-10").cut_short == ()


def test_counting_has_no_delta() -> None:
    with pytest.warns(WeakPrivacy, match="epsilon = 11 is above 10"):
        ranking = counting(games(), epsilon=11)
    assert "epsilon = 11 is above 10" in dict(ranking.receipt)["Weak"]


BUDGET = ("--epsilon", "20", "--delta", "0.01")
EVENTS = ("--item", "place", "--person", "user", "-k", "1")
PAYS = ("--dataset", "d", "--ledger", "book.db")
BY_WEEK = ("--time", "day", "--every", "week", "--start", "2026-01-01", "--until", "2026-02-01")
COMMANDS: dict[str, tuple[str, ...]] = {
    "budget open": ("budget", "open", "other", "--person", "user", "--ledger", "book.db"),
    "budget allow": ("budget", "allow", "d", "ann", "--ledger", "book.db"),
    "top": ("top", "events.csv", *EVENTS),
    "top --by": ("top", "events.csv", *EVENTS, "--by", "day", "--group", "2026-01-01"),
    "sql": ("sql", TEXT, "--source", "events.csv", "--person", "user"),
    "rank": ("rank", "games.csv", "--winner", "winner", "--loser", "loser"),
    "pate": ("pate", "votes.npz"),
    "plan": ("plan", "-k", "1"),
    "schedule plan": ("schedule", "plan", *BY_WEEK[2:]),
    "schedule start": ("schedule", "start", "events.csv", *EVENTS, *BY_WEEK, *PAYS),
    "series start": ("series", "start", "events.csv", *EVENTS, *BY_WEEK, *PAYS),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_it_once_on_stderr(command: str, place: Path, tmp_path: Path) -> None:
    for file in place.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    opened = run(
        *("budget", "open", "d", "--person", "user", "--epsilon", "9000", "--delta", "0.05"),
        *("--ledger", "book.db", "--accept-weak-privacy"),
        cwd=tmp_path,
    )
    assert (opened.returncode, opened.stderr) == (0, "")
    said = run(*COMMANDS[command], *BUDGET, cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    warning = f"topsecret: warning: {LARGE}; {LIKELY} people (--accept-weak-privacy silences"
    assert said.stderr == f"{warning} this)\n"
    void = run(*COMMANDS[command], "--epsilon", "1", "--delta", "0.5", cwd=tmp_path)
    assert void.returncode == 2
    assert (
        "must be below 0.1: one that allows publishing the rows of every tenth person "
        "protects nobody" in void.stderr
    )


def test_a_later_run_of_a_weak_schedule_says_it_and_can_be_silenced(
    place: Path, tmp_path: Path
) -> None:
    (tmp_path / "events.csv").write_bytes((place / "events.csv").read_bytes())
    quiet = "--accept-weak-privacy"
    pays = ("--dataset", "d", "--ledger", "book.db")
    opening = ("budget", "open", "d", "--person", "user", "--epsilon", "900", "--ledger", "book.db")
    opening += ("--delta", "0.001")
    assert run(*opening, quiet, cwd=tmp_path).returncode == 0
    for kind in ("schedule", "series"):
        words = (kind, "start", "events.csv", *EVENTS, *BY_WEEK, *pays, "--epsilon", "12")
        done = run(*words, quiet, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        words = (kind, "run", "events.csv", *pays, "--now", "2026-01-10")
        done = run(*words, cwd=tmp_path)
        assert done.stderr.count("topsecret: warning: epsilon = 12 is above 10") == 1
        done = run(*words, quiet, "--json", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")


def test_labels_in_json_say_it(place: Path) -> None:
    done = run("pate", str(place / "votes.npz"), *BUDGET, "--accept-weak-privacy", "--json")
    assert done.stderr == ""
    assert json.loads(done.stdout.splitlines()[-1])["weak"].endswith(f"{LIKELY} people")


def test_python_silences_it_by_its_class(place: Path) -> None:
    assert issubclass(topsecret.errors.WeakPrivacy, UserWarning)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", WeakPrivacy)
        top_k(place / "events.csv", **COLUMNS, epsilon=1000)
    assert seen == []
