"""A question that takes several statements reads its rows once.

The counts of a list and the number of people that they are of are two statements. Where these may
see different rows (a file that is written meanwhile, a view that somebody trusts, Spark), one
person might be in the list of one group and in the number of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlglot import exp

from topsecret.sources.session import Engine, Relation, Session
from topsecret.sources.source import CountQuery
from topsecret.sources.sql.statements import column

EVENTS = "events once"


class ReadOnce:
    """An engine whose sessions read the events of these questions once."""

    def __init__(self, engine: Engine, queries: Sequence[CountQuery]) -> None:
        self._engine = engine
        self._columns = tuple(dict.fromkeys(name for query in queries for name in query.columns))

    @property
    def name(self) -> str:
        """What the receipt calls this source."""
        return self._engine.name

    @contextmanager
    def session(self, query: CountQuery) -> Iterator[Session]:
        """A session of the engine."""
        with self._engine.session(query) as session:
            yield _Session(session, self._columns)


class _Session:
    def __init__(self, session: Session, columns: tuple[str, ...]) -> None:
        self._session = session
        self._columns = columns
        self._kept: Relation | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def events(self, columns: Sequence[str]) -> Relation:
        """The events, or what was kept of them at the first statement."""
        if self._kept is None:
            relation, schema = self._session.events(self._columns)
            if not getattr(self._session, "steady", False):
                events = exp.alias_(relation, EVENTS, table=True, quoted=True)
                shown = [column(name, EVENTS) for name in self._columns]
                relation = self._session.keep(exp.select(*shown).from_(events))
            self._kept = relation, schema
        relation, schema = self._kept
        return relation.copy(), schema
