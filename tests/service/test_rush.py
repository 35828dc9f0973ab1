"""Many analysts ask different fresh questions at once of a budget that covers only a few."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import BRIEF, PATIENCE, PLACES, Here, Server, settings, write_events

from topsecret.service.datasets import NewDataset
from topsecret.service.schema import USERS
from topsecret.service.state import Parts

ANALYSTS = 6
FIT = 4


@pytest.fixture(params=[pytest.param("sqlite", marks=pytest.mark.soak), "postgres"])
def place(request: pytest.FixtureRequest) -> str:
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def populated(folder: Path, place: str) -> tuple[Parts, dict[str, str]]:
    """Two datasets, nearly spent: at a fixed price four questions fit, by free choice a few."""
    files = folder / "files"
    files.mkdir()
    write_events(files / "events.csv", PLACES)
    parts = Parts(settings(folder, database=place))
    names = [f"a{number}" for number in range(ANALYSTS)]
    with parts.store.writing() as connection:  # nobody logs in: no need to hash passwords
        people = {"role": "analyst", "password": "-", "active": 1, "created": 0.0}
        connection.execute(USERS.insert(), [{"name": name, **people} for name in names])
    columns = ("place", "colour")
    fixed = {"queries": FIT, "picks": 1000}
    parts.datasets.register(
        NewDataset("fixed", "Fixed", "events.csv", "user", columns, None, 20.0, 1e-5, FIT, 1000)
    )
    parts.datasets.register(
        NewDataset("free", "Free", "events.csv", "user", columns, None, 2.0, 1e-5)
    )
    for name in names:
        parts.datasets.allow("fixed", name, fixed)
        parts.datasets.allow("free", name, {"epsilon": 2.0})
    return parts, {name: parts.accounts.new_key(name, "rush") for name in names}


def test_nothing_is_over_spent_and_the_others_are_refused(tmp_path: Path, place: str) -> None:
    parts, keys = populated(tmp_path, place)
    server = Server(tmp_path, "--workers", "2", "--tick", "0.1", "--database", place)

    def ask(number: int) -> dict[str, dict[str, Any]]:
        """Questions that nobody else asks: no stored answer can serve them."""
        name = f"a{number}"
        ended = {}
        with httpx.Client(base_url=server.address, timeout=PATIENCE, limits=BRIEF) as client:
            service = Here(client, parts, keys)
            column, k = ("place", "colour")[number % 2], 2 + number // 2
            bodies = {
                "fixed": {"column": column, "k": k},
                "free": {"column": column, "k": 2, "epsilon": 0.6 + number / 1000},
            }
            jobs = {}
            for dataset, body in bodies.items():
                asked = service.call(name, "POST", f"/api/datasets/{dataset}/ask", body)
                # Not admitted at once is as clean as refused later.
                assert asked.status_code in (202, 409), asked.text
                jobs[dataset] = asked.json()
            for dataset, job in jobs.items():
                ended[dataset] = service.ended(name, job["id"], 0.3) if "id" in job else job
        return ended

    try:
        with ThreadPoolExecutor(ANALYSTS) as pool:
            ended = list(pool.map(ask, range(ANALYSTS)))
    finally:
        assert server.stop() == 0
    answered: dict[str, int] = {}
    for dataset in ("fixed", "free"):
        jobs = [one[dataset] for one in ended]
        for job in jobs:
            if job.get("state") != "answered":
                said = [line for line in server.lines() if line["event"] != "request"]
                assert job["error"] == "budget_exceeded", said
                assert job.get("state", "refused") == "refused"
                assert job.get("answer") is None
        answered[dataset] = sum(job.get("state") == "answered" for job in jobs)
        account = parts.ledger.account(dataset)
        history = parts.ledger.history(dataset)
        assert account.pending == ()
        assert all(value >= 0 for value in account.left.values())
        assert sum(entry.event == "settled" for entry in history) == answered[dataset]
        assert sum(entry.event == "reserved" for entry in history) == answered[dataset]
    assert answered["fixed"] == FIT
    assert 1 <= answered["free"] < ANALYSTS
    assert not parts.ledger.check().faults
    statuses = {line["status"] for line in server.lines() if line["event"] == "request"}
    assert max(statuses) < 500
    parts.store.close()
    parts.ledger.close()
