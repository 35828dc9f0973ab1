"""docs/ledger.md is run, not only read."""

import re
import shlex
from pathlib import Path

import pytest

from command import run

DOCS = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCS, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    from topsecret.sources.demo_data import write_checkins

    return write_checkins(tmp_path).parent


def test_the_commands_print_what_is_shown(folder: Path) -> None:
    settings = {"TOPSECRET_LEDGER": str(folder / "own.db"), "COLUMNS": "100"}
    commands = [line for line in blocks("sh")[0].splitlines() if line.startswith("topsecret")]
    for command in commands:
        done = run(*shlex.split(command)[1:], cwd=folder, **settings)
        assert done.returncode == 0, done.stderr
    assert f"```\n{done.stdout}```\n" in DOCS


def test_the_python_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    code = blocks("python")[0] + "\nprint(ledger.account('checkins').summary)\nledger.close()"
    exec(code, {"__name__": "__main__"})
    assert capsys.readouterr().out == "40 of 50 items left, 9 of 10 queries left\n"
