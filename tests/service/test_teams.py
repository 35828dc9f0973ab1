"""A team: first passwords, sessions, roles in single datasets, the end of an account."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from serving import PASSWORD, PATIENCE, Here
from test_coming_in import form_token, log_in

from topsecret.service.schema import JOBS

ASK = "/api/v1/datasets/events/ask"
WEB = {"accept": "text/html"}


@contextmanager
def browser(service: Here, name: str, password: str = PASSWORD) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.client.base_url, timeout=PATIENCE, headers=WEB) as client:
        assert log_in(client, name, password).status_code == 303
        yield client


def post(client: httpx.Client, page: str, path: str, **data: str) -> httpx.Response:
    csrf = form_token(client.get(page).text, "csrf")
    return client.post(path, data={"csrf": csrf, **data})


@pytest.fixture
def eve(service: Here) -> str:
    """An analyst with a password and a key of her own; each test has another."""
    name = f"eve{len(service.keys)}"
    service.parts.accounts.add(name, "analyst", PASSWORD)
    service.keys[name] = service.parts.accounts.new_key(name, "tests")
    return name


def test_a_first_password_opens_the_form_for_another_alone(service: Here) -> None:
    made = service.call("olga", "POST", "/api/analysts", {"name": "newcomer"}).json()
    with browser(service, "newcomer", made["password"]) as client:
        for path in ("/", "/answers", "/account", "/owner"):
            sent = client.get(path)
            assert (sent.status_code, sent.headers["location"]) == (303, "/account/password"), path
        refused = client.get("/api/v1/me", headers={"accept": "application/json"})
        assert (refused.status_code, refused.json()["error"]) == (403, "first_password")
        page, form = "/account/password", "/account/password"
        assert "Somebody else knows" in client.get(page).text
        assert post(client, page, "/account/keys", label="x").headers["location"] == page
        same = post(client, page, form, old=made["password"], new=made["password"])
        assert (same.status_code, "is the old one" in same.text) == (400, True)
        short = post(client, page, form, old=made["password"], new="short")
        assert (short.status_code, "A password needs 12" in short.text) == (400, True)
        assert client.get("/").status_code == 303
        changed = post(client, page, form, old=made["password"], new=PASSWORD)
        assert changed.headers["location"] == "/"
        assert client.get("/").status_code == 200
        assert client.get("/account").status_code == 200
    # A reset hands over a password again.
    service.parts.accounts.set_password("newcomer", PASSWORD, first=True)
    with browser(service, "newcomer") as client:
        assert client.get("/").headers["location"] == "/account/password"


def test_sessions_are_listed_and_ended(service: Here, eve: str) -> None:
    with browser(service, eve) as here, browser(service, eve) as there:
        listed = here.get("/api/v1/sessions").json()
        assert [one["here"] for one in listed].count(True) == 1
        assert len(listed) == 2
        assert all(one["agent"].startswith("python-httpx") for one in listed)
        other = next(one["id"] for one in listed if not one["here"])
        assert post(here, "/account", "/account/sessions/end", session=other).status_code == 303
        assert there.get("/account").status_code == 303  # to the log-in
        assert here.get("/api/v1/me").status_code == 200
        with browser(service, eve) as again:
            assert "Elsewhere" in here.get("/account").text
            assert post(here, "/account", "/account/sessions/end").status_code == 303
            assert again.get("/account").status_code == 303
        assert here.get("/account").status_code == 200
        mine = here.get("/api/v1/sessions").json()[0]["id"]
        # Nobody ends another's.
        assert service.call("ann", "DELETE", f"/api/v1/sessions/{mine}").status_code == 404
        assert service.call(eve, "DELETE", f"/api/v1/sessions/{mine}").status_code == 200
        assert here.get("/account").status_code == 303


def test_an_owner_of_one_data_set_decides_about_it_alone(service: Here, eve: str) -> None:
    roles = "/api/v1/datasets/{}/roles"
    share = {"analyst": "ann", "epsilon": 4}
    for path in ("events", "visits"):
        refused = service.call(eve, "POST", f"/api/v1/datasets/{path}/allowances", share)
        assert refused.status_code == 403
    given = service.call("olga", "PUT", f"{roles.format('events')}/{eve}", {"role": "owner"})
    assert given.status_code == 200
    assert service.call(eve, "POST", "/api/v1/datasets/events/allowances", share).status_code == 200
    assert service.call(eve, "POST", "/api/v1/datasets/visits/allowances", share).status_code == 403
    assert service.call(eve, "POST", "/api/v1/datasets/visits/close").status_code == 403
    assert service.call(eve, "GET", "/owner/datasets/events").status_code == 200
    assert service.call(eve, "GET", "/owner/datasets/visits").status_code == 403
    overview = service.call(eve, "GET", "/owner").text
    assert ("/owner/datasets/events" in overview, "/owner/datasets/visits" in overview) == (1, 0)
    for path in ("/owner/new", "/owner/analysts", "/owner/audit", "/metrics", "/api/v1/analysts"):
        assert service.call(eve, "GET", path).status_code == 403, path
    assert [one["name"] for one in service.call(eve, "GET", "/api/v1/datasets").json()] == [
        "events"
    ]
    # A reservation of another dataset is none of hers.
    off = service.call(eve, "POST", "/api/v1/in-doubt/nothing/write-off")
    assert off.status_code == 404
    assert service.call(eve, "DELETE", f"{roles.format('events')}/{eve}").status_code == 200
    assert service.call(eve, "GET", "/owner").status_code == 403


def test_a_viewer_sees_all_answers_and_asks_nothing(service: Here, eve: str) -> None:
    body = {"column": "place", "k": 2, "epsilon": 0.3}
    answer = service.answered("ann", ASK, body)["id"]
    of_bob = service.answered("bob", "/api/v1/datasets/visits/ask", body)["id"]
    seen = f"/api/v1/answers/{answer}"
    assert service.call(eve, "GET", seen).status_code == 404
    assert service.call(eve, "GET", "/api/v1/answers?dataset=events").json() == []
    service.parts.roles.give("events", eve, "viewer")
    assert service.call(eve, "GET", seen).json()["state"] == "answered"
    assert service.call(eve, "GET", f"/answers/{answer}").status_code == 200
    assert service.call(eve, "GET", f"/answers/{answer}/download.csv").status_code == 200
    listed = service.call(eve, "GET", "/api/v1/answers?dataset=events").json()
    assert answer in {one["id"] for one in listed}
    assert "Top 2 of place" in service.call(eve, "GET", "/answers?dataset=events").text
    assert service.call(eve, "GET", f"/api/v1/answers/{of_bob}").status_code == 404
    assert service.call(eve, "GET", "/api/v1/answers?dataset=visits").json() == []
    assert service.call(eve, "POST", ASK, body).status_code == 404
    assert service.call(eve, "POST", f"{seen}/cancel").status_code == 403
    assert service.call(eve, "POST", "/api/v1/datasets/events/close").status_code == 403
    wrong = service.call("olga", "PUT", f"/api/v1/datasets/events/roles/{eve}", {"role": "king"})
    assert wrong.status_code == 422
    nobody = service.call("olga", "PUT", "/api/v1/datasets/events/roles/x", {"role": "viewer"})
    assert nobody.status_code == 400


def test_a_question_is_ended_on_its_page_by_those_who_may(service: Here, eve: str) -> None:
    working: dict[str, Any] = {"id": "long", "user": "ann", "dataset": "events", "request": "long"}
    working |= {"question": '["place", 2, 0.3]', "state": "working", "asked": time.time()}
    working |= {"worker": service.parts.desk.worker}
    with service.parts.store.writing() as connection:
        connection.execute(JOBS.insert().values(working))
    page, button = "/answers/long", 'action="/answers/long/cancel"'
    for who, role, may in (
        ("ann", None, True),
        ("olga", None, True),
        (eve, "viewer", False),
        (eve, "owner", True),
    ):
        if role is not None:
            service.parts.roles.give("events", who, role)  # type: ignore[arg-type]
        assert (button in service.call(who, "GET", page).text) is may
    with browser(service, eve) as client:
        assert post(client, "/account", f"{page}/cancel").status_code == 303
    assert "long" in service.parts.jobs.cancelled(service.parts.desk.worker)


def test_pages_of_answers_follow_one_another(service: Here, eve: str) -> None:
    made = {"user": eve, "dataset": "events", "state": "refused", "worker": "", "shown": 1.0}
    question = '["place", 2, 0.3]'
    with service.parts.store.writing() as connection:
        for number in range(7):
            row: dict[str, Any] = {"id": f"page-{number}", "request": str(number)}
            row |= {"asked": float(number // 2), "question": question, "message": "x"}
            connection.execute(JOBS.insert().values(**row, **made))
    found, path = [], "/api/v1/answers?limit=3"
    while page := service.call(eve, "GET", path).json():
        found += [one["id"] for one in page]
        path = f"/api/v1/answers?limit=3&before={page[-1]['id']}"
    assert found == [f"page-{number}" for number in (6, 5, 4, 3, 2, 1, 0)]
    assert service.call(eve, "GET", "/api/v1/answers?limit=0").status_code == 422


def test_a_deleted_account_leaves_nothing_that_opens_a_door(service: Here, eve: str) -> None:
    service.parts.roles.give("events", eve, "owner")
    working: dict[str, Any] = {"id": "under-way", "user": eve, "dataset": "events"}
    working |= {"request": "r", "question": '["place", 2, 0.3]', "state": "working"}
    working |= {"asked": time.time(), "worker": service.parts.desk.worker}
    with service.parts.store.writing() as connection:
        connection.execute(JOBS.insert().values(working))
    with browser(service, eve) as client:
        assert service.call("olga", "DELETE", f"/api/v1/analysts/{eve}").status_code == 200
        assert client.get("/account").status_code == 303
        again = log_in(client, eve, PASSWORD)
        assert again.status_code == 401
    assert service.call(eve, "GET", "/api/v1/me").status_code == 401
    assert service.parts.accounts.keys(eve) == []
    assert eve not in {one.name for one in service.parts.roles.members("events")}
    assert "under-way" in service.parts.jobs.cancelled(service.parts.desk.worker)
    # The name is not given to anybody else, and a reset does not bring it back.
    assert service.call("olga", "POST", "/api/analysts", {"name": eve}).status_code == 400
    assert service.call("olga", "DELETE", f"/api/v1/analysts/{eve}").status_code == 400
    last = service.call("olga", "DELETE", "/api/v1/analysts/olga")
    assert (last.status_code, "last owner stays" in last.text) == (400, True)
