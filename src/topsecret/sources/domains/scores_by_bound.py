"""Scores by several bounds on one person, counted by the engine: one scan for all of them.

The engine keeps every item with its score at each bound. A private choice of the bound looks at
what people add beyond each bound; then the items are ranked by the scores at the bound that was
chosen, as if it had been the only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from sqlglot import exp

from topsecret.sources.domains.counted_domain import (
    CountedDomain,
    joined,
    kept_groups,
    public_items,
)
from topsecret.sources.session import Engine, Session, charged, check
from topsecret.sources.source import CountQuery
from topsecret.sources.sql.amounts import score_names
from topsecret.sources.sql.dialects import descending
from topsecret.sources.sql.statements import column, derived, item_counts, item_names, named


class ScoresByBound:
    """The scores of all items at each bound, kept by the engine while its session lasts. Secret."""

    def __init__(
        self,
        session: Session,
        query: CountQuery,
        kept: exp.Expression,
        public: exp.Expression | None,
        size: int | None,
    ) -> None:
        self._session = session
        self._query = query
        self._kept = kept
        self._public = public
        self.size = size
        """How many items the public domain has; None where it is not known. Public."""

    def __repr__(self) -> str:
        return "<ScoresByBound: secret scores>"

    def beyond(self, rank: int) -> list[int]:
        """What people add between each bound and the next, to the item that ranks so by it."""
        names = score_names(self._query.measure)
        parts: list[Any] = []
        for place, (low, high) in enumerate(pairwise(names)):
            added = exp.Sub(this=column(high, "scores"), expression=column(low, "scores"))
            rows = exp.select(named(added, "added")).from_(self._scores())
            most = derived(rows, "rows")
            ordered: Any = exp.select(column("added", "rows")).from_(most)
            falling = descending(column("added", "rows"), self._session.dialect)
            ordered.set("order", exp.Order(expressions=[falling]))
            number = named(exp.Literal.number(place), "place")
            leading = derived(ordered.limit(rank), "leading")
            parts.append(exp.select(number, column("added", "leading")).from_(leading))
        found: list[list[int]] = [[] for _ in parts]
        whole = parts[0] if len(parts) == 1 else exp.union(*parts, distinct=False)
        with charged(after_rows=True):
            answers = self._session.run(whole)
        for place, added in answers:
            found[int(place)].append(int(added))
        return [sorted(one, reverse=True)[rank - 1] if len(one) >= rank else 0 for one in found]

    def at(self, place: int) -> CountedDomain:
        """The scores at one bound."""
        names = item_names(self._query)
        score = named(column(score_names(self._query.measure)[place], "scores"), "persons")
        scores: Any = exp.select(*(column(name, "scores") for name in names), score)
        scores = scores.from_(self._scores())
        if self._public is not None:
            scores = joined(self._public, scores.subquery(), names)
        return CountedDomain(self._session, self._query, scores.subquery(), self.size)

    def _scores(self) -> Any:
        return exp.alias_(self._kept.copy(), "scores", table=True, quoted=True)


@contextmanager
def scores_by_bound(engine: Engine, queries: Sequence[CountQuery]) -> Iterator[list[ScoresByBound]]:
    """Count each query's items at all of its bounds, all in one session."""
    found: list[ScoresByBound] = []
    with engine.session(queries[0]) as session:
        check(session, *queries)
        if queries[0].home is not None:
            yield _counted_groups(session, queries)
            return
        for query in queries:
            with charged(after_rows=bool(found)):
                found.append(_counted(session, query))
        yield found


def _counted(session: Session, query: CountQuery) -> ScoresByBound:
    events, schema = session.events(query.columns)
    public, size = public_items(session, query, schema)
    counts = item_counts(events, query, schema, session.dialect, public)
    return ScoresByBound(session, query, session.keep(counts), public, size)


def _counted_groups(session: Session, queries: Sequence[CountQuery]) -> list[ScoresByBound]:
    """The scores of each group, in which every person is in one alone."""
    events, schema = session.events(queries[0].columns)
    public, size = public_items(session, queries[0], schema)
    groups = kept_groups(session, queries, events, schema, public)
    return [ScoresByBound(session, one, kept.subquery(), public, size) for one, kept in groups]
