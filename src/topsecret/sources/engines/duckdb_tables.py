"""Tables that DuckDB can count: of a database file, of an open connection, or data frames.

The dtypes of a data frame are its schema and count as public, like the columns of a table. A
pandas column of objects is read as text, value by value: DuckDB would look at a sample of the
rows to guess its type, and a guess that one person can change would break the guarantee.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from topsecret.errors import (
    DataIndependentFailure,
    InvalidParameter,
    NotInSchema,
    SourceError,
    UnknownColumn,
)
from topsecret.sources import session as asking
from topsecret.sources.domains.domain import Column
from topsecret.sources.engines.duckdb import (
    DuckSession,
    closed_engine,
    domain_paths,
    kinds,
    translated,
)
from topsecret.sources.fingerprints import Fingerprint, file_version
from topsecret.sources.session import Relation
from topsecret.sources.source import CountQuery, LeadingCounts, Schema
from topsecret.sources.sql.statements import table

DATABASES = {".duckdb", ".ddb", ".db"}
"""Suffixes of DuckDB's database files."""


def table_parts(name: str | tuple[str, ...]) -> tuple[str, ...]:
    """A table's name in parts: ``"visits"``, ``"shop.visits"`` or ``("shop", "visits")``."""
    parts = tuple(name.split(".")) if isinstance(name, str) else tuple(name)
    if not 1 <= len(parts) <= 3 or not all(isinstance(part, str) and part for part in parts):
        raise InvalidParameter(
            f"table={name!r} must be the name of a table; write table='visits', "
            "or ('schema', 'visits') for names with dots"
        )
    return parts


def check_columns(
    name: str, wanted: Sequence[str], columns: Sequence[str], *, apart: bool = True
) -> None:
    """Every wanted column is in the schema, which stands ``apart`` from the rows or does not."""
    for column in wanted:
        if column not in columns:
            if not apart:  # the names of the others may be a person's row
                raise UnknownColumn(f"{name} has no column {column!r}; check its columns")
            shown = ", ".join(list(columns)[:40]) + (", …" if len(columns) > 40 else "")
            raise NotInSchema(f"{name} has no column {column!r}; choose from: {shown}")


class _Asked:
    """The methods that all sources of this module share."""

    name: str

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        """Count distinct persons per item in one query and return the leading rows."""
        return asking.leading_counts(self, query)  # type: ignore[arg-type]

    def sql(self, query: CountQuery) -> str:
        """The query that DuckDB is asked, for reading."""
        return asking.sql(self, query)  # type: ignore[arg-type]


class DatabaseFile(_Asked):
    """A table of a DuckDB database file, which is opened for reading alone."""

    def __init__(self, path: str | os.PathLike[str], name: str | tuple[str, ...]) -> None:
        self._path = Path(path).expanduser()
        self._parts = table_parts(name)
        if not self._path.is_file():
            raise DataIndependentFailure(f"{path} does not exist; check the path")

    @property
    def name(self) -> str:  # type: ignore[override]
        """The table and the file's name."""
        return f"{'.'.join(self._parts)} of {self._path.name}"

    @property
    def version(self) -> str:
        """Changes when the file is written."""
        return file_version(self._path)

    def fingerprint(self) -> Fingerprint:
        """Where the file is, its table, and when it was written."""
        where = {"path": str(self._path.resolve()), "table": list(self._parts)}
        return {"kind": "duckdb", **where, "version": self.version}

    def __repr__(self) -> str:
        return f"DatabaseFile({str(self._path)!r}, {'.'.join(self._parts)!r})"

    @contextmanager
    def session(self, query: CountQuery) -> Iterator[DuckSession]:
        """A closed engine with the database attached."""
        opened = False
        failed: type[duckdb.Error] | None = None
        try:
            paths = domain_paths(query)
            with closed_engine(*paths, attached=self._path.resolve()) as engine:
                opened = True
                yield DuckSession(engine, self._events, self._failed, self._other)
                return
        except duckdb.IOException:
            if opened:
                raise
        except duckdb.Error as error:
            if opened:
                raise
            failed = type(error)
        if failed is not None or self._log().exists():
            # Rows that were not yet moved into the file are read when it is opened.
            raise self._failed(failed or duckdb.IOException)
        raise DataIndependentFailure(
            f"{self._path.name} cannot be opened; it must be a DuckDB database that no other "
            "program has open for writing"
        )

    def _log(self) -> Path:
        return self._path.with_name(self._path.name + ".wal")

    def _events(self, session: DuckSession, columns: Sequence[str]) -> Relation:
        return _described(session, _of_source(self._parts), columns, self.name)

    def _other(self, session: DuckSession, domain: Column, columns: Sequence[str]) -> Relation:
        parts = table_parts(domain.table)
        return _described(session, _of_source(parts), columns, ".".join(parts))

    def _failed(self, kind: type[duckdb.Error]) -> SourceError:
        return _failure(kind, self.name)


