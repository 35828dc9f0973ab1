"""The README and the pages beside it are run, not only read."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PLANNING = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from topsecret.demo import write_checkins

    folder = tmp_path_factory.mktemp("readme")
    write_checkins(folder / "demo")
    return folder


@pytest.mark.parametrize("code", [*blocks("python"), *blocks("python", PLANNING)])
def test_python_runs(folder: Path, code: str) -> None:
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True)


COMMANDS = [
    line
    for page in (README, PLANNING)
    for block in blocks("sh", page)
    for line in block.splitlines()
    if line.startswith("topsecret")
]


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs(folder: Path, command: str) -> None:
    words = [sys.executable, "-m", "topsecret", *shlex.split(command, comments=True)[1:]]
    done = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True)
    if words[3] == "top" and command in README:
        receipt = done.stdout.split("Receipt")[1].split("Made")[0].split()
        assert receipt == README.split("Receipt")[1].split("Made")[0].split()


def test_set_up_is_two_commands() -> None:
    lines = blocks("sh")[0].splitlines()
    assert [line.split("#")[0].strip() for line in lines] == ["make demo", "make test"]
