"""A short hunt for breaks in every world, and ten planted breaks that it must find.

The long one is ``make soak``. A seed that found something becomes a test of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import fuzz_worlds as worlds
import pytest
from neighbours_fuzz import DOMAIN_OF_EVENTS, TEXTS, Hunt, Row, Violation, refuses_alike
from sqlglot import exp

from topsecret.sources import CountQuery, GroupAssignment, Source
from topsecret.sources import session as asking
from topsecret.sources.domains.counted_domain import domain_size
from topsecret.sources.engines import (
    duckdb_relations,
    duckdb_scans,
    duckdb_tables,
    files,
    settings,
    sql_session,
)
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.engines.duckdb_tables import OpenConnection
from topsecret.sources.sql import dialects, groups, statements

PAIRS = 14
SEED = 20_240_501
QUERY = CountQuery("place", "user", rows=9)


@pytest.fixture
def postgres_world(postgres_url: str) -> Iterator[Any]:
    world = worlds.postgres(postgres_url)
    yield world
    for engine in world._engines:
        engine.dispose()


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_files(tmp_path: Path, suffix: str) -> None:
    # All columns of text files are text: only parquet is counted by hand.
    Hunt(worlds.Files(tmp_path, suffix), SEED, suffix == "parquet").run(PAIRS, 4)


def test_duckdb() -> None:
    Hunt(worlds.DuckTables(), SEED).run(PAIRS, 4)


def test_frames() -> None:
    Hunt(worlds.Frames(), SEED).run(PAIRS, 4)


def test_sqlite(tmp_path: Path) -> None:
    world = worlds.sqlite(tmp_path / "s.db")
    Hunt(world, SEED).run(PAIRS, 4)
    world._engines[0].dispose()


def test_postgresql(postgres_world: Any) -> None:
    Hunt(postgres_world, SEED).run(PAIRS, 4)


@pytest.mark.soak
@pytest.mark.spark
def test_spark(spark: Any) -> None:
    Hunt(worlds.SparkFrames(spark), SEED).run(4, 4)


# Ten planted breaks: what stood in the code, or could.


def test_finds_types_from_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        duckdb_tables, "declared", lambda frame, columns, person: frame[list(columns)]
    )
    with pytest.raises(Violation):
        Hunt(OnlyCategories(), SEED).run(500)


class OnlyCategories(worlds.Frames):
    def load(self, rows: Sequence[Row]) -> Callable[[Any], Source]:
        return lambda _: duckdb_tables.FrameSource(worlds.frame_of(rows, "categories"))


def _one_by_one(session: Any, queries: Any) -> Any:
    found = []
    for query in queries:
        assert query.home is not None
        rows = session.run(asking.statement(session, query))
        number = groups.numbered(query)[query.home.group]
        mine = [tuple(row) for home, *row in rows if home == number]
        found.append(query.items(mine))
    return found


def test_finds_groups_read_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_two_groups(reads: int) -> bool:
        with duckdb.connect() as connection:
            connection.execute(
                "CREATE TABLE t AS SELECT 'ann' u, 'a' p, 'g' || range g FROM range(6)"
            )
            connection.execute("CREATE VIEW v AS SELECT * FROM t WHERE random() < 0.5")
            source = OpenConnection(connection, "v", trust_view=True)
            names = tuple(f"g{n}" for n in range(6))
            query = CountQuery("p", "u", 9, salt=bytes(16))
            queries = [replace(query, home=GroupAssignment("g", names, name)) for name in names]
            lists = (asking.leading_counts_of(source, queries) for _ in range(reads))
            return any(sum(map(bool, found)) > 1 for found in lists)

    assert not in_two_groups(20)
    monkeypatch.setattr(asking, "_of_groups", _one_by_one)
    assert in_two_groups(200)  # a quarter of the readings: the first of them ends it


def test_finds_old_string_syntax(postgres_world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(settings.POSTGRES, "standard_conforming_strings")
    monkeypatch.setattr("topsecret.sources.engines.sql_settings.PROOF", "x")
    with pytest.raises(Violation):
        Hunt(postgres_world, SEED).run(300)


def test_finds_functions_of_others(postgres_world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_session, "POSTGRES_PATH", "trap, public, pg_catalog")
    with pytest.raises(Violation):
        Hunt(postgres_world, SEED).run(300)


def test_finds_files_of_other_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow
    import pyarrow.parquet as parquet  # type: ignore[import-untyped,unused-ignore]

    def load(rows: Sequence[Row]) -> Source:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        whole = pyarrow.table({"user": [1, 2], "place": ["a", "b"]})
        parquet.write_table(whole, folder / "a.parquet")
        parts = {"user": [float(row[3]) + 0.5 for row in rows], "place": [row[1] for row in rows]}
        parquet.write_table(pyarrow.table(parts), folder / "b.parquet")
        return FileSource(folder / "*.parquet")

    def ask(source: Source) -> Any:
        return source.leading_counts(QUERY)

    refuses_alike(load, ask)
    monkeypatch.setattr(duckdb_scans, "check_types", lambda *_: None)
    with pytest.raises(Violation):
        refuses_alike(load, ask)


def test_finds_labels_of_raw_values(monkeypatch: pytest.MonkeyPatch) -> None:
    def raw(query: Any, schema: Any, dialect: str) -> Any:
        text = dialects.as_text(statements.column(query.home.column, "events"), dialect)
        cases = exp.case()
        for group, number in groups.numbered(query).items():
            same = exp.EQ(this=text.copy(), expression=exp.Literal.string(str(group)))
            cases = cases.when(same, exp.Literal.number(number))
        return cases

    def counted() -> Any:
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE t AS SELECT 'ann' u, 'a' p, '1.0' g")
            query = CountQuery("p", "u", 9, home=GroupAssignment("g", (1, 2), 1))
            return OpenConnection(connection, "t").leading_counts(query)

    assert counted() == [("a", 1)]
    monkeypatch.setattr(groups, "_home", raw)
    assert counted() != [("a", 1)]


def test_finds_a_header_that_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(rows: Sequence[Row]) -> Source:
        path = tmp_path / "e.csv"
        path.write_text("".join(f"{row[0]},{row[1]},user\n" for row in rows), encoding="utf-8")
        return FileSource(path)

    def ask(source: Source) -> Any:
        return source.leading_counts(QUERY)

    refuses_alike(load, ask)
    monkeypatch.setattr(files, "_offer", lambda _, columns: ", ".join(columns))
    with pytest.raises(Violation):
        refuses_alike(load, ask)


def of_rows(rows: Sequence[Row], view: str = "SELECT * FROM t") -> Source:
    connection = duckdb.connect()
    connection.execute('CREATE TABLE t ("user" TEXT, place TEXT, g TEXT, n BIGINT)')
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", list(rows))
    connection.execute(f"CREATE VIEW v AS {view}")
    return OpenConnection(connection, "v")


def test_finds_a_domain_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(source: Source) -> Any:
        return domain_size(source, replace(QUERY, domain=DOMAIN_OF_EVENTS))  # type: ignore[arg-type]

    refuses_alike(of_rows, ask)
    monkeypatch.setattr(duckdb_relations, "base_tables", lambda *_: frozenset())
    with pytest.raises(Violation):
        refuses_alike(of_rows, ask)


@pytest.mark.parametrize(
    "view",
    [
        "SELECT \"user\", CASE WHEN (SELECT count(*) FROM t) > 2 THEN 'B' END AS place FROM t",
        "SELECT * FROM t ORDER BY n DESC LIMIT 1",
        'SELECT "user", first_value(place) OVER (ORDER BY n DESC) AS place FROM t',
    ],
)
def test_finds_views_that_mix(view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(source: Source) -> Any:
        return source.leading_counts(QUERY)

    refuses_alike(lambda rows: of_rows(rows, view), ask)
    monkeypatch.setattr(duckdb_relations, "check_relation", lambda *_: None)
    with pytest.raises(Violation):
        refuses_alike(lambda rows: of_rows(rows, view), ask)


def test_finds_the_order_that_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(duckdb_relations.DUCKDB, "default_order")
    monkeypatch.setattr(statements, "ascending", lambda value, dialect: value)
    with pytest.raises(Violation):
        Hunt(worlds.DuckTables(), SEED).run(300)


def test_finds_other_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "unmarked", lambda text, dialect: text)
    world = worlds.sqlite(tmp_path / "s.db")
    with pytest.raises(Violation):
        Hunt(world, SEED).run(1000)
    world._engines[0].dispose()
    assert any(text.startswith("\x01") for text in TEXTS)
