"""However many schedules are begun and ended: few are kept, and lists of them delay nobody."""

import asyncio
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from serving import Here
from sqlalchemy import insert
from test_teams import browser

from topsecret.service.auth.rate_limits import DAY, Limits
from topsecret.service.jobs.job import Asked
from topsecret.service.schedule import Schedule
from topsecret.service.schema import RUNS, SCHEDULES

LIST = "/api/v1/schedules"
SCHEDULE = "/api/v1/saved/weekly/schedule"
MOST_KEPT = 100


def put(service: Here, who: str, number: int, state: str = "given up") -> list[str]:
    """So many schedules of two runs about ``metered``, as they are stored; the oldest first."""
    ids = [f"{who}{one:03}" for one in range(number)]
    common = {"user": who, "name": "weekly", "dataset": "metered", "every": "day"}
    common["question"] = Asked("place", 2, None).to_text()
    later = 4e9  # nothing is due
    with service.parts.store.writing() as connection:
        rows = [common | {"id": one, "created": float(at)} for at, one in enumerate(ids)]
        connection.execute(insert(SCHEDULES), rows)
        runs: list[dict[str, Any]] = [
            {"schedule": one, "number": run, "at": later, "held": "nothing", "state": state}
            for one in ids
            for run in (1, 2)
        ]
        connection.execute(insert(RUNS), runs)
    return ids


def begin(service: Here, times: int = 1, request: str | None = None) -> Any:
    start = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    body: dict[str, object] = {"times": times, "start": start, "every": "day"}
    body |= {} if request is None else {"request_id": request}
    return service.call("bob", "POST", SCHEDULE, body)


@pytest.fixture
def weekly(fresh: Here) -> Here:
    body = {"dataset": "metered", "question": {"column": "place", "k": 2}}
    assert fresh.call("bob", "PUT", "/api/v1/saved/weekly", body).status_code == 200
    return fresh


def test_the_oldest_that_has_ended_is_forgotten_when_another_begins(weekly: Here) -> None:
    others = put(weekly, "ann", 2)
    waiting = begin(weekly).json()["id"]
    ended = put(weekly, "bob", MOST_KEPT - 1)
    entries = len(weekly.parts.ledger.history("metered"))
    with weekly.parts.store.writing() as connection:  # the oldest of all has runs to come
        mine = SCHEDULES.c.id == waiting
        connection.execute(SCHEDULES.update().where(mine).values(created=-1.0))
    made = begin(weekly)
    assert made.status_code == 201, made.text
    kept = [one["id"] for one in weekly.call("bob", "GET", LIST).json()]
    assert kept == [made.json()["id"], *reversed(ended[1:]), waiting]
    assert [one["id"] for one in weekly.call("ann", "GET", LIST).json()] == others[::-1]
    assert len(weekly.parts.ledger.history("metered")) == entries + 1
    # A service that an older version has filled keeps no more either.
    put(weekly, "old", MOST_KEPT + 50)
    with weekly.parts.store.writing() as connection:
        connection.execute(SCHEDULES.update().where(SCHEDULES.c.user == "old").values(user="bob"))
    assert begin(weekly).status_code == 201
    assert len(weekly.call("bob", "GET", LIST).json()) == MOST_KEPT
    with weekly.parts.store.reading() as connection:
        runs = connection.execute(RUNS.select()).all()
    assert len(runs) == 3 + 2 * (MOST_KEPT - 3) + 2 * len(others)


def test_what_has_runs_under_way_is_not_forgotten(weekly: Here) -> None:
    put(weekly, "bob", MOST_KEPT, "asked")
    left = weekly.parts.ledger.account("metered").left
    refused = begin(weekly)
    assert (refused.status_code, refused.json()["message"]) == (
        400,
        "100 schedules have runs to come or under way; end one first",
    )
    assert weekly.parts.ledger.account("metered").left == left


def test_a_page_has_100_schedules_at_most_and_leads_to_the_next(weekly: Here) -> None:
    mine, others = put(weekly, "bob", 90), put(weekly, "ann", 60)

    def pages(who: str, query: str) -> tuple[list[int], list[str]]:
        lengths, found, path = [], list[str](), f"{LIST}?{query}"
        while path:
            page = weekly.call(who, "GET", path)
            lengths.append(len(page.json()))
            found += [one["id"] for one in page.json()]
            link = re.fullmatch(r'<(\S+)>; rel="next"', page.headers.get("link", ""))
            path = "" if link is None else LIST + link[1]
        return lengths, found

    lengths, found = pages("olga", "dataset=metered&limit=1000")
    assert lengths == [100, 50]
    assert sorted(found) == sorted(mine + others)
    assert len(pages("olga", "dataset=metered")[1]) == 150
    assert pages("bob", "limit=40") == ([40, 40, 10], mine[::-1])
    assert pages("bob", "dataset=metered&limit=80") == ([80, 10], mine[::-1])
    assert pages("bob", "dataset=events") == ([0], [])
    assert weekly.call("bob", "GET", f"{LIST}?before={others[3]}").status_code == 404


def test_schedules_are_shaped_beside_the_event_loop(
    weekly: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(weekly, "bob", 3)
    shaped, on_the_loop = [], []
    to_dict = Schedule.to_dict

    def noted(self: Schedule) -> dict[str, object]:
        shaped.append(self.id)
        with suppress(RuntimeError):  # in a thread of its own
            on_the_loop.append(asyncio.get_running_loop())
        return to_dict(self)

    monkeypatch.setattr(Schedule, "to_dict", noted)
    listed = weekly.call("bob", "GET", LIST)
    assert (len(listed.json()), len(shaped), on_the_loop) == (3, 3, [])
    assert listed.headers["content-type"] == "application/json"
    assert weekly.call("olga", "GET", f"{LIST}?dataset=metered").json() == listed.json()
    assert on_the_loop == []


def test_the_owners_page_lists_what_is_to_come_alone(weekly: Here) -> None:
    put(weekly, "ann", 5)
    begin(weekly)
    with browser(weekly, "olga") as client:
        page = client.get("/owner/datasets/metered").text
    assert page.count("/saved/schedules/") == 1


def test_an_account_begins_so_many_runs_a_day(weekly: Here) -> None:
    weekly.parts.limits = Limits(
        {"request": 1000, "question": 1000, "plan": 1000, "run": 5}, {"run": DAY}
    )
    first = begin(weekly, 3, "first")
    assert first.status_code == 201
    assert begin(weekly, 3, "first").status_code == 200  # the same again is no new one
    assert weekly.call("bob", "DELETE", f"{LIST}/{first.json()['id']}").status_code == 200
    entries = len(weekly.parts.ledger.history("metered"))
    late = begin(weekly, 3)
    assert (late.status_code, late.json()["error"]) == (429, "too_many_requests")
    assert 0 < int(late.headers["retry-after"]) <= 17_280  # a day for five
    assert len(weekly.parts.ledger.history("metered")) == entries
    # What is refused, and so writes nothing, takes none of them.
    weekly.call("olga", "POST", "/api/v1/datasets/metered/state", {"state": "paused"})
    assert begin(weekly, 2).status_code == 409
    weekly.call("olga", "POST", "/api/v1/datasets/metered/state", {"state": "open"})
    assert begin(weekly, 2).status_code == 201
