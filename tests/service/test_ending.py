"""Questions that end early: time limits, cancels; turns among people."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from serving import PATIENCE, PLACES, SHOP, Here, here, write_events, write_table
from sqlalchemy import create_engine, event, text, update

from topsecret.errors import Closing, LedgerError, SourceError
from topsecret.service.data_files import DataFiles
from topsecret.service.datasets import NewDataset
from topsecret.service.jobs import release_schedule, worker
from topsecret.service.jobs.fair_places import FairPlaces
from topsecret.service.jobs.job import Asked
from topsecret.service.jobs.queue import Jobs
from topsecret.service.jobs.release_schedule import Turn, Turns
from topsecret.service.schema import JOBS
from topsecret.sources.engines.duckdb_session import DuckSession, closed_engine
from topsecret.sources.running_statement import Stop

QUESTION = {"column": "place", "k": 1, "epsilon": 0.2}


def until(condition: object, what: str = "it did not happen") -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@contextmanager
def with_a_table(folder: Path, url: str, **changes: object) -> Iterator[Here]:
    """A service whose dataset ``shop`` is a table of PostgreSQL."""
    write_table(url, PLACES)
    address = url.replace("postgresql://", "postgresql+psycopg://")
    shop = ("shop", f"sqlite:///{folder / SHOP}")
    with here(folder, sources=(shop, ("base", address)), **changes) as service:
        service.parts.datasets.register(
            NewDataset(
                "shop", "S", "", "who", ("place",), None, 4.0, 1e-5, source="base", table="visits"
            )
        )
        for name in ("ann", "bob"):
            service.parts.datasets.allow("shop", name, {"epsilon": 4.0})
        yield service


@contextmanager
def locked(url: str) -> Iterator[None]:
    """The table is locked, as by a change that does not end."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(text("LOCK TABLE visits IN ACCESS EXCLUSIVE MODE"))
        yield
    engine.dispose()


def test_a_locked_table_stops_a_question_and_not_the_service(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "GLANCE", 0.05)
    monkeypatch.setattr(worker, "AT_ONCE", 1)  # one that waits is all that may of its source
    with with_a_table(tmp_path, postgres_url, engines=1, limit=0.3) as service:
        said = service.call("ann", "GET", "/datasets/shop").text
        assert "Counting a question may take 0.3 s" in said  # before it is asked
        with locked(postgres_url):
            late = service.answered("ann", "/api/datasets/shop/ask", QUESTION)
        assert (late["state"], late["error"]) == ("failed", "time_limit")
        assert late["message"].startswith("Counting took longer than the 0.3 s")
        assert late["message"].endswith("What it may cost stays charged.")
        assert service.parts.ledger.history("shop")[-1].event == "failed"
        # The engine is free again, and the connection of the first one is gone.
        service.parts.jobs._turns.limit = PATIENCE
        assert service.answered("bob", "/api/datasets/shop/ask", QUESTION)["state"] == "answered"
        with locked(postgres_url):
            asked = service.call("ann", "POST", "/api/datasets/shop/ask", QUESTION | {"k": 2})
            under_way = service.parts.jobs._under_way
            until(lambda: any(turn._counted_since is not None for turn in under_way.values()))
            # Neither files nor another database wait for it, though each has one engine alone.
            for free in ("events", "visits"):
                job = service.answered("bob", f"/api/datasets/{free}/ask", QUESTION)
                assert job["state"] == "answered"
            path = f"/api/answers/{asked.json()['id']}/cancel"
            assert service.call("bob", "POST", path).status_code == 404
            assert service.call("olga", "POST", path).status_code == 200  # an owner may
            ended = service.ended("ann", asked.json()["id"])
        assert (ended["state"], ended["error"]) == ("failed", "cancelled")


@contextmanager
def with_a_file_that_hangs(folder: Path) -> Iterator[tuple[Here, threading.Event]]:
    """As in a network folder whose server is gone: nothing can interrupt who reads there."""
    answers, real = threading.Event(), DataFiles.check

    def check(files: DataFiles, source: str) -> None:
        assert "hanging" not in source or answers.wait(PATIENCE)
        real(files, source)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DataFiles, "check", check)
        patch.setattr(release_schedule, "STUCK", 0.0)
        patch.setattr(worker, "GLANCE", 0.05)
        patch.setattr(worker, "BEAT", 0.1)
        patch.setattr(worker, "AT_ONCE", 2)
        with here(folder, engines=1, limit=0.05) as service:
            write_events(folder / "files" / "hanging.csv", PLACES)
            new = NewDataset("hanging", "H", "hanging.csv", "user", ("place",), None, 4.0, 1e-5)
            service.parts.datasets.register(new)
            service.parts.datasets.allow("hanging", "ann", {"epsilon": 4.0})
            try:
                yield service, answers
            finally:
                answers.set()


