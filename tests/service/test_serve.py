"""``topsecret serve`` as a command: one line when it cannot start, JSON in its log, one metric."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from serving import PASSWORD, PATIENCE, SOURCES, Here, Server, settings

import command
from topsecret.cli import main
from topsecret.service import serve
from topsecret.service.auth import rate_limits as limits
from topsecret.service.serve import share_memory
from topsecret.service.settings import Settings
from topsecret.service.state import Parts


def run(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "topsecret", "serve", "--home", str(folder), *arguments]
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={"PYTHONPATH": str(SOURCES), "PATH": "/usr/bin"} | environment,
    )


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("--port", str(port), folder=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f"topsecret: port {port} of 127.0.0.1 is in use; choose another with --port\n"
    )


def test_answers_do_not_wait_for_acknowledgements(service: Here) -> None:
    service.client.get("/api/health")

    def took() -> float:
        begun = time.perf_counter()
        service.client.get("/static/icon.svg")
        return time.perf_counter() - begun

    # Linux waits 40 ms each time, on one connection. Without that wait one of many requests is far
    # below, however busy the machine is.
    assert any(took() < 0.03 for _ in range(300))


def test_wrong_options_are_one_line(tmp_path: Path) -> None:
    tried = (
        (("--tick", "0"), "tick=0.0 must be above 0"),
        (("--files", str(tmp_path / "none")), "is not a folder"),
        (("--source", "postgresql://ann:hunter2@host/db"), "take NAME=URL"),
        (("--source", "Shop=postgresql://ann:hunter2@host/db"), "take NAME=URL"),
        (("--source", "shop=oracle+hunter2://ann:hunter2@host/db"), "not one that SQLAlchemy"),
        (("--source", "shop=postgresql://ann:hunter2@host:x/db"), "not one that SQLAlchemy"),
        (("--source", "a=sqlite:///hunter2", "--source", "a=sqlite://"), "two sources 'a'"),
        (("--database", "ann:hunter2@db.example.org"), "--database is an address"),
        (("--database", "mysql://ann:hunter2@host/db"), "a ledger is a file's path or an address"),
        (("--witness", str(tmp_path / "none" / "witness.json")), "cannot be written; check that"),
    )
    words = [["serve", "--home", str(tmp_path), "--port", "0", *given] for given, _ in tried]
    # One process for all of them: each would import the service anew.
    program = (
        "import json, sys\nfrom topsecret.cli import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    try:\n        main(words)\n"
        "    except SystemExit as stop:\n        print(stop.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(words)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout.split() == ["2"] * len(tried)
    assert list(tmp_path.iterdir()) == []  # nothing was made
    lines = done.stderr.splitlines()
    assert len(lines) == len(tried)
    for line, (_, said) in zip(lines, tried, strict=True):
        assert said in line
    assert "hunter2" not in done.stderr


def test_workers_share_accounts_logs_are_json_and_metrics_add_up(tmp_path: Path) -> None:
    parts = Parts(settings(tmp_path))
    parts.accounts.add("olga", "owner", PASSWORD)
    key = parts.accounts.new_key("olga", "metrics")
    server = Server(tmp_path, "--workers", "2")
    try:
        headers = {"authorization": f"Bearer {key}"}
        for _ in range(20):  # a connection each: the workers take turns
            answer = httpx.get(f"{server.address}/api/v1/me", headers=headers, timeout=PATIENCE)
            assert answer.json() == {"name": "olga", "role": "owner"}
        counted, deadline = 0.0, time.monotonic() + PATIENCE
        while counted < 20 and time.monotonic() < deadline:  # a request is counted after its reply
            text = httpx.get(f"{server.address}/metrics", headers=headers, timeout=PATIENCE).text
            found = re.search(r'requests_total\{[^}]*route="/api/v1/me"[^}]*\} (\d+)', text)
            assert found, text
            counted = float(found[1])
            time.sleep(0.05)
        assert counted == 20
    finally:
        assert server.stop() == 0
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line[:1] == "{"]
    assert {line["event"] for line in lines} <= {"started", "request", "stopped", "note"}
    assert sum(line.get("route") == "/api/v1/me" for line in lines) == 20
    assert "setup?token" not in server.log.read_text()  # there is an owner already


def test_engines_share_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPSECRET_MEMORY", "3GB")
    share_memory(4)
    assert os.environ["TOPSECRET_MEMORY"] == "3GB"
    parts = []
    for engines in (1, 4):
        monkeypatch.setenv("TOPSECRET_MEMORY", "")
        share_memory(engines)
        parts.append(int(os.environ["TOPSECRET_MEMORY"].removesuffix("MB")))
    assert abs(parts[1] - max(256, parts[0] / 4)) <= 1
    monkeypatch.setenv("TOPSECRET_MEMORY", "")
    monkeypatch.setattr(serve, "container_limits", lambda: [10**9, 5 * 10**8])
    share_memory(1)
    assert os.environ["TOPSECRET_MEMORY"] == "400MB"


def test_options_come_from_the_command_the_environment_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = tmp_path / "options.toml"
    options.write_text('database = "postgresql://file/db"\ntick = 3.0\nlimit = 7.0\n')
    given: list[Settings] = []
    monkeypatch.setattr(serve, "prepare", lambda settings, *_: given.append(settings))
    monkeypatch.setattr(serve, "run", lambda *_: None)
    words = ("serve", "--home", str(tmp_path), "--port", "0", "--config", str(options))
    with pytest.raises(SystemExit, match=r"^0$"):
        main(words)
    monkeypatch.setenv("TOPSECRET_SERVE_DATABASE", "postgresql://environment/db")
    monkeypatch.setenv("TOPSECRET_SERVE_TICK", "2.0")
    with pytest.raises(SystemExit, match=r"^0$"):
        main((*words, "--tick", "1.5"))
    assert [(one.database, one.tick, one.limit) for one in given] == [
        ("postgresql://file/db", 3.0, 7.0),
        ("postgresql://environment/db", 1.5, 7.0),
    ]


def test_every_option_reaches_the_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Settings] = []
    monkeypatch.setattr(serve, "prepare", lambda settings, *_: given.append(settings))
    monkeypatch.setattr(serve, "run", lambda *_: None)
    options: dict[str, object] = {
        "home": tmp_path,
        "witness": tmp_path / "elsewhere" / "witness.json",
        "database": "postgresql://host/db",
        "tick": 2.5,
        "limit": 60.5,
        "prefix": "/topsecret",
        "openid_issuer": "https://login.example.org",
        "openid_client": "topsecret",
        "openid_secret": "of the client",
        "openid_claim": "email",
        "keep_days": 90,
        "notify": f"{sys.executable} --quietly",
    }
    words = ["serve", "--port", "0", "--https", "--files", str(tmp_path), "--source", "a=sqlite://"]
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    with pytest.raises(SystemExit, match=r"^0$"):
        main(words)
    (found,) = given
    more = {"files": (tmp_path,), "sources": (("a", "sqlite://"),), "https": True}
    assert found == Settings.from_json(found.to_json()) == Settings(**options, **more)  # type: ignore[arg-type]


def test_a_wrong_size_is_found_at_the_start(tmp_path: Path) -> None:
    words = ("serve", "--home", str(tmp_path), "--port", "0")
    done = command.run(*words, TOPSECRET_MEMORY="0MB")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "TOPSECRET_MEMORY must be a size such as 500MB or 2GB, at least 16MB" in done.stderr


def test_whoever_comes_from_many_addresses_frees_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_BUCKETS", 100)
    watched = limits.Limits({"login": 5})
    for _ in range(5):
        assert watched.wait("login", "guesser", now=0.0) == 0
    for number in range(1000):
        watched.wait("login", f"address {number}", now=0.1)
    assert watched.wait("login", "guesser", now=0.2) > 0
    assert len(watched._buckets) <= 101
