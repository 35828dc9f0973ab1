"""docs/ledger.md is run, not only read."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCS, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    from topsecret.sources.demo_data import write_checkins

    return write_checkins(tmp_path).parent


def test_the_commands_print_what_is_shown(folder: Path) -> None:
    environment = os.environ | {"TOPSECRET_LEDGER": str(folder / "own.db"), "COLUMNS": "100"}
    commands = [line for line in blocks("sh")[0].splitlines() if line.startswith("topsecret")]
    for command in commands:
        words = [sys.executable, "-m", "topsecret", *shlex.split(command)[1:]]
        done = subprocess.run(
            words, cwd=folder, env=environment, check=True, capture_output=True, text=True
        )
    assert f"```\n{done.stdout}```\n" in DOCS


def test_the_python_runs(folder: Path) -> None:
    code = blocks("python")[0] + "\nprint(ledger.account('checkins').summary)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True
    )
    assert done.stdout == "40 of 50 items left, 9 of 10 queries left\n"