HANGING = "/api/datasets/hanging/ask"


def hang(service: Here, *lengths: int) -> list[str]:
    """Ask for lists of these lengths: the first is stuck before the others are asked."""
    turns, asked = service.parts.jobs._turns, []
    for k in lengths:
        job = service.call("ann", "POST", HANGING, QUESTION | {"k": k}).json()
        asked.append(job["id"])
        until(turns.hanging)
        turns.limit = PATIENCE
    return asked


def test_a_file_that_hangs_lends_its_place(tmp_path: Path) -> None:
    with with_a_file_that_hangs(tmp_path) as (service, answers):
        turns, under_way = service.parts.jobs._turns, service.parts.jobs._under_way
        asked = hang(service, 1, 2, 3)
        free = service.answered("bob", "/api/datasets/events/ask", QUESTION)
        assert free["state"] == "answered"
        # The others about the same file are tried again and again, in nobody's way.
        assert [dataset for dataset, _ in turns.hanging()] == ["hanging"]
        until(lambda: len(under_way) == 1)
        answers.set()
        assert [service.ended("ann", one)["state"] for one in asked] == ["answered"] * 3
        assert not turns.hanging()


def test_the_operator_is_told_of_a_data_set_that_hangs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with with_a_file_that_hangs(tmp_path) as (service, answers):
        printed = ""

        def told() -> list[dict[str, object]]:
            nonlocal printed
            printed += capsys.readouterr().err
            lines = [json.loads(one) for one in printed.split("\n")[:-1] if one[:1] == "{"]
            return [one for one in lines if str(one["event"]).startswith("dataset")]

        hang(service, 1, 2)
        until(lambda: len(told()) == 1)
        assert 'topsecret_hangs_total{dataset="hanging"} 1.0' in (
            service.call("olga", "GET", "/metrics").text
        )
        answers.set()
        until(lambda: len(told()) == 2)
        (hangs, again) = told()
        assert (hangs["event"], again["event"]) == ("dataset hangs", "dataset answers again")
        for line in (hangs, again):
            assert set(line) == {"time", "event", "dataset"}
            assert line["dataset"] == "hanging"


def test_a_data_set_that_hangs_is_free_once_it_is_pointed_elsewhere(tmp_path: Path) -> None:
    with with_a_file_that_hangs(tmp_path) as (service, _answers):
        first, waiting = hang(service, 1, 2)
        edit = {"file": "events.csv"}
        assert service.call("olga", "PATCH", "/api/datasets/hanging", edit).status_code == 200
        assert service.ended("ann", waiting)["state"] == "answered"
        assert service.answered("ann", HANGING, QUESTION | {"k": 3})["state"] == "answered"
        assert service.call("ann", "GET", f"/api/answers/{first}").json()["state"] == "working"


def test_an_answer_that_was_paid_for_is_stored_while_its_data_set_hangs(tmp_path: Path) -> None:
    with with_a_file_that_hangs(tmp_path) as (service, answers):
        jobs = service.parts.jobs
        answers.set()
        real, failed = type(jobs)._store_end, threading.Event()

        def fails(self: Jobs, row: Any, ended: dict[str, object]) -> str:
            if not hangs.is_set():
                self = copy(self)  # other threads keep their store
                self._store = Full()  # type: ignore[assignment]
                failed.set()
            return real(self, row, ended)

        hangs = threading.Event()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(jobs), "_store_end", fails)
            jobs._turns.limit = PATIENCE
            paid = service.call("ann", "POST", HANGING, QUESTION | {"k": 4}).json()["id"]
            assert failed.wait(PATIENCE)
            until(lambda: service.parts.ledger.history("hanging")[-1].event == "settled")
            jobs._turns.limit = 0.05
            answers.clear()
            hang(service, 1)
            hangs.set()
            assert service.ended("ann", paid)["state"] == "answered"
            assert jobs._turns.hanging()


class Full:
    """A store without space."""

    def writing(self) -> None:
        raise LedgerError("no space")


