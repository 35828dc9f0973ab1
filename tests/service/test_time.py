"""Time tells little: two very different datasets look alike from outside."""

import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from serving import PATIENCE, PLACES, Clock, Here, here, write_events

from topsecret.errors import Closing, DataIndependentFailure, SourceError
from topsecret.service.datasets import NewDataset
from topsecret.service.jobs import queue, release_schedule
from topsecret.service.jobs.job import Asked
from topsecret.service.jobs.release_schedule import Turn, Turns
from topsecret.service.problems import Problem
from topsecret.sources.source import CountQuery, LeadingCounts

TICK = 2.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (queue, release_schedule):
        monkeypatch.setattr(module, "time", clock)
    return clock


def test_a_large_and_a_small_data_set_answer_at_the_same_tick(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with here(tmp_path, tick=TICK) as service:
        files = tmp_path / "files"
        write_events(files / "small.csv", {"Harbour": 2})
        rows = [f"u{person % 50_000},p{person * 7919 % 20_011},red" for person in range(300_000)]
        write_events(files / "large.csv", PLACES, "\n".join(rows))
        for name in ("small", "large"):
            service.parts.datasets.register(
                NewDataset(name, name, f"{name}.csv", "user", ("place",), None, 4.0, 1e-5)
            )
            service.parts.datasets.allow(name, "ann", {"epsilon": 4.0})
        body = {"column": "place", "k": 1, "epsilon": 1.0}
        for name in ("small", "large"):
            with pytest.MonkeyPatch.context() as patch:
                drawn = watched(patch)
                asked = service.call("ann", "POST", f"/api/datasets/{name}/ask", body).json()
                assert drawn.wait(PATIENCE)
            assert asked["state"] == "working"
            assert service.call("ann", "GET", f"/api/answers/{asked['id']}").json() == asked
            clock.advance(TICK)
            job = service.ended("ann", asked["id"])
            assert job["state"] == "answered"
            row = _row(service, asked["id"])
            assert row["shown"] - row["asked"] == pytest.approx(TICK, abs=1e-6)


def test_what_misses_a_tick_waits_for_the_next(tmp_path: Path, clock: Clock) -> None:
    with here(tmp_path, tick=TICK, engines=1) as service:
        turns = service.parts.jobs._turns
        turns.counting.take()  # somebody else's question
        body = {"column": "place", "k": 1, "epsilon": 1.0}
        with pytest.MonkeyPatch.context() as patch:
            drawn = watched(patch)
            asked = service.call("ann", "POST", "/api/datasets/events/ask", body).json()
            until(lambda: bool(turns.counting._queues))
            clock.advance(1.5 * TICK)
            turns.counting.leave()
            assert drawn.wait(PATIENCE)
        clock.advance(TICK / 2)
        assert service.ended("ann", asked["id"])["state"] == "answered"
        row = _row(service, asked["id"])
        assert row["shown"] - row["asked"] == pytest.approx(2 * TICK, abs=1e-6)


def test_how_long_a_question_is_planned_does_not_say_how_far_from_a_tick_it_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who asks could compare the time of counting with any part of a tick."""
    clock = Clock()
    monkeypatch.setattr(clock, "sleep", clock.advance)
    monkeypatch.setattr(release_schedule, "time", clock)
    turns = Turns(engines=1, tick=TICK)
    for planned in (0.0, 0.5, 1.0, 1.75, 2.25):
        clock.advance(turns.start(clock.time()) - clock.time())
        asked = clock.time()
        with Turn(turns) as turn:
            clock.advance(planned)
            turn.reading()
            clock.advance(0.75 * TICK)
            turn.drawn()
            assert turn.shown == turns.start(asked + planned) + TICK


@pytest.mark.parametrize("glances", [True, False])
def test_a_data_set_that_hung_answers_again_at_a_tick(
    monkeypatch: pytest.MonkeyPatch, glances: bool
) -> None:
    """Who probes it with questions of their own must not see when its engine ended."""
    clock = Clock()
    monkeypatch.setattr(release_schedule, "time", clock)
    monkeypatch.setattr(release_schedule, "monotonic", clock.time, raising=False)
    monkeypatch.setattr(release_schedule, "STUCK", 0.25 * TICK)
    turns = Turns(engines=1, tick=TICK, limit=0.5 * TICK)

    def answers() -> bool:
        try:
            with Turn(turns, "bob") as turn:
                turn.about(("shop", "shop.csv"))
                return True
        except Closing:
            return False

    # It ends before the first tick at which it may be said to hang, or a moment after it.
    for late, hangs in ((0.9, False), (1.1, True)):
        with Turn(turns, "ann") as turn:
            turn.about(("shop", "shop.csv"))
            turn.reading()
            clock.advance(late * TICK)
            if glances:
                turn.look_at_the_clock()
            assert answers() is not hangs
            ended = threading.Thread(target=turn.ending)
            ended.start()
            until(lambda: turn.shown is not None)
            for part in (0.0, 0.05, 0.04):
                clock.advance(part * TICK)
                assert answers() is not hangs
            clock.advance(TICK)
            ended.join(PATIENCE)
            assert answers()
        clock.advance(turns.start(clock.time()) - clock.time())


def test_nothing_moves_before_the_tick(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the answer nor the ledger: no refund, no room for others, no word of either."""
    with here(tmp_path, tick=TICK) as service:
        body = {"column": "place", "k": 15}
        path, budget = "/api/datasets/metered/ask", "/api/datasets/metered/budget"
        drawn = watched(monkeypatch)
        asked = service.call("bob", "POST", path, body).json()
        assert drawn.wait(PATIENCE)
        refused = service.call("bob", "POST", path, body | {"k": 20}).json()
        deadline = time.monotonic() + PATIENCE
        while _row(service, refused["id"])["state"] == "working":  # decided before time goes on
            assert time.monotonic() < deadline
            time.sleep(0.01)
        clock.advance(TICK * 0.99)
        early = service.call("bob", "GET", budget).json()
        assert early["spent"] == {"picks": "15", "queries": "1"}
        assert service.call("bob", "GET", f"/api/answers/{asked['id']}").json() == asked
        assert "Counting people" in service.call("bob", "GET", f"/answers/{asked['id']}").text
        assert _row(service, asked["id"])["state"] == "working"
        ledger = service.parts.ledger
        assert [entry.event for entry in ledger.history("metered")][-1] == "reserved"
        # At the tick everything moves at once.
        clock.advance(TICK * 0.02)
        assert service.ended("bob", asked["id"], clock=clock)["state"] == "answered"
        message = service.ended("bob", refused["id"], clock=clock)["message"]
        assert "At most 5 items fit." in message
        assert ledger.history("metered")[-1].event == "settled"
        assert service.call("bob", "GET", budget).json()["spent"]["picks"] == "5"


@pytest.mark.parametrize("error", [SourceError("a row"), DataIndependentFailure("no file")])
def test_a_failure_waits_for_the_tick(tmp_path: Path, clock: Clock, error: SourceError) -> None:
    from topsecret.sources.engines.duckdb import FileSource

    def fails(*_: object) -> None:
        raise error

    with here(tmp_path, tick=TICK) as service, pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileSource, "leading_counts", fails)
        drawn = watched(patch)
        body = {"column": "place", "k": 2}
        asked = service.call("bob", "POST", "/api/datasets/metered/ask", body).json()
        assert drawn.wait(PATIENCE)
        ledger = service.parts.ledger
        assert ledger.history("metered")[-1].event == "reserved"
        clock.advance(TICK)
        assert service.ended("bob", asked["id"], clock=clock)["state"] == "failed"
        assert ledger.history("metered")[-1].event in ("failed", "released")


