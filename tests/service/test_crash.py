"""Workers are killed while questions are under way: answered and settled once, or in doubt.

Some questions are ended by who asked them. ``TOPSECRET_SOAK=1`` asks more, kills more often, and
asks a table that takes longer to count than the time limit.
"""

import json
import os
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import PASSWORD, PATIENCE, SHOP, Here, Server, here, settings
from sqlalchemy import select

from topsecret.accounting.charge import in_words
from topsecret.ledger import Ledger, Reservation
from topsecret.ledger.schema import ANSWERS, RESERVATIONS
from topsecret.ledger.store import Store
from topsecret.service.datasets import NewDataset
from topsecret.service.jobs.job import Asked
from topsecret.service.state import Parts

SOAK = os.environ.get("TOPSECRET_SOAK") == "1"
QUESTIONS, KILLS, CLIENTS = (100, 5, 8) if SOAK else (12, 1, 8)
COLUMNS = tuple(f"c{number}" for number in range(25))
LIMIT, LARGE = 0.5, 3_000_000
"""Seconds, and rows that cannot be counted in them."""


def dataset_of(number: int) -> str:
    return "slow" if SOAK and number % 5 == 4 else "wide"


def length_of(number: int) -> int:
    return 2 + number // len(COLUMNS)


def budget_of(dataset: str) -> int:
    """A tenth less than all that the questions ask for together: some are refused."""
    items = sum(length_of(n) for n in range(QUESTIONS) if dataset_of(n) == dataset)
    return items - items // 10


def add_slow_table(parts: Parts, folder: Path) -> None:
    """A dataset whose questions reach the time limit."""
    numbers = f"SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {LARGE}"
    rows = f"WITH RECURSIVE n(i) AS ({numbers}) SELECT 'u' || i, 'p' || (i % 1000) FROM n"
    with closing(sqlite3.connect(folder / SHOP)) as shop, shop:
        shop.execute("CREATE TABLE slow (who TEXT, c0 TEXT)")
        shop.execute(f"INSERT INTO slow {rows}")
    picks = budget_of("slow")
    where = {"source": "shop", "table": "slow", "queries": picks, "picks": picks}
    parts.datasets.register(
        NewDataset("slow", "Slow", "", "who", ("c0",), None, 20.0, 1e-5, **where)  # type: ignore[arg-type]
    )
    parts.datasets.allow("slow", "ann", {"queries": picks, "picks": picks})


def populated(folder: Path, place: str, picks: int) -> str:
    """A service with an analyst and many columns to ask; her key."""
    files = folder / "files"
    files.mkdir()
    rows = (
        ",".join([f"u{person}", *(f"v{person % (7 + n)}" for n in range(25))])
        for person in range(20_000 if SOAK else 5_000)
    )
    (files / "wide.csv").write_text("\n".join((",".join(("user", *COLUMNS)), *rows)) + "\n")
    parts = Parts(settings(folder, database=place))
    parts.accounts.add("ann", "analyst", PASSWORD)
    parts.datasets.register(
        NewDataset(
            "wide",
            "Wide",
            "wide.csv",
            "user",
            COLUMNS,
            None,
            20.0,
            1e-5,
            queries=picks,
            picks=picks,
        )
    )
    parts.datasets.allow("wide", "ann", {"queries": picks, "picks": picks})
    if SOAK:
        add_slow_table(parts, folder)
    key = parts.accounts.new_key("ann", "crash")
    parts.store.close()
    parts.ledger.close()
    return key


@pytest.fixture(params=["sqlite", "postgres"] if SOAK else ["sqlite"])
def place(request: pytest.FixtureRequest) -> str:
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