@pytest.mark.parametrize("thread", ["_heart", "_clock"])
def test_a_beat_that_fails_in_any_way_is_not_the_last(
    monkeypatch: pytest.MonkeyPatch, thread: str
) -> None:
    monkeypatch.setattr(worker, "BEAT", 0.01)
    monkeypatch.setattr(worker, "GLANCE", 0.01)
    beaten, broke, turns = threading.Semaphore(0), [], Turns(1, 60.0)

    def fails() -> None:
        beaten.release()
        raise ArithmeticError("unforeseen")

    jobs, nothing = SimpleNamespace(watch=fails), {"ended": print, "note": print}
    desk = worker.Desk(None, jobs, turns, broke=broke.append, **nothing)  # type: ignore[arg-type]
    monkeypatch.setattr(desk, "_beat", fails)
    beating = getattr(desk, thread)
    beating.start()
    try:
        assert all(beaten.acquire(timeout=PATIENCE) for _ in range(3))
    finally:
        turns.closing.set()
        beating.join()
    assert set(broke) == {"ArithmeticError"}


def test_what_is_tried_again_is_not_taken_over_from_oneself(
    service: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = service.parts
    nothing = {"ended": lambda _: None, "broke": lambda _: None, "note": lambda: None}
    desk = worker.Desk(parts.store, parts.jobs, Turns(1, 0.05), **nothing)  # type: ignore[arg-type]
    begun: list[str] = []
    monkeypatch.setattr(desk, "submit", lambda identity, *_: begun.append(identity))
    monkeypatch.setattr(worker, "SILENCE", PATIENCE)  # nobody else is dead
    desk._beat()
    job, _ = parts.jobs.ask("bob", "events", Asked("place", 1, 0.1), "again", desk.worker)
    with parts.store.writing() as connection:
        mine = update(JOBS).where(JOBS.c.id == job.id)
        connection.execute(mine.values(asked=time.time() - 2 * PATIENCE))
    desk._again.add((job.id, "bob", ""))
    # A beat that fails loses nothing.
    with monkeypatch.context() as patch:
        patch.setattr(parts.jobs, "take_over", lambda *_: Full().writing())
        with pytest.raises(LedgerError):
            desk._beat()
    assert (begun, {one for one, *_ in desk._again}) == ([], {job.id})
    # One that succeeds tries it again, which changes nothing in the store.
    statements: list[str] = []
    engine = parts.store._engine

    def note(_connection, _cursor, statement, *_):  # type: ignore[no-untyped-def]
        if threading.current_thread() is threading.main_thread():
            statements.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    desk._beat()
    event.remove(engine, "before_cursor_execute", note)
    assert (begun, desk._again) == ([job.id], set())
    assert statements
    assert not [one for one in statements if one.startswith("UPDATE") and JOBS.name in one]


def test_a_question_that_its_own_process_has_lost_is_found_again(service: Here) -> None:
    """The store failed just as it was noted: nobody was told to answer it."""
    jobs, desk = service.parts.jobs, service.parts.desk
    lost, _ = jobs.ask("bob", "events", Asked("place", 1, 0.1), "lost", desk.worker)
    desk._beat()
    assert lost.id not in desk._mine  # it may be on its way to the desk
    with service.parts.store.writing() as connection:
        mine = update(JOBS).where(JOBS.c.id == lost.id)
        connection.execute(mine.values(asked=time.time() - 2 * worker.SILENCE))
    desk._beat()
    assert service.ended("bob", lost.id)["state"] == "answered"


def test_what_was_not_read_is_cancelled_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "GLANCE", 0.05)
    with here(tmp_path, engines=1) as service:
        turns, ledger = service.parts.jobs._turns, service.parts.ledger
        turns.counting.take()  # somebody else's question
        path = "/api/datasets/events/ask"
        asked = service.call("ann", "POST", path, QUESTION).json()
        until(lambda: ledger.account("events").pending)
        assert service.call("ann", "POST", f"/api/answers/{asked['id']}/cancel").status_code == 200
        ended = service.ended("ann", asked["id"])
        assert (ended["state"], ended["error"]) == ("refused", "cancelled")
        assert ended["message"].endswith("It cost nothing.")
        assert not any(ledger.account("events").spent.values())
        # One that another worker has is ended by that worker.
        other = service.call("ann", "POST", path, QUESTION | {"k": 2}).json()
        until(lambda: ledger.account("events").pending)
        service.parts.jobs._under_way, mine = {}, service.parts.jobs._under_way
        button = f"/answers/{other['id']}/cancel"  # of the page
        assert f'<form method="post" action="{button}">' in (
            service.call("ann", "GET", f"/answers/{other['id']}").text
        )
        assert service.call("ann", "POST", button).status_code == 303
        service.parts.jobs._under_way = mine
        service.parts.desk._beat()
        assert service.ended("ann", other["id"])["error"] == "cancelled"
        turns.counting.leave()
        assert service.answered("ann", path, QUESTION | {"k": 3})["state"] == "answered"


