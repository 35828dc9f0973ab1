"""The memory of the process: k̄ + 1 rows of a server's, and what DuckDB is allowed of its own."""

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
import sqlalchemy

from topsecret.errors import InvalidParameter, SourceError
from topsecret.sources import CountQuery
from topsecret.sources.engines.duckdb import FileSource

ASK = """
import sys
from benchmarks.memory import peak
from topsecret import top_k
answer = top_k(sys.argv[1], table=sys.argv[2] or None, item="place", person="user", k=5, epsilon=4,
               mechanism="limited-domain")
print(len(answer.items), int(peak()))
"""
EVENTS = "SELECT {} AS \"user\", 'place-' || {} AS place FROM {}"
QUERY = CountQuery("place", "user", 50)
ROOT = Path(__file__).parents[2]


def asked(source: str | Path, table: str = "", **environment: str) -> tuple[int, int]:
    """How many items were named, and the peak memory in MB."""
    words = [sys.executable, "-c", ASK, str(source), table]
    changed = os.environ | environment
    run = subprocess.run(words, env=changed, cwd=ROOT, capture_output=True, text=True, check=True)
    items, memory = map(int, run.stdout.split())
    return items, memory


def test_a_servers_rows_stay_there(postgres_url: str) -> None:
    engine = sqlalchemy.create_engine(postgres_url)
    with engine.begin() as connection:
        for table, rows in (("small", 10_000), ("large", 1_000_000)):
            # As many places in both, and a hundred times the persons.
            place = "floor(40 * power((i % 1000) / 1000.0, 2))"
            events = EVENTS.format("i / 2", place, f"generate_series(1, {rows}) AS s(i)")
            connection.execute(sqlalchemy.text(f"CREATE TABLE {table} AS {events}"))
    engine.dispose()
    small, large = (asked(postgres_url, table) for table in ("small", "large"))
    assert small[0] == large[0] == 5
    assert abs(large[1] - small[1]) <= 16  # a million rows of 20 bytes would show


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "events.parquet"
    place = "(power((hash(range + 77) % 1000000) / 1e6, 3) * 10000)::INTEGER"
    query = EVENTS.format("hash(range) % 100000", place, "range(5_000_000)")
    duckdb.sql(query).write_parquet(str(path))
    return path


def test_duckdb_keeps_to_the_memory_it_is_given(events: Path) -> None:
    items, much = asked(events, TOPSECRET_MEMORY="4GB")
    again, little = asked(events, TOPSECRET_MEMORY="150MB")
    assert items == again == 5
    assert little < much - 50
    assert little < 350  # 150 for the engine, the rest for Python and its libraries


def test_the_counts_do_not_depend_on_it(events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = FileSource(events).leading_counts(QUERY)
    monkeypatch.setenv("TOPSECRET_MEMORY", "150 MB")
    assert FileSource(events).leading_counts(QUERY) == free


def test_too_little_is_one_line(events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPSECRET_MEMORY", "16MB")
    with pytest.raises(SourceError, match="raise TOPSECRET_MEMORY"):
        FileSource(events).leading_counts(QUERY)


SIZES = ("0MB", "0.001KB", "1kb", "15.9 MB", "15MiB", "1001TB", "999999999TB")


@pytest.mark.parametrize("value", ["lots", "7X", "-1GB", "1GB'; DROP TABLE x", "80%", *SIZES])
def test_a_size_that_is_none(events: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("TOPSECRET_MEMORY", value)
    with pytest.raises(InvalidParameter, match="TOPSECRET_MEMORY must be a size"):
        FileSource(events).leading_counts(QUERY)


@pytest.mark.parametrize("value", ["lots", *SIZES])
def test_it_is_found_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    from topsecret import top_k
    from topsecret.ledger import Flexible, Ledger

    (tmp_path / "e.csv").write_text("user,place\nann,park\n")
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("d", Flexible.of(epsilon=4, delta=1e-5), person="user")
    monkeypatch.setenv("TOPSECRET_MEMORY", value)
    with pytest.raises(InvalidParameter, match="TOPSECRET_MEMORY must be a size"):
        top_k(
            tmp_path / "e.csv",
            item="place",
            person="user",
            k=1,
            epsilon=0.1,
            delta=1e-8,
            ledger=ledger,
            dataset="d",
        )
    assert [entry.event for entry in ledger.history("d")] == ["opened"]
    ledger.close()
