"""Rows and sums on DuckDB, PostgreSQL and SQLite, and what may be asked."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pytest
import sqlalchemy
from measures_contract import Measured, Row

from postgres import Server
from topsecret.errors import InvalidParameter, WrongForSchema
from topsecret.sources import CountQuery, Source, Sum, measure_of
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.engines.duckdb_tables import FrameSource, OpenConnection
from topsecret.sources.engines.sqlalchemy import SqlSource

DUCKDB = {"integer": "BIGINT", "decimal": "DECIMAL(38, 10)", "float": "DOUBLE"}


def loaded(rows: Sequence[Row], kind: str) -> duckdb.DuckDBPyConnection:
    engine = duckdb.connect()
    engine.execute(f'CREATE TABLE visits ("user" VARCHAR, place VARCHAR, price {kind})')
    if rows:
        engine.executemany("INSERT INTO visits VALUES (?, ?, ?)", [list(row) for row in rows])
    return engine


class TestTable(Measured):
    def priced(self, rows: Sequence[Row], kind: str) -> Source:
        return OpenConnection(loaded(rows, DUCKDB[kind]), "visits")


class TestHugeIntegers(TestTable):
    kinds = ("integer",)

    def priced(self, rows: Sequence[Row], kind: str) -> Source:
        return OpenConnection(loaded(rows, "HUGEINT"), "visits")

    def hostile(self, kind: str) -> list[Any]:
        return [2**126, -(2**126), 3]


class TestFrame(Measured):
    kinds = ("float",)

    def priced(self, rows: Sequence[Row], kind: str) -> Source:
        frame = pandas.DataFrame(rows, columns=["user", "place", "price"])
        texts = {"user": "string", "place": "string", "price": "float64"}
        return FrameSource(frame.astype(texts))


class Files(Measured):
    kinds = ("decimal",)

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.paths = (tmp_path / f"{n}" for n in itertools.count())

    def hostile(self, kind: str) -> list[Any]:
        numbers = [Decimal(10**16), Decimal(-(10**16)), Decimal(3)]
        return [*numbers, "ten", "1,5", "NaN", "", "0x10", "1e400"]

    def periods(self) -> tuple[Any, Any]:
        """All columns are text."""
        texts = ("3", "5", "8", "9"), ("-7", "0", "1", "2")
        return [("price", "in", texts[0])], [("price", "in", texts[1])]


class TestCsv(Files):
    def priced(self, rows: Sequence[Row], kind: str) -> Source:
        path = next(self.paths).with_suffix(".csv")
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["user", "place", "price"])
            writer.writerows(rows)
        return FileSource(path)


class TestJsonLines(Files):
    def priced(self, rows: Sequence[Row], kind: str) -> Source:
        path = next(self.paths).with_suffix(".jsonl")
        lines = [dict(zip(("user", "place", "price"), row, strict=True)) for row in rows]
        path.write_text("".join(json.dumps(line, default=str) + "\n" for line in lines))
        return FileSource(path)


class Databases(Measured):
    engine: sqlalchemy.Engine
    types: dict[str, str]

    def priced(self, rows: Sequence[Row], kind: str) -> Source:
        with self.engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE IF EXISTS visits")
            connection.exec_driver_sql(
                f'CREATE TABLE visits ("user" TEXT, place TEXT, price {self.types[kind]})'
            )
            if rows:
                insert = sqlalchemy.text("INSERT INTO visits VALUES (:u, :p, :v)")
                connection.execute(insert, [{"u": u, "p": p, "v": v} for u, p, v in rows])
        return SqlSource(self.engine, "visits")


class TestPostgreSQL(Databases):
    types = {"integer": "BIGINT", "decimal": "NUMERIC", "float": "DOUBLE PRECISION"}  # noqa: RUF012

    @pytest.fixture(autouse=True)
    def _database(self, postgres_server: Server) -> Iterator[None]:
        name = postgres_server.create_database()
        self.engine = sqlalchemy.create_engine(postgres_server.url(name))
        yield
        self.engine.dispose()
        postgres_server.drop_database(name)

    def hostile(self, kind: str) -> list[Any]:
        more = ["NaN", "Infinity", "-Infinity", "1e400"]
        return super().hostile(kind) + ([Decimal(m) for m in more] if kind == "decimal" else [])


class TestSQLite(Databases):
    types = {"integer": "INTEGER", "float": "REAL"}  # noqa: RUF012
    kinds = ("integer", "float")

    @pytest.fixture(autouse=True)
    def _database(self, tmp_path: Path) -> Iterator[None]:
        self.engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/events.db")
        yield
        self.engine.dispose()

    def hostile(self, kind: str) -> list[Any]:
        """Any value may be in any column."""
        return [*super().hostile(kind), "ten", b"\xff", "9" * 30, ""]

    def kept(self, value: Any) -> Any:
        """Text that is a number is one in a column of numbers; NaN is NULL."""
        return 1e30 if value == "9" * 30 else super().kept(value)


@pytest.mark.parametrize(
    ("measure", "most", "says"),
    [
        (
            "average",
            1,
            r"measure='average' must be 'persons', 'rows' or Sum.*an average",
        ),
        ("rows", None, r"measure='rows' needs a bound .* pass max_per_item=5, say"),
        ("persons", 3, r"max_per_item=3 bounds rows and sums"),
        (
            "rows",
            0,
            r"max_per_item=0 must be a whole multiple of the unit 1, from it to 10{9}",
        ),
        ("rows", 1.5, r"max_per_item=1.5 must be a whole multiple"),
        ("rows", 10**9 + 1, r"must be a whole multiple"),
        ("rows", True, r"max_per_item=True must be a number"),
        ("rows", math.nan, r"max_per_item=nan must be a number"),
        ("rows", "many", r"max_per_item='many' must be a number"),
        ("rows", "1e999999999", r"max_per_item='1e999999999' must be a number"),
        ("rows", [5], r"max_per_item=\[5\] must be one number, or from two to 64 that rise"),
        ("rows", [5, 2], r"that rise, of which one is chosen privately"),
        ("rows", [1, 1.5], r"max_per_item=1.5 must be a whole multiple"),
        ("rows", range(1, 70), r"from two to 64"),
        (Sum("price", 0.1), 0.05, r"multiple of the unit 0.1, from it to 100000000"),
    ],
)
def test_bounds_are_public_numbers(measure: Any, most: Any, says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        measure_of(measure, most)


@pytest.mark.parametrize(
    ("measure", "most", "total", "says"),
    [
        ("persons", None, 5, "max_total=5 bounds all the rows"),
        ("rows", "private", 5, "beside one public max_per_item"),
        ("rows", 5, 3, "max_total=3 must be at least max_per_item=5 and at most 100000000"),
        ("rows", 5, 1.5, "max_total=1.5 must be a whole multiple"),
        (Sum("price", 0.1), 5, 10**8, "and at most 10000000"),
    ],
)
def test_a_bound_on_all_that_a_person_adds(measure: Any, most: Any, total: Any, says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        measure_of(measure, most, total)


def test_a_bound_on_all_is_one_for_each_item() -> None:
    assert measure_of("rows", None, 7) == measure_of("rows", 7, 7)


@pytest.mark.parametrize("unit", [0, 2, -1, 0.05, 1e-7, "x", None])
def test_units_are_decimal_parts_of_one(unit: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"unit="):
        Sum("price", unit)


def test_sums_need_numbers_by_declaration() -> None:
    engine = duckdb.connect()
    engine.execute('CREATE TABLE visits ("user" VARCHAR, place VARCHAR, price DATE)')
    query = CountQuery("place", "user", 9, measure=measure_of(Sum("price"), 5))
    with pytest.raises(WrongForSchema, match=r"Sum\('price'\) needs a column of numbers"):
        OpenConnection(engine, "visits").leading_counts(query)


def test_a_unit_with_an_endless_exponent_is_refused_at_once() -> None:
    with pytest.raises(InvalidParameter, match="unit='1e-999999999' must be a number"):
        Sum("price", "1e-999999999")
