"""Tables and views of DuckDB as relations: found in its catalogue, analysed, and described.

A table's schema stands apart from its rows. A view that passes the analysis reads nothing but
tables, so its schema does, too. A view that is trusted may be made of a file whose rows DuckDB
reads to find its columns: then neither its columns nor a failure are free of rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
from sqlglot import exp

from topsecret.errors import DataIndependentFailure, InvalidParameter, SourceError
from topsecret.sources.domains.domain import Column
from topsecret.sources.engines.duckdb import private_domain
from topsecret.sources.engines.duckdb_catalogue import DuckCatalogue
from topsecret.sources.engines.duckdb_output import UNUSABLE
from topsecret.sources.engines.duckdb_session import DuckSession, translated
from topsecret.sources.engines.duckdb_types import check_texts, kinds
from topsecret.sources.engines.settings import DUCKDB
from topsecret.sources.engines.table_names import check_columns
from topsecret.sources.session import Relation
from topsecret.sources.source import CountQuery, Schema
from topsecret.sources.sql import loaded_dialects  # noqa: F401
from topsecret.sources.sql.base_tables import UNREAD, base_tables
from topsecret.sources.sql.relations import check_relation
from topsecret.sources.sql.statements import table
from topsecret.sources.sql.stored_definitions import Stored


@dataclass(frozen=True, slots=True)
class Tables:
    """How the tables and views of one database are read."""

    name: str
    """What the errors call the events."""
    table: Callable[..., exp.Table]
    """From the parts of a name to the name that the database is asked by."""
    trusted: bool
    """Views are believed, not analysed."""

    def session(
        self,
        engine: duckdb.DuckDBPyConnection,
        meant: tuple[str, ...] | exp.Expression,
        query: CountQuery,
    ) -> DuckSession:
        """A session over the events, which are a table by name or a select of ibis."""
        found: dict[str, _Found] = {}
        catalogues: list[DuckCatalogue] = []  # one, read once: a session is one transaction

        def catalogue(session: DuckSession) -> DuckCatalogue:
            if not catalogues:
                catalogues.append(DuckCatalogue(session))
            return catalogues[0]

        def events(session: DuckSession) -> _Found:
            if "events" not in found:
                found["events"] = self._found(catalogue(session), meant, self.name)
                if not self.trusted:
                    catalogue(session).check_functions()
                    stored = found["events"].stored
                    check_relation(stored, query.person, catalogue(session), "duckdb")
            return found["events"]

        def relation(session: DuckSession, columns: Sequence[str]) -> Relation:
            return self._described(session, events(session), columns, self.name)

        def schema(session: DuckSession, columns: Sequence[str]) -> Schema | None:
            apart = events(session).apart or not self.trusted
            return relation(session, columns)[1] if apart else None

        def other(session: DuckSession, domain: Column, columns: Sequence[str]) -> Relation:
            parts = (domain.table,) if isinstance(domain.table, str) else domain.table
            shown = ".".join(parts)
            named = tuple(shown.split(".")) if len(parts) == 1 else parts
            items = self._found(catalogue(session), named, shown)
            public, private = (
                base_tables(one.stored, catalogue(session), "duckdb")
                for one in (items, events(session))
            )
            if UNREAD in public or public & private:
                raise InvalidParameter(private_domain(shown))
            return self._described(session, items, columns, shown, believed=True)

        session = DuckSession(engine, relation, self.failed, other, schema)
        session.steady = not self.trusted  # a session is one transaction
        return session

    def failed(self, kind: type[duckdb.Error]) -> SourceError:
        """Our error for a kind of DuckDB's."""
        return failure(kind, self.name)

    def _found(
        self, catalogue: DuckCatalogue, meant: tuple[str, ...] | exp.Expression, name: str
    ) -> _Found:
        if isinstance(meant, exp.Expression):
            select: Any = meant
            return _Found(Stored((name,), meant), select.subquery())
        parts = tuple(part.name for part in self.table(*meant).parts)
        stored = catalogue.find(parts, None)
        if stored is None:
            raise DataIndependentFailure(
                f"{name} does not exist or cannot be opened; check the table"
            )
        return _Found(stored, table(*stored.name))

    def _described(
        self,
        session: DuckSession,
        found: _Found,
        columns: Sequence[str],
        name: str,
        *,
        believed: bool = False,
    ) -> Relation:
        """The relation with its schema."""
        apart = found.apart or not (self.trusted or believed)
        types = session.types(found.relation)
        if types is None:
            error = DataIndependentFailure if apart else SourceError
            raise error(f"{name} does not exist or cannot be opened; check the table")
        check_columns(name, columns, list(types), apart=apart)
        check_texts(name, columns, types, apart=apart)
        relation, schema = found.relation.copy(), kinds(types)
        if self.trusted and any(schema[one] == "float" for one in columns):
            relation = _row_by_row(relation, columns, types)
        return relation, schema


