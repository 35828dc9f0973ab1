"""Connections of SQLAlchemy made ready before their first statement, and set back afterwards."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Connection

from topsecret.sources.engines import sqlite
from topsecret.sources.engines.settings import MYSQL, POSTGRES
from topsecret.sources.engines.sql_catalogues import quoted
from topsecret.sources.engines.table_names import TWO_NAMES, are_apart

PROOF = "€ä'\\\U0001f600"
"""A text that comes back as it was sent only if encoding and string syntax are as they must be."""


def hardened(connection: Connection, dialect: str) -> str:
    """Tell the session what counting rests on; why it cannot be used, or nothing."""
    if dialect == "postgres":
        return _postgres(connection)
    if dialect == "sqlite":
        return _sqlite(connection)
    if dialect == "mysql":
        for name, value in MYSQL.items():
            connection.exec_driver_sql(f"SET @topsecret_{name} = @@SESSION.{name}")
            connection.exec_driver_sql(f"SET SESSION {name} = '{value}'")
    return ""


def softened(connection: Connection, dialect: str) -> None:
    """Set back what outlives a transaction."""
    if dialect == "sqlite":
        connection.exec_driver_sql("PRAGMA case_sensitive_like = OFF")
    if dialect == "mysql":
        for name in MYSQL:
            connection.exec_driver_sql(f"SET SESSION {name} = @topsecret_{name}")


def may_keep(connection: Connection, dialect: str) -> bool:
    """Whether the session may make a temporary table."""
    if dialect == "sqlite":
        return not connection.exec_driver_sql("PRAGMA query_only").scalar()
    if dialect != "postgres":
        return False
    query = text(
        "SELECT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMP') "
        "AND NOT pg_catalog.pg_is_in_recovery() "
        "AND pg_catalog.current_setting('transaction_read_only') OPERATOR(pg_catalog.=) 'off'"
    )
    return bool(connection.execute(query).scalar())


def path_of(connection: Connection) -> str:
    """Where PostgreSQL looks for the caller's tables, with its own functions first."""
    query = text("SELECT pg_catalog.unnest(pg_catalog.current_schemas(false))")
    schemas = [str(row[0]) for row in connection.execute(query)]
    return ", ".join(["pg_catalog", *(quoted((one,)) for one in schemas), "pg_temp"])


def raw(connection: Connection) -> Any:
    """The driver's own connection."""
    return connection.connection.dbapi_connection


def _postgres(connection: Connection) -> str:
    for name, value in POSTGRES.items():
        connection.exec_driver_sql(f"SET LOCAL {name} = '{value}'")
    encoding = str(connection.exec_driver_sql("SHOW server_encoding").scalar())
    if encoding != "UTF8":
        return (
            f"the database is in the encoding {encoding}, in which one row's text can fail a "
            "question; move it to one in UTF8"
        )
    literal = PROOF.replace("'", "''")
    if connection.exec_driver_sql(f"SELECT '{literal}'").scalar() != PROOF:
        return (
            "the connection to PostgreSQL cannot be set to UTF-8; leave client_encoding out of "
            "its address"
        )
    return ""


def _sqlite(connection: Connection) -> str:
    encoding = str(connection.exec_driver_sql("PRAGMA encoding").scalar())
    if encoding != sqlite.ENCODING:
        return sqlite.wrong_encoding(encoding)
    files = [str(row[2]) for row in connection.exec_driver_sql("PRAGMA database_list")]
    if not are_apart(files):
        return TWO_NAMES
    sqlite.give_functions(raw(connection))
    # LIKE minds the case, as on other engines.
    connection.exec_driver_sql("PRAGMA case_sensitive_like = ON")
    connection.exec_driver_sql("BEGIN")  # Python's driver begins with writes only
    return ""
