"""docs/service.md is run, not only read: every line of its shell blocks, by a shell."""

import configparser
import json
import os
import re
import shutil
import ssl
import stat
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import BRIEF, PASSWORD, PATIENCE, SOURCES, Here, Server, populate, settings
from sqlalchemy import create_engine, text
from test_coming_in import form_token
from test_openid import provider, sign_in

import topsecret
from pages import PAGES, ROOT, blocks
from topsecret.client import Service
from topsecret.errors import InvalidParameter
from topsecret.service.serve import certified
from topsecret.service.state import Parts
from topsecret.sources.demo_data import write_checkins

PAGE = PAGES["docs/service.md"]
STARTING, WALK, PEOPLE, OPENID, ASKING, IN_SQL, SAVING, OWNING, COPYING, RESTORING = blocks(
    "sh", PAGE
)
(IMAGE,) = blocks("dockerfile", PAGE)
EXAMPLE = "postgresql://reader@db.example.org/shop"
KEY, ADDRESS = "tsk_…", "http://127.0.0.1:8000"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = set(PROJECT["optional-dependencies"])


def extras_in(command: str) -> set[str]:
    """What is installed with the package."""
    (named,) = re.findall(r"\[([a-z,]+)\]'", command)
    return set(named.split(","))


@pytest.fixture
def shop(postgres_url: str) -> str:
    """The database of the page's examples."""
    engine = create_engine(postgres_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE orders (customer TEXT, item TEXT)"))
        connection.execute(text("CREATE TABLE etl_runs AS SELECT now() AS finished"))
    engine.dispose()
    return postgres_url


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A folder with the commands ``topsecret`` and ``curl`` as a reader has them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    curl = shutil.which("curl")
    assert curl, "curl is missing; run make test, which installs it"
    for name, line in (
        ("topsecret", f'exec "{sys.executable}" -m topsecret "$@"'),
        ("curl", f'exec "{curl}" -sS --fail-with-body "$@"'),  # a refusal is a failure here
    ):
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(stat.S_IRWXU)
    return folder


def steps(block: str) -> list[str]:
    """The commands of a block; what is continued on the next line is one command."""
    joined = block.replace("\\\n", " ")
    return [
        step
        for step in re.split(r"\n(?=curl|export|topsecret|make|pip|openssl|\. )|\n\n", joined)
        if step
    ]


def environment(program: Path) -> dict[str, str]:
    path = f"{program}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "PYTHONPATH": str(SOURCES), "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def served(tmp_path: Path, shop: str) -> Iterator[tuple[Server, Parts]]:
    """The service that the page's questions are put to."""
    (tmp_path / "files").mkdir()
    write_checkins(tmp_path / "files")
    parts = Parts(settings(tmp_path))
    parts.accounts.add("olga", "owner", PASSWORD)
    server = Server(tmp_path, "--tick", "0.1", environment={"TOPSECRET_SOURCES": f"shop={shop}"})
    yield server, parts
    assert server.stop() == 0
    parts.store.close()
    parts.ledger.close()


def said(step: str, key: str, server: Server, program: Path) -> str:
    """What a command of the page prints."""
    export, *_ = steps(ASKING)
    assert KEY in export
    assert ADDRESS in export
    mine = export.replace(KEY, key).replace(ADDRESS, server.address)
    done = subprocess.run(
        ["bash", "-euc", f"{mine}\n{step}"],
        env=environment(program),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, f"{step}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_questions_on_the_page_are_answered(
    served: tuple[Server, Parts], program: Path
) -> None:
    server, parts = served
    owner = parts.accounts.new_key("olga", "page")
    for step in steps(OWNING):
        printed = said(step, owner, server, program)
        assert printed.startswith("# HELP") if "/metrics" in step else json.loads(printed)
    assert {one.name for one in parts.datasets.all()} == {"checkins", "orders"}

    parts.accounts.set_password("ann", PASSWORD)  # with the one handed over nobody has a key
    key, job = parts.accounts.new_key("ann", "page"), ""
    answers: dict[str, Any] = {}
    for step in (*steps(ASKING)[1:], *steps(IN_SQL), *steps(SAVING)):
        name = step.split("$SERVICE/api/v1/")[1].split()[0]
        if job and name == "answers/ID":
            _wait(server, key, job)
        printed = said(step.replace("/ID", f"/{job}"), key, server, program)
        answers[name] = printed if name.endswith("csv") else json.loads(printed)
        if name.endswith("ask"):
            job = answers[name]["id"]
    assert [one["name"] for one in answers["datasets"]] == ["checkins"]
    assert answers["datasets/checkins/plan"]["fits"]
    assert answers["datasets/checkins/sql/plan"]["fits"]
    assert answers["datasets/checkins/ask"]["request_id"] == "monday"
    assert answers["answers/ID"]["state"] == "answered"
    # The service draws its own noise, which may end a list early.
    assert 1 <= len(answers["answers/ID"]["answer"]["items"]) <= 10
    assert answers["answers/ID/csv"].startswith("rank,place\n1,")
    assert answers["datasets/checkins/budget"]["state"] == "open"


def test_the_python_on_the_page_is_answered(fresh: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = (one for one in blocks("text", PAGE) if "topsecret.connect(" in one)
    rows = "".join(f"u{number},Harbour,FR\n" for number in range(900))
    (fresh.parts.settings.files[0] / "checkins.csv").write_text(f"user,place,country\n{rows}")
    body = {"name": "checkins", "title": "C", "file": "checkins.csv", "person": "user"}
    body |= {"epsilon": 4, "columns": ["place"], "filters": {"country": "text"}}  # type: ignore[dict-item]
    assert fresh.call("olga", "POST", "/api/v1/datasets", body).status_code == 201
    fresh.parts.datasets.allow("checkins", "ann", {"epsilon": 4.0})
    connect = topsecret.connect

    def here(url: str, key: str) -> Service:
        return replace(connect(url, key), url=fresh.address, patience=PATIENCE)

    monkeypatch.setattr(topsecret, "connect", here)
    names: dict[str, Any] = {"key": fresh.keys["ann"]}
    exec(program, names)
    assert names["answer"].items == ("Harbour",)


def _wait(server: Server, key: str, job: str) -> None:
    deadline = time.monotonic() + PATIENCE
    headers = {"authorization": f"Bearer {key}"}
    while time.monotonic() < deadline:
        path = f"{server.address}/api/answers/{job}"
        found = httpx.get(path, headers=headers, timeout=PATIENCE).json()
        if found["state"] != "working":
            return
        time.sleep(0.1)


def test_the_unit_of_the_page_starts_and_stops(tmp_path: Path, program: Path) -> None:
    (unit,) = blocks("ini", PAGE)
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string(unit)
    home, options = tmp_path / "home", tmp_path / "topsecret.toml"
    (tmp_path / "events").mkdir()
    options.write_text(f'port = 1\nfiles = ["{tmp_path / "events"}"]\ntick = 0.5\n')
    places = {"/var/lib/topsecret": home, "/etc/topsecret.toml": options}
    words = parsed["Service"]["ExecStart"].split()
    assert words[0] == "/usr/local/bin/topsecret"
    command = [str(program / "topsecret"), *(str(places.get(word, word)) for word in words[1:])]
    log = tmp_path / "log"
    # What the environment says comes before the file.
    more = environment(program) | {"TOPSECRET_SERVE_PORT": "0"}
    with log.open("w") as out:
        process = subprocess.Popen(command, env=more, stdout=out, stderr=out)
    deadline = time.monotonic() + PATIENCE
    while "started" not in log.read_text():
        assert time.monotonic() < deadline
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    process.terminate()
    assert process.wait(int(parsed["Service"]["TimeoutStopSec"])) == 0
    assert (home / "service.db").exists()


def test_the_ways_to_start_on_the_page_start_it(tmp_path: Path, program: Path, shop: str) -> None:
    (tmp_path / "events").mkdir()
    started = []
    entry, healthy = (
        json.loads(re.search(rf"^{word} (\[.*\])$", IMAGE, re.MULTILINE)[1])  # type: ignore[index]
        for word in ("ENTRYPOINT", "HEALTHCHECK CMD")
    )
    assert extras_in(IMAGE) <= EXTRAS
    _, by_provider = steps(OPENID)
    for number, step in enumerate([*steps(STARTING), by_provider, " ".join(entry)]):
        command = step.split("#")[0].strip()
        if command.startswith("pip"):
            assert command == "pip install '.[service]'"  # as make test has done
            continue
        if command.startswith("make"):
            # A make inside another would say which directory it enters and leaves.
            words = ["make", "--no-print-directory", "-n", command.split()[1]]
            done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
            command = done.stdout.splitlines()[-1].rpartition("/")[2]
            assert command == "topsecret serve --demo"
        command = command.replace("/srv/events", str(tmp_path / "events")).replace(EXAMPLE, shop)
        started.append(command.split()[2])
        log = tmp_path / f"log{number}"
        with log.open("w") as out:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command} --port 0 --home {tmp_path / f'home{number}'}"],
                cwd=tmp_path,
                env=environment(program),
                stdout=out,
                stderr=out,
            )
        try:
            deadline = time.monotonic() + PATIENCE
            while not (found := re.search(r"topsecret serves (\S+)", log.read_text())):
                assert time.monotonic() < deadline
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
            transport = httpx.HTTPTransport(retries=5, limits=BRIEF)
            with httpx.Client(base_url=found[1], transport=transport, timeout=PATIENCE) as client:
                assert client.get("/api/health").json() == {"status": "ok"}
            if step == " ".join(entry):
                look = [word.replace(ADDRESS, found[1]) for word in healthy[1:]]
                subprocess.run([sys.executable, *look], check=True)
        finally:
            process.terminate()
            assert process.wait(PATIENCE) == 0
        promised = "log in as" if "--demo" in command else "/setup?token="
        assert promised in log.read_text()
    assert started == ["--demo", "--files", "--source", "--openid-issuer", "--host"]


