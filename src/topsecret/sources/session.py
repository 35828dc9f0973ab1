"""How an engine is asked: a session runs statements on one unchanging view of the data.

An adapter says how to open a session, where the events are and what their columns hold, and how
to run a statement. Everything else (ranking, capping, public domains) is written once, here and
in ``sql``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

from sqlglot import exp

from topsecret.errors import (
    DataIndependentFailure,
    InvalidParameter,
    SourceError,
    WrongForSchema,
)
from topsecret.sources.domains.domain import Column, FileColumn
from topsecret.sources.source import CountQuery, LeadingCounts, Schema
from topsecret.sources.sql.dialects import check_dialect
from topsecret.sources.sql.groups import (
    counts_by_group,
    leading_by_group,
    numbered,
    persons_by_group,
)
from topsecret.sources.sql.rendering import rendered
from topsecret.sources.sql.statements import leading_counts as ranking
from topsecret.sources.sql.statements import number_of_persons

T = TypeVar("T")

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

    def once(self, select: exp.Select) -> exp.Select:
        """The same rows, for a statement that uses them twice and must read them once."""
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
    if query.home is None:
        return ranking(events, query, schema, dialect)
    counts = counts_by_group(events, query, schema, dialect, once=session.once)
    return leading_by_group(counts.subquery(copy=False), query, dialect)


def leading_counts(engine: Engine, query: CountQuery) -> LeadingCounts:
    """Count distinct people per item in one statement and return the leading rows."""
    return leading_counts_of(engine, [query])[0]


def leading_counts_of(engine: Engine, queries: Sequence[CountQuery]) -> list[LeadingCounts]:
    """The leading counts of several questions about one moment of the data.

    Groups that each person is in one of are counted together, by one statement.
    """
    with engine.session(queries[0]) as session:
        return _lists(session, queries)


def _lists(session: Session, queries: Sequence[CountQuery]) -> list[LeadingCounts]:
    check(session, *queries)
    if queries[0].home is not None:
        return _of_groups(session, queries)
    found: list[LeadingCounts] = []
    for query in queries:
        with charged(after_rows=bool(found)):
            rows = session.run(statement(session, query))
        with charged(after_rows=True):
            found.append(items_of(session, query, rows))
    return found


def _of_groups(session: Session, queries: Sequence[CountQuery]) -> list[LeadingCounts]:
    rows = session.run(statement(session, queries[0]))
    numbers = numbered(queries[0])
    lists: dict[int, Rows] = {}
    for home, *row in rows:
        lists.setdefault(int(home), []).append(tuple(row))
    return [
        items_of(session, query, lists.get(numbers[query.home.group], []))
        for query in queries
        if query.home is not None
    ]


def items_of(session: Session, query: CountQuery, rows: Rows) -> LeadingCounts:
    """An engine's rows (item, …, count) as pairs, with truth values where it has numbers."""
    if session.dialect == "sqlite":
        _, schema = session.events(query.columns)
        kinds = [schema.get(str(part), "other") for part in query.item_columns]
        truths = {place for place, kind in enumerate(kinds) if kind == "boolean"}
        if truths:
            rows = [
                tuple(bool(part) if place in truths else part for place, part in enumerate(row))
                for row in rows
            ]
    return query.items(rows)


def check(session: Session, *queries: CountQuery) -> None:
    """Refuse, free of charge, what the schema alone shows to be wrong.

    No row is read. Where the schema is not known without rows there is nothing to check. Questions
    about groups that each person is in one of are one statement.
    """
    for query in queries[:1] if queries[0].home is not None else queries:
        schema = session.schema(query.columns)
        if schema is None:
            return
        events, _ = nothing(query.columns)
        build = ranking if query.home is None else counts_by_group
        built_for_schema(partial(build, events, query, schema, session.dialect))


def check_before_paying(engine: Engine, queries: Sequence[CountQuery]) -> None:
    """Refuse what the schema alone shows to be wrong, before a budget is asked.

    Whatever else goes wrong is left to the question itself, which knows what is charged.
    """
    with suppress_others(), engine.session(queries[0]) as session:
        check(session, *queries)


@contextmanager
def suppress_others() -> Iterator[None]:
    """Let ``WrongForSchema`` pass, and no other failure of a source."""
    try:
        yield
    except WrongForSchema:
        raise
    except (SourceError, InvalidParameter):
        pass


def built_for_schema(build: Callable[[], T]) -> T:
    """What is built; a parameter that does not suit the schema is free, since no row was read."""
    try:
        return build()
    except WrongForSchema:
        raise
    except InvalidParameter as error:
        message = str(error)
    # Outside, so that it has no other error as its context.
    raise WrongForSchema(message)


def leading_counts_and_persons(
    engine: Engine, queries: Sequence[CountQuery]
) -> tuple[list[LeadingCounts], list[int]]:
    """The leading counts and the number of all people of each question, of one moment."""
    with engine.session(queries[0]) as session:
        found = _lists(session, queries)
        return found, persons_of(session, queries)


def persons_of(
    session: Session, queries: Sequence[CountQuery], members: exp.Expression | None = None
) -> list[int]:
    """How many people the counts of each question are of, asked after the counts.

    ``members`` are the items of a public domain where they decide which group a person is in.
    """
    query = queries[0]
    if query.home is None:
        return [persons(session, query) for query in queries]
    with charged(after_rows=True):
        events, schema = session.events(query.columns)
        dialect = check_dialect(session.dialect)
        select = persons_by_group(events, query, schema, dialect, members, session.once)
        found = {int(home): int(number) for home, number in session.run(select)}
    numbers = numbered(query)
    return [found.get(numbers[each.home.group], 0) for each in queries if each.home is not None]


def persons(session: Session, query: CountQuery) -> int:
    """How many distinct people the counts of a query are of, asked after the counts."""
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