@dataclass(frozen=True, slots=True)
class _Found:
    stored: Stored
    relation: exp.Expression

    @property
    def apart(self) -> bool:
        """Whether the schema is one of a table."""
        return self.stored.definition is None


def _row_by_row(relation: exp.Expression, columns: Sequence[str], types: Mapping[str, str]) -> Any:
    """The columns, so that NaN is compared row by row, also where what is trusted reads Parquet.

    By the least and largest number of others, which leave out NaN, DuckDB would skip such rows, or
    take a condition for true of them. It does not look through this CASE.
    """
    shown = []
    for name in columns:
        value: exp.Expression = exp.column(name, "trusted", quoted=True)
        if types[name] in {"FLOAT", "DOUBLE"}:
            missing = exp.cast(exp.Literal.string("nan"), types[name])
            is_nan = exp.Anonymous(this="ISNAN", expressions=[value])
            value = exp.case().when(is_nan, missing).else_(value.copy())
        shown.append(exp.alias_(value, name, quoted=True))
    rows: Any = exp.alias_(relation, "trusted", table=True, quoted=True)
    return exp.select(*shown).from_(rows).subquery()


def trusted(name: str) -> str:
    """What is believed of a view, for the receipt."""
    return (
        f"each row of {name} depends on its own person alone: declared by trust_view, not checked"
    )


def failure(kind: type[duckdb.Error], name: str) -> SourceError:
    """Our error for what went wrong with a table."""
    common = translated(kind, name)
    if common is not None:
        return common
    return SourceError(f"{name} could not be counted; check the types of the columns")


@contextmanager
def hardened(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """The connection within one transaction and with our settings; as it was afterwards."""
    before: dict[str, object] = {}
    begun = False
    try:
        try:
            begun = not _in_transaction(connection)
            for name, found in _settings(connection).items():
                if found is not None and found != DUCKDB[name]:
                    before[name] = found
                    _set(connection, name, DUCKDB[name])
            if begun:
                connection.execute("BEGIN TRANSACTION")
            failed = False
        except duckdb.Error:
            failed = True
        if failed:
            raise DataIndependentFailure(UNUSABLE)
        yield
    finally:
        with contextlib.suppress(duckdb.Error):
            if begun:
                connection.execute("ROLLBACK")
            for name, found in before.items():
                _set(connection, name, found)


def _in_transaction(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether two statements see one transaction: to begin another would end the caller's."""
    numbers = {connection.execute("SELECT txid_current()").fetchall()[0] for _ in range(2)}
    return len(numbers) == 1


def _settings(connection: duckdb.DuckDBPyConnection) -> dict[str, object]:
    """The values of those of our settings that this version has."""
    names = {name.lower(): name for name in DUCKDB}
    wanted = ", ".join(f"'{name}'" for name in names)
    rows = connection.execute(
        f"SELECT lower(name) FROM duckdb_settings() WHERE lower(name) IN ({wanted})"
    ).fetchall()
    have = [names[name] for (name,) in rows]
    values = ", ".join(f"current_setting('{name}')" for name in have)
    return dict(zip(have, connection.execute(f"SELECT {values}").fetchall()[0], strict=True))


def _set(connection: duckdb.DuckDBPyConnection, name: str, value: object) -> None:
    connection.execute(f"SET {name} = {exp.convert(value).sql('duckdb')}")
