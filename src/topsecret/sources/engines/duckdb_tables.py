"""Tables that DuckDB can count: of a database file, of an open connection, or data frames.

The dtypes of a data frame are its schema and count as public, like the columns of a table. A
pandas column of objects is read as text, value by value: DuckDB would look at a sample of the
rows to guess its type, and a guess that one person can change would break the guarantee.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from topsecret.errors import (
    DataIndependentFailure,
    InvalidParameter,
    SourceError,
)
from topsecret.sources import session as asking
from topsecret.sources.engines.duckdb import domain_paths
from topsecret.sources.engines.duckdb_output import unseen
from topsecret.sources.engines.duckdb_relations import Tables, failure, hardened, trusted
from topsecret.sources.engines.duckdb_session import DuckSession, closed_engine
from topsecret.sources.engines.duckdb_types import kinds
from topsecret.sources.engines.files import file_version
from topsecret.sources.engines.frames import INFERRED, declared, holds_objects, names_of
from topsecret.sources.engines.table_names import check_columns, table_parts
from topsecret.sources.fingerprints import Fingerprint
from topsecret.sources.session import Relation
from topsecret.sources.source import Columns, CountQuery, LeadingCounts
from topsecret.sources.sql import loaded_dialects  # noqa: F401
from topsecret.sources.sql.statements import table

DATABASES = {".duckdb", ".ddb", ".db"}
"""Suffixes of DuckDB's database files."""


class _Asked:
    """The methods that all sources of this module share."""

    name: str
    _trusted = False

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the guarantee rests on beside the data. Public."""
        return (trusted(self.name),) if self._trusted else ()

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        """Count distinct people per item in one query and return the leading rows."""
        return asking.leading_counts(self, query)  # type: ignore[arg-type]

    def sql(self, query: CountQuery) -> str:
        """The query that DuckDB is asked, for reading."""
        return asking.sql(self, query)  # type: ignore[arg-type]


class DatabaseFile(_Asked):
    """A table of a DuckDB database file, which is opened for reading alone."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str | tuple[str, ...],
        *,
        trust_view: bool = False,
    ) -> None:
        self._path = Path(path).expanduser()
        self._parts = table_parts(name)
        self._trusted = trust_view
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
        trusted = {"trust_view": True} if self._trusted else {}
        return {"kind": "duckdb", **where, "version": self.version, **trusted}

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
                tables = Tables(self.name, _of_source, self._trusted)
                yield tables.session(engine, self._parts, query)
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
            raise failure(failed or duckdb.IOException, self.name)
        raise DataIndependentFailure(
            f"{self._path.name} cannot be opened; it must be a DuckDB database that no other "
            "program has open for writing"
        )

    def _log(self) -> Path:
        return self._path.with_name(self._path.name + ".wal")


class OpenConnection(_Asked):
    """A table or view of a DuckDB connection that the caller has open.

    The statements run on this very connection: another one would not know the caller's temporary
    tables and their place in the search path. Its settings are as before when they have run.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        name: str | tuple[str, ...],
        *,
        trust_view: bool = False,
    ) -> None:
        self._connection = connection
        self._meant: tuple[str, ...] | exp.Expression = table_parts(name)
        self._trusted = trust_view
        self.name = ".".join(table_parts(name))

    @classmethod
    def of_ibis(cls, expression: Any, *, trust_view: bool = False) -> OpenConnection:
        """An ibis table whose backend is DuckDB."""
        backend = expression._find_backend(use_default=True)
        if backend.name != "duckdb":
            raise InvalidParameter(
                f"an ibis table of {backend.name} cannot be read; pass the database's URL and "
                "table= instead"
            )
        operations: Any = importlib.import_module("ibis.expr.operations")
        if expression.op().find(operations.InMemoryTable):
            raise DataIndependentFailure(
                "ibis reads its memtables itself, and fails on a row that does not suit; pass the "
                "data frame, or make a table of it: connection.create_table('events', frame)"
            )
        opened = cls(backend.con, "ibis", trust_view=trust_view)
        compiled: Any = sqlglot.parse_one(str(backend.compile(expression)), read="duckdb")
        opened._meant = compiled
        opened.name = str(getattr(expression.op(), "name", "ibis table"))
        return opened

    def __repr__(self) -> str:
        return f"OpenConnection({self.name!r})"

    @contextmanager
    def session(self, query: CountQuery) -> Iterator[DuckSession]:
        """The caller's connection, in one transaction and with the settings that counting needs."""
        tables = Tables(self.name, table, self._trusted)
        with unseen(self._connection), hardened(self._connection):
            session = tables.session(self._connection, self._meant, query)
            try:
                yield session
            finally:
                with suppress(SourceError):  # gone with a transaction that failed
                    session.forget()


class FrameSource(_Asked):
    """A pandas or polars data frame, or a pyarrow table, in this process."""

    name = "data frame"

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the guarantee rests on beside the data: pandas infers types from rows. Public."""
        return (INFERRED,) if type(self._frame).__module__.startswith("pandas") else ()

    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(names_of(self._frame))

    def __repr__(self) -> str:
        return f"FrameSource(<{type(self._frame).__module__.split('.')[0]} object>)"

    @contextmanager
    def session(self, query: CountQuery) -> Iterator[DuckSession]:
        """A closed engine that sees the columns that are asked for."""
        with closed_engine(*domain_paths(query)) as engine:

            def events(session: DuckSession, columns: Sequence[str]) -> Relation:
                return self._events(engine, session, columns, query.person)

            session = DuckSession(engine, events, self._failed)
            session.steady = True
            yield session

    def _events(
        self,
        engine: duckdb.DuckDBPyConnection,
        session: DuckSession,
        columns: Sequence[str],
        person: str,
    ) -> Relation:
        check_columns("the data frame", columns, names_of(self._frame))
        name = "frame " + " ".join(columns)
        relation = table(name)
        if name not in session.registered:
            failed: type[SourceError] | None = None
            try:
                engine.register(name, declared(self._frame, columns, person))
                session.registered.add(name)
            except (ImportError, duckdb.InvalidInputException, duckdb.NotImplementedException):
                failed = DataIndependentFailure  # a missing package, an unknown type of a column
            except duckdb.Error:
                failed = SourceError
            if failed is not None:
                raise failed(
                    "the data frame cannot be read by DuckDB; install pyarrow, or write the frame "
                    "to a Parquet file"
                )
        types = session.types(relation) or {}
        check_columns("the data frame", columns, list(types))
        schema = kinds(types)
        # An object of pandas that is no text has a mark as a person; other frames have text alone.
        marks = holds_objects(self._frame, person)
        return relation, Columns.marking(schema, "text") if marks else schema

    def _failed(self, kind: type[duckdb.Error]) -> SourceError:
        return failure(kind, "the data frame")


def _of_source(*parts: str) -> exp.Table:
    schema = parts if len(parts) > 1 else ("main", *parts)
    return table("source", *schema[-2:])
