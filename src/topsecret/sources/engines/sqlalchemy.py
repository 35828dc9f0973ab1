"""Any database with an SQLAlchemy URL or engine, tested on PostgreSQL and SQLite.

The statements run in one transaction that sees one moment of the data, where the database has such
(PostgreSQL, MySQL: REPEATABLE READ; SQLite: any transaction). It is read-only, and nothing is
written but temporary tables of counts that several statements ask for, gone when it ends.

A driver's error texts may quote rows and passwords. They end here: an error of ours is made from
the kind of the failure and the moment when it happened.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from sqlglot import exp

from topsecret.errors import DataIndependentFailure, InvalidParameter, MissingExtra
from topsecret.logs.sqlalchemy import unlogged
from topsecret.sources import session as asking
from topsecret.sources.engines import sqlite
from topsecret.sources.engines.duckdb_relations import trusted
from topsecret.sources.engines.table_names import table_parts
from topsecret.sources.fingerprints import Fingerprint, plain
from topsecret.sources.source import CountQuery, LeadingCounts

try:
    import sqlalchemy
    from sqlalchemy import exc
    from sqlalchemy.engine import Connection
    from sqlalchemy.engine import Engine as Database

    from topsecret.sources.engines.sql_session import SqlSession
    from topsecret.sources.engines.sql_settings import hardened, may_keep, raw, softened
except ImportError:
    raise MissingExtra(
        "a database needs SQLAlchemy; install it with: pip install '.[postgres]' in the checkout"
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


class SqlSource:
    """A table of a database.

    >>> SqlSource("sqlite://", "visits")
    SqlSource('visits of sqlite')

    Parameters: ``database``: its URL, or an engine of SQLAlchemy; ``name``: the table or view; with
    its schema as a pair; ``trust_view``: the data owner's word that each row of a view depends on
    its own person alone.
    """

    def __init__(
        self,
        database: str | Database,
        name: str | tuple[str, ...],
        *,
        trust_view: bool = False,
    ) -> None:
        self._parts = table_parts(name)
        self._trusted = trust_view
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

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the guarantee rests on beside the data. Public."""
        return (trusted(self.name),) if self._trusted else ()

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
            **({"trust_view": True} if self._trusted else {}),
        }

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        """Count distinct people per item in one query and return the leading rows."""
        return asking.leading_counts(self, query)

    def sql(self, query: CountQuery) -> str:
        """The query that the database is asked, for reading."""
        return asking.sql(self, query)

    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in their order, of a table that this user may read."""
        with self._opened() as session:
            relation, schema = session.table(self._parts, ())
            # Asks for no row. A user without the right would learn of it only once a question is
            # paid for: what goes wrong while counting is charged.
            session.run(exp.select("1").from_(relation).where(exp.false()))
            return tuple(schema)

    def latest(
        self,
        column: str,
        private: Collection[str],
        elsewhere: Collection[str],
        persons: Collection[str],
        trusted: bool,
        seconds: float,
    ) -> object:
        """The largest value of a column of a public table (``sources.latest_value``)."""
        with self._opened() as session, contextlib.ExitStack() as limited:
            if self._dialect == "sqlite":
                limited.enter_context(sqlite.within(raw(session.connection), seconds))
            if self._dialect == "postgres":
                timeout = f"SET LOCAL statement_timeout = {int(1000 * seconds)}"
                session.connection.exec_driver_sql(timeout)
            relation = session.public(self._parts, column, private, elsewhere, persons, trusted)
            rows = session.run(
                exp.select(exp.Max(this=exp.column(column, quoted=True))).from_(relation)
            )
            return rows[0][0] if rows else None

    @contextmanager
    def session(self, query: CountQuery) -> Iterator[SqlSession]:
        """A connection in one transaction, in which only temporary tables can be written."""
        with self._opened(query) as session:
            yield session

    @contextmanager
    def _opened(self, query: CountQuery | None = None) -> Iterator[SqlSession]:
        with unlogged(self._engine), self._in_transaction(query) as session:
            yield session

    @contextmanager
    def _in_transaction(self, query: CountQuery | None) -> Iterator[SqlSession]:
        # Counts that several statements ask for are kept, and what a trusted view gave.
        keeps = query is not None and (query.kept or query.domain is not None or self._trusted)
        person = None if query is None or self._trusted else query.person
        connection: Connection | None = None
        try:
            connection = self._connected()
            keeps = keeps and may_keep(connection, self._dialect)
            if self._dialect == "postgres" and not keeps:
                connection.exec_driver_sql("SET TRANSACTION READ ONLY")
            yield SqlSession(connection, self._dialect, self._parts, self.name, person, keeps)
        finally:
            if connection is not None:
                with contextlib.suppress(exc.SQLAlchemyError):
                    connection.rollback()
                    softened(connection, self._dialect)
                with contextlib.suppress(exc.SQLAlchemyError):
                    connection.close()
            if self._mine:  # also when it was refused: the pool keeps what is closed
                self._engine.dispose()

    def _connected(self) -> Connection:
        backend = self._engine.dialect.name
        why = ""
        if backend == "sqlite" and self._mine:
            sqlite.check_file(self._engine.url.database)
        connection: Connection | None = None
        try:
            connection = self._engine.connect()
            if backend in REPEATABLE:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            connection = connection.execution_options(no_parameters=True)
            why = hardened(connection, self._dialect)
            if not why:
                return connection
        except (exc.SQLAlchemyError, OSError):
            why = ""
        if connection is not None:
            connection.close()
        raise DataIndependentFailure(
            why
            or f"the database of {self.name} cannot be reached; check its address, that it runs, "
            "and the user and password"
        )


def tables(database: str | Database) -> tuple[str, ...]:
    """The tables and views of a database: its schema, and none of its rows."""
    with SqlSource(database, "any")._opened() as session:
        return session.tables()


def _engine(database: str | Database) -> tuple[Database, bool]:
    if isinstance(database, Database):
        return database, False
    try:
        return sqlalchemy.create_engine(database, hide_parameters=True), True
    except (exc.NoSuchModuleError, exc.ArgumentError, ValueError):  # ValueError: a port "x"
        pass  # raised below, outside: the text may hold a password
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"this database needs the Python package {error.name}; install it (for PostgreSQL: "
            "pip install '.[postgres]' in the checkout)"
        ) from None
    raise InvalidParameter(
        "the database's address is not one that SQLAlchemy knows; "
        "write, say, postgresql+psycopg://user@host/database"
    )
