"""Questions at set times: paid in advance, asked once, made up for when they were missed."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from serving import PATIENCE, PLACES, Here, here, write_events
from sqlalchemy import event, select, update
from test_crash import SOAK
from test_ending import until
from test_files_that_change import meanwhile
from test_teams import browser, post

from topsecret.errors import InvalidParameter
from topsecret.ledger.store import Store
from topsecret.service import notices, schedules
from topsecret.service.jobs import worker
from topsecret.service.jobs.job import Asked
from topsecret.service.notices import Notices, words_of
from topsecret.service.schedule import Schedule, run_times
from topsecret.service.schedules import Schedules
from topsecret.service.schema import JOBS, RUNS
from topsecret.service.state import Parts

SAVED = "/api/v1/saved"
DAY = 86400.0


@pytest.fixture
def quiet(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Here]:
    """A service that looks at its schedules when the test says so."""
    monkeypatch.setattr(worker, "BEAT", 3600.0)
    postgres = getattr(request, "param", "sqlite") == "postgres"
    place = request.getfixturevalue("postgres_url") if postgres else ""
    with here(tmp_path, database=place, tick=0.01) as made:
        body = {"dataset": "metered", "question": {"column": "place", "k": 2}}
        assert made.call("bob", "PUT", f"{SAVED}/weekly", body).status_code == 200
        yield made


def later(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    now = time.time() + DAY * days
    monkeypatch.setattr(schedules, "time", SimpleNamespace(time=lambda: now))


def spent(service: Here, dataset: str = "metered") -> tuple[int, int]:
    account = service.parts.ledger.account(dataset)
    assert service.parts.ledger.check().faults == ()
    return int(account.spent.get("picks", 0)), int(account.spent.get("queries", 0))


def tended(service: Here) -> dict[str, Any]:
    """Look at the schedules until nothing is under way; the newest of bob's."""
    found = service.parts.schedules

    def done() -> bool:
        found.tend(service.parts.desk.worker)
        return all(run.state != "asked" for run in found.of_user("bob")[0].runs)

    until(done)
    (first, *_) = service.call("bob", "GET", "/api/v1/schedules").json()
    return dict(first)


def states(schedule: dict[str, Any]) -> list[str]:
    return [run["state"] for run in schedule["runs"]]


