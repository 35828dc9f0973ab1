from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlalchemy
from events import SUFFIXES, Row, write

from postgres import Server
from topsecret.sources import Source
from topsecret.sources.engines.duckdb_tables import OpenConnection
from topsecret.sources.engines.sqlalchemy import SqlSource


@pytest.fixture(scope="session")
def write_events() -> Callable[[Path, Sequence[Row]], Path]:
    """The writer itself, for a path of the test's choice."""
    return write


@pytest.fixture(params=SUFFIXES)
def events(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Sequence[Row]], Path]:
    """A writer of event files, once for every format."""
    return lambda rows: write(tmp_path / f"events{request.param}", rows)


@pytest.fixture(scope="module")
def postgres(postgres_server: Server) -> Iterator[sqlalchemy.Engine]:
    name = postgres_server.create_database()
    engine = sqlalchemy.create_engine(postgres_server.url(name))
    yield engine
    engine.dispose()
    postgres_server.drop_database(name)


@pytest.fixture
def make(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[[str, list[str]], Any]]:
    """Run statements on an engine; then a function from a name to the source of that name."""
    opened: list[Any] = []

    def made(engine: str, statements: list[str]) -> Callable[..., Source]:
        if engine == "duckdb":
            connection = duckdb.connect()
            opened.append(connection)
            for sql in statements:
                connection.execute(sql)
            return lambda name, **more: OpenConnection(connection, name, **more)
        if engine == "sqlite":
            path = tmp_path / "s.db"
            with sqlite3.connect(path) as raw:
                raw.executescript(";\n".join(statements))
            raw.close()
            return lambda name, **more: SqlSource(f"sqlite:///{path}", name, **more)
        database = request.getfixturevalue("postgres")
        with database.begin() as connection:
            connection.exec_driver_sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            for sql in statements:
                connection.exec_driver_sql(sql)
        return lambda name, **more: SqlSource(database, name, **more)

    yield made
    for one in opened:
        one.close()
