"""Lists of many answers keep nobody waiting: short pages, made beside the event loop."""

import asyncio
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import PASSWORD, PATIENCE, Here, populate, settings
from sqlalchemy import delete, event, select
from test_teams import browser

from topsecret.results.release import Release
from topsecret.service import api_owner, shapes, texts
from topsecret.service.jobs.copies import kept_or_refused
from topsecret.service.jobs.job import Asked, Job
from topsecret.service.jobs.queue import Jobs
from topsecret.service.schema import JOBS
from topsecret.service.state import MOST_BYTES, Parts, Remembered

QUESTION = {"column": "place", "k": 2, "epsilon": 0.5}
COPIES = 149


@pytest.fixture(scope="module", autouse=True)
def many(service: Here) -> None:
    """As many answers as if one question had been asked again and again."""
    job = service.answered("ann", "/api/v1/datasets/events/ask", QUESTION)
    with service.parts.store.writing() as connection:
        query = select(JOBS).where(JOBS.c.id == job["id"])
        row = dict(connection.execute(query).mappings().one())
        for number in range(COPIES):
            copy = row | {"id": f"copy{number}", "request": f"copy{number}"}
            connection.execute(JOBS.insert().values(copy))


def test_a_page_has_100_answers_at_most_and_leads_to_the_next(service: Here) -> None:
    found: list[str] = []
    lengths, path = [], "/api/v1/answers?dataset=events&limit=1000"
    while path:
        page = service.call("ann", "GET", path)
        lengths.append(len(page.json()))
        found += [one["id"] for one in page.json()]
        link = re.fullmatch(r'<(\S+)>; rel="next"', page.headers.get("link", ""))
        path = "" if link is None else "/api/v1/answers" + link[1]
    assert lengths == [100, COPIES + 1 - 100]
    assert len(set(found)) == COPIES + 1
    short = service.call("ann", "GET", "/api/v1/answers?limit=3")
    assert len(short.json()) == 3
    assert "limit=3" in short.headers["link"]


