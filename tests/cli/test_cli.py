"""The command line as its users meet it: a process with streams and an exit code."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import topsecret
from command import COMMAND, run, run_apart

GOOD = ["--item", "place", "--person", "user", "--epsilon", "1"]


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "events.csv"
    places = ["Central Station and the Very Long Name of Its Northern Entrance", "[red]Café[/red]"]
    rows = [f"u{n},{place}" for rank, place in enumerate(places) for n in range(2000 - 900 * rank)]
    path.write_text("\n".join(["user,place", *rows]) + "\n", encoding="utf-8")
    return path


def test_a_table_and_a_receipt(events: Path) -> None:
    done = run("top", str(events), *GOOD, "-k", "2")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "Top 2 of 'place' in events.csv" in done.stdout
    assert "[red]Café[/red]" in done.stdout
    assert "Receipt" in done.stdout
    assert "epsilon = " in done.stdout
    assert "\x1b" not in done.stdout


def test_json_for_machines(events: Path) -> None:
    done = run("top", str(events), *GOOD, "-k", "2", "--json")
    record = json.loads(done.stdout)
    assert record["items"][1] == "[red]Café[/red]"
    assert record["complete"] is True
    assert record["epsilon"] <= 1


@pytest.mark.parametrize("columns", ["20", "40", "200"])
def test_every_width(events: Path, columns: str) -> None:
    done = run("top", str(events), *GOOD, "-k", "2", COLUMNS=columns)
    assert done.returncode == 0
    assert max(len(line) for line in done.stdout.splitlines()) <= int(columns)


def test_a_terminal_without_unicode(events: Path) -> None:
    done = run_apart("top", str(events), *GOOD, PYTHONIOENCODING="ascii:strict")
    assert done.returncode == 0
    assert r"Caf\xe9" in done.stdout


MISTAKES = [
    (["top", "none.csv", *GOOD], "none.csv does not exist; check the path"),
    (["top", "EVENTS", *GOOD, "-k", "0"], "k=0 must be at least 1; ask for one item or more"),
    (
        ["top", "EVENTS", *GOOD[:-1], "nan"],
        "epsilon=nan must be a finite number; write epsilon=0.5",
    ),
    (["top", "EVENTS", *GOOD[:-1], "-1"], "epsilon=-1.0 must be above 0; 1 is a common choice"),
    (
        ["top", "EVENTS", "--item", "plce", "--person", "user", "--epsilon", "1"],
        "events.csv has no column 'plce'; its first line must name the columns; "
        "look at it with: head -n 1 events.csv (another delimiter than ',': --delimiter ';'; no "
        "such line: --header user,place)",
    ),
    (["top", "EVENTS", "--item", "place"], "Missing option '--person'. (see topsecret top --help)"),
    (
        ["top", "EVENTS", *GOOD, "-k", "ten"],
        "k='ten' must be a whole number, auto or all; write -k 10",
    ),
    (
        ["top", "EVENTS", "--item", "place", "--person", "place", "--epsilon", "1"],
        "item='place' and person='place' must be two different columns",
    ),
    (["top", "EVENTS", *GOOD[:-1], "one"], "Invalid value for '--epsilon'"),
    (["top", "EVENTS", *GOOD[:-1], "0"], "epsilon=0.0 must be above 0; 1 is a common choice"),
    (["top", "EVENTS", *GOOD, "--mechanism", "best"], "mechanism='best' must be one of: auto,"),
    (["tpo"], "No such command 'tpo'"),
    (["top", "EVENTS", *GOOD, "--epslion", "1"], "No such option"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=[case[1] for case in MISTAKES])
def test_a_mistake_is_one_line(events: Path, arguments: list[str], message: str) -> None:
    done = run(*(str(events) if word == "EVENTS" else word for word in arguments))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"topsecret: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("end", [[], ["--json"]], ids=["text", "json"])
def test_a_full_disk_is_one_line(
    events: Path, end: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What was not written stays in the buffer and is refused again at the end.
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    words = [sys.executable, "-m", "topsecret", "top", str(events), *GOOD, *end]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "topsecret: No space left on device; check the path, its permissions and the disk\n"
    )


def test_a_reader_who_leaves_is_no_error(events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    words = [sys.executable, "-m", "topsecret", "top", str(events), *GOOD, "--json"]
    asked = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert asked.stdout is not None
    asked.stdout.close()
    assert asked.stderr is not None
    assert asked.stderr.read() == ""
    asked.stderr.close()
    assert asked.wait() == 1


def test_a_file_gets_no_colours_and_no_trailing_spaces(events: Path) -> None:
    done = run("top", str(events), *GOOD)
    assert "\x1b" not in done.stdout
    assert not [line for line in done.stdout.splitlines() if line != line.rstrip()]


def test_a_broken_file_shows_no_data(tmp_path: Path) -> None:
    path = tmp_path / "broken.csv"
    path.write_text("user,place\nann,CANARY,park\n")
    done = run("top", str(path), *GOOD)
    assert done.returncode == 2
    assert "broken.csv is not well-formed CSV" in done.stderr
    assert "CANARY" not in done.stderr + done.stdout


def test_version() -> None:
    assert run_apart("--version").stdout == f"topsecret {topsecret.__version__}\n"


def test_no_arguments_show_the_help() -> None:
    done = run()
    assert "Usage: topsecret" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("columns", ["40", "80"])
def test_help_fits(columns: str) -> None:
    done = run("top", "--help", COLUMNS=columns)
    assert "--k-bar" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= int(columns)


def test_help_has_examples() -> None:
    assert "topsecret demo" in run("--help").stdout
    assert "--person user" in run("top", "--help").stdout


def test_demo_writes_answers_and_says_what_next(tmp_path: Path) -> None:
    folder = tmp_path / "a demo"
    done = run_apart("demo", "--directory", str(folder))
    assert done.returncode == 0
    assert (folder / "checkins.csv").exists()
    assert "Central Station" in done.stdout
    assert "by number of rows, with a limit on what each person adds (epsilon = 0.9" in done.stdout
    assert "by a noisy look at the data, already counted in epsilon." in done.stdout
    assert "each person adds at most 200 of 'minutes' to each item" in done.stdout
    assert " + 0.9" in done.stdout, "the epsilons of the three, as a sum"
    assert "its figures are of the first list alone." in done.stdout
    first = done.stdout.splitlines()[2]
    assert first.endswith("checkins.csv' --item place --person user -k 10 --epsilon 1")
    opened, asked = done.stdout.splitlines()[-2:]
    assert "topsecret budget open NAME --person COLUMN --epsilon 2" in opened
    assert "topsecret top FILE --item COLUMN" in asked
    assert asked.endswith(" --dataset NAME")
    command = done.stdout.splitlines()[-4]
    assert f"topsecret top '{folder}/checkins.csv' --item place --person user" in command
    assert subprocess.run(command, shell=True, stdout=subprocess.PIPE, check=True).stdout


def test_a_closed_pipe_is_quiet(events: Path) -> None:
    command = " ".join([*COMMAND, "top", str(events), *GOOD, "--json"]) + " | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


LONG_QUERY = """
import signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from topsecret.sources import running_statement as progress
stopped, watch = threading.Event(), progress.watch

