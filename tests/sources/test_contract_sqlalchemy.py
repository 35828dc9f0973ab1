"""Databases keep the contract: a real PostgreSQL, with a collation that would merge, and SQLite."""

from collections.abc import Iterator, Sequence

import pytest
import sqlalchemy
from contract import Contract, Row

from postgres import Server
from topsecret.sources import Source
from topsecret.sources.engines.sqlalchemy import SqlSource


class Databases(Contract):
    engine: sqlalchemy.Engine
    text: str

    def source(self, rows: Sequence[Row], kind: str | None = None) -> Source:
        kind = kind or self.text
        with self.engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE IF EXISTS visits")
            connection.exec_driver_sql(f'CREATE TABLE visits ("user" {kind}, place {kind})')
            if rows:
                insert = sqlalchemy.text(
                    'INSERT INTO visits VALUES (:"user", :place)'.replace('"', "")
                )
                connection.execute(insert, [{"user": u, "place": p} for u, p in rows])
        return SqlSource(self.engine, "visits")

    def numbers(self, rows: Sequence[tuple[int, int]]) -> Source:
        return self.source(rows, "BIGINT")


class TestPostgreSQL(Databases):
    text = "VARCHAR"

    @pytest.fixture(autouse=True)
    def _database(self, postgres_server: Server) -> Iterator[None]:
        name = postgres_server.create_database()
        self.engine = sqlalchemy.create_engine(postgres_server.url(name))
        yield
        self.engine.dispose()
        postgres_server.drop_database(name)


class TestPostgreSQLIgnoringCase(TestPostgreSQL):
    text = "TEXT COLLATE nocase"

    @pytest.fixture(autouse=True)
    def _collation(self, _database: None) -> None:
        with self.engine.begin() as connection:
            connection.exec_driver_sql(
                "CREATE COLLATION nocase "
                "(provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
            )


class TestSQLite(Databases):
    text = "TEXT COLLATE NOCASE"

    @pytest.fixture(autouse=True)
    def _database(self, tmp_path: object) -> Iterator[None]:
        self.engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/events.db")
        yield
        self.engine.dispose()