def test_a_page_ends_once_it_has_its_bytes(service: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = service.call("ann", "GET", "/api/v1/answers?dataset=events&limit=12")
    one = max(len(json.dumps(entry)) for entry in whole.json())
    monkeypatch.setattr(shapes, "MOST_BYTES", 3 * one)
    found, path = [], "/api/v1/answers?dataset=events&limit=12"
    while path and len(found) < 12:
        page = service.call("ann", "GET", path)
        assert 1 <= len(page.json()) <= 4
        assert len(page.content) < 4 * one + 10
        found += page.json()
        path = "/api/v1/answers" + page.headers["link"][1:].split(">")[0]
    assert found[:12] == whole.json()


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/answers/copy1",
        "/api/v1/answers/copy1/csv",
        "/answers/copy1",
        "/answers/copy1/download.csv",
        "/answers/copy1/download.json",
    ],
)
def test_an_answer_is_written_beside_the_event_loop(
    service: Here, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    on_the_loop: list[bool] = []

    def noting(method: Any) -> Any:
        def noted(self: object) -> object:
            try:
                asyncio.get_running_loop()
                on_the_loop.append(True)
            except RuntimeError:
                on_the_loop.append(False)
            return method(self)

        return noted

    monkeypatch.setattr(Job, "to_dict", noting(Job.to_dict))
    monkeypatch.setattr(Release, "to_csv", noting(Release.to_csv))
    monkeypatch.setattr(Release, "ranked", noting(Release.ranked))
    service.parts.remembered.clear()
    assert service.call("ann", "GET", path).status_code == 200
    assert on_the_loop
    assert not any(on_the_loop)


def test_what_is_remembered_is_bounded_by_bytes() -> None:
    kept = Remembered()
    for number in range(100):
        kept.put(str(number), "ann", "events", bytes(2**20))
        kept.put(str(number), "ann", "events", bytes(2**20))  # once more: it counts once
    there = [number for number in range(100) if kept.get(str(number))]
    assert there == list(range(100 - MOST_BYTES // 2**20, 100))
    kept.put("huge", "ann", "events", bytes(MOST_BYTES + 1))
    assert kept.get("huge") is None
    kept.put("small", "ann", "events", b"{}")
    assert kept.get("small")


def test_a_large_answer_is_kept_a_few_times_for_one_account(
    service: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topsecret.service.jobs.copies.LARGE", 10)
    body, ask = QUESTION | {"k": 1}, "/api/v1/datasets/events/ask"
    first, second, third, fourth = (
        service.answered("ann", ask, body | {"request_id": f"large{n}"}) for n in range(4)
    )
    assert first["answer"]["items"] == second["answer"]["items"] == third["answer"]["items"]
    spent = service.parts.ledger.account("events").spent
    assert (fourth["state"], fourth["error"]) == ("refused", "asked_before")
    assert fourth["message"] == (
        f"You have this answer 3 times; look at {third['id']}. Nothing was charged."
    )
    assert service.answered("ann", ask, body | {"request_id": "large1"}) == second
    assert service.parts.ledger.account("events").spent == spent
    other = service.answered("bob", ask, body)  # another account has none yet
    assert other["answer"]["items"] == first["answer"]["items"]
    monkeypatch.setattr("topsecret.service.jobs.copies.LARGE", 2**16)
    again = service.answered("ann", ask, body | {"request_id": "small"})
    assert again["state"] == "answered"  # small ones are kept as often as they are asked


@pytest.mark.parametrize("place", ["sqlite", "postgres"])
def test_of_repeats_at_once_no_more_are_kept(
    place: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topsecret.service.jobs.copies.LARGE", 10)
    url = request.getfixturevalue("postgres_url") if place == "postgres" else ""
    parts = Parts(settings(tmp_path, database=url))  # nobody answers but this test
    populate(parts, tmp_path)
    ask = partial(parts.jobs.ask, "ann", "events", Asked("place", 1, 0.5))
    jobs = [ask(f"large{number}", "me")[0].id for number in range(4)]
    assert [parts.jobs.run(one) for one in jobs[:2]] == ["answered"] * 2
    both, store_end = threading.Barrier(2, timeout=PATIENCE), Jobs._store_end

    def together(self: Jobs, *given: Any) -> str:
        """Each has its answer before either is stored."""
        both.wait()
        return store_end(self, *given)

    monkeypatch.setattr(Jobs, "_store_end", together)
    with ThreadPoolExecutor(2) as pool:
        became = list(pool.map(parts.jobs.run, jobs[2:]))
    assert sorted(became) == ["answered", "refused"]
    with parts.store.reading() as connection:
        found = connection.execute(select(JOBS.c.error, JOBS.c.answer)).all()
    assert sorted(bool(one.answer) for one in found) == [False, True, True, True]
    assert {one.error for one in found if not one.answer} == {"asked_before"}
    parts.ledger.close()
    parts.store.close()


def test_other_words_for_the_same_question_are_no_way_around_it(
    fresh: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topsecret.service.jobs.copies.LARGE", 10)
    new = {"name": "pasted", "title": "P", "file": "events.csv", "person": "user", "epsilon": 8}
    new |= {"columns": ["place"], "sql": True}
    assert fresh.call("olga", "POST", "/api/v1/datasets", new).status_code == 201
    fresh.parts.datasets.allow("pasted", "ann", {"epsilon": 8.0})
    query = (
        'SELECT place, COUNT(DISTINCT "user") AS n FROM t GROUP BY place ORDER BY n DESC LIMIT 1'
    )
    states = [
        fresh.answered("ann", "/api/v1/datasets/pasted/sql", {"query": one, "epsilon": 0.5})[
            "state"
        ]
        for one in (query + " " * number for number in range(4))
    ]
    assert states == ["answered"] * 3 + ["refused"]


def test_an_answer_in_a_list_has_every_field_of_the_schema(service: Here) -> None:
    one = service.call("ann", "GET", "/api/v1/answers?limit=1").json()[0]
    schema = service.client.get("/openapi.json").json()["components"]["schemas"]["AnswerShape"]
    assert set(one) == set(schema["properties"])
    alone = service.call("ann", "GET", f"/api/v1/answers/{one['id']}").json()
    assert {name: one[name] for name in alone} == alone


def test_lists_on_pages_read_no_answers(service: Here) -> None:
    """However large answers are: here they cannot even be read."""
    with service.parts.store.writing() as connection:
        row = dict(connection.execute(select(JOBS).limit(1)).mappings().one())
        row |= {"user": "bob", "dataset": "metered", "answer": "unread"}
        row["asked"] += 86400.0  # the latest of all
        for number in range(60):
            copy = row | {"id": f"unread{number}", "request": f"unread{number}"}
            connection.execute(JOBS.insert().values(copy))
    with browser(service, "bob") as client:
        assert client.get("/").text.count('href="/answers/unread') == 5
        page = client.get("/answers")
        assert page.text.count('href="/answers/unread') == 50
        older = re.search(r'href="(/answers\?before=[^"]+)"', page.text)
        assert older is not None
        assert client.get(older[1]).text.count('href="/answers/unread') == 10
    with browser(service, "olga") as client:
        page = client.get("/answers?dataset=metered")
        assert page.text.count('href="/answers/unread') == 50
        page = client.get("/owner/datasets/metered")
        assert page.text.count('href="/answers/unread') == 30
    with service.parts.store.writing() as connection:
        connection.execute(delete(JOBS).where(JOBS.c.user == "bob", JOBS.c.answer == "unread"))


def test_no_question_waits_for_a_look_at_all_that_its_account_was_answered(tmp_path: Path) -> None:
    """SQLite goes through an answer to what stands behind it, while nobody else can write."""
    parts = Parts(settings(tmp_path))
    parts.accounts.add("ann", "analyst", PASSWORD)
    looks: list[tuple[str, Any]] = []

    def note(_connection: object, _cursor: object, statement: str, given: Any, *_: object) -> None:
        if statement.startswith("SELECT service_jobs."):
            looks.append((statement, given))

    event.listen(parts.store._engine, "before_cursor_execute", note)
    try:
        parts.jobs.ask("ann", "events", Asked("place", 2, 0.5), None, "worker")
        row: Any = {"user": "ann", "dataset": "events"}
        with parts.store.writing() as connection:
            kept_or_refused(connection, row, {"entry": 1, "shown": 1.0})
    finally:
        event.remove(parts.store._engine, "before_cursor_execute", note)
    assert len(looks) == 2
    with parts.store.reading() as connection:
        plans = [
            [step[-1] for step in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {one}", given)]
            for one, given in looks
        ]
    assert plans[0] == ["SEARCH service_jobs USING COVERING INDEX service_jobs_by_end (user=?)"]
    assert "service_jobs_by_entry (user=? AND dataset=? AND entry=?)" in plans[1][0]
    parts.close()


def test_others_are_answered_while_a_list_is_made(
    service: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, answered, on_the_loop = threading.Event(), threading.Event(), []
    to_dict = Job.to_dict

    def held(self: Job) -> dict[str, object]:
        begun.set()
        try:
            asyncio.get_running_loop()
            on_the_loop.append(self.id)  # to wait here would stop the service
        except RuntimeError:
            assert answered.wait(PATIENCE)
        return to_dict(self)

    monkeypatch.setattr(Job, "to_dict", held)
    headers = {"authorization": f"Bearer {service.keys['ann']}"}
    lists: list[httpx.Response] = []

    def ask() -> None:
        address = f"{service.client.base_url}/api/v1/answers?limit=1000"
        lists.append(httpx.get(address, headers=headers, timeout=PATIENCE))

    thread = threading.Thread(target=ask)
    thread.start()
    assert begun.wait(PATIENCE)
    assert service.call("bob", "GET", "/api/v1/me").status_code == 200
    assert not lists or on_the_loop
    answered.set()
    thread.join(PATIENCE)
    assert lists[0].status_code == 200
    assert not on_the_loop


def test_others_are_answered_while_the_audit_trail_is_listed(
    service: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_the_loop: list[object] = []
    shown = texts.shown

    def noted(value: object) -> object:
        with suppress(RuntimeError):  # in a thread of its own
            on_the_loop.append(asyncio.get_running_loop())
        return shown(value)

    for number in range(3):
        service.parts.audit.note("olga", f"look {number}", {"name": f"{number}\u202e"})
    monkeypatch.setattr(api_owner.texts, "shown", noted)
    listed = service.call("olga", "GET", "/api/v1/audit?limit=1000")
    assert [one["action"] for one in listed.json()[:3]] == ["look 2", "look 1", "look 0"]
    assert listed.headers["content-type"] == "application/json"
    assert not on_the_loop