class OpenConnection(_Asked):
    """A table or view of a DuckDB connection that the caller has open."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, name: str | tuple[str, ...]) -> None:
        self._connection = connection
        self._relation: exp.Expression = table(*table_parts(name))
        self.name = ".".join(table_parts(name))
        self._shared = False

    @classmethod
    def of_ibis(cls, expression: Any) -> OpenConnection:
        """An ibis table whose backend is DuckDB."""
        backend = expression._find_backend(use_default=True)
        if backend.name != "duckdb":
            raise InvalidParameter(
                f"an ibis table of {backend.name} cannot be read; pass the database's URL and "
                "table= instead"
            )
        backend._run_pre_execute_hooks(expression)
        opened = cls(backend.con, "ibis")
        opened._shared = True  # a table in memory is known to this very connection alone
        compiled: Any = sqlglot.parse_one(str(backend.compile(expression)), read="duckdb")
        opened._relation = compiled.subquery()
        # A filter, a join or a selection has no name of its own.
        opened.name = str(getattr(expression.op(), "name", "ibis table"))
        return opened

    def __repr__(self) -> str:
        return f"OpenConnection({self.name!r})"

    @contextmanager
    def session(self, query: CountQuery) -> Iterator[DuckSession]:
        """A connection of its own to the same database, in one transaction."""
        if self._shared:
            session = self._session(self._connection)
            try:
                yield session
            finally:
                session.forget()
            return
        cursor = None
        try:
            cursor = self._connection.cursor()
            cursor.execute("BEGIN TRANSACTION")
        except duckdb.Error:
            cursor = None
        if cursor is None:
            raise DataIndependentFailure("the DuckDB connection is closed; open it again")
        try:
            yield self._session(cursor)
        finally:
            cursor.close()

    def _session(self, connection: duckdb.DuckDBPyConnection) -> DuckSession:
        return DuckSession(connection, self._events, self._failed, self._other, self._schema)

    def _schema(self, session: DuckSession, columns: Sequence[str]) -> Schema | None:
        tables, views = _named(session, self._relation)
        return self._events(session, columns)[1] if tables and not views else None

    def _events(self, session: DuckSession, columns: Sequence[str]) -> Relation:
        return _described(session, self._relation, columns, self.name)

    def _other(self, session: DuckSession, domain: Column, columns: Sequence[str]) -> Relation:
        parts = table_parts(domain.table)
        return _described(session, table(*parts), columns, ".".join(parts))

    def _failed(self, kind: type[duckdb.Error]) -> SourceError:
        return _failure(kind, self.name)


class FrameSource(_Asked):
    """A pandas or polars data frame, or a pyarrow table, in this process."""

    name = "data frame"

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __repr__(self) -> str:
        return f"FrameSource(<{type(self._frame).__module__.split('.')[0]} object>)"

    @contextmanager
    def session(self, query: CountQuery) -> Iterator[DuckSession]:
        """A closed engine that sees the frame."""
        with closed_engine(*domain_paths(query)) as engine:
            failed: type[SourceError] | None = None
            try:
                engine.register("frame", self._frame)
            except (ImportError, duckdb.InvalidInputException, duckdb.NotImplementedException):
                failed = DataIndependentFailure  # a missing package, an unknown type of a column
            except duckdb.Error:
                failed = SourceError
            if failed is not None:
                raise failed(
                    "the data frame cannot be read by DuckDB; install pyarrow, or write the frame "
                    "to a Parquet file"
                )
            yield DuckSession(engine, self._events, self._failed)

    def _events(self, session: DuckSession, columns: Sequence[str]) -> Relation:
        return _described(session, table("frame"), columns, "the data frame", apart=True)

    def _failed(self, kind: type[duckdb.Error]) -> SourceError:
        return _failure(kind, "the data frame")


def _of_source(parts: tuple[str, ...]) -> exp.Table:
    schema = parts if len(parts) > 1 else ("main", *parts)
    return table("source", *schema[-2:])


def _named(session: DuckSession, relation: exp.Expression) -> tuple[int, int]:
    """How many tables and views may be meant; what is no name counts as a view."""
    return session.named(relation) if isinstance(relation, exp.Table) else (0, 1)


def _described(
    session: DuckSession,
    relation: exp.Expression,
    columns: Sequence[str],
    name: str,
    *,
    apart: bool = False,
) -> Relation:
    """The relation with its schema.

    A table's schema stands ``apart`` from its rows. A view may be made of a file whose rows
    DuckDB reads to find its columns: then neither its columns nor a failure are free of rows.
    """
    tables, views = _named(session, relation)
    types = session.types(relation)
    if types is None:
        error = SourceError if views else DataIndependentFailure
        raise error(f"{name} does not exist or cannot be opened; check the table")
    apart = apart or (tables > 0 and not views)
    check_columns(name, columns, list(types), apart=apart)
    return relation.copy(), kinds(types)


def _failure(kind: type[duckdb.Error], name: str) -> SourceError:
    common = translated(kind, name)
    if common is not None:
        return common
    return SourceError(f"{name} could not be counted; check the types of the columns")
