"""Any database with an SQLAlchemy URL or engine, tested on PostgreSQL and SQLite.

The statements run in one read-only transaction that sees one moment of the data, where the
database has such (PostgreSQL, MySQL: REPEATABLE READ; SQLite: any transaction). Nothing is
written, no temporary table is made.

A driver's error texts may quote rows and passwords. They end here: an error of ours is made from
the kind of the failure and the moment when it happened.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sqlglot import exp

from topsecret.errors import DataIndependentFailure, InvalidParameter, MissingExtra, SourceError
from topsecret.sources import session as asking
from topsecret.sources.domains.domain import Column, FileColumn
from topsecret.sources.engines import sqlite
from topsecret.sources.engines.duckdb_tables import check_columns, table_parts
from topsecret.sources.fingerprints import Fingerprint, plain
from topsecret.sources.session import Relation, Rows
from topsecret.sources.source import Columns, CountQuery, Kind, LeadingCounts, Schema
from topsecret.sources.sql.rendering import rendered
from topsecret.sources.sql.statements import named, table

try:
    import sqlalchemy
    from sqlalchemy import exc, types
    from sqlalchemy.engine import Connection
    from sqlalchemy.engine import Engine as Database
except ImportError:
    raise MissingExtra(
        "a database needs SQLAlchemy; install it with: pip install 'topsecret[postgres]'"
    ) from None

DIALECTS = {
    "postgresql": "postgres",
    "sqlite": "sqlite",
    "mysql": "mysql",
    "mariadb": "mysql",
    "snowflake": "snowflake",
    "bigquery": "bigquery",
    "trino": "trino",
    "clickhouse": "clickhouse",
    "clickhousedb": "clickhouse",
    "duckdb": "duckdb",
}
"""SQLAlchemy's names of databases, and sqlglot's."""

REPEATABLE = {"postgresql", "mysql", "mariadb"}

SECRET = re.compile("pass|secret|token|key|credential", re.IGNORECASE)
"""Options of an address that are kept out of fingerprints."""

SYSTEM = {"information_schema", "mysql", "performance_schema", "sys", "pg_catalog"}
"""Schemas that hold no events."""

MOST_LISTED = 100_000
"""Items of a domain that are written into a statement; more belong into a table."""


class SqlSource:
    """A table of a database.

    >>> SqlSource("sqlite://", "visits")
    SqlSource('visits of sqlite')
    """

    def __init__(self, database: str | Database, name: str | tuple[str, ...]) -> None:
        self._parts = table_parts(name)
        self._engine, self._mine = _engine(database)
        backend = self._engine.dialect.name
        if backend not in DIALECTS:
            raise InvalidParameter(
                f"a database of {backend} is not supported; use one of: {', '.join(DIALECTS)}"
            )
        self._dialect = DIALECTS[backend]

    @property
    def name(self) -> str:
        """The table and the database, without passwords."""
        url = self._engine.url
        place = [part for part in (url.host, url.database) if part]
        return " ".join([".".join(self._parts), "of", self._engine.dialect.name, *place])

    def __repr__(self) -> str:
        return f"SqlSource({self.name!r})"

    def fingerprint(self) -> Fingerprint:
        """The server, the database, who asks and what the address says beside a password."""
        url, backend = self._engine.url, self._engine.dialect.name
        database: str | None = url.database
        version: str | None = ""
        if backend in ("sqlite", "duckdb"):
            named = database or ":memory:"
            in_memory = ":memory:" in named or "mode=memory" in str(url)
            # Two databases in memory have one address.
            database, version = (None, None) if in_memory else (os.path.abspath(named), "")
        said = {name: url.query[name] for name in sorted(url.query) if not SECRET.search(name)}
        return {
            "kind": backend,
            "host": url.host,
            "port": url.port,
            "database": database,
            "user": url.username,
            "options": plain(list(said.items())),
            "table": list(self._parts),
            "version": version,
        }

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        """Count distinct persons per item in one query and return the leading rows."""
        return asking.leading_counts(self, query)

    def sql(self, query: CountQuery) -> str:
        """The query that the database is asked, for reading."""
        return asking.sql(self, query)

    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in their order, of a table that this user may read."""
        with self._opened() as session:
            relation, schema = session.events(())
            # Asks for no row. A user without the right would learn of it only once a question is
            # paid for: what goes wrong while counting is charged.
            session.run(exp.select("1").from_(relation).where(exp.false()))
            return tuple(schema)

    @contextmanager
    def session(self, query: CountQuery) -> Iterator[SqlSession]:
        """A connection in one read-only transaction."""
        with self._opened() as session:
            yield session

    @contextmanager
    def _opened(self) -> Iterator[SqlSession]:
        connection = self._connected()
        try:
            yield SqlSession(connection, self._dialect, self._parts, self.name)
        finally:
            with contextlib.suppress(exc.SQLAlchemyError):
                connection.rollback()
                if self._dialect == "sqlite":
                    connection.exec_driver_sql("PRAGMA case_sensitive_like = OFF")
            with contextlib.suppress(exc.SQLAlchemyError):
                connection.close()
            if self._mine:
                self._engine.dispose()

    def _connected(self) -> Connection:
        backend = self._engine.dialect.name
        encoding = sqlite.ENCODING
        if backend == "sqlite" and self._mine:
            sqlite.check_file(self._engine.url.database)
        connection: Connection | None = None
        try:
            connection = self._engine.connect()
            if backend in REPEATABLE:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            connection = connection.execution_options(no_parameters=True)
            if backend == "postgresql":
                connection.exec_driver_sql("SET TRANSACTION READ ONLY")
            if backend == "sqlite":
                encoding = str(connection.exec_driver_sql("PRAGMA encoding").scalar())
                sqlite.give_functions(_raw(connection))
                connection.exec_driver_sql("PRAGMA case_sensitive_like = ON")
                connection.exec_driver_sql("BEGIN")  # Python's driver begins with writes only
            if encoding == sqlite.ENCODING:
                return connection
        except (exc.SQLAlchemyError, OSError):
            encoding = sqlite.ENCODING
        if connection is not None:
            connection.close()
        sqlite.check_encoding(encoding)
        raise DataIndependentFailure(
            f"the database of {self.name} cannot be reached; check its address, that it runs, and "
            "the user and password"
        )


