"""What a failure leaves behind: a cause for owners, a line in the log, what health says."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from serving import Here, write_events
from sqlalchemy import select

from topsecret.errors import LedgerError
from topsecret.service.jobs.release_schedule import Turns
from topsecret.service.schema import NOTES

QUESTION = {"column": "place", "k": 1, "epsilon": 0.2}


def test_a_failure_leaves_a_trace_for_the_owner(
    service: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = service.parts.settings.files[0]
    write_events(folder / "gone.csv", {"Harbour": 30})
    body = {"name": "gone", "title": "G", "file": "gone.csv", "person": "user"}
    body |= {"columns": ["place"], "epsilon": 1}  # type: ignore[dict-item]
    assert service.call("olga", "POST", "/api/datasets", body).status_code == 201
    service.parts.datasets.allow("gone", "ann", {"epsilon": 1.0})
    (folder / "gone.csv").unlink()
    job = service.answered("ann", "/api/datasets/gone/ask", QUESTION)
    assert (job["state"], job["error"]) == ("failed", "source_failed")
    assert "Nothing was charged." in job["message"]
    path = f"/answers/{job['id']}"
    cause = "the file is not there any more"
    assert cause not in service.call("ann", "GET", path).text
    assert cause in service.call("olga", "GET", path).text
    assert "cause" not in service.call("ann", "GET", f"/api{path}").json()
    assert cause in service.call("olga", "GET", f"/api{path}").json()["cause"]
    assert cause in service.call("olga", "GET", "/owner/datasets/gone").text
    # Who may view the dataset sees that it failed, on every page, and not why.
    every = "/answers?dataset=gone"
    service.parts.roles.give("gone", "bob", "viewer")
    for page in (every, path):
        seen = service.call("bob", "GET", page)
        assert seen.status_code == 200
        assert cause not in seen.text
    assert "cause" not in service.call("bob", "GET", f"/api{path}").json()
    service.parts.roles.give("gone", "bob", "owner")
    for who in ("olga", "bob"):
        assert cause in service.call(who, "GET", every).text
    assert not any(service.parts.ledger.account("gone").spent.values())
    lines = [json.loads(one) for one in capsys.readouterr().err.splitlines() if one[:1] == "{"]
    # A line of a test before this one may come as late as now.
    (line,) = [one for one in lines if one.get("job") == job["id"]]
    del line["time"]
    assert line == {
        "event": "question failed",
        "job": job["id"],
        "dataset": "gone",
        "error": "source_failed",
        "kind": "DataIndependentFailure",
        "charged": False,
    }


def test_a_malformed_file_has_another_cause_and_says_that_it_was_charged(service: Here) -> None:
    file = service.parts.settings.files[0] / "broken.csv"
    write_events(file, {"Harbour": 30})
    body = {"name": "broken", "title": "B", "file": "broken.csv", "person": "user"}
    body |= {"columns": ["place"], "epsilon": 1}  # type: ignore[dict-item]
    assert service.call("olga", "POST", "/api/datasets", body).status_code == 201
    service.parts.datasets.allow("broken", "ann", {"epsilon": 1.0})
    with file.open("a", encoding="utf-8") as rows:
        rows.write('u99,"a quote that nobody closes\n')
    job = service.answered("ann", "/api/datasets/broken/ask", QUESTION)
    assert (job["state"], job["error"]) == ("failed", "source_failed")
    assert "stays charged" in job["message"]
    assert "quote" not in job["message"]
    told = service.call("olga", "GET", f"/api/answers/{job['id']}").json()["cause"]
    assert "quote" in told
    assert any(service.parts.ledger.account("broken").spent.values())


def test_health_tries_to_write(service: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    assert service.client.get("/api/health").json() == {"status": "ok"}
    health = service.parts.health
    written = select(NOTES.c.value).where(NOTES.c.name == "health")
    with service.parts.store.reading() as connection:
        before = connection.execute(written).scalar_one()
    monkeypatch.setattr(health, "_good_until", 0.0)
    health.check()
    with service.parts.store.reading() as connection:
        assert connection.execute(written).scalar_one() != before
    monkeypatch.setattr(health, "_good_until", 0.0)

    @contextmanager
    def full() -> Iterator[None]:
        raise LedgerError("no space")
        yield

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(service.parts.store), "writing", lambda _: full())
        assert service.client.get("/api/health").status_code == 503
    assert service.client.get("/api/health").status_code == 200


def test_a_log_that_cannot_be_written_ends_no_clock() -> None:
    turns = Turns(1, 0.05, 0.05)

    def broken(*_: object) -> None:
        raise BrokenPipeError

    turns.noticed = broken
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turns, "hanging", lambda: frozenset({("visits", "visits.csv")}))
        turns.look()
    assert turns._seen_hanging
