"""A file is looked at when a question is reserved, and again when its rows are read."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from serving import PLACES, Here, here, write_events

from topsecret.service.jobs.release_schedule import Turn

QUESTION = {"column": "place", "k": 1, "epsilon": 0.5}
WAITED = "while the question waited for an engine: "
WRITTEN = WAITED + "the file was written, or another put in its place"


@contextmanager
def meanwhile(change: Callable[[], object]) -> Iterator[None]:
    """Something happens once a question is reserved, before it has an engine."""
    real, once = Turn.reading, threading.Lock()

    def reading(turn: Turn) -> None:
        if once.acquire(blocking=False):
            change()
        real(turn)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Turn, "reading", reading)
        yield


def charged(service: Here, job: dict[str, Any], cause: str) -> None:
    """It failed, its analyst is told no more than that, and its owner why."""
    assert (job["state"], job["error"], job["answer"]) == ("failed", "source_failed", None)
    assert "What it may cost stays charged." in job["message"]
    assert cause not in str(job)
    shown = service.call("olga", "GET", f"/api/answers/{job['id']}").json()
    assert shown["cause"].startswith(cause)


@pytest.mark.parametrize("query", [False, True])
def test_a_link_that_is_put_in_the_place_of_a_file_is_not_read(query: bool, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    write_events(outside / "secret.csv", {"Outside": 900})
    with here(tmp_path) as service:
        file = tmp_path / "files" / "pasted.csv"
        write_events(file, PLACES)
        new = {"name": "pasted", "title": "P", "file": "pasted.csv", "person": "user"}
        new |= {"columns": ["place"], "epsilon": 8, "sql": True}
        assert service.call("olga", "POST", "/api/datasets", new).status_code == 201
        service.parts.datasets.allow("pasted", "ann", {"epsilon": 8.0})

        def link() -> None:
            file.rename(tmp_path / "files" / "old.csv")
            file.symlink_to(outside / "secret.csv")

        path, body = "/api/datasets/pasted/ask", QUESTION
        if query:
            asked = 'SELECT place, COUNT(DISTINCT "user") AS n FROM t GROUP BY place'
            body = {"query": f"{asked} ORDER BY n DESC LIMIT 1", "epsilon": 0.5}
            path = "/api/datasets/pasted/sql"
        with meanwhile(link):
            job = service.answered("ann", path, body)
        charged(service, job, WAITED + "the file is not there any more, is a link by now")
        assert service.parts.ledger.history("pasted")[-1].event == "failed"


def test_a_file_that_is_written_or_replaced_while_a_question_waits_is_not_read(
    tmp_path: Path,
) -> None:
    with here(tmp_path) as service:
        file = tmp_path / "files" / "events.csv"
        path = "/api/datasets/events/ask"
        with meanwhile(lambda: write_events(file, PLACES, "u,Harbour,red\n")):
            charged(service, service.answered("ann", path, QUESTION), WRITTEN)

        def replaced() -> None:
            """By one of the same size and time."""
            seen = file.stat()
            other = tmp_path / "other.csv"
            other.write_bytes(file.read_bytes())
            os.utime(other, ns=(seen.st_atime_ns, seen.st_mtime_ns))
            other.rename(file)

        with meanwhile(replaced):
            charged(service, service.answered("ann", path, QUESTION), WRITTEN)
        with meanwhile(lambda: None):
            assert service.answered("ann", path, QUESTION)["state"] == "answered"


def test_a_folder_may_grow_while_a_question_waits(tmp_path: Path) -> None:
    parts = tmp_path / "files" / "parts"
    parts.mkdir(parents=True)
    for name in ("a", "b"):
        write_events(parts / f"{name}.csv", PLACES)
    with here(tmp_path) as service:
        new = {"name": "parts", "title": "P", "file": "parts/**/*.csv", "person": "user"}
        new |= {"columns": ["place"], "epsilon": 8}
        assert service.call("olga", "POST", "/api/datasets", new).status_code == 201
        service.parts.datasets.allow("parts", "ann", {"epsilon": 8.0})
        path = "/api/datasets/parts/ask"
        with meanwhile(lambda: write_events(parts / "c.csv", {"Later": 5000})):
            job = service.answered("ann", path, QUESTION)
        assert job["answer"]["items"] == ["Harbour"]  # of the files that there were
        with meanwhile(lambda: (parts / "b.csv").unlink()):
            charged(service, service.answered("ann", path, QUESTION), WRITTEN)
        with meanwhile(lambda: (parts / "d.csv").symlink_to(tmp_path / "outside.csv")):
            job = service.answered("ann", path, QUESTION)
        charged(service, job, WAITED + "the folder holds a link")
