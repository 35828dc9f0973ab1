"""The shop on real engines: filled again and again, asked for the rows of a rebuilt query."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Protocol

import duckdb
import psycopg
from shop import COLUMNS, Database, schema

from topsecret.sources.engines import sqlite as sqlite_engine
from topsecret.sources.relations.catalogue import FixedCatalogue, TableEntry


class Shop(Protocol):
    """The tables of the shop in one engine."""

    dialect: str

    def fill(self, data: Database) -> None: ...

    def rows(self, sql: str) -> list[tuple[Any, ...]]: ...

    def close(self) -> None: ...


def catalogue(dialect: str, unique: bool, schema_name: str = "main") -> FixedCatalogue:
    """What the engine would say of the shop's tables."""
    keys = frozenset({"id"}) if unique else frozenset[str]()
    return FixedCatalogue(
        dialect,
        {
            table: TableEntry(
                (schema_name, table),
                columns,  # type: ignore[arg-type]
                keys if table == "orders" else frozenset(),
            )
            for table, columns in COLUMNS.items()
        },
    )


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE PRECISION)"
    return str(value)


def _inserts(data: Database) -> list[str]:
    made = []
    for table, rows in data.items():
        made.append(f"DELETE FROM {table}")
        if rows:
            values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
            made.append(f"INSERT INTO {table} VALUES {values}")
    return made


class DuckShop:
    """DuckDB in memory."""

    dialect = "duckdb"

    def __init__(self, unique: bool) -> None:
        self._connection = duckdb.connect()
        for statement in schema(dialect="duckdb", unique=unique):
            self._connection.execute(statement)

    def fill(self, data: Database) -> None:
        self._connection.execute("BEGIN; " + "; ".join(_inserts(data)) + "; COMMIT")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql).fetchall()

    def close(self) -> None:
        self._connection.close()


class SqliteShop:
    """SQLite in memory; its text columns ignore case."""

    dialect = "sqlite"

    def __init__(self, unique: bool) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        sqlite_engine.give_functions(self._connection)
        for statement in schema(dialect="sqlite", unique=unique):
            self._connection.execute(statement)

    def fill(self, data: Database) -> None:
        for table, rows in data.items():
            self._connection.execute(f"DELETE FROM {table}")
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql).fetchall()

    def close(self) -> None:
        self._connection.close()


class PostgresShop:
    """A database of PostgreSQL's own."""

    dialect = "postgres"

    def __init__(self, url: str, unique: bool) -> None:
        self._connection = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
        self._execute("DROP SCHEMA IF EXISTS main CASCADE; CREATE SCHEMA main")
        self._execute("SET search_path = main")
        for statement in schema(dialect="postgres", unique=unique):
            self._execute(statement)

    def _execute(self, sql: str) -> Any:
        return self._connection.execute(sql.encode())

    def fill(self, data: Database) -> None:
        self._execute("; ".join(_inserts(data)))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        rows: Sequence[tuple[Any, ...]] = self._execute(sql).fetchall()
        return list(rows)

    def close(self) -> None:
        self._connection.close()
