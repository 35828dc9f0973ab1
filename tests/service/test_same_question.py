"""The same question asked by several while it is under way is counted and paid for once."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from serving import PASSWORD, PATIENCE, Here, here
from sqlalchemy import select, update

from topsecret.errors import SourceError
from topsecret.service.jobs import worker
from topsecret.service.jobs.release_schedule import STUCK, Turn, Turns
from topsecret.service.jobs.worker import Desk
from topsecret.service.schema import JOBS

PATH = "/api/datasets/events/ask"
QUESTION = {"column": "place", "k": 3, "epsilon": 0.5}


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Slow:
    """Counting takes as long as a test lets it, far longer than the ledger itself waits."""

    def __init__(self, service: Here) -> None:
        self.service, self.counting, self.counted = service, list[str](), threading.Event()
        self.fails = threading.Event()
        self.put_back: list[str] = []

    def ask(self, who: str, body: dict[str, Any] = QUESTION) -> str:
        return str(self.service.call(who, "POST", PATH, body).json()["id"])

    def first(self, who: str = "ann") -> str:
        """A question that is being counted from then on."""
        asked = self.ask(who)
        until(lambda: self.counting)
        return asked

    def waits(self, job: str) -> None:
        """Look that a question is put back twice while the first one is counted."""
        until(lambda: self.put_back.count(job) > 1 or len(self.reserved()) > 1)
        assert len(self.reserved()) == 1

    def reserved(self) -> list[str]:
        history = self.service.parts.ledger.history("events")
        return [entry.event for entry in history if entry.event == "reserved"]


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    monkeypatch.setattr("topsecret.ledger.ledger.WAIT", 0.0)
    monkeypatch.setattr(worker, "BEAT", 0.1)
    monkeypatch.setattr(worker, "GLANCE", 0.05)
    monkeypatch.setattr(worker, "AT_ONCE", 2)
    with here(tmp_path, engines=2) as service:
        service.parts.accounts.add("eve", "analyst", PASSWORD)
        service.parts.datasets.allow("events", "eve", {"epsilon": 4.0})
        service.keys["eve"] = service.parts.accounts.new_key("eve", "tests")
        made = Slow(service)
        reading, again = Turn.reading, Desk._try_again

        def slowly(turn: Turn) -> None:
            reading(turn)
            made.counting.append(turn._who)
            deadline = time.monotonic() + PATIENCE
            while not made.counted.wait(0.02):
                assert time.monotonic() < deadline
                if turn.stop.asked.is_set() or made.fails.is_set():
                    raise SourceError("the question was ended while its data were read")

        def noted(desk: Desk, job: Any) -> None:
            made.put_back.append(job[0])
            again(desk, job)

        monkeypatch.setattr(Turn, "reading", slowly)
        monkeypatch.setattr(Desk, "_try_again", noted)
        try:
            yield made
        finally:
            made.counted.set()


def test_it_is_paid_for_once_however_long_it_is_counted(slow: Slow) -> None:
    service, asked = slow.service, {"ann": slow.first()}
    for who in ("bob", "eve"):
        asked[who] = slow.ask(who)
        slow.waits(asked[who])
    slow.counted.set()
    ended = {who: service.ended(who, job) for who, job in asked.items()}
    assert {job["state"] for job in ended.values()} == {"answered"}
    assert len({tuple(job["answer"]["items"]) for job in ended.values()}) == 1
    for who in ("bob", "eve"):
        assert ended[who]["answer"]["receipt"]["Budget"].startswith("nothing")
    assert (len(slow.reserved()), slow.counting) == (1, ["ann"])
    assert not service.parts.jobs._same._awaited


def test_who_waits_holds_no_thread_and_no_engine(slow: Slow) -> None:
    """Two may be under way here: the one that is counted, and any other."""
    slow.first()
    for who in ("bob", "eve", "eve"):
        slow.waits(slow.ask(who))
    other = slow.ask("bob", QUESTION | {"k": 2})
    until(lambda: slow.counting == ["ann", "bob"])
    slow.counted.set()
    assert slow.service.ended("bob", other)["state"] == "answered"


def test_who_waits_is_cancelled_for_nothing(slow: Slow) -> None:
    slow.first()
    waits = slow.ask("bob")
    slow.waits(waits)
    path = f"/api/answers/{waits}/cancel"
    assert slow.service.call("bob", "POST", path).status_code == 200
    ended = slow.service.ended("bob", waits)
    assert (ended["state"], ended["error"]) == ("refused", "cancelled")
    assert ended["message"].endswith("It cost nothing.")
    assert len(slow.reserved()) == 1


@contextmanager
def cancelled(slow: Slow, first: str) -> Iterator[None]:
    slow.service.call("ann", "POST", f"/api/answers/{first}/cancel")
    yield


@contextmanager
def failed(slow: Slow, first: str) -> Iterator[None]:
    slow.fails.set()
    until(lambda: slow.service.ended("ann", first)["state"] == "failed")
    slow.fails.clear()
    yield


@contextmanager
def dead(slow: Slow, first: str) -> Iterator[None]:
    """Its worker shows no sign of life, and it is in doubt when another takes it over."""
    of_the_first = update(JOBS).where(JOBS.c.id == first)
    with slow.service.parts.store.writing() as connection:
        connection.execute(of_the_first.values(worker="dead", state="in-doubt"))
    yield


@contextmanager
def written_off(slow: Slow, first: str) -> Iterator[None]:
    (pending,) = slow.service.parts.ledger.account("events").pending
    slow.service.parts.ledger.write_off(pending.id)
    yield


@contextmanager
def endless(slow: Slow, first: str) -> Iterator[None]:
    """It has waited for as long as a question may take: the first one waits for an engine, say."""
    turns = slow.service.parts.jobs._turns
    with slow.service.parts.store.writing() as connection:
        asked = time.time() - turns.patience()
        connection.execute(update(JOBS).where(JOBS.c.id != first).values(asked=asked))
    yield


@pytest.mark.parametrize("ends", [cancelled, failed, dead, written_off, endless])
def test_who_waits_for_one_without_an_answer_is_counted(slow: Slow, ends: Any) -> None:
    first = slow.first()
    waits = slow.ask("bob")
    slow.waits(waits)
    with ends(slow, first):
        until(lambda: slow.counting == ["ann", "bob"])
    slow.counted.set()
    assert slow.service.ended("bob", waits)["state"] == "answered"
    assert len(slow.reserved()) == 2


def test_a_question_waits_for_no_reservation_of_its_own(slow: Slow) -> None:
    """A worker that died left it: it is in doubt, as before."""
    first, jobs = slow.first(), slow.service.parts.jobs
    until(lambda: not _young(slow))
    assert jobs.run(first) == "in-doubt"


def _young(slow: Slow) -> bool:
    ledger = slow.service.parts.ledger.paced(Turn(slow.service.parts.jobs._turns))
    return any(ledger._young({"time": one.time}) for one in ledger.account("events").pending)  # type: ignore[arg-type]


def test_how_long_a_question_waits_at_most() -> None:
    assert Turns(2, 1.0, 600.0).patience() == 600 + STUCK + 2


def test_a_job_is_waited_for_while_its_worker_lives(slow: Slow) -> None:
    first, same = slow.first(), slow.service.parts.jobs._same
    with slow.service.parts.store.reading() as connection:
        row = connection.execute(select(JOBS).where(JOBS.c.id == first)).mappings().one()
    assert same._works("events", "ann", row["request"])
    assert not same._works("events", "bob", row["request"])
    with slow.service.parts.store.writing() as connection:
        connection.execute(update(JOBS).where(JOBS.c.id == first).values(worker="dead"))
    # Until a living one takes it over, which this one does with its next sign of life.
    until(lambda: same._works("events", "ann", row["request"]))
