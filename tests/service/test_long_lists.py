"""Lists of many answers keep nobody waiting: short pages, made beside the event loop."""

import asyncio
import re
import threading
from contextlib import suppress

import httpx
import pytest
from serving import PATIENCE, Here
from sqlalchemy import select

from topsecret.service import api_owner, texts
from topsecret.service.jobs.job import Job
from topsecret.service.schema import JOBS

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


def test_an_answer_in_a_list_has_every_field_of_the_schema(service: Here) -> None:
    one = service.call("ann", "GET", "/api/v1/answers?limit=1").json()[0]
    schema = service.client.get("/openapi.json").json()["components"]["schemas"]["AnswerShape"]
    assert set(one) == set(schema["properties"])
    alone = service.call("ann", "GET", f"/api/v1/answers/{one['id']}").json()
    assert {name: one[name] for name in alone} == alone


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
