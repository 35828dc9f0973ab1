"""What a team stumbles over in its first week: odd connections, files, backups, links and names."""

import os
import re
import shutil
import signal
import socket
import sqlite3
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import httpx
import pytest
from serving import PASSWORD, PATIENCE, PLACES, Clock, Here, Server, populate, settings
from serving import write_events as write
from test_coming_in import form_token

from topsecret.errors import DataIndependentFailure, InvalidParameter, LedgerError
from topsecret.results.export import csv_text
from topsecret.service import connections
from topsecret.service.data_files import Extent
from topsecret.service.databases import Databases
from topsecret.service.datasets import Datasets
from topsecret.service.demo import trial
from topsecret.service.jobs import release_schedule
from topsecret.service.jobs.job import Asked
from topsecret.service.jobs.release_schedule import Turns
from topsecret.service.serve import container_limits, prepare
from topsecret.service.state import Parts

REGISTER = {"title": "x", "person": "user", "columns": ["place"], "epsilon": 1}


def half_open(service: Here) -> socket.socket:
    """A connection with an unfinished request."""
    url = service.client.base_url
    opened = socket.create_connection((url.host, url.port), timeout=PATIENCE)
    opened.sendall(b"GET /login HTTP/1.1\r\nHost: x\r\n")
    return opened


def is_closed(opened: socket.socket) -> bool:
    try:
        return opened.recv(1) == b""
    except ConnectionResetError:
        return True