class SqlSession:
    """Statements within one transaction."""

    def __init__(
        self, connection: Connection, dialect: str, parts: tuple[str, ...], name: str
    ) -> None:
        self.dialect = dialect
        self._connection = connection
        self._parts = parts
        self._name = name
        self._schemas: dict[tuple[str, ...], Schema] = {}

    @property
    def connection(self) -> Connection:
        """For the catalogue, which is read on the same moment of the data."""
        return self._connection

    def events(self, columns: Sequence[str]) -> Relation:
        """The table of events."""
        return self._table(self._parts, columns)

    def schema(self, columns: Sequence[str]) -> Schema:
        """What the columns of the events hold, which the catalogue knows."""
        return self.events(columns)[1]

    def other(self, domain: Column | FileColumn, columns: Sequence[str]) -> Relation:
        """Another table, or a file whose items are written into the statement."""
        if isinstance(domain, Column):
            return self._table(table_parts(domain.table), columns)
        from topsecret.sources.domains.file_items import items_of

        rows = items_of(domain, columns)
        return self.upload(rows, columns), dict.fromkeys(columns, "text")

    def upload(self, rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> exp.Expression:
        """The rows as part of the statement."""
        if len(rows) > MOST_LISTED:
            raise InvalidParameter(
                f"a domain of {len(rows)} listed items is too long for {self._name}; put it into "
                "a table and pass domain=Column('table', 'column')"
            )
        if self.dialect != "sqlite":
            quoted = [exp.to_identifier(name, quoted=True) for name in names]
            listed: Any = exp.values(list(rows), alias="v", columns=quoted)  # type: ignore[arg-type]
            return exp.select("*").from_(listed).subquery()
        shown = [
            named(exp.column(f"column{place}"), name) for place, name in enumerate(names, start=1)
        ]
        values: Any = exp.values(list(rows), alias="v")
        return exp.select(*shown).from_(values).subquery()

    def keep(self, select: exp.Select) -> exp.Expression:
        """The statement itself: the transaction sees the same data whenever it runs."""
        return select.subquery()

    def run(self, select: exp.Expression) -> Rows:
        """The rows."""
        sql = rendered(select, self.dialect)
        try:
            with self._texts():
                return [tuple(row) for row in self._connection.exec_driver_sql(sql).fetchall()]
        except (exc.SQLAlchemyError, OSError, ValueError):
            pass
        raise SourceError(
            f"{self._name} could not be counted; check that the connection lasts and that the "
            "filter suits the types of the columns"
        )

    def _texts(self) -> AbstractContextManager[None]:
        if self.dialect == "sqlite":
            return sqlite.reading(_raw(self._connection))
        return contextlib.nullcontext()

    def tables(self) -> tuple[str, ...]:
        """Tables and views, those outside the default schema with their schema's name.

        Names with dots are left out: as one text they would be read as a schema and a table.
        """
        found: set[str] = set()
        try:
            inspector = sqlalchemy.inspect(self._connection)
            usual = inspector.default_schema_name
            for schema in inspector.get_schema_names():
                if schema in SYSTEM or "." in schema:
                    continue
                names = [*inspector.get_table_names(schema), *inspector.get_view_names(schema)]
                if self.dialect == "postgres":
                    names += inspector.get_materialized_view_names(schema)
                ahead = "" if schema == usual else f"{schema}."
                found |= {f"{ahead}{name}" for name in names if "." not in name}
            return tuple(sorted(found))
        except (exc.SQLAlchemyError, OSError):
            pass
        raise DataIndependentFailure("the database's tables cannot be listed; check the user")

    def _table(self, parts: tuple[str, ...], columns: Sequence[str]) -> Relation:
        schema = self._schema(parts)
        check_columns(".".join(parts), columns, list(schema))
        return table(*parts), schema

    def _schema(self, parts: tuple[str, ...]) -> Schema:
        """What the table's columns hold, read once."""
        if parts in self._schemas:
            return self._schemas[parts]
        found = None
        error: type[SourceError] = DataIndependentFailure
        try:
            inspector = sqlalchemy.inspect(self._connection)
            namespace = ".".join(parts[:-1]) or None
            found = inspector.get_columns(parts[-1], schema=namespace)
        except exc.NoSuchTableError:
            pass
        except (exc.SQLAlchemyError, OSError):
            error = SourceError  # a lost connection, a lock: not certain to be free of rows
        if not found:
            raise error(
                f"the table {'.'.join(parts)} does not exist or may not be read; check its name"
            )
        held = {str(entry["name"]): entry["type"] for entry in found}
        self._schemas[parts] = columns_of(held, self.dialect)
        return self._schemas[parts]


def _raw(connection: Connection) -> Any:
    """The driver's own connection."""
    return connection.connection.dbapi_connection


def tables(database: str | Database) -> tuple[str, ...]:
    """The tables and views of a database: its schema, and none of its rows."""
    with SqlSource(database, "any")._opened() as session:
        return session.tables()


OTHER_KINDS: tuple[tuple[Any, Kind], ...] = (
    (types.DateTime, "timestamp"),
    (types.Date, "date"),
    (types.Float, "float"),
    (types.Numeric, "decimal"),
)


CANONICAL = (
    types.Integer,
    types.Boolean,
    types.String,  # told apart by code point, whatever the collation
    types.Enum,
    types.Uuid,
    types.Date,
    types.DateTime,
    types.Time,
    types.LargeBinary,
)
"""Types whose equal values have equal texts."""


def columns_of(held: Mapping[str, Any], dialect: str) -> Columns:
    """What columns of these SQLAlchemy types hold.

    SQLite is left out: there a column's type does not say what it holds, and ``person`` does
    not need to know.
    """
    zeros: set[str] = set()
    unclear: set[str] = set()
    for name, given in held.items():
        type_ = getattr(given, "data_type", given)  # a domain of PostgreSQL
        if dialect == "postgres" and isinstance(type_, types.Numeric):
            (unclear if isinstance(type_, types.Float) else zeros).add(name)
        elif dialect == "postgres" and not isinstance(type_, CANONICAL):
            unclear.add(name)
    return Columns(
        {name: kind_of(type_) for name, type_ in held.items()}, zeros=zeros, unclear=unclear
    )


def kind_of(type_: Any) -> Kind:
    """What a column of this SQLAlchemy type holds."""
    if isinstance(type_, types.Boolean):
        return "boolean"
    if isinstance(type_, types.Integer):
        return "integer"
    if isinstance(type_, types.Enum):
        return "other"
    for parent, kind in OTHER_KINDS:
        if isinstance(type_, parent):
            return kind
    return "text" if isinstance(type_, types.String) else "other"


def _engine(database: str | Database) -> tuple[Database, bool]:
    if isinstance(database, Database):
        return database, False
    try:
        return sqlalchemy.create_engine(database), True
    except (exc.NoSuchModuleError, exc.ArgumentError, ValueError):  # ValueError: a port "x"
        pass  # raised below, outside: the text may hold a password
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"this database needs the Python package {error.name}; install it (for PostgreSQL: "
            "pip install 'topsecret[postgres]')"
        ) from None
    raise InvalidParameter(
        "the database's address is not one that SQLAlchemy knows; "
        "write, say, postgresql+psycopg://user@host/database"
    )
