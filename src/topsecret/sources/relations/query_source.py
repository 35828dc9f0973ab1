"""A pasted query as a source: its rebuilt rows are the events, and ``person`` is their owner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlglot import exp

from topsecret.sources import session as asking
from topsecret.sources.domains.domain import Column, FileColumn
from topsecret.sources.fingerprints import Fingerprint
from topsecret.sources.relations.ranked_query import RankedQuery
from topsecret.sources.relations.relation import OWN
from topsecret.sources.session import Engine, Relation, Rows, Session
from topsecret.sources.source import CountQuery, LeadingCounts, Schema, source_fingerprint
from topsecret.sources.sql import loaded_dialects  # noqa: F401
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.statements import column, derived, named

FRAME = "topsecret frame"
"""Stands for a data frame, whose name is another in every session."""


class QuerySource:
    """The rows of a pasted query, read from its database.

    ``columns`` are those of a data frame, if the query is about one.
    """

    def __init__(
        self, database: Engine, asked: RankedQuery, person: str, columns: tuple[str, ...] = ()
    ) -> None:
        self._database = database
        self._columns = columns
        self._asked = asked
        self.name = f"a query of {', '.join(asked.tables)}"
        self.person = person
        *titles, self.amount = _apart((*asked.titles, asked.amount_title), person)
        self.titles = tuple(titles)
        """What the items are called; ``amount`` is what is summed."""

    def __repr__(self) -> str:
        return f"QuerySource({self.name!r})"

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the guarantee rests on beside the data. Public."""
        said: tuple[str, ...] = tuple(getattr(self._database, "assumes", ()))
        if self._asked.shared_rows:
            said += ("a key that is not unique: rows shared with others stay theirs",)
        return said

    @property
    def domain(self) -> Column | None:
        """The public table that holds all items, where there is one."""
        if self._asked.domain is None:
            return None
        origins = [held.origin for held in self._asked.items if held.origin is not None]
        return Column(origins[0][0], self.titles)

    def shown(self) -> str:
        """The rows that are counted, as a statement for reading."""
        return self._asked.rows.sql(self._asked.dialect, pretty=True)

    def fingerprint(self) -> Fingerprint:
        """The database and the rebuilt statement: texts that ask the same are the same."""
        database, _ = source_fingerprint(self._database)  # type: ignore[arg-type]
        return {
            "kind": "query",
            "database": database,
            "rows": self._asked.rows.sql(self._asked.dialect),
            "version": database["version"],
        }

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        """Count distinct people per item in one statement and return the leading rows."""
        return asking.leading_counts(self, query)

    @contextmanager
    def session(self, query: CountQuery) -> Iterator[QuerySession]:
        """A session of the database whose events are the query's rows."""
        with self._database.session(query) as session:
            asked = self._asked
            if self._columns:
                frame, _ = session.events(self._columns)
                asked = replace(asked, rows=_over(frame, asked.rows))
            yield QuerySession(session, asked, self.titles, self.amount, self.person)


class QuerySession:
    """Statements about the rows of a query."""

    def __init__(
        self,
        session: Session,
        asked: RankedQuery,
        titles: tuple[str, ...],
        amount: str,
        person: str,
    ) -> None:
        self._session = session
        self._person = person
        self._asked = asked
        self._titles = titles
        self._held = dict(zip(titles, asked.items, strict=True))
        if asked.amount is not None:
            self._held[amount] = asked.amount

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    @property
    def dialect(self) -> str:
        """The engine's dialect."""
        return self._session.dialect

    def events(self, columns: Sequence[str]) -> Relation:
        """The rebuilt rows under the names that the query gives them."""
        getattr(self._session, "prepare", tuple)()
        shown = [named(column(held.ident, "rows"), title) for title, held in self._held.items()]
        shown.append(named(column(OWN, "rows"), self._person))
        select = exp.select(*shown).from_(derived(self._asked.rows.copy(), "rows"))
        return select.subquery(), self._schema()

    def schema(self, columns: Sequence[str]) -> Schema:
        """What the rows hold."""
        return self._schema()

    def other(self, domain: Column | FileColumn, columns: Sequence[str]) -> Relation:
        """The public items of the query's own domain."""
        assert self._asked.domain is not None
        shown = [
            named(column(held.ident, "items"), title)
            for held, title in zip(self._asked.items, self._titles, strict=True)
        ]
        select = exp.select(*shown).from_(derived(self._asked.domain.copy(), "items"))
        return select.subquery(), self._schema()

    def upload(self, rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> exp.Expression:
        """A table of public rows."""
        return self._session.upload(rows, names)

    def run(self, select: exp.Expression) -> Rows:
        """The rows of a statement."""
        return self._session.run(select)

    def keep(self, select: exp.Select) -> exp.Expression:
        """A table of the statement's result."""
        return self._session.keep(select)

    def _schema(self) -> Schema:
        held: dict[str, Any] = {title: one.sort for title, one in self._held.items()}
        return held | {self._person: self._asked.owner_kind}


def _over(frame: exp.Expression, rows: exp.Select) -> exp.Select:
    """The rebuilt rows, read from this frame."""
    over = rows.copy()
    for node in over.find_all(exp.Table):
        if node.name == FRAME:
            found = frame.copy()
            found.set("alias", node.args.get("alias"))
            node.replace(found)
    return over


def _apart(titles: Sequence[str], person: str) -> tuple[str, ...]:
    """Names that differ from each other and from the person's, whatever their case."""
    used = {folded(person)}
    made = []
    for title in titles:
        name, number = title, 2
        while folded(name) in used:
            name, number = f"{title} {number}", number + 1
        used.add(folded(name))
        made.append(name)
    return tuple(made)
