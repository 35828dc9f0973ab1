"""A folder that hangs, looked at outside of questions: it stops nobody else."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import PATIENCE, PLACES, Here, here, write_events

from topsecret.service import opening
from topsecret.service.data_files import DataFiles
from topsecret.service.opening import Opening
from topsecret.service.problems import Problem

QUERY = (
    'SELECT place, COUNT(DISTINCT "user") AS n FROM events GROUP BY place ORDER BY n DESC LIMIT 3'
)
BODY = {"query": QUERY, "epsilon": 0.5}
PLAN = "/api/v1/datasets/{}/sql/plan"
IMPATIENT = 60.0
"""Seconds, for what would otherwise never come."""


def until(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


class Folder:
    """As in a network folder whose server is gone: nothing can interrupt who looks there."""

    def __init__(self) -> None:
        self.answers, self.looked_at = threading.Event(), 0
        self.answers.set()

    def look(self, name: str) -> None:
        if "hanging" in name:
            self.looked_at += 1
            assert self.answers.wait(PATIENCE)


@contextmanager
def with_a_folder(folder: Path) -> Iterator[tuple[Here, Folder]]:
    """A service with two datasets that may be asked in SQL, of which one can be made to hang."""
    state = Folder()
    check, locate = DataFiles.check, DataFiles.locate

    def checks(files: DataFiles, source: str) -> None:
        state.look(source)
        check(files, source)

    def locates(files: DataFiles, file: str) -> str:
        state.look(file)
        return locate(files, file)

    with pytest.MonkeyPatch.context() as patch, here(folder) as service:
        patch.setattr(DataFiles, "check", checks)
        patch.setattr(DataFiles, "locate", locates)
        for name in ("hanging", "sound"):
            write_events(folder / "files" / f"{name}.csv", PLACES)
            new = {"name": name, "title": name, "file": f"{name}.csv", "person": "user"}
            new |= {"columns": ["place"], "epsilon": 4, "sql": True}
            assert service.call("olga", "POST", "/api/datasets", new).status_code == 201
            for who in ("ann", "bob"):
                service.parts.datasets.allow(name, who, {"epsilon": 4.0})
        try:
            yield service, state
        finally:
            state.answers.set()


def get(service: Here, who: str, path: str) -> int:
    headers = {"authorization": f"Bearer {service.keys[who]}"}
    return httpx.get(
        f"{service.client.base_url}{path}", headers=headers, timeout=IMPATIENT
    ).status_code


def test_nobody_waits_for_previews_of_a_folder_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "LIMIT", PATIENCE)
    with with_a_folder(tmp_path) as (service, folder), ThreadPoolExecutor(45) as pool:
        try:
            assert service.call("ann", "POST", PLAN.format("hanging"), BODY).status_code == 200
            folder.answers.clear()
            folder.looked_at = 0
            plan = (service.call, "ann", "POST", PLAN.format("hanging"), BODY)
            sent = [pool.submit(*plan) for _ in range(45)]
            waiting = service.parts.opening._places._queues
            # As many as the service has threads for requests.
            until(lambda: folder.looked_at + len(waiting.get("ann", ())) >= 40)
            assert get(service, "bob", "/api/v1/health") == 200
            assert get(service, "bob", "/api/v1/datasets") == 200
            # Another account's turn comes though all of ann's wait.
            assert service.call("bob", "POST", PLAN.format("sound"), BODY).status_code == 200
            assert folder.looked_at == 1
        finally:
            folder.answers.set()
        assert {one.result().status_code for one in sent} == {200}


def test_a_preview_that_takes_too_long_is_refused_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(opening, "LIMIT", PATIENCE)
    with with_a_folder(tmp_path) as (service, folder):
        folder.answers.clear()
        folder.looked_at = 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(opening, "LIMIT", 0.05)
            late = service.call("ann", "POST", PLAN.format("hanging"), BODY)
        assert (late.status_code, late.json()["error"]) == (503, "source_failed")
        assert late.json()["message"] == (
            "The data did not answer within 0.05 s. Nothing was charged or changed; "
            "try again later, or tell the operator."
        )
        # Until its thread ends, nobody looks there again, for whatever purpose.
        ask = PLAN.format("hanging").removesuffix("/plan")
        form = {"request_id": "page", "step": "8", "query": QUERY}
        key = {"authorization": f"Bearer {service.keys['bob']}"}
        refused = [
            service.call("bob", "POST", PLAN.format("hanging"), BODY),
            service.call("bob", "POST", ask, BODY),
            service.client.post("/datasets/hanging", headers=key, data=form),
            service.call("olga", "PATCH", "/api/datasets/hanging", {"columns": ["colour"]}),
        ]
        assert [one.status_code for one in refused] == [503] * 4
        assert refused[0].json()["message"].startswith("The data do not answer at present.")
        assert folder.looked_at == 1
        assert service.call("olga", "GET", "/owner/datasets/hanging/edit").status_code == 200
        assert service.call("bob", "POST", PLAN.format("sound"), BODY).status_code == 200
        folder.answers.set()
        until(lambda: not service.parts.opening._stuck)
        assert service.call("bob", "POST", PLAN.format("hanging"), BODY).status_code == 200
        assert '"event": "source does not open", "dataset": "hanging"' in capsys.readouterr().err


def test_what_questions_hang_with_is_not_previewed(tmp_path: Path) -> None:
    with with_a_folder(tmp_path) as (service, folder):
        events = service.parts.datasets.get("hanging").events
        folder.looked_at = 0
        service.parts.opening._hanging = lambda: {("another name of it", events[1])}
        assert service.call("ann", "POST", PLAN.format("hanging"), BODY).status_code == 503
        assert service.call("ann", "POST", PLAN.format("sound"), BODY).status_code == 200
        assert folder.looked_at == 0


def test_a_registration_that_takes_too_long_does_not_happen_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "LIMIT", PATIENCE)
    with with_a_folder(tmp_path) as (service, folder):
        folder.answers.clear()
        new = {"name": "later", "title": "L", "file": "hanging.csv", "person": "user"}
        new |= {"columns": ["place"], "epsilon": 4}
        moved = {"file": "./hanging.csv"}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(opening, "LIMIT", 0.05)
            assert service.call("olga", "POST", "/api/datasets", new).status_code == 503
            assert service.call("olga", "PATCH", "/api/datasets/sound", moved).status_code == 503
        page = service.call("olga", "GET", "/owner/new?file=hanging.csv")
        assert page.status_code == 503
        assert "The data do not answer at present." in page.text
        form = {"name": "later", "title": "L", "file": "hanging.csv", "person_column": "user"}
        form |= {"columns": "place", "epsilon": "4", "delta": "1e-5"}
        key = {"authorization": f"Bearer {service.keys['olga']}"}
        assert service.client.post("/owner/new", headers=key, data=form).status_code == 503
        folder.answers.set()
        until(lambda: not service.parts.opening._stuck)
        assert {one.name for one in service.parts.datasets.all()} >= {"hanging", "sound"}
        assert "later" not in {one.name for one in service.parts.datasets.all()}
        assert service.parts.datasets.get("sound").place == "sound.csv"
        assert service.call("olga", "POST", "/api/datasets", new).status_code == 201


def test_the_page_of_a_dataset_does_not_wait_for_the_folders_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "LIMIT", PATIENCE)
    with with_a_folder(tmp_path) as (service, _folder):
        answers = threading.Event()
        monkeypatch.setattr(
            service.parts.datasets, "also", lambda _: answers.wait(PATIENCE) and None
        )
        monkeypatch.setattr(service.parts.datasets, "files", lambda: answers.wait(PATIENCE) and [])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(opening, "LIMIT", 0.05)
            page = service.call("olga", "GET", "/owner/datasets/sound")
            listed = service.call("olga", "GET", "/owner/new")
        assert (page.status_code, listed.status_code) == (200, 200)
        assert "could not be looked up: a folder does not answer" in page.text
        edit = {"file": "events.csv"}
        pointed = service.call("olga", "PATCH", "/api/datasets/sound", edit)
        assert pointed.status_code == 200
        assert "If one is, the budgets add up." in pointed.json()["warning"]
        answers.set()


def test_threads_that_do_not_end_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()

    async def refused(one: Opening, who: str, place: str) -> str:
        with pytest.raises(Problem) as caught:
            await one.run(who, ("", place), lambda: answers.wait(PATIENCE))
        return caught.value.message

    async def main() -> None:
        one = Opening()
        monkeypatch.setattr(opening, "LIMIT", 0.01)
        words = [await refused(one, "ann", str(place)) for place in range(4)]
        assert "did not answer within" in words[2]
        assert "Several sources do not answer" in words[3]
        for place in range(4, 9):
            await refused(one, f"bob {place}", str(place))
        assert "Several sources" in await refused(one, "eve", "another")
        assert len(one._stuck) == opening.MOST_STUCK
        answers.set()
        while one._stuck:
            await asyncio.sleep(0.01)
        monkeypatch.setattr(opening, "LIMIT", PATIENCE)
        assert await one.run("ann", ("", "0"), lambda: "found") == "found"

    asyncio.run(main())


def test_who_waits_behind_what_hangs_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()

    async def main() -> None:
        one = Opening()
        looks = [
            asyncio.create_task(one.run(who, ("", who), lambda: answers.wait(PATIENCE)))
            for who in ("ann", "bob")
        ]
        while sum(one._places._taken.values()) < opening.AT_ONCE:
            await asyncio.sleep(0.01)
        monkeypatch.setattr(opening, "LIMIT", 0.01)
        with pytest.raises(Problem) as caught:
            await one.run("eve", ("", "eve"), lambda: None)
        assert caught.value.message.startswith("Other data are being looked at")
        answers.set()
        assert await asyncio.gather(*looks) == [True, True]

    asyncio.run(main())


class Panic(BaseException):
    """As a library ends a thread that is not written in Python."""


def test_a_thread_that_ends_in_any_way_gives_its_place_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def panics() -> None:
        raise Panic

    async def looks() -> None:
        looking = Opening()
        for _ in range(opening.AT_ONCE + 1):
            with pytest.raises(RuntimeError, match="ended the thread"):
                await looking.run("ann", ("shop", "shop.csv"), panics)
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", _no_more_threads)
            for _ in range(opening.AT_ONCE + 1):
                with pytest.raises(RuntimeError, match="can't start"):
                    await looking.run("ann", ("shop", "shop.csv"), panics)
        assert await looking.run("ann", ("shop", "shop.csv"), lambda: 7) == 7

    asyncio.run(looks())


def _no_more_threads(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