def test_connections_without_a_request_stop_nobody(
    service: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_UNFINISHED", 20)
    monkeypatch.setattr(connections, "PATIENCE", 10 * PATIENCE)  # their number closes them
    waiting = [half_open(service) for _ in range(60)]
    assert all(is_closed(one) for one in waiting[:30])
    assert service.client.get("/api/health").status_code == 200
    monkeypatch.setattr(connections, "PATIENCE", 0.05)
    late = half_open(service)
    assert is_closed(late)
    # A second request on a kept connection that is never finished, and one that is.
    url = service.client.base_url
    with socket.create_connection((url.host, url.port), timeout=PATIENCE) as kept:
        for _ in range(2):
            kept.sendall(b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert kept.recv(12) == b"HTTP/1.1 200"
            while b'"ok"}' not in kept.recv(4096):
                pass
        kept.sendall(b"GET /api/health HTTP/1.1\r\n")
        assert is_closed(kept)
    for one in (*waiting, late):
        one.close()


def test_a_file_is_looked_at_again_at_every_question(service: Here, tmp_path: Path) -> None:
    folder = service.parts.settings.files[0]
    write(folder / "moving.csv", PLACES)
    body = REGISTER | {"name": "moving", "file": "moving.csv"}
    assert service.call("olga", "POST", "/api/datasets", body).status_code == 201
    service.parts.datasets.allow("moving", "ann", {"epsilon": 1.0})
    (folder / "moving.csv").rename(tmp_path / "outside.csv")
    (folder / "moving.csv").symlink_to(tmp_path / "outside.csv")
    question = {"column": "place", "k": 1, "epsilon": 0.1}
    job = service.answered("ann", "/api/datasets/moving/ask", question)
    assert (job["state"], job["error"]) == ("failed", "source_failed")
    assert not any(service.parts.ledger.account("moving").spent.values())
    # Nor is a file read once the service is started with another folder.
    parts = service.parts
    elsewhere = Datasets(parts.store, parts.ledger, (tmp_path,), Databases(()))
    with pytest.raises(DataIndependentFailure, match="in no folder"):
        elsewhere.events(elsewhere.get("events"))


def test_the_same_events_twice_are_said_to_add_up(service: Here) -> None:
    body = REGISTER | {"name": "again", "file": "events.csv"}
    made = service.call("olga", "POST", "/api/datasets", body).json()
    assert "events seem to be registered as events, metered too" in made["warning"]
    assert made["warning"] in service.call("olga", "GET", "/owner/datasets/again").text
    folder = service.parts.settings.files[0]
    write(folder / "other.csv", {"Harbour": 3})
    os.link(folder / "other.csv", folder / "linked.csv")
    alone = service.call("olga", "POST", "/api/datasets", body | {"name": "o", "file": "other.csv"})
    assert alone.json() == {"done": True, "warning": None}
    body |= {"name": "linked", "file": "linked.csv"}
    assert "as o too" in service.call("olga", "POST", "/api/datasets", body).json()["warning"]
    # Nor is another name of a file of a folder, or of two folders, a way to a new budget.
    for month in ("may", "june", "july"):
        (folder / "months" / month).mkdir(parents=True)
        write(folder / "months" / month / "a.csv", {"Harbour": 3})
    os.link(folder / "months" / "may" / "a.csv", folder / "months-may.csv")
    os.link(folder / "months" / "may" / "a.csv", folder / "months" / "june" / "b.csv")
    for name, file, warned in (
        ("may", "months/may/**/*.csv", None),
        ("july", "months/july/**/*.csv", None),
        ("june", "months/june/**/*.csv", "as may too"),
        ("m", "months-may.csv", "as june, may too"),
    ):
        body |= {"name": name, "file": file}
        warning = service.call("olga", "POST", "/api/datasets", body).json()["warning"]
        assert (warning is None) if warned is None else (warned in warning), name


def test_events_that_a_data_set_has_left_have_a_budget_already(service: Here) -> None:
    folder = service.parts.settings.files[0]
    for month in ("april", "may"):
        write(folder / f"{month}.csv", {"Harbour": 3})
    body = REGISTER | {"name": "dated", "file": "april.csv"}
    assert service.call("olga", "POST", "/api/datasets", body).json()["warning"] is None
    path = "/api/datasets/dated"
    looked_at: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        look = Extent.of
        patch.setattr(Extent, "of", lambda source: looked_at.append(source) or look(source))
        moved = service.call("olga", "PATCH", path, {"file": "may.csv"})
    assert moved.json() == {"done": True, "warning": None}
    # What was left may be a folder that hangs: it is not looked at any more.
    assert not [one for one in looked_at if "april" in one]
    warning = "registered as dated too, or were: the budgets add up."
    made = service.call("olga", "POST", "/api/datasets", body | {"name": "fresh"}).json()
    assert warning in made["warning"]
    assert "as fresh too" in service.call("olga", "GET", "/owner/datasets/dated").text
    # Pointing one to the events of another is said to add up as well; a new title is not.
    back = service.call("olga", "PATCH", "/api/datasets/fresh", {"file": "may.csv"}).json()
    assert warning in back["warning"]
    titled = service.call("olga", "PATCH", "/api/datasets/fresh", {"title": "F"}).json()
    assert titled == {"done": True, "warning": None}


def test_what_cannot_be_asked_is_not_registered(service: Here) -> None:
    folder = service.parts.settings.files[0]
    long = "c" * 250
    (folder / "long.csv").write_text(f"user,{long}\nu1,x\n")
    body = REGISTER | {"name": "long", "file": "long.csv", "columns": [long]}
    refused = service.call("olga", "POST", "/api/datasets", body)
    assert refused.status_code == 400
    assert "has a name of 250 characters; at most 200 can be asked" in refused.json()["message"]
    body = REGISTER | {"name": "long", "file": "f" * 495 + ".csv"}
    assert service.call("olga", "POST", "/api/datasets", body).status_code == 400
    # A form by hand: with such a delta every preview failed.
    form = {"name": "tiny", "title": "T", "file": "events.csv", "columns": "place"}
    key = {"authorization": f"Bearer {service.keys['olga']}"}
    for epsilon, delta in (("20", "1e-300"), ("1e-9", "0.01")):
        filled = form | {"person_column": "user", "epsilon": epsilon, "delta": delta}
        sent = service.client.post("/owner/new", headers=key, data=filled)
        assert (sent.status_code, "greater than equal" in sent.text) == (422, True)


def test_the_owner_sees_every_data_set(service: Here) -> None:
    names = {one["name"] for one in service.call("olga", "GET", "/api/datasets").json()}
    assert {"events", "metered", "visits"} <= names


def test_questions_within_a_tick_begin_and_end_together(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(release_schedule, "time", clock)
    turns, begun = Turns(engines=1, tick=2.0), clock.time()
    clock.advance(1.9)
    asked = [begun + late for late in (0.1, 0.7, 1.3, 1.9)]
    assert {turns.start(one) for one in asked} == {begun + 2}
    for after, shown in ((0.2, 4), (2.0, 4), (2.1, 4), (2.2, 6)):
        clock.advance(begun + 2 + after - clock.time() - (0.1 if after == 2.1 else 0))
        assert {turns.next_tick(one) for one in asked} == {begun + shown}


def test_an_answer_after_doubt_has_no_doubt_left(service: Here) -> None:
    from sqlalchemy import update

    from topsecret.service.schema import JOBS

    path = "/api/datasets/events/ask"
    body = {"column": "place", "k": 1, "epsilon": 0.2, "request_id": "doubt"}
    job = service.answered("bob", path, body)
    with service.parts.store.writing() as connection:
        mine = update(JOBS).where(JOBS.c.id == job["id"])
        doubt = {"state": "in-doubt", "error": "in_doubt", "message": "cut short", "answer": None}
        connection.execute(mine.values(**doubt))
    service.parts.remembered._answers.clear()
    service.call("bob", "POST", path, body)
    deadline = time.monotonic() + PATIENCE
    while (found := service.call("bob", "GET", f"/api/answers/{job['id']}").json())[
        "state"
    ] != "answered":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert (found["error"], found["message"]) == (None, None)


def test_a_link_from_elsewhere_leads_to_its_page(service: Here) -> None:
    with httpx.Client(base_url=service.client.base_url, timeout=PATIENCE) as visitor:
        sent = visitor.get("/answers?x=1", headers={"accept": "text/html"})
        assert sent.headers["location"] == "/login?to=/answers%3Fx%3D1"
        page = visitor.get(sent.headers["location"]).text
        assert form_token(page, "to") == "/answers?x=1"
        form = {"name": "ann", "password": PASSWORD, "visit": form_token(page, "visit")}
        for to, leads in (
            ("/answers?x=1", "/answers?x=1"),
            ("//elsewhere.example/", "/"),
            ("/\\elsewhere.example", "/"),
            ("https://elsewhere.example", "/"),
            ("/\r\nset-cookie: x", "/"),
        ):
            answer = visitor.post("/login", data=form | {"to": to})
            assert (answer.status_code, answer.headers["location"]) == (303, leads)
        cookies = answer.headers.get_list("set-cookie")
        assert any("topsecret_session" in one and "SameSite=lax" in one for one in cookies)


def test_an_old_copy_of_the_database_is_noticed(tmp_path: Path) -> None:
    made = settings(tmp_path)
    parts = Parts(made)
    populate(parts, tmp_path)
    with (
        closing(sqlite3.connect(made.place)) as live,
        closing(sqlite3.connect(tmp_path / "copy.db")) as copy,
    ):
        live.backup(copy)  # a copy of the file alone lacks what is still in SQLite's own log
    parts.desk.open()
    parts.datasets.allow("events", "ann", {"epsilon": 1.0})
    assert parts.close()
    said: list[str] = []
    prepare(made, "http://x", said.append)  # all is well
    Path(made.place).rename(tmp_path / "latest.db")
    with pytest.raises(InvalidParameter, match="has forgotten entries of dataset"):
        prepare(made, "http://x", said.append)  # as on a first run
    Path(made.place).unlink()
    shutil.copy(tmp_path / "copy.db", made.place)
    with pytest.raises(InvalidParameter, match="has forgotten entries of dataset 'events'"):
        prepare(made, "http://x", said.append)
    shutil.copy(tmp_path / "latest.db", made.place)
    prepare(made, "http://x", said.append)
    assert said == []


def test_a_ledger_that_goes_back_while_the_service_runs_is_not_spent_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An old copy is restored behind the pool of connections: new entries must not hide it."""
    parts = Parts(settings(tmp_path))
    populate(parts, tmp_path)
    ask = partial(parts.jobs.ask, "ann", "events", Asked("place", 1, 0.1), None, parts.desk.worker)
    with (
        closing(sqlite3.connect(parts.settings.place)) as live,
        closing(sqlite3.connect(":memory:")) as copy,
    ):
        live.backup(copy)
        parts.datasets.allow("events", "ann", {"epsilon": 1.0})
        parts.desk._beat()
        noted = parts.settings.witness_file.read_text(encoding="utf-8")
        copy.backup(live)
    for epsilon in (3.0, 2.0, 1.5):
        for attempt in (parts.desk._beat, parts.health.check, ask):
            with pytest.raises(LedgerError, match="has forgotten entries of dataset 'events'"):
                attempt()
        parts.datasets.allow("events", "ann", {"epsilon": epsilon})
    assert parts.settings.witness_file.read_text(encoding="utf-8") == noted
    assert "has forgotten entries" in capsys.readouterr().err
    # Where the operator goes on all the same.
    parts.settings.witness_file.unlink()
    parts.desk._beat()
    parts.health.check()
    assert ask()[1]
    assert parts.close()


def test_the_demo_deletes_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    kept = settings(tmp_path)
    first = trial(kept, tmp_path / "demo", said.append)
    (first.home / "mine.txt").write_text("kept")
    parts = Parts(first)
    parts.datasets.allow("checkins", "ann", {"epsilon": 0.5})
    parts.store.close()
    trial(kept, tmp_path / "demo", said.append)
    assert (first.home / "mine.txt").exists()
    parts = Parts(first)
    share = parts.datasets.allowance("checkins", "ann")
    assert share is not None
    assert share.limits["rho"] < 0.01
    password = said[-1].split()[-1]
    assert parts.accounts.check_password("ann", password)
    parts.store.close()


INVISIBLE = "\ufeff", "\u200b", "\u2060", "\u00ad", "\x00", "\u3164", "\ufe0f", "\u2800\u202e"
BEGINS = [" =1+1", "\u00a0@x", "\n-1", "=x", "\tx", "\rx", "＝1+1", "－1", "＠x"]
BEGINS += ["\u22121", "\ufe621", "\ufe631", "\ufe661+1", "\ufe6bx"]


@pytest.mark.parametrize("text", [*BEGINS, *(f"{one}=1+1" for one in INVISIBLE)])
def test_no_cell_is_a_formula(text: str) -> None:
    assert csv_text([[text]]).lstrip('"').startswith("'")


@pytest.mark.parametrize("separator", [";", "\t", "; ", "\t\ufeff", "\n", "\r\n"])
@pytest.mark.parametrize("sign", "=+-@")
def test_no_part_of_a_cell_is_a_formula_in_a_spreadsheet_with_other_separators(
    separator: str, sign: str
) -> None:
    found = csv_text([[1, f"x{separator}{sign}1+1", "y"]])
    for cell in re.split(r"[;\t\r\n,]", found):
        assert not cell.lstrip(" \ufeff").startswith(sign), found


def test_texts_that_are_no_formula_stay_as_they_are() -> None:
    for text in ("a = b", "x;y", "a-b@c", "", ";", "1 + 1", "é=", "(-1)"):
        assert csv_text([[1, text]]).rstrip() == f"1,{text}".rstrip()
    assert csv_text([[-1, 2.5, None]]) == "-1,2.5,\r\n"


def test_memory_is_the_containers(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/a/b\n4:memory:/c\n5:cpu:/c\n")
    for folder, name, size in (
        ("a", "memory.max", "3000"),
        ("a/b", "memory.max", "max"),
        ("memory/c", "memory.limit_in_bytes", "5000"),
    ):
        (tmp_path / "sys/fs/cgroup" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/fs/cgroup" / folder / name).write_text(f"{size}\n")
    assert sorted(container_limits(tmp_path)) == [3000, 5000]
    assert container_limits(tmp_path / "nothing") == []


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    server = Server(tmp_path, "--workers", "2")
    workers = server.workers
    assert len(workers) == 2
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait(PATIENCE)
    deadline = time.monotonic() + PATIENCE
    try:
        while any(Path(f"/proc/{pid}/cmdline").exists() and _runs(pid) for pid in workers):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.process.pid, signal.SIGKILL)


def _runs(pid: int) -> bool:
    """Whether the process is more than an entry that nobody has waited for."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
