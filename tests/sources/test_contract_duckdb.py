"""DuckDB keeps the contract, whatever form the events come in."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from contract import Contract, Row
from events import of_several_lines, write

from topsecret.sources import Source
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.engines.duckdb_tables import DatabaseFile, FrameSource, OpenConnection


class Files(Contract):
    suffix: str

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path
        self.numbered = itertools.count()

    def source(self, rows: Sequence[Row]) -> Source:
        path = write(self.folder / f"{next(self.numbered)}{self.suffix}", rows)
        return FileSource(of_several_lines(path))

    def numbers(self, rows: Sequence[tuple[int, int]]) -> Source:
        path = self.folder / f"{next(self.numbered)}.parquet"
        with duckdb.connect() as engine:
            engine.execute('CREATE TABLE t ("user" BIGINT, place INTEGER)')
            engine.executemany("INSERT INTO t VALUES (?, ?)", [list(row) for row in rows])
            engine.execute(f"COPY t TO '{path}' (FORMAT parquet)")
        return FileSource(path)


class TestCsv(Files):
    suffix = ".csv"


class TestJsonLines(Files):
    suffix = ".jsonl"


class TestParquet(Files):
    suffix = ".parquet"


def load(engine: duckdb.DuckDBPyConnection, name: str, kind: str, rows: Sequence[Row]) -> None:
    engine.execute(f'CREATE TABLE {name} ("user" {kind}, place {kind})')
    if rows:
        engine.executemany(f"INSERT INTO {name} VALUES (?, ?)", [list(row) for row in rows])


class TestDatabaseFile(Files):
    def source(self, rows: Sequence[Row], kind: str = "VARCHAR COLLATE NOCASE") -> Source:
        path = self.folder / f"{next(self.numbered)}.duckdb"
        with duckdb.connect(str(path)) as engine:
            load(engine, "visits", kind, rows)
        return DatabaseFile(path, "visits")

    def numbers(self, rows: Sequence[tuple[int, int]]) -> Source:
        return self.source(rows, "BIGINT")


class TestOpenConnection(Files):
    def source(self, rows: Sequence[Row], kind: str = "VARCHAR") -> Source:
        engine = duckdb.connect()
        load(engine, "visits", kind, rows)
        return OpenConnection(engine, "visits")

    def numbers(self, rows: Sequence[tuple[int, int]]) -> Source:
        return self.source(rows, "BIGINT")


def columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {"user": [row[0] for row in rows], "place": [row[1] for row in rows]}


class TestArrow(Files):
    def source(self, rows: Sequence[Row]) -> Source:
        pyarrow = pytest.importorskip("pyarrow")
        schema = pyarrow.schema([("user", pyarrow.string()), ("place", pyarrow.string())])
        return FrameSource(pyarrow.table(columns(rows), schema=schema))

    def numbers(self, rows: Sequence[tuple[int, int]]) -> Source:
        return FrameSource(pytest.importorskip("pyarrow").table(columns(rows)))


class TestPandas(Files):
    def source(self, rows: Sequence[Row]) -> Source:
        pandas = pytest.importorskip("pandas")
        return FrameSource(pandas.DataFrame(columns(rows), dtype=object))

    def numbers(self, rows: Sequence[tuple[int, int]]) -> Source:
        return FrameSource(pytest.importorskip("pandas").DataFrame(columns(rows)))


class TestPolars(Files):
    def source(self, rows: Sequence[Row]) -> Source:
        polars = pytest.importorskip("polars")
        schema = {"user": polars.String, "place": polars.String}
        return FrameSource(polars.DataFrame(columns(rows), schema=schema))

    def numbers(self, rows: Sequence[tuple[int, int]]) -> Source:
        return FrameSource(pytest.importorskip("polars").DataFrame(columns(rows)))


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # ibis's own call
class TestIbis(Files):
    def source(self, rows: Sequence[Row]) -> Source:
        ibis = pytest.importorskip("ibis")
        schema = ibis.schema({"user": "string", "place": "string"})
        return OpenConnection.of_ibis(self.table(ibis, schema, rows))

    def numbers(self, rows: Sequence[tuple[int, int]]) -> Source:
        ibis = pytest.importorskip("ibis")
        schema = ibis.schema({"user": "int64", "place": "int64"})
        return OpenConnection.of_ibis(self.table(ibis, schema, rows))

    def table(self, ibis: Any, schema: Any, rows: Sequence[Any]) -> Any:
        connection = ibis.duckdb.connect()
        made = connection.create_table("events", schema=schema)
        if rows:
            connection.con.executemany("INSERT INTO events VALUES (?, ?)", list(map(list, rows)))
        return made
