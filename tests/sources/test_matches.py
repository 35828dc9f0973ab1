"""DuckDB, SQLite and PostgreSQL keep the contract of comparisons."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pytest
import sqlalchemy
from matches_contract import MatchContract, Vote

from postgres import Server
from topsecret.errors import InvalidParameter
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.engines.duckdb_tables import DatabaseFile, FrameSource
from topsecret.sources.engines.sqlalchemy import SqlSource
from topsecret.sources.matches import MatchQuery
from topsecret.sources.session import Engine

NAMES = ("voter", "winner", "loser", "tie")


class TestCsv(MatchContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def engine(self, rows: Sequence[Vote]) -> Engine:
        path = self.folder / "votes.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([NAMES, *rows])
        return FileSource(path)


class TestDuckDB(TestCsv):
    def engine(self, rows: Sequence[Vote]) -> Engine:
        path = self.folder / "votes.duckdb"
        with duckdb.connect(str(path)) as engine:
            columns = ", ".join(f"{name} VARCHAR COLLATE NOCASE" for name in NAMES)
            engine.execute(f"CREATE OR REPLACE TABLE votes ({columns})")
            if rows:
                engine.executemany("INSERT INTO votes VALUES (?, ?, ?, ?)", [[*r] for r in rows])
        return DatabaseFile(path, "votes")


class TestPandas(TestCsv):
    def engine(self, rows: Sequence[Vote]) -> Engine:
        pandas = pytest.importorskip("pandas")
        return FrameSource(pandas.DataFrame(rows, columns=list(NAMES), dtype=object))


class Databases(MatchContract):
    database: sqlalchemy.Engine
    text: str

    def engine(self, rows: Sequence[Vote]) -> Engine:
        with self.database.begin() as connection:
            connection.exec_driver_sql("DROP TABLE IF EXISTS votes")
            columns = ", ".join(f"{name} {self.text}" for name in NAMES)
            connection.exec_driver_sql(f"CREATE TABLE votes ({columns})")
            if rows:
                insert = sqlalchemy.text("INSERT INTO votes VALUES (:a, :b, :c, :d)")
                connection.execute(insert, [dict(zip("abcd", row, strict=True)) for row in rows])
        return SqlSource(self.database, "votes")


class TestSQLite(Databases):
    text = "TEXT COLLATE NOCASE"

    @pytest.fixture(autouse=True)
    def _database(self, tmp_path: Path) -> Iterator[None]:
        self.database = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/votes.db")
        yield
        self.database.dispose()


class TestPostgreSQL(Databases):
    text = "VARCHAR"

    @pytest.fixture(autouse=True)
    def _database(self, postgres_server: Server) -> Iterator[None]:
        name = postgres_server.create_database()
        self.database = sqlalchemy.create_engine(postgres_server.url(name))
        yield
        self.database.dispose()
        postgres_server.drop_database(name)


def test_mistakes_are_named() -> None:
    with pytest.raises(InvalidParameter, match="must be different columns"):
        MatchQuery("a", "A")
    with pytest.raises(InvalidParameter, match="go together"):
        MatchQuery("a", "b", person="p")
    with pytest.raises(InvalidParameter, match="comparisons_per_person=0 must be a whole number"):
        MatchQuery("a", "b", person="p", most_per_person=0)