def test_the_walk_of_the_page_ends_with_tls_owners_and_openid(
    tmp_path: Path, program: Path
) -> None:
    (tmp_path / "events").mkdir()
    # A machine that has topsecret needs none of these; the extras are this project's.
    *before, certificate, secret, serve = steps(WALK)
    assert [step.split()[0] for step in before] == ["python3", ".", "pip"]
    assert extras_in(before[-1]) <= EXTRAS
    more = environment(program) | {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    shell: dict[str, Any] = {"cwd": tmp_path, "env": more}
    log = tmp_path / "log"
    with provider() as issuer, log.open("w") as out:
        subprocess.run(["bash", "-euc", certificate], check=True, capture_output=True, **shell)
        serve = serve.replace("/srv/events", str(tmp_path / "events")).replace("8443", "0")
        serve = serve.replace("https://login.example.org", issuer)
        command = ["bash", "-euc", f"{secret}\nexec {serve}"]
        process = subprocess.Popen(command, stdout=out, stderr=out, **shell)
        try:
            deadline = time.monotonic() + PATIENCE
            while "topsecret serves" not in log.read_text():
                assert time.monotonic() < deadline
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
            (link,) = re.findall(r"https://\S+/setup\?token=\S+", log.read_text())
            address = link.partition("/setup")[0]
            trusted = ssl.create_default_context(cafile=tmp_path / "topsecret.pem")
            tls = httpx.HTTPTransport(verify=trusted, retries=5, limits=BRIEF)
            with httpx.Client(base_url=address, transport=tls, timeout=PATIENCE) as web:
                olga = {"name": "olga", "password": PASSWORD, "again": PASSWORD}
                page = web.get(link).text
                olga |= {name: form_token(page, name) for name in ("token", "visit")}
                assert web.post("/setup", data=olga).headers["location"] == "/owner"
                assert all(cookie.secure for cookie in web.cookies.jar)
                page = web.get("/account").text
                headers = {"x-csrf-token": form_token(page, "csrf")}
                made = web.post("/api/v1/keys", json={"label": "first"}, headers=headers)
            where, certificate, *made_by_hand = steps(PEOPLE)
            where = where.replace(KEY, made.json()["key"])
            where = where.replace("https://topsecret.example.org:8443", address)
            for step in made_by_hand:
                words = ["bash", "-euc", f"{where}\n{certificate}\n{step}"]
                subprocess.run(words, check=True, capture_output=True, **shell)
            frida = {"preferred_username": "frida"}
            httpx.put(f"{issuer}/users/f-1", json=frida, timeout=PATIENCE)
            with httpx.Client(base_url=address, verify=trusted, timeout=PATIENCE) as web:
                assert sign_in(web, "f-1", "/owner").headers["location"] == "/owner"
                assert web.get("/api/v1/me").json() == {"name": "frida", "role": "owner"}
                known = web.get("/api/v1/analysts").json()
            assert {one["name"] for one in known if one["role"] == "owner"} == {
                *("olga", "otto", "frida")
            }
        finally:
            process.terminate()
            assert process.wait(PATIENCE) == 0


def test_a_copy_that_is_made_as_the_page_says_is_a_whole_service(
    tmp_path: Path, program: Path
) -> None:
    """It is made of a database in use, whose last changes are in SQLite's own log alone."""
    home, copies = tmp_path / "home", tmp_path / "copies"
    for folder in (home, copies):
        folder.mkdir()
    parts = Parts(settings(home))
    populate(parts, home)
    chains = parts.ledger.reached()
    key = parts.accounts.new_key("olga", "copies")

    def run(block: str) -> str:
        named = block.replace("/var/lib/topsecret", str(home)).replace("/srv/copies", str(copies))
        shell = ["bash", "-euc", named]
        done = subprocess.run(
            shell, env=environment(program), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert (home / "service.db-wal").stat().st_size
    for made in (run(COPYING), run(COPYING)):  # over an older copy, too
        assert all(f"{name}: the chain ends with {chains[name][1]}" in made for name in chains)
    assert stat.S_IMODE((copies / "service.db").stat().st_mode) == stat.S_IRUSR | stat.S_IWUSR
    parts.store.close()
    parts.ledger.close()
    for ending in ("", "-wal", "-shm"):
        (home / f"service.db{ending}").write_bytes(b"of a broken disk")
    assert run(RESTORING) == made
    restored = Parts(settings(home))
    assert restored.ledger.reached() == chains
    assert restored.accounts.by_key(key) is not None
    restored.store.close()
    restored.ledger.close()


def test_a_certificate_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("not a certificate")
    with pytest.raises(InvalidParameter, match="belong together"):
        certified(broken, None)
    with pytest.raises(InvalidParameter, match="must be PEM files"):
        certified(broken, broken)
    with pytest.raises(InvalidParameter, match="must be PEM files"):
        certified(tmp_path / "missing.pem", broken)
