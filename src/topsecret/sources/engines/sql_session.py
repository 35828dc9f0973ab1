"""Statements to a database behind SQLAlchemy, within one transaction.

A driver's error texts may quote rows. They end here: an error of ours is made from the kind of the
failure and the moment when it happened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy import exc
from sqlalchemy.engine import Connection
from sqlglot import exp

from topsecret.errors import (
    DataIndependentFailure,
    InvalidParameter,
    SourceError,
    TopSecretError,
)
from topsecret.sources.domains.domain import Column, FileColumn
from topsecret.sources.engines import sqlite
from topsecret.sources.engines.duckdb import private_domain
from topsecret.sources.engines.settings import POSTGRES_PATH
from topsecret.sources.engines.sql_catalogues import (
    catalogue_of,
    is_shadow,
    partitions,
    usable_schemas,
)
from topsecret.sources.engines.sql_settings import path_of, raw
from topsecret.sources.engines.sql_types import columns_of
from topsecret.sources.engines.table_names import check_columns, table_parts
from topsecret.sources.running_statement import interruptible
from topsecret.sources.session import Relation, Rows
from topsecret.sources.source import Schema
from topsecret.sources.sql.base_tables import UNREAD, base_tables
from topsecret.sources.sql.dialects import LETTERS
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.relations import check_relation
from topsecret.sources.sql.rendering import rendered
from topsecret.sources.sql.statements import named, table
from topsecret.sources.sql.stored_definitions import Stored

T = TypeVar("T")

SYSTEM = {"information_schema", "mysql", "performance_schema", "sys", "pg_catalog"}
"""Schemas that hold no events."""

MOST_LISTED = 100_000
"""Items of a domain that are written into a statement; more belong into a table."""


class SqlSession:
    """Statements within one transaction."""

    def __init__(
        self,
        connection: Connection,
        dialect: str,
        parts: tuple[str, ...],
        name: str,
        person: str | None = None,
        keeps: bool = False,
    ) -> None:
        self.dialect = dialect
        self._connection = connection
        self._parts = parts
        self._name = name
        self._person = person
        self._analysed = person is not None
        self._keeps = keeps
        self._kept = 0
        self._stored: dict[tuple[str, ...], Stored] = {}
        self._schemas: dict[tuple[str, ...], Schema] = {}
        self._paths = (path_of(connection), POSTGRES_PATH) if dialect == "postgres" else ("", "")
        self._catalogue = catalogue_of(connection, dialect)

    @property
    def connection(self) -> Connection:
        """For the catalogue, which is read on the same moment of the data."""
        return self._connection

    def events(self, columns: Sequence[str]) -> Relation:
        """The table of events. A view must pass the analysis, unless it is trusted."""
        relation = self.table(self._parts, columns)
        if self._person is not None:
            self._asked(
                lambda: check_relation(
                    self._stored[self._parts], str(self._person), self._catalogue, self.dialect
                )
            )
            self._person = None  # once
        return relation

    def schema(self, columns: Sequence[str]) -> Schema:
        """What the columns of the events hold, which the catalogue knows."""
        return self.events(columns)[1]

    def other(self, domain: Column | FileColumn, columns: Sequence[str]) -> Relation:
        """Another table, or a file whose items are written into the statement."""
        if isinstance(domain, Column):
            parts = table_parts(domain.table)
            relation = self.table(parts, columns)
            self.table(self._parts, ())
            if self._asked(lambda: self._may_be_events(self._stored[parts])):
                raise InvalidParameter(private_domain(".".join(parts)))
            return relation
        from topsecret.sources.domains.file_items import items_of

        rows = items_of(domain, columns)
        return self.upload(rows, columns), dict.fromkeys(columns, "text")

    def public(
        self,
        parts: tuple[str, ...],
        column: str,
        private: Collection[str],
        elsewhere: Collection[str],
        persons: Collection[str],
        trusted: bool,
    ) -> exp.Expression:
        """A table that is declared public, unless it is seen to be made of private ones."""
        relation, schema = self.table(parts, (column,))
        found, name = self._stored[parts], ".".join(parts)

        def tables() -> set[tuple[str, ...]]:
            names = [table_parts(one) for one in private]
            # Another address may have another default schema.
            last = {table_parts(one)[-1] for one in elsewhere}
            names += [
                (schema, one) for schema in (self._schemas_read() if last else ()) for one in last
            ]
            events = (self._catalogue.find(one, None) for one in names)
            kept = [one for one in events if one is not None]
            held = {name for one in kept for name in self._tables_of(one)}
            if self.dialect == "postgres":
                held |= {part for one in held for part in partitions(self._connection, one)}
            return held

        events = self._asked(tables)
        read = self._asked(lambda: self._tables_of(found))
        if read & events:
            raise DataIndependentFailure(
                f"{name} is a table of events, or made of one: a version that is read from it "
                "would be data; name a table that the job which fills the events writes to"
            )
        if self._asked(lambda: any(self._is_the_systems(one) for one in read)):
            raise DataIndependentFailure(
                f"{name} is one of the database's own tables, or made of one, which the events "
                "move: a version that is read from it would be data; name a table that is listed "
                "among those that can be registered"
            )
        of_persons = {folded(one) for one in persons} & {folded(one) for one in schema}
        if not trusted and (found.definition is not None or found.refused or of_persons):
            raise DataIndependentFailure(
                f"{name} is a view or no plain table, or has a column of people: say that you "
                "answer for its being public, or name another table"
            )
        return relation

    def _may_be_events(self, domain: Stored) -> bool:
        """Whether a domain reads the events, a table with their rows, or nobody knows what."""
        public = self._tables_of(domain)
        private = set(self._tables_of(self._stored[self._parts]))
        if self.dialect == "postgres":
            private |= {kin for one in private for kin in partitions(self._connection, one)}
        return bool(private & public) or any(
            one[-1:] == UNREAD or self._is_the_systems(one) for one in public
        )

    def _tables_of(self, one: Stored) -> frozenset[tuple[str, ...]]:
        """A table, or a view and all tables that it reads, with their schemas."""
        found = base_tables(one, self._catalogue, self.dialect) | {one.name}
        usual = sqlalchemy.inspect(self._connection).default_schema_name
        return frozenset(name if len(name) > 1 else (str(usual), *name) for name in found)

    def _is_the_systems(self, name: tuple[str, ...]) -> bool:
        """Whether a table is kept by the database itself, from counts to copies of the rows."""
        schema, last = ".".join(name[:-1]), name[-1]
        if folded(schema) in SYSTEM | {"system", "pg_toast"}:
            return True
        if folded(last).startswith(("sqlite_", "duckdb_")):
            return True
        if self.dialect == "sqlite" and is_shadow(self._connection, name):
            return True
        return last not in self._listed(sqlalchemy.inspect(self._connection), schema)

    def _schemas_read(self) -> list[str]:
        """The schemas whose tables this user may look up."""
        if self.dialect == "postgres":
            return usable_schemas(self._connection)
        return list(sqlalchemy.inspect(self._connection).get_schema_names())

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
        """A temporary table, or where there can be none the statement itself.

        The transaction sees the same tables whenever the statement runs, and a view that passed
        the analysis gives the same rows. One that is trusted may not: it must be read once.
        """
        if not self._keeps:
            if self._is_trusted_view():
                raise DataIndependentFailure(
                    f"{self._name} is a trusted view, which must be read once, and this user may "
                    "not make a temporary table; grant it, pass a table, or ask with "
                    "choose='public' and without the number of people, which reads it once"
                )
            return select.subquery()
        self._kept += 1
        name = f"topsecret_kept_{self._kept}"
        if self.dialect == "sqlite":
            self._run(f"CREATE TEMP TABLE {name} AS {rendered(select, self.dialect)}")
            return table("temp", name)
        if self.dialect == "postgres":
            made = f"CREATE TEMP TABLE {name} ON COMMIT DROP AS {rendered(select, self.dialect)}"
            self._run(made)
            return table("pg_temp", name)
        return select.subquery()

    def once(self, select: exp.Select) -> exp.Select:
        """The select itself: the statement says that it is read once."""
        return select

    def run(self, select: exp.Expression) -> Rows:
        """The rows."""
        sql = rendered(select, self.dialect)
        if self.dialect == "postgres" and LETTERS in sql and not self._knows_letters():
            raise DataIndependentFailure(
                "LOWER and UPPER need PostgreSQL with ICU, and this one has none; leave them out"
            )
        return self._run(sql)

    def _knows_letters(self) -> bool:
        """Whether PostgreSQL knows letters beyond A to Z."""
        query = sqlalchemy.text("SELECT count(*) FROM pg_catalog.pg_collation WHERE collname = :n")
        return self._asked(lambda: bool(self._connection.execute(query, {"n": LETTERS}).scalar()))

    def _run(self, sql: str) -> Rows:
        try:
            with self._texts(), self._path(1), interruptible(self._interrupt):
                result = self._connection.exec_driver_sql(sql)
                return [tuple(row) for row in result.fetchall()] if result.returns_rows else []
        except (exc.SQLAlchemyError, OSError, ValueError, MemoryError):
            pass
        raise SourceError(
            f"{self._name} could not be counted; check that the connection lasts and that the "
            "filter suits the types of the columns"
        )

    def _interrupt(self) -> None:
        """End the statement that runs: SQLite and PostgreSQL can be told from another thread."""
        driver = raw(self._connection)
        end = getattr(driver, "interrupt", None) or getattr(driver, "cancel", None)
        if end is not None:
            end()

    @property
    def steady(self) -> bool:
        """Whether all statements certainly read the same rows, as those of a transaction do."""
        return not self._is_trusted_view()

    def _is_trusted_view(self) -> bool:
        found = self._stored.get(self._parts)
        return found is not None and found.definition is not None and not self._analysed

    @contextmanager
    def _path(self, which: int) -> Iterator[None]:
        """Where PostgreSQL looks for names: the caller's places for tables, its own for rows."""
        if self.dialect == "postgres":
            self._connection.exec_driver_sql(f"SET LOCAL search_path = {self._paths[which]}")
        yield

    def _texts(self) -> AbstractContextManager[None]:
        if self.dialect == "sqlite":
            return sqlite.reading(raw(self._connection))
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
                ahead = "" if schema == usual else f"{schema}."
                names = self._listed(inspector, schema)
                found |= {f"{ahead}{name}" for name in names if "." not in name}
            return tuple(sorted(found))
        except (exc.SQLAlchemyError, OSError):
            pass
        raise DataIndependentFailure("the database's tables cannot be listed; check the user")

    def _listed(self, inspector: sqlalchemy.Inspector, schema: str) -> list[str]:
        names = [*inspector.get_table_names(schema), *inspector.get_view_names(schema)]
        if self.dialect == "postgres":
            names += inspector.get_materialized_view_names(schema)
        return names

    def table(self, parts: tuple[str, ...], columns: Sequence[str]) -> Relation:
        """A table or view by its full name, with what its columns hold."""
        schema = self._schema(parts)
        check_columns(".".join(parts), columns, list(schema))
        full = self._stored[parts].name
        return table(*(full if self.dialect in {"postgres", "sqlite"} else parts)), schema

    def _schema(self, parts: tuple[str, ...]) -> Schema:
        """What the table's columns hold, read once."""
        if parts in self._schemas:
            return self._schemas[parts]

        def read() -> tuple[Stored | None, list[Any]]:
            stored = self._catalogue.find(parts, None)
            if stored is None:
                return None, []
            inspector: Any = sqlalchemy.inspect(self._connection)
            namespace = ".".join(stored.name[:-1]) or None
            with contextlib.suppress(exc.NoSuchTableError):
                return stored, inspector.get_columns(stored.name[-1], schema=namespace)
            return None, []

        stored, found = self._asked(read)
        if stored is None or not found:
            raise DataIndependentFailure(_missing(parts))
        held = {str(entry["name"]): entry["type"] for entry in found}
        self._stored[parts] = stored
        self._schemas[parts] = columns_of(held, self.dialect)
        return self._schemas[parts]

    def _asked(self, read: Callable[[], T]) -> T:
        """What the catalogue says; a failure is not certain to be free of rows."""
        try:
            with self._path(0):
                return read()
        except TopSecretError:
            raise
        except (exc.SQLAlchemyError, OSError):  # a lost connection, a lock
            pass
        raise SourceError(_missing(self._parts))


def _missing(parts: tuple[str, ...]) -> str:
    return f"the table {'.'.join(parts)} does not exist or may not be read; check its name"
