"""Engines with hostile settings, views and types, for ``neighbours_fuzz``."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import sqlalchemy
from events import of_several_lines
from neighbours_fuzz import TEXTS, Row

from topsecret.sources import Source
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.engines.duckdb_tables import FrameSource, OpenConnection
from topsecret.sources.engines.sqlalchemy import SqlSource

NAMES = ("user", "place", "g", "n")
COLUMNS = '("user" {text}, place {text}, g {text}, n BIGINT)'
VIEWS = [
    "SELECT * FROM {table}",
    "SELECT \"user\", place, g, n FROM {table} WHERE g IS NULL OR g <> 'nothing'",
    'SELECT "user", place, g, n FROM {table} UNION ALL SELECT "user", place, g, n FROM {table}',
    'SELECT DISTINCT "user", place, g, n FROM {table}',
    'SELECT "user", place, g, max(n) AS n FROM {table} GROUP BY "user", place, g, n',
]
"""Each gives the rows of its table, perhaps some of them twice or once."""


class DuckTables:
    """Tables and views of one connection whose settings change all the time."""

    name = "duckdb"
    texts = TEXTS
    missing = True

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"CREATE TABLE t {COLUMNS.format(text='VARCHAR')}")
        for place, view in enumerate(VIEWS):
            self._connection.execute(f"CREATE VIEW v{place} AS {view.format(table='t')}")

    def load(self, rows: Sequence[Row]) -> Callable[[random.Random], Source]:
        ask = self._connection.execute
        ask("DELETE FROM t")
        if rows:
            columns = [list(values) for values in zip(*rows, strict=True)]
            ask(
                "INSERT INTO t SELECT unnest(?), unnest(?), unnest(?), unnest(?::BIGINT[])", columns
            )
        return self._source

    def _source(self, chance: random.Random) -> Source:
        ask = self._connection.execute
        name = chance.choice(["t", f"v{chance.randrange(len(VIEWS))}"])
        ask(f"SET GLOBAL default_order = '{chance.choice(['ASC', 'DESC'])}'")
        ask(f"SET GLOBAL default_collation = '{chance.choice(['', 'NOCASE'])}'")
        ask(f"SET TimeZone = '{chance.choice(['UTC', 'Asia/Tokyo'])}'")
        return OpenConnection(self._connection, name)


class Files:
    """Files of one of the formats, read by a closed engine."""

    texts = TEXTS
    missing = True

    def __init__(self, folder: Path, suffix: str) -> None:
        self.name = f"{suffix} files"
        self._folder, self._suffix = folder, suffix

    def load(self, rows: Sequence[Row]) -> Callable[[random.Random], Source]:
        path = self._folder / f"e.{self._suffix}"
        if self._suffix == "parquet":
            frame = arrow(rows)
            import pyarrow.parquet as files  # type: ignore[import-untyped,unused-ignore]

            files.write_table(frame, path)
        elif self._suffix == "jsonl":
            lines = [json.dumps(dict(zip(NAMES, row, strict=True))) for row in rows]
            path.write_text("\n".join([*lines, json.dumps(dict.fromkeys(NAMES))]) + "\n")
        else:
            import csv

            with path.open("w", newline="", encoding="utf-8") as file:
                table = csv.writer(file)
                table.writerow(NAMES)
                table.writerows([["" if v is None else v for v in row] for row in rows])
        return lambda _: FileSource(of_several_lines(path))


def arrow(rows: Sequence[Row]) -> Any:
    import pyarrow

    kinds = [pyarrow.string()] * 3 + [pyarrow.int64()]
    columns = [[row[place] for row in rows] for place in range(4)]
    arrays = [pyarrow.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    return pyarrow.table(dict(zip(NAMES, arrays, strict=True)))


class Frames:
    """Frames of three packages, with categoricals and objects in pandas."""

    name = "frames"
    texts = TEXTS
    missing = True

    def load(self, rows: Sequence[Row]) -> Callable[[random.Random], Source]:
        return lambda chance: FrameSource(frame_of(rows, chance.choice(FRAMES)))


FRAMES = ("arrow", "polars", "objects", "categories", "declared")


def frame_of(rows: Sequence[Row], kind: str) -> Any:
    import pandas
    import polars

    if kind == "arrow":
        return arrow(rows)
    if kind == "polars":
        return polars.from_arrow(arrow(rows))
    columns = {name: [row[place] for row in rows] for place, name in enumerate(NAMES)}
    frame = pandas.DataFrame({k: pandas.Series(v, dtype=object) for k, v in columns.items()})
    frame["n"] = pandas.array(columns["n"], dtype="Int64")
    if kind == "categories":
        frame["place"] = pandas.Categorical(columns["place"])
        known = sorted({n for n in columns["n"] if n is not None})
        codes = [known.index(n) if n is not None else -1 for n in columns["n"]]
        index = pandas.Index(known, dtype="int64")
        frame["n"] = pandas.Categorical.from_codes(codes, categories=index)
    if kind == "declared":
        frame["place"] = frame["place"].astype("string")
    return frame


class Databases:
    """Tables and views behind SQLAlchemy, reached by connections with other settings."""

    texts = TEXTS
    missing = True

    def __init__(self, name: str, engines: Sequence[sqlalchemy.Engine], text: str) -> None:
        self.name = name
        self._engines = engines
        with engines[0].begin() as connection:
            connection.exec_driver_sql(f"CREATE TABLE t {COLUMNS.format(text=text)}")
            for place, view in enumerate(VIEWS[:3]):
                connection.exec_driver_sql(f"CREATE VIEW v{place} AS {view.format(table='t')}")

    def load(self, rows: Sequence[Row]) -> Callable[[random.Random], Source]:
        with self._engines[0].begin() as connection:
            connection.exec_driver_sql("DELETE FROM t")
            if rows:
                insert = sqlalchemy.text("INSERT INTO t VALUES (:user, :place, :g, :n)")
                connection.execute(insert, [dict(zip(NAMES, row, strict=True)) for row in rows])
        return self._source

    def _source(self, chance: random.Random) -> Source:
        name = chance.choice(["t", f"v{chance.randrange(3)}"])
        return SqlSource(chance.choice(list(self._engines)), name)


class SparkFrames:
    """Frames of a running session."""

    name = "spark"
    texts = TEXTS
    missing = True

    def __init__(self, session: Any) -> None:
        self._session = session

    def load(self, rows: Sequence[Row]) -> Callable[[random.Random], Source]:
        from topsecret.sources.engines.spark import SparkSource

        schema = "user string, place string, g string, n bigint"
        frame = self._session.createDataFrame(list(rows), schema)
        view = frame.union(frame).filter("g IS NULL OR g <> 'nothing'").distinct()
        return lambda chance: SparkSource(chance.choice([frame, view]))


HOSTILE = (
    "-c standard_conforming_strings=off -c escape_string_warning=off -c client_encoding=latin1 "
    "-c search_path=trap,public,pg_catalog -c TimeZone=Asia/Tokyo -c DateStyle=German"
)
TRAPS = [
    "CREATE SCHEMA trap",
    "CREATE FUNCTION trap.convert_to(text, text) RETURNS bytea LANGUAGE sql AS "
    "$$ SELECT pg_catalog.convert_to('x', 'UTF8') $$",
    "CREATE FUNCTION trap.md5(text) RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$",
    "CREATE FUNCTION trap.length(text) RETURNS integer LANGUAGE sql AS $$ SELECT 1 $$",
    "CREATE FUNCTION trap.same(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$",
    "CREATE OPERATOR trap.= (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.same)",
]


def postgres(url: str) -> Databases:
    """A database with traps, and connections that would fall into them."""
    plain = sqlalchemy.create_engine(url)
    with plain.begin() as connection:
        for sql in TRAPS:
            connection.exec_driver_sql(sql)
    options = {"options": HOSTILE}
    hostile = sqlalchemy.create_engine(sqlalchemy.make_url(url).update_query_dict(options))
    return Databases("postgresql", [plain, hostile], "TEXT")


def sqlite(path: Path) -> Databases:
    """A database whose text columns ignore case."""
    return Databases(
        "sqlite", [sqlalchemy.create_engine(f"sqlite:///{path}")], "TEXT COLLATE NOCASE"
    )