def test_a_cancel_after_a_crash_does_not_say_that_it_cost_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with here(tmp_path, engines=1) as service:
        jobs, ledger = service.parts.jobs, service.parts.ledger
        jobs._turns.counting.take()  # somebody else's question
        asked = service.call("ann", "POST", "/api/datasets/events/ask", QUESTION).json()
        until(lambda: ledger.account("events").pending)
        # As after a crash: the reservation is there, and another worker takes the job over.
        under_way, jobs._under_way = jobs._under_way, {}
        service.call("ann", "POST", f"/api/answers/{asked['id']}/cancel")
        monkeypatch.setattr("topsecret.ledger.ledger.WAIT", -PATIENCE)
        assert jobs.run(asked["id"]) == "in-doubt"
        assert service.ended("ann", asked["id"])["error"] == "in_doubt"
        assert any(ledger.account("events").spent.values())
        jobs._under_way = under_way
        jobs._turns.counting.leave()


def test_no_place_is_taken_once_the_service_closes_or_the_question_is_ended() -> None:
    closing, stopped = threading.Event(), threading.Event()
    places = FairPlaces(1, closing)
    stopped.set()
    with pytest.raises(Closing):
        places.take("ann", stopped)
    places.take("bob")  # what ann did not take is there
    places.leave()
    closing.set()
    with pytest.raises(Closing):
        places.take("bob")


def waiting(places: FairPlaces) -> int:
    with places._changed:
        return sum(map(len, places._queues.values()))


def test_people_take_turns(tmp_path: Path) -> None:
    with here(tmp_path, engines=1) as service, pytest.MonkeyPatch.context() as patch:
        turns, ledger = service.parts.jobs._turns, service.parts.ledger
        order: list[str] = []
        real = Turn.reading

        def reading(turn: Turn) -> None:
            real(turn)
            order.append(turn._who)

        patch.setattr(Turn, "reading", reading)
        turns.counting.take("ann")
        jobs = []
        for who, k in [*(("ann", k) for k in range(1, 7)), ("bob", 7), ("bob", 8)]:
            path = "/api/datasets/events/ask"
            asked = service.call(who, "POST", path, QUESTION | {"k": k, "epsilon": 0.05})
            jobs.append((who, asked.json()["id"]))
        until(lambda: len(ledger.account("events").pending) == 8)
        until(lambda: waiting(turns.counting) == 8)  # reserved is not yet in the queue
        turns.counting.leave()
        assert {service.ended(*job)["state"] for job in jobs} == {"answered"}
        assert sorted(order) == ["ann"] * 6 + ["bob"] * 2
        assert [place for place, who in enumerate(order) if who == "bob"] <= [1, 3]


def test_a_running_statement_of_duckdb_is_ended() -> None:
    stop, failed = Stop(), threading.Event()
    long = "SELECT max(a.range * b.range) FROM range(1000000) a, range(1000000) b"

    def ask() -> None:
        with closed_engine() as engine, stop.here():
            session = DuckSession(engine, lambda *_: None, lambda kind: SourceError(kind.__name__))  # type: ignore[arg-type,return-value]
            with suppress(SourceError):
                session.ask(long, [])
                return
            failed.set()

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    until(lambda: stop._interrupts)
    deadline = time.monotonic() + PATIENCE
    while asking.is_alive():  # the engine may not have begun when it is first told
        assert time.monotonic() < deadline
        stop.now("enough")
        asking.join(0.05)
    assert failed.is_set()


def test_an_answer_that_another_process_stores_is_not_kept(service: Here) -> None:
    parts = service.parts
    kept: dict[str, dict[str, object]] = {"ours": {}, "theirs": {}, "ended": {}}
    jobs = [parts.jobs.ask("bob", "events", Asked("place", 1, 0.1), name, name)[0] for name in kept]
    with parts.store.writing() as connection:
        ended = update(JOBS).where(JOBS.c.id == jobs[2].id)
        connection.execute(ended.values(state="answered"))
    parts.jobs._unstored |= {job.id: {} for job in jobs}
    parts.jobs.take_over("ours", {"ours", "theirs", "ended"})
    assert set(parts.jobs._unstored) == {jobs[0].id}
    parts.jobs._unstored.clear()