def test_a_cancel_is_heard_at_ticks_alone(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must be no stop-watch: what became of a question tells its tick, and nothing finer."""
    from topsecret.sources.engines.duckdb import FileSource

    counting, counted, real = threading.Event(), threading.Event(), FileSource.leading_counts

    def slow(source: FileSource, query: CountQuery) -> LeadingCounts:
        counting.set()
        assert counted.wait(PATIENCE)
        return real(source, query)

    monkeypatch.setattr(FileSource, "leading_counts", slow)
    with here(tmp_path, tick=TICK, engines=1) as service:
        jobs, ledger = service.parts.jobs, service.parts.ledger

        def cancelled(k: int, begun: Callable[[], bool]) -> str:
            body = {"column": "place", "k": k, "epsilon": 0.1}
            asked = service.call("ann", "POST", "/api/datasets/events/ask", body).json()
            until(begun)
            clock.advance(0.25 * TICK)
            service.call("ann", "POST", f"/api/answers/{asked['id']}/cancel")
            jobs.watch()
            return str(asked["id"])

        for k, late, became in ((1, 0.0, ("answered", None)), (2, TICK, ("failed", "cancelled"))):
            counting.clear(), counted.clear()
            asked = cancelled(k, counting.is_set)
            clock.advance(late)
            with pytest.MonkeyPatch.context() as patch:
                drawn = watched(patch)
                counted.set()
                assert drawn.wait(PATIENCE)
            assert ledger.history("events")[-1].event == "reserved"
            clock.advance(0.75 * TICK)
            job = service.ended("ann", asked)
            assert (job["state"], job["error"]) == became
            assert (_row(service, asked)["shown"] - _row(service, asked)["asked"]) == TICK + late
        # One that waits for an engine is given back at a tick, too.
        jobs._turns.counting.take()
        asked = cancelled(3, lambda: bool(jobs._turns.counting._queues))
        assert not any(turn.stop.asked.is_set() for turn in jobs._under_way.values())
        with pytest.MonkeyPatch.context() as patch:
            ending = watched(patch)
            clock.advance(TICK)
            jobs.watch()
            assert ending.wait(PATIENCE)
        assert ledger.history("events")[-1].event == "reserved"
        clock.advance(0.75 * TICK)
        job = service.ended("ann", asked)
        assert (job["state"], job["error"]) == ("refused", "cancelled")
        assert ledger.history("events")[-1].event == "released"


def test_questions_that_wait_for_their_tick_keep_no_engine_and_no_reservation_waits(
    tmp_path: Path, clock: Clock
) -> None:
    """More questions than engines are reserved at once and counted within one tick."""
    with here(tmp_path, tick=TICK, engines=1) as service:
        drawn = threading.Semaphore(0)
        real = Turn.ending

        def ending(turn: Turn) -> None:
            drawn.release()
            real(turn)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Turn, "ending", ending)
            jobs = []
            for k in (1, 2, 3, 4):
                body = {"column": "place", "k": k}
                asked = service.call("bob", "POST", "/api/datasets/metered/ask", body)
                jobs.append(asked.json()["id"])
            assert all(drawn.acquire(timeout=PATIENCE) for _ in jobs)
        clock.advance(TICK)
        for job in jobs:
            assert service.ended("bob", job)["state"] == "answered"
            row = _row(service, job)
            assert row["shown"] - row["asked"] == pytest.approx(TICK, abs=1e-6)
        events = [entry.event for entry in service.parts.ledger.history("metered")]
        assert events[2:] == ["reserved"] * 4 + ["settled"] * 4


def test_how_many_may_be_under_way_is_counted_as_shown(tmp_path: Path, clock: Clock) -> None:
    with here(tmp_path, tick=TICK) as service:
        jobs, worker = service.parts.jobs, service.parts.desk.worker
        asked = [
            jobs.ask("ann", "events", Asked("place", 1, 50.0), f"r{number}", worker)[0].id
            for number in range(100)
        ]
        jobs.run(asked[0])  # refused at once, shown at the tick
        with pytest.raises(Problem, match="too_many"):
            jobs.ask("ann", "events", Asked("place", 1, 50.0), "more", worker)
        clock.advance(TICK)
        jobs.ask("ann", "events", Asked("place", 1, 50.0), "more", worker)


def test_a_stored_answer_has_the_time_of_the_first_question(tmp_path: Path) -> None:
    from topsecret.questions.top_k import top_k

    with here(tmp_path) as service:
        ledger, source = service.parts.ledger, Source()
        asked = {"item": "place", "person": "user", "k": 1, "ledger": ledger, "dataset": "metered"}
        asked["version"] = "the same data"
        for _ in range(2):
            release = top_k(source, **asked, analyst="bob")  # type: ignore[arg-type]
            reserved = ledger.history("metered")[2]
            assert release.time.isoformat() == datetime.fromisoformat(reserved.time).isoformat()


class Source:
    name = "memory"

    def leading_counts(self, query: object) -> list[tuple[str, int]]:
        return [("Harbour", 10**6)]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def watched(patch: pytest.MonkeyPatch) -> threading.Event:
    """Set when an engine is done and the ledger is about to be told."""
    done = threading.Event()
    real = Turn.ending

    def ending(turn: Turn) -> None:
        done.set()
        real(turn)

    patch.setattr(Turn, "ending", ending)
    return done


def _row(service: Here, identity: str):  # type: ignore[no-untyped-def]
    from sqlalchemy import select

    from topsecret.service.schema import JOBS

    with service.parts.store.reading() as connection:
        return connection.execute(select(JOBS).where(JOBS.c.id == identity)).mappings().one()


def test_what_waits_for_an_engine_is_given_back_when_the_service_stops(tmp_path: Path) -> None:
    with here(tmp_path, engines=1) as service:
        turns = service.parts.jobs._turns
        turns.counting.take()  # somebody else's question
        body = {"column": "place", "k": 2}
        asked = service.call("bob", "POST", "/api/datasets/metered/ask", body).json()
        ledger, deadline = service.parts.ledger, time.monotonic() + PATIENCE
        while not ledger.account("metered").pending and time.monotonic() < deadline:
            time.sleep(0.01)
        assert service.parts.desk.close(PATIENCE)
        events = [entry.event for entry in ledger.history("metered")]
        assert events[-2:] == ["reserved", "released"]
        assert _row(service, asked["id"])["state"] == "working"
