"""The SQL is a promise to reviewers: it changes only on purpose."""

from collections.abc import Callable
from pathlib import Path

import pytest

from topsecret.sources import CountQuery
from topsecret.sources.duckdb import FileSource

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.mark.parametrize("suffix", ["csv", "tsv.gz", "jsonl"])
def test_snapshot(tmp_path: Path, write_events: Callable[..., Path], suffix: str) -> None:
    path = write_events(tmp_path / f"events.{suffix}", [("ann", "park")])
    sql = FileSource(path).sql(CountQuery(item="place", person="user", rows=201))
    shown = sql.replace(str(tmp_path), "/data") + "\n"
    assert shown == (SNAPSHOTS / f"{suffix}.sql").read_text(encoding="utf-8")
