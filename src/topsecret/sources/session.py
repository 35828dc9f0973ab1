"""How an engine is asked: a session runs statements on one unchanging view of the data.

An adapter says how to open a session, where the events are and what their columns hold, and how
to run a statement. Everything else (ranking, capping, public domains) is written once, here and
in ``sql``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, runtime_checkable

from sqlglot import exp

from topsecret.errors import DataIndependentFailure, SourceError
from topsecret.sources.domains.domain import Column, FileColumn
from topsecret.sources.source import CountQuery, LeadingCounts, Schema
from topsecret.sources.sql.dialects import check_dialect
from topsecret.sources.sql.rendering import rendered
from topsecret.sources.sql.statements import leading_counts as ranking
from topsecret.sources.sql.statements import number_of_persons

Rows = list[tuple[Any, ...]]
Relation = tuple[exp.Expression, Schema]
"""A table to select from, and what its columns hold."""


class Session(Protocol):
    """Statements about one moment of the data."""

    @property
    def dialect(self) -> str:
        """The engine's dialect, by sqlglot's name."""
        ...

    def events(self, columns: Sequence[str]) -> Relation:
        """The table of events; raises ``UnknownColumn`` if one of the columns is missing."""
        ...

    def schema(self, columns: Sequence[str]) -> Schema | None:
        """What the columns of the events hold, as far as that is known without any row."""
        ...

    def other(self, domain: Column | FileColumn, columns: Sequence[str]) -> Relation:
        """Another table, the public items of a domain."""
        ...

    def upload(self, rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> exp.Expression:
        """A table of these public rows, its columns called so."""
        ...

    def run(self, select: exp.Expression) -> Rows:
        """The rows of a statement."""
        ...

    def keep(self, select: exp.Select) -> exp.Expression:
        """A table of the statement's result, to be read more than once."""
        ...


@runtime_checkable
class Engine(Protocol):
    """A source that can be asked by statements."""

    @property
    def name(self) -> str:
        """What the receipt calls this source. Public."""
        ...

    def session(self, query: CountQuery) -> AbstractContextManager[Session]:
        """Open a session for questions like this one."""
        ...


def statement(session: Session, query: CountQuery) -> exp.Select:
    """The leading counts as a statement for this session's engine."""
    dialect = check_dialect(session.dialect)
    events, schema = session.events(query.columns)
    return ranking(events, query, schema, dialect)


def leading_counts(engine: Engine, query: CountQuery) -> LeadingCounts:
    """Count distinct persons per item in one statement and return the leading rows."""
    with engine.session(query) as session:
        return query.items(session.run(statement(session, query)))


def leading_counts_of(engine: Engine, queries: Sequence[CountQuery]) -> list[LeadingCounts]:
    """The leading counts of several questions about one moment of the data."""
    found: list[LeadingCounts] = []
    with engine.session(queries[0]) as session:
        for query in queries:
            with charged(after_rows=bool(found)):
                found.append(query.items(session.run(statement(session, query))))
    return found


def leading_counts_and_persons(engine: Engine, query: CountQuery) -> tuple[LeadingCounts, int]:
    """The leading counts and the number of all persons, of one moment of the data."""
    with engine.session(query) as session:
        found = query.items(session.run(statement(session, query)))
        return found, persons(session, query)


def persons(session: Session, query: CountQuery) -> int:
    """How many distinct persons the counts of a query are of, asked after the counts."""
    with charged(after_rows=True):
        events, schema = session.events(query.columns)
        dialect = check_dialect(session.dialect)
        [(number,)] = session.run(number_of_persons(events, query, schema, dialect))
        return int(number)


@contextmanager
def charged(*, after_rows: bool) -> Iterator[None]:
    """Once rows were read, no failure is certain not to depend on them: none is free."""
    message = ""
    try:
        yield
        return
    except DataIndependentFailure as error:
        if not after_rows:
            raise
        message = str(error)
    raise SourceError(message)


def sql(engine: Engine, query: CountQuery) -> str:
    """The statement that the engine is asked, for reading."""
    with engine.session(query) as session:
        return rendered(statement(session, query), session.dialect, pretty=True)


def nothing(columns: Sequence[str]) -> Relation:
    """A table of these columns, all text, without rows."""
    shown = [
        exp.alias_(exp.cast(exp.null(), exp.DataType.Type.TEXT), name, quoted=True)
        for name in columns
    ]
    empty: Any = exp.select(*shown).where(exp.false())
    return empty.subquery(), dict.fromkeys(columns, "text")
