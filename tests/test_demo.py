from pathlib import Path

import pytest

from topsecret.errors import SourceError
from topsecret.sources.demo_data import PERSONS, ROWS, write_checkins


def test_everyone_gets_the_same_file(tmp_path: Path) -> None:
    first = write_checkins(tmp_path / "a").read_bytes()
    assert first == write_checkins(tmp_path / "b").read_bytes()
    lines = first.decode().splitlines()
    assert lines[0] == "time,user,place,minutes"
    assert len(lines) == ROWS + 1
    assert 0.8 * PERSONS < len({line.split(",")[1] for line in lines[1:]}) <= PERSONS


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match="cannot be written; choose another place"):
        write_checkins(tmp_path / "file")