@pytest.mark.parametrize("quiet", ["sqlite", "postgres"], indirect=True)
def test_runs_are_paid_in_advance_and_asked_at_their_times(
    quiet: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{SAVED}/weekly/schedule"
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    refused = quiet.call("bob", "POST", path, {"times": 6, "start": tomorrow})
    assert (refused.status_code, refused.json()["error"]) == (409, "budget_exceeded")
    assert refused.json()["message"].endswith("It fits 5 times.")
    assert (spent(quiet), quiet.parts.schedules.of_user("bob")) == ((0, 0), [])
    body = {"times": 3, "start": tomorrow, "request_id": "mine"}
    made = quiet.call("bob", "POST", path, body)
    assert (made.status_code, states(made.json())) == (201, ["waiting"] * 3)
    # Sent again, as after a reply that was lost, it is the same schedule.
    again = quiet.call("bob", "POST", path, body)
    assert (again.status_code, again.json()) == (200, made.json())
    assert quiet.call("bob", "POST", path, body | {"times": 2}).json()["error"] == "request_id_used"
    assert spent(quiet) == (6, 3)
    quiet.parts.schedules.tend(quiet.parts.desk.worker)
    assert states(quiet.call("bob", "GET", "/api/v1/schedules").json()[0]) == ["waiting"] * 3
    later(monkeypatch, 1.1)
    found = tended(quiet)
    assert states(found) == ["ended", "waiting", "waiting"]
    job = quiet.ended("bob", found["runs"][0]["answer"])
    assert (job["state"], len(job["answer"]["items"])) == ("answered", 2)
    assert spent(quiet) == (6, 3)
    # The data are as they were: the stored answer is shown, and its payment is given back.
    later(monkeypatch, 8.1)
    found = tended(quiet)
    assert states(found) == ["ended", "ended", "waiting"]
    again = quiet.ended("bob", found["runs"][1]["answer"])
    assert again["answer"]["items"] == job["answer"]["items"]
    assert spent(quiet) == (4, 2)
    # New data are a new question, which was paid for.
    write_events(quiet.parts.settings.files[0] / "events.csv", PLACES | {"Pier": 2000})
    later(monkeypatch, 15.1)
    found = tended(quiet)
    assert states(found) == ["ended"] * 3
    last = quiet.ended("bob", found["runs"][2]["answer"])
    assert last["answer"]["items"][0] == "Pier"
    assert spent(quiet) == (4, 2)
    assert quiet.parts.ledger.account("metered").held == ()
    assert quiet.call("bob", "DELETE", f"/api/v1/schedules/{found['id']}").status_code == 200
    assert quiet.call("bob", "DELETE", f"/api/v1/schedules/{found['id']}").status_code == 404
    # What has nothing to come is also forgotten some days after its last time.
    later(monkeypatch, 0)
    quiet.call("bob", "POST", path, {"times": 1, "start": tomorrow})
    listed = quiet.parts.schedules
    (soon,) = listed.of_user("bob")
    listed.forget(-2)
    listed.end(soon.id)
    listed.forget(0)
    assert [run.state for one in listed.of_user("bob") for run in one.runs] == ["given up"]
    listed.forget(-2)
    assert listed.of_user("bob") == []


def test_what_was_missed_or_cannot_be_asked_is_given_back(
    quiet: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state = f"{SAVED}/weekly/schedule", "/api/v1/datasets/metered/state"
    quiet.call("bob", "POST", path, {"times": 5, "every": "day"})
    assert spent(quiet) == (10, 5)
    later(monkeypatch, 2.5)  # the service was down for two days
    found = tended(quiet)
    assert states(found) == ["skipped", "skipped", "ended", "waiting", "waiting"]
    assert spent(quiet) == (6, 3)
    quiet.call("olga", "POST", state, {"state": "paused"})
    later(monkeypatch, 3.5)
    found = tended(quiet)
    assert states(found)[3:] == ["refused", "waiting"]
    assert "paused" in found["runs"][3]["message"]
    assert spent(quiet) == (4, 2)
    quiet.call("olga", "POST", state, {"state": "open"})
    # Another's schedule is another's; an owner of the dataset sees and ends it.
    end = f"/api/v1/schedules/{found['id']}"
    assert quiet.call("ann", "DELETE", end).status_code == 404
    assert quiet.call("ann", "GET", "/api/v1/schedules?dataset=metered").json() == []
    # Neither a viewer nor an owner's key that may only ask is enough for that.
    quiet.parts.roles.give("metered", "ann", "viewer")
    quiet.keys["asks"] = quiet.parts.accounts.new_key("olga", "asks", "ask")
    for who in ("ann", "asks"):
        assert quiet.call(who, "DELETE", end).status_code == 404
    (listed,) = quiet.call("olga", "GET", "/api/v1/schedules?dataset=metered").json()
    assert (listed["account"], listed["words"]) == ("bob", "Top 2 of place")
    assert "every day" in quiet.call("olga", "GET", "/owner/datasets/metered").text
    with browser(quiet, "olga") as client:
        page = f"/saved/schedules/{found['id']}/end"
        assert post(client, "/owner/datasets/metered", page).headers["location"][:7] == "/owner/"
    assert spent(quiet) == (2, 1)
    # A run in doubt ends once an owner has written it off.
    parts = quiet.parts
    with monkeypatch.context() as patch:
        patch.setattr(parts.schedules, "_submit", lambda *_: None)
        made = quiet.call("bob", "POST", path, {"times": 1}).json()
        later(monkeypatch, 0)
        parts.schedules.tend(parts.desk.worker)
        answer = JOBS.c.id == parts.schedules.get(made["id"]).runs[0].answer
        with parts.store.writing() as connection:
            connection.execute(update(JOBS).where(answer).values(state="in-doubt", shown=1.0))
        patch.setattr(parts.ledger, "requested", lambda *_: True)
        parts.schedules.tend(parts.desk.worker)
        assert parts.schedules.get(made["id"]).runs[0].state == "asked"
    parts.schedules.tend(parts.desk.worker)
    (run,) = parts.schedules.get(made["id"]).runs
    assert (run.state, run.message) == (
        "ended",
        "It was cut short, and an owner has written it off.",
    )
    assert spent(quiet) == (2, 1)
    # A deleted account asks nothing more, also where it was deleted a moment before its time.
    made = quiet.call("bob", "POST", path, {"times": 2, "every": "day"}).json()
    later(monkeypatch, 0)
    quiet.parts.accounts.deactivate("bob")
    quiet.parts.schedules.tend(quiet.parts.desk.worker)
    assert quiet.parts.schedules.get(made["id"]).runs[0].state == "refused"
    quiet.parts.schedules.end_all("bob")
    assert quiet.parts.schedules.get(made["id"]).runs[1].state == "given up"
    assert spent(quiet) == (2, 1)


@pytest.mark.parametrize("forgotten", ["schedule", "everything"])
def test_a_forgotten_schedule_is_not_begun_again(
    quiet: Here, monkeypatch: pytest.MonkeyPatch, forgotten: str
) -> None:
    """Its run showed the first one's answer, about data that had changed, or failed."""
    path, body = f"{SAVED}/weekly/schedule", {"times": 1, "request_id": "mine"}
    assert quiet.call("bob", "POST", path, body).status_code == 201
    later(monkeypatch, 0.1)
    assert states(tended(quiet)) == ["ended"]
    quiet.parts.schedules.forget(-2)
    if forgotten == "everything":
        assert quiet.parts.jobs.forget(-2) == 1
    write_events(quiet.parts.settings.files[0] / "events.csv", PLACES | {"Pier": 2000})
    again = quiet.call("bob", "POST", path, body)
    assert (again.status_code, again.json()["error"]) == (409, "request_id_used")
    assert "forgotten by now" in again.json()["message"]
    assert (spent(quiet), quiet.parts.schedules.of_user("bob")) == ((2, 1), [])
    assert quiet.call("bob", "POST", path, body | {"request_id": "next"}).status_code == 201
    assert quiet.parts.ledger.account("metered").held != ()
    assert tended(quiet)["runs"][0]["state"] == "ended"
    assert spent(quiet) == (4, 2)


def test_a_run_that_may_not_be_asked_any_more_is_given_back(
    quiet: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it was reserved already, and waited for an engine."""
    quiet.call("bob", "POST", f"{SAVED}/weekly/schedule", {"times": 1})
    later(monkeypatch, 0.1)
    with meanwhile(lambda: quiet.parts.life.move("metered", "paused")):
        found = tended(quiet)
    assert states(found) == ["ended"]
    job = quiet.ended("bob", found["runs"][0]["answer"])
    assert (job["state"], "paused this dataset" in job["message"]) == ("refused", True)
    assert spent(quiet) == (0, 0)
    assert quiet.parts.ledger.account("metered").held == ()


def test_a_service_that_stops_holds_what_was_paid_in_advance(
    quiet: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question is given back where it waits for an engine, and nobody spends it meanwhile."""
    parts = quiet.parts
    for number in range(parts.settings.engines):
        parts.jobs._turns.counting.take(f"somebody {number}")
    quiet.call("bob", "POST", f"{SAVED}/weekly/schedule", {"times": 1})
    before = parts.ledger.account("metered").held
    later(monkeypatch, 0)
    parts.schedules.tend(parts.desk.worker)
    until(lambda: parts.ledger.account("metered").pending)
    moved: list[tuple[str, Any]] = []

    def note(_connection: object, _cursor: object, statement: str, given: Any, *_: object) -> None:
        if statement.startswith("UPDATE service_jobs SET held"):
            moved.append((f"EXPLAIN QUERY PLAN {statement}", given))

    event.listen(parts.ledger._store._engine, "before_cursor_execute", note)
    try:
        assert parts.desk.close(PATIENCE)
    finally:
        event.remove(parts.ledger._store._engine, "before_cursor_execute", note)
    # The ledger is locked meanwhile: SQLite must not go through all answers for it.
    ((explained, given),) = moved
    with parts.store.reading() as connection:
        ((*_, plan),) = connection.exec_driver_sql(explained, given)
    assert plan.endswith("sqlite_autoindex_service_jobs_1 (id=?)")
    (held,) = parts.ledger.account("metered").held
    assert held.id != before[0].id
    with parts.store.reading() as connection:
        found = [connection.execute(select(one.c.held)).scalar_one() for one in (RUNS, JOBS)]
    assert found == [held.id, held.id]
    assert spent(quiet) == (2, 1)


@contextmanager
def killed(at: int, after: bool) -> Iterator[list[int]]:
    """The process dies before, or just after, its transaction of this number."""
    real, seen = Store.writing, [0]

    @contextmanager
    def writing(store: Store) -> Iterator[Any]:
        seen[0] += 1
        mine = seen[0] == at
        if mine and not after:
            raise KeyboardInterrupt
        with real(store) as connection:
            yield connection
        if mine:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "writing", writing)
        yield seen


def _shown(found: Schedules, parts: Parts, schedule: str) -> bool:
    (run,) = found.get(schedule).runs
    return parts.jobs.find(str(run.answer)).state != "working"


@pytest.mark.parametrize("quiet", ["sqlite", "postgres"] if SOAK else ["sqlite"], indirect=True)
def test_killed_anywhere_nothing_is_spent_twice(
    quiet: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topsecret.ledger.ledger.WAIT", -DAY)
    parts = quiet.parts
    told: list[object] = []
    found = Schedules(
        parts.store,
        parts.ledger,
        parts.jobs,
        check=lambda *_: None,
        submit=lambda job, *_: parts.jobs.run(job),  # type: ignore[arg-type,return-value]
        lane=lambda _: "",
        tell=told.append,
    )
    cost = {"rho": Fraction(1, 10**4), "delta": Fraction(1, 10**9), "slack": Fraction(1, 10**7)}
    made: list[tuple[Schedule, float]] = []
    outcomes: list[str] = []
    for after in (False, True):
        number = 0
        while True:
            number += 1
            epsilon = 0.01 + number / 10**4 + (0.005 if after else 0)
            asked, now = Asked("place", 1, epsilon), datetime.now(UTC)
            times = run_times(now, "day", 1, now)
            one, _ = found.begin("bob", "x", "events", asked, cost=cost, times=times, every="day")
            made.append((one, epsilon))
            with killed(number, after) as seen, suppress(KeyboardInterrupt):
                found.tend("me")  # asks, and answers at once
                until(lambda job=one.id: _shown(found, parts, job))  # type: ignore[misc]
                found.tend("me")
            last = seen[0] < number

            def taken_over(identity: str = one.id) -> bool:
                for job, *_ in parts.jobs.take_over("other", ()):
                    parts.jobs.run(job)
                found.tend("other")
                (run,) = found.get(identity).runs
                became = "" if run.answer is None else parts.jobs.find(run.answer).state
                return run.state == "ended" or became == "in-doubt"

            until(taken_over)  # by the next process
            outcomes.append(found.get(one.id).runs[0].state)
            if last:
                break
    entries = parts.ledger.history("events")
    for one, epsilon in made:
        (run,) = found.get(one.id).runs
        asked_for = [e for e in entries if e.event == "reserved" and f":{epsilon}" in e.body]
        assert len(asked_for) == 1  # paid for once
        job = parts.jobs.find(str(run.answer))
        assert (run.state, job.state) in (("ended", "answered"), ("asked", "in-doubt"))
    assert len(parts.jobs.history("bob", "events", 1000)) == len(made)  # and asked once
    account = parts.ledger.account("events")
    assert account.held == ()
    assert len(account.pending) == outcomes.count("asked") > 0
    # Whoever dies between the note and the notice tells nobody; nobody is told twice.
    assert len(told) == outcomes.count("ended") - 1 > len(account.pending)
    assert parts.ledger.check().faults == ()


def test_the_page_found_and_says_what_is_wrong(
    quiet: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = {"every": "week", "times": "2", "start": "", "request_id": "one"}
    to = "/saved/weekly/schedule"
    with browser(quiet, "bob") as client:
        for change, words in (
            ({"times": "many"}, "Write a number of times"),
            ({"start": "soon"}, "Write a number of times"),
            ({"times": "101"}, "1 to 100 times"),
            ({"every": "year"}, "every day, week, month"),
            ({"start": "2020-01-01T00:00"}, "within a year from now"),
            ({"times": "9"}, "It fits 5 times."),
        ):
            wrong = post(client, to, to, **(form | change))
            assert (wrong.status_code in (400, 409), words in wrong.text) == (True, True), words
        assert "it fits 5 times into what is left" in client.get(to).text
        for _ in range(2):  # a double click
            assert post(client, to, to, **form).status_code == 303
        assert "used for another" in post(client, to, to, **(form | {"times": "1"})).text
        assert "it fits 3 times into what is left" in client.get(to).text
        assert "2 of 2 to come" in client.get("/saved").text
        monkeypatch.setattr(schedules, "MOST_WAITING", 1)
        assert "end one first" in post(client, to, to, **(form | {"request_id": "two"})).text
        assert spent(quiet) == (4, 2)
        (one,) = quiet.parts.schedules.of_user("bob")
        assert post(client, "/saved", f"/saved/schedules/{one.id}/end").status_code == 303
        assert "nothing to come" in client.get("/saved").text
        assert spent(quiet) == (0, 0)
        assert post(client, "/saved", f"/saved/schedules/{one.id}/end").status_code == 303
        assert quiet.parts.schedules.of_user("bob") == []


def test_months_begin_on_days_that_all_of_them_have() -> None:
    start = datetime(2026, 12, 28, 7, tzinfo=UTC)
    assert [str(at)[:10] for at in run_times(start, "month", 3, start)] == [
        "2026-12-28",
        "2027-01-28",
        "2027-02-28",
    ]
    with pytest.raises(InvalidParameter, match="days 1 to 28"):
        run_times(start.replace(day=29), "month", 3, start.replace(day=29))


def test_the_operators_command_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOPSECRET_SERVE_DATABASE", "postgresql://hunter2@host/db")
    place = tmp_path / "told"
    program = (
        "import os, pathlib, sys; "
        f"pathlib.Path({str(place)!r}).write_text(sys.stdin.read() + str(dict(os.environ)))"
    )
    told = {"schedule": "s", "name": "weekly", "run": 1, "state": "answered", "answer": "a"}
    with pytest.MonkeyPatch.context() as patch:
        started: list[Any] = []
        patch.setattr(notices, "Thread", lambda **what: started.append(what) or _Here(what))
        Notices(f"{sys.executable} -c {json.dumps(program)}").tell(told)
        Notices(f"{sys.executable} -c 'raise SystemExit(3)'").tell(told)
        Notices("").tell(told)
    assert len(started) == 2
    text = place.read_text()
    assert json.loads(text.splitlines()[0]) == told
    assert "hunter2" not in text
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == [
        "schedule",
        "schedule",
        "notice failed",
        "schedule",
    ]
    assert lines[2]["status"] == 3
    for wrong in ("no-such-program --token hunter2", "'unfinished", f"{tmp_path}"):
        with pytest.raises(InvalidParameter, match="a program that can be run") as error:
            words_of(wrong)
        assert "hunter2" not in str(error.value)
    assert os.environ["TOPSECRET_SERVE_DATABASE"]


class _Here:
    """A thread that runs at once."""

    def __init__(self, what: dict[str, Any]) -> None:
        self._what = what

    def start(self) -> None:
        self._what["target"](*self._what["args"])