class Asker:
    """A client that repeats what it does not see the end of, and remembers all it saw."""

    def __init__(self, server: Server, key: str) -> None:
        self.client = httpx.Client(
            base_url=server.address, headers={"authorization": f"Bearer {key}"}, timeout=PATIENCE
        )
        self.seen: dict[str, list[object]] = {}
        """Every answer that was ever shown, by request: items, receipt and all."""

    def call(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                answer = self.client.request(method, path, **more)
                if answer.status_code == 429:
                    time.sleep(float(answer.headers["retry-after"]))
                    continue
                assert answer.status_code < 500, answer.text
                found: dict[str, Any] = answer.json()
                return found
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError("no answer")

    def ask(self, number: int) -> dict[str, Any]:
        dataset = dataset_of(number)
        column = COLUMNS[number % len(COLUMNS)] if dataset == "wide" else "c0"
        body = {"column": column, "k": length_of(number), "request_id": f"q{number}"}
        job = self.call("POST", f"/api/datasets/{dataset}/ask", json=body)
        if number % 4 == 3:  # no longer wanted: while it waits, is counted, or has ended
            time.sleep(number % 5 / 10)
            self.call("POST", f"/api/answers/{job['id']}/cancel")
        return self.ended(job)

    def ended(self, job: dict[str, Any]) -> dict[str, Any]:
        """The job once it has ended."""
        deadline = time.monotonic() + PATIENCE
        while job["state"] == "working" and time.monotonic() < deadline:
            time.sleep(0.1)
            job = self.call("GET", f"/api/answers/{job['id']}")
        if job["answer"] is not None:
            self.seen.setdefault(job["request_id"], []).append(job["answer"])
        return job


def test_a_killed_worker_loses_nothing_and_answers_nothing_twice(
    tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    key = populated(tmp_path, place, budget_of("wide"))
    options = ["--workers", "2", "--tick", "0.1", "--database", place]
    if SOAK:
        options += ["--limit", str(LIMIT), "--source", f"shop=sqlite:///{tmp_path / SHOP}"]
    server = Server(tmp_path, *options)
    asker = Asker(server, key)
    try:
        with ThreadPoolExecutor(CLIENTS) as pool:
            asked = [pool.submit(asker.ask, number) for number in range(QUESTIONS)]
            for kill in range(KILLS):
                # So many have ended: others are under way, however quick the machine is.
                _until(lambda: sum(one.done() for one in asked) > kill * QUESTIONS // KILLS)  # noqa: B023
                os.kill(server.workers[0], signal.SIGKILL)
            jobs = [future.result() for future in asked]
        again = [asker.ask(number) for number in range(QUESTIONS)]
    finally:
        asker.client.close()
        server.stop(signal.SIGKILL)
    restarted = Server(tmp_path, *options)
    seen, asker = asker.seen, Asker(restarted, key)
    try:
        last = [asker.ask(number) for number in range(QUESTIONS)]
    finally:
        asker.client.close()
        restarted.stop()

    # The same request finds the same job, and an answer never changes: no other noise was drawn.
    assert len({job["id"] for job in last}) == QUESTIONS
    assert [job["id"] for job in jobs] == [job["id"] for job in again] == [j["id"] for j in last]
    for job in last:
        shown = seen.get(job["request_id"], [])
        assert all(answer == job["answer"] for answer in shown)
    # How many of each depends on when the kill came; whatever was asked is one of these.
    states = ("answered", "refused", "failed", "in-doubt")
    ledger = Ledger(place or tmp_path / "service.db")
    assert not ledger.check().faults
    told = ""
    for dataset in sorted({job["dataset"] for job in last}):
        by_state: dict[str, set[str]] = {state: set() for state in states}
        for job in last:
            if job["dataset"] == dataset:
                by_state[job["state"]].add(job["request_id"])
        assert len(by_state["in-doubt"]) <= CLIENTS * KILLS
        told += f"\n  {dataset}: {accounted(ledger, dataset, by_state)}"
    if SOAK:
        errors = Counter(job["error"] for job in last)
        assert min(errors["time_limit"], errors["cancelled"]) > 0
        told += f"\n  {dict(errors)}"
    stored = kept_items(Store(place or tmp_path / "service.db"))
    assert stored == {
        job["request_id"]: job["answer"]["items"] for job in last if job["state"] == "answered"
    }
    ledger.close()
    with capsys.disabled():
        sys.stdout.write(f"\n{'PostgreSQL' if place else 'SQLite'}: {told}\n")


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def accounted(ledger: Ledger, dataset: str, by_state: dict[str, set[str]]) -> str:
    """The ledger holds exactly these questions: settled or failed once, reserved, or not at all."""
    reserved: dict[str, dict[str, Any]] = {}
    ended: dict[str, tuple[str, dict[str, Any]]] = {}
    for entry in ledger.history(dataset):
        if entry.event == "reserved":
            assert entry.record["reservation"] not in reserved
            reserved[entry.record["reservation"]] = entry.record
        elif entry.event not in ("opened", "allowed"):
            assert entry.event in ("settled", "failed", "released")
            assert entry.record["reservation"] not in ended
            ended[entry.record["reservation"]] = entry.event, entry.record
    # What was ended before its data were read was given back, and counts as never reserved.
    given_back = {identity for identity, (event, _) in ended.items() if event == "released"}
    requests = {one: record["request"] for one, record in reserved.items() if one not in given_back}
    assert len(set(requests.values())) == len(requests)  # nobody paid twice
    for state, event in (("answered", "settled"), ("failed", "failed")):
        found = {requests[identity] for identity, (what, _) in ended.items() if what == event}
        assert found == by_state[state]
    account = ledger.account(dataset)
    pending = {requests[one.id] for one in account.pending}
    assert pending == by_state["in-doubt"]
    assert not set(requests.values()) & by_state["refused"]
    spent = {"picks": Fraction(0), "queries": Fraction(0)}
    for identity, record in reserved.items():
        _, end = ended.get(identity, ("", record))
        for name, value in end["cost"].items():
            spent[name] += Fraction(value)
    assert account.spent == spent
    assert all(value >= 0 for value in account.left.values())
    counted = ", ".join(f"{len(them)} {state}" for state, them in by_state.items())
    return f"{counted}; {len(ended)} ended, {len(pending)} reserved; spent {in_words(spent)}"


def kept_items(store: Store) -> dict[str, list[str]]:
    """The items that the ledger itself keeps for each request."""
    with store.reading() as connection:
        query = select(RESERVATIONS.c.request, ANSWERS.c.answer).where(
            ANSWERS.c.reservation == RESERVATIONS.c.id
        )
        rows = connection.execute(query).all()
    store.close()
    return {request: json.loads(answer)["items"] for request, answer in rows}


def test_a_graceful_stop_finishes_what_runs_and_keeps_what_waits(
    tmp_path: Path, postgres_url: str
) -> None:
    key = populated(tmp_path, postgres_url, 100)
    # An address may hold a password: it need not be on the command line.
    outside = {"TOPSECRET_SERVE_DATABASE": postgres_url}
    server = Server(tmp_path, "--tick", "0.1", environment=outside)
    asker = Asker(server, key)
    asked = [{"column": c, "k": 2, "request_id": c} for c in COLUMNS[:8]]
    with asker.client:
        for body in asked:
            assert asker.call("POST", "/api/datasets/wide/ask", json=body)["state"] == "working"
        assert server.stop() == 0
    ledger = Ledger(postgres_url)
    assert ledger.account("wide").pending == ()
    ledger.close()

    restarted = Server(tmp_path, "--tick", "0.1", environment=outside)
    asker = Asker(restarted, key)
    try:
        with asker.client:
            again = [asker.call("POST", "/api/datasets/wide/ask", json=body) for body in asked]
            jobs = [asker.ended(job) for job in again]
    finally:
        restarted.stop()
    said = [line for line in restarted.lines() if line["event"] != "request"]
    assert {job["state"]: job["message"] for job in jobs} == {"answered": None}, said


def test_a_question_in_doubt_can_be_asked_again_once_it_is_written_off(tmp_path: Path) -> None:
    with here(tmp_path) as service:
        jobs, ledger = service.parts.jobs, service.parts.ledger
        real, ledger.settle = ledger.settle, _killed  # type: ignore[method-assign]
        job, _ = jobs.ask("bob", "metered", Asked("place", 2, None), "cut", "a dead worker")
        try:
            jobs.run(job.id)
        except KeyboardInterrupt:
            pass
        finally:
            ledger.settle = real  # type: ignore[method-assign]
        body = {"column": "place", "k": 2, "request_id": "cut"}
        path = "/api/datasets/metered/ask"
        assert service.answered("bob", path, body)["state"] == "in-doubt"
        (doubt,) = service.call("olga", "GET", "/api/in-doubt").json()
        off = f"/api/in-doubt/{doubt['reservation']}/write-off"
        assert service.call("olga", "POST", off).status_code == 200
        service.call("bob", "POST", path, body)
        deadline = time.monotonic() + PATIENCE
        while service.ended("bob", job.id)["state"] != "answered":
            assert time.monotonic() < deadline
        assert service.call("olga", "GET", "/api/in-doubt").json() == []


def test_a_question_that_is_written_off_while_it_is_counted_says_so(
    fresh: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = Ledger.settle

    def written_off_first(self: Ledger, reservation: Any, *more: Any) -> Any:
        off = f"/api/v1/in-doubt/{reservation.id}/write-off"
        assert fresh.call("olga", "POST", off).status_code == 200
        return settle(self, reservation, *more)

    monkeypatch.setattr(Ledger, "settle", written_off_first)
    body = {"column": "place", "k": 2, "epsilon": 0.5, "request_id": "off"}
    job = fresh.answered("ann", "/api/v1/datasets/events/ask", body)
    assert (job["state"], job["error"], job["answer"]) == ("failed", "written_off", None)
    assert "wrote this question off" in job["message"]
    assert "Nothing was charged" in job["message"]
    account = fresh.parts.ledger.account("events")
    assert not account.pending
    assert not any(account.spent.values())
    monkeypatch.undo()
    again = fresh.answered("ann", "/api/v1/datasets/events/ask", body | {"request_id": "new"})
    assert again["state"] == "answered"


def test_what_failed_before_its_process_died_is_no_refusal(fresh: Here) -> None:
    jobs, ledger = fresh.parts.jobs, fresh.parts.ledger
    real = ledger.settle

    def charged_and_killed(reservation: Reservation, *_: object) -> None:
        ledger.fail(reservation)
        raise KeyboardInterrupt

    ledger.settle = charged_and_killed  # type: ignore[method-assign,assignment]
    job, _ = jobs.ask("bob", "metered", Asked("place", 2, None), "cut", fresh.parts.desk.worker)
    with pytest.raises(KeyboardInterrupt):
        jobs.run(job.id)
    ledger.settle = real  # type: ignore[method-assign]
    assert jobs.run(job.id) == "failed"
    said = fresh.ended("bob", job.id)["message"]
    assert said.startswith("This question was cut short, or ")
    assert ledger.account("metered").spent["picks"] == 2


def _killed(*_: object) -> None:
    raise KeyboardInterrupt  # as far as a process can be killed within another