def again_and_again(run, *, fraction, interrupt):
    def runs():
        while not stopped.is_set():
            result = run()
        return result
    def stop():
        stopped.set()
        interrupt()
    return watch(runs, fraction=fraction, interrupt=stop)

progress.PATIENCE, progress.watch = 0.01, again_and_again
from topsecret.cli import main
main(sys.argv[1:])
"""
"""The same query until Ctrl-C: on the slowest machine it does not end before that. (One that can be
run again: picks make no table.)"""


def test_progress_on_a_terminal_and_ctrl_c(events: Path) -> None:
    terminal, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", LONG_QUERY, "top", str(events), *GOOD, "--choose", "public"],
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown, counting = bytearray(), threading.Event()

    def read() -> None:
        """All the time: a terminal that nobody reads would hold up who writes to it."""
        with contextlib.suppress(OSError):  # the other end is closed
            while more := os.read(terminal, 1024):
                shown.extend(more)
                if b"counting" in shown:
                    counting.set()
        counting.set()  # it ended, which the next lines report

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    with process:
        assert counting.wait(600)
        assert b"counting" in shown, shown
        for _ in range(60):  # one is lost where Python can raise nothing, in a finalizer, say
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                output, _ = process.communicate(timeout=10)
                break
        else:
            process.kill()
            pytest.fail("Ctrl-C ends nothing")
    reading.join(600)
    os.close(terminal)
    assert process.returncode == 130
    assert output == b""
    assert b"Traceback" not in shown


def test_engines_are_imported_only_when_used() -> None:
    code = "import sys, topsecret; print({'duckdb', 'sqlglot', 'rich', 'typer'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
