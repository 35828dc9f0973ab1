"""The table of wrong turns in the quick start: each is taken, and says what the table says."""

import os
import re
import shlex
import socket
import subprocess
from pathlib import Path

import pytest

from command import run, run_apart
from pages import PAGES, ROOT

SECTION = PAGES["docs/quick-start.md"].split("## Wrong turns")[1].split("\n## ")[0]
TURNS = dict(re.findall(r"^\| (.+?) \| `(.+)` \|$", SECTION, re.MULTILINE))
OPTIONS = [typed for typed in TURNS if typed.startswith("`-")]
GOOD = {"--item": "place", "--person": "user", "--epsilon": "1"}


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("turns") / "events.csv"
    path.write_text("user,place\n" + "".join(f"u{n},park\n" for n in range(900)))
    return path


def asked(path: Path, options: dict[str, str], **environment: str) -> str:
    words = [word for pair in options.items() for word in pair]
    done = run("top", str(path), *words, **environment)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    return done.stderr.removeprefix("topsecret: ").rstrip("\n")


@pytest.mark.parametrize("typed", OPTIONS)
def test_a_wrong_option(events: Path, typed: str) -> None:
    name, value = shlex.split(typed.strip("`"))
    assert asked(events, GOOD | {name: value}) == TURNS[typed]


def test_no_persons(events: Path) -> None:
    options = {name: value for name, value in GOOD.items() if name != "--person"}
    assert asked(events, options) == TURNS["no `--person`"]


def test_a_semicolon(tmp_path: Path) -> None:
    path = tmp_path / "excel.csv"
    path.write_text("user;place\nu1;park\n")
    assert asked(path, GOOD) == TURNS["a file from a spreadsheet, with `;`"]


def test_no_file(events: Path) -> None:
    done = run("top", "none.csv", *(word for pair in GOOD.items() for word in pair))
    assert done.stderr == f"topsecret: {TURNS['a file that is not there']}\n"


def test_a_question_too_many(events: Path, tmp_path: Path) -> None:
    place = {"TOPSECRET_LEDGER": str(tmp_path / "ledger.db")}
    terms = ["--person", "user", "--epsilon", "1"]
    assert run("budget", "open", "checkins", *terms, **place).returncode == 0
    question = GOOD | {"-k": "5", "--epsilon": "0.8", "--dataset": "checkins"}
    words = [word for pair in question.items() for word in pair]
    assert run("top", str(events), *words, **place).returncode == 0
    another = question | {"-k": "4"}
    expected = TURNS["a question too many for a [budget](ledger.md)"]
    assert asked(events, another, **place) == expected


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        home = str(tmp_path / "home")
        done = run_apart("serve", "--files", str(tmp_path), "--home", home, "--port", str(port))
    expected = TURNS["`topsecret serve` twice"].replace("8000", str(port))
    assert (done.returncode, done.stderr) == (2, f"topsecret: {expected}\n")


def test_a_folder_that_cannot_be_made(events: Path) -> None:
    home = str(events / "home")  # below a file
    done = run_apart("serve", "--files", str(events.parent), "--home", home, "--port", "0")
    assert done.returncode == 2
    assert done.stderr.endswith("check the path, its permissions and the disk\n")
    assert done.stderr.count("\n") == 1


def test_an_old_python(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.18 && exit\nexit 1\n')
    old.chmod(0o755)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "constraints.txt").touch()
    words = ["make", "-s", "-f", str(ROOT / "Makefile"), "demo", f"PYTHON={old}"]
    # The make that runs the tests may hand down that folders are printed.
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, env=own)
    assert done.returncode == 2
    assert done.stdout == TURNS["`make demo` with an old Python"] + "\n"
