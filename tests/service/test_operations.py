"""For whoever runs a service: a path prefix, numbers, what is forgotten, rollback noticed."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import PASSWORD, PATIENCE, Here, here, settings
from sqlalchemy import Connection, delete, event, func, select, update
from test_coming_in import form_token

from topsecret.cli import main
from topsecret.errors import InvalidParameter
from topsecret.service.schema import JOBS
from topsecret.service.settings import Settings
from topsecret.service.state import Parts

ASK = "/api/v1/datasets/events/ask"
QUESTION = {"column": "place", "k": 1, "epsilon": 0.3, "request_id": "operations"}


@pytest.fixture(scope="module")
def below(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    with here(tmp_path_factory.mktemp("below"), prefix="/lists/secret", keep_days=30) as made:
        yield made


def test_all_links_and_redirects_are_below_the_prefix(below: Here) -> None:
    ahead = "/lists/secret"
    with httpx.Client(base_url=below.client.base_url, timeout=PATIENCE) as client:
        client.headers["accept"] = "text/html"
        assert client.get(ahead).headers["location"] == f"{ahead}/login"
        assert client.get(f"{ahead}/account").headers["location"] == f"{ahead}/login?to=/account"
        visit = form_token(client.get(f"{ahead}/login?to=/account").text, "visit")
        form = {"name": "olga", "password": PASSWORD, "visit": visit, "to": "/account"}
        inside = client.post(f"{ahead}/login", data=form)
        assert (inside.status_code, inside.headers["location"]) == (303, f"{ahead}/account")
        pages = ["", "/account", "/answers", "/docs", "/owner", "/owner/new", "/owner/analysts"]
        pages += ["/owner/audit", "/owner/in-doubt", "/owner/datasets/events", "/nothing"]
        pages += ["/owner/datasets/events/edit"]
        below.parts.datasets.allow("events", "olga", {"epsilon": 1.0})
        pages += ["/datasets/events"]
        links: set[str] = set()
        for page in pages:
            answer = client.get(ahead + page)
            assert answer.status_code == (404 if page == "/nothing" else 200), page
            found = re.findall(r'(?:href|src|action|data-plan|data-answer)="([^"#]+)"', answer.text)
            assert all(link.startswith(f"{ahead}/") for link in found), page
            links |= set(found)
        for link in links:
            # Forms want to be posted; all the rest is there.
            assert client.get(link).status_code in (200, 303, 405), link
        assert client.get(f"{ahead}/openapi.json").json()["servers"] == [{"url": ahead}]
        assert client.get(f"{ahead}/api/health").status_code == 200
        # A proxy may take the prefix off itself.
        assert client.get("/account").status_code == 200
        assert client.get("/lists/secrets/account").status_code == 404


@pytest.mark.parametrize("prefix", ["topsecret", "/a//b", "/a b", '/"', "/a/"])
def test_a_prefix_is_a_path(prefix: str) -> None:
    with pytest.raises(InvalidParameter, match="must look like"):
        Settings(home=Path("/srv"), prefix=prefix)


def numbers(service: Here) -> dict[str, float]:
    text = service.call("olga", "GET", "/metrics").text
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


def test_metrics_tell_of_the_queue_and_of_budgets(below: Here) -> None:
    under_way, left = (f"topsecret_{name}" for name in ("questions_under_way", "budget_left_ratio"))
    left += '{dataset="events"}'
    # Answered alone it costs something, whichever answers there are.
    question = QUESTION | {"column": "colour", "epsilon": 1.0, "request_id": "metrics"}
    asked = 'topsecret_request_seconds_count{route="/api/v1/datasets/{dataset}/ask"}'
    before = numbers(below)
    assert 0 < before[left] <= 1
    with without_end(below, "queued"):
        below.answered("ann", ASK, question)
        after = numbers(below)
    assert after[left] < before[left]
    assert after['topsecret_reservations_without_end{dataset="events"}'] == 0
    assert after[under_way] == before[under_way] + 1
    assert after[asked] == before.get(asked, 0) + 1


@contextmanager
def without_end(service: Here, name: str) -> Iterator[None]:
    """A question that another worker has, and keeps; later tests do not find it."""
    waiting = {"id": name, "user": "ann", "dataset": "events", "request": name, "asked": 4e9}
    waiting |= {"question": '["place", 1, 0.3]', "state": "working", "worker": "another"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.parts.jobs, "take_over", lambda *_: [])
        with service.parts.store.writing() as connection:
            connection.execute(JOBS.insert().values(waiting))
        yield
        with service.parts.store.writing() as connection:
            connection.execute(delete(JOBS).where(JOBS.c.id == name))


def test_what_ended_long_ago_is_forgotten_and_stays_paid(below: Here) -> None:
    first = below.answered("ann", ASK, QUESTION)
    spent = below.parts.ledger.account("events").spent
    kept = below.answered("ann", ASK, QUESTION | {"request_id": "yesterday"})["id"]
    with without_end(below, "old"):
        with below.parts.store.writing() as connection:
            old = update(JOBS).where(JOBS.c.id.in_([first["id"], "old"]))
            connection.execute(old.values(asked=1000.0))
        below.parts._forget()
        assert below.call("ann", "GET", f"/api/v1/answers/{first['id']}").status_code == 404
        assert below.call("ann", "GET", f"/api/v1/answers/{kept}").status_code == 200
        assert below.parts.jobs.find("old")  # it has no end yet
    again = below.answered("ann", ASK, QUESTION)
    assert again["answer"]["items"] == first["answer"]["items"]
    assert below.parts.ledger.account("events").spent == spent


def test_nobody_waits_for_all_that_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, number = Parts(settings(tmp_path)), 130
    old = {"user": "ann", "dataset": "events", "state": "answered", "asked": 1000.0}
    old |= {"question": '["place", 1, 0.3]', "worker": "another"}
    with parts.store.writing() as connection:
        for one in map(str, range(number)):
            connection.execute(JOBS.insert().values(id=one, request=one, **old))
    real, left, looks = parts.store.writing, [number], list[tuple[str, Any]]()

    @contextmanager
    def writing() -> Iterator[Connection]:
        with real() as connection:
            yield connection
            left.append(connection.execute(select(func.count()).select_from(JOBS)).scalar_one())

    def note(_connection: object, _cursor: object, statement: str, given: Any, *_: object) -> None:
        if statement.startswith("SELECT service_jobs.id"):
            looks.append((f"EXPLAIN QUERY PLAN {statement}", given))

    event.listen(parts.store._engine, "before_cursor_execute", note)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(parts.store, "writing", writing)
            assert parts.jobs.forget(1) == number
    finally:
        event.remove(parts.store._engine, "before_cursor_execute", note)
    assert left[-1] == 0
    assert all(before - after <= 50 for before, after in pairwise(left))
    with parts.store.reading() as connection:
        ((*_, plan),) = connection.exec_driver_sql(*looks[0])
    assert plan == "SEARCH service_jobs USING INDEX service_jobs_by_age (asked<?)"
    parts.close()


def test_schedules_do_not_wait_for_what_is_forgotten(tmp_path: Path) -> None:
    parts = Parts(settings(tmp_path))
    looked, go_on = threading.Event(), threading.Event()

    def sweep() -> None:
        go_on.wait()

    parts.desk._sweep, parts.desk._tend = sweep, looked.set
    parts.desk.open()
    try:
        assert looked.wait(PATIENCE)
    finally:
        go_on.set()
        parts.close()


def test_a_log_line_names_the_account(below: Here, capsys: pytest.CaptureFixture[str]) -> None:
    below.call("ann", "GET", "/api/v1/me")
    below.call(None, "GET", "/api/v1/me")
    text, lines = "", list[str]()
    deadline = time.monotonic() + PATIENCE
    while len(lines) < 2 and time.monotonic() < deadline:  # a line may follow its reply
        text += capsys.readouterr().err
        lines = [line for line in text.split("\n")[:-1] if "/api/v1/me" in line]
        time.sleep(0.01)
    assert sorted('"account": "ann"' in line for line in lines) == [False, True]


def ended(*words: str) -> object:
    with pytest.raises(SystemExit) as stop:
        main(words)
    return stop.value.code


def test_an_older_ledger_never_had_the_end_that_is_expected(
    below: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    place = below.parts.settings.place
    head = below.parts.ledger.reached()["visits"][1]
    check = ("ledger", "check", "--ledger", place)
    assert ended(*check, "--expect", f"visits={head}") == 0
    below.parts.datasets.allow("visits", "ann", {"epsilon": 1.0})
    assert ended(*check, "--expect", f"visits={head}") == 0  # it has gone on since
    capsys.readouterr()
    for other in (f"events={head}", f"visits={'0' * 64}", f"nothing={head}"):
        assert ended(*check, "--expect", other) == 1
        assert "the chain never ended with" in capsys.readouterr().out
    assert ended(*check, "--expect", head) == 2
    assert "must be NAME=HEAD" in capsys.readouterr().err
