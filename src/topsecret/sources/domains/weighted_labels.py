"""Weighted sums counted by the engine: how many labels have each sum, and names on demand.

As for a public domain (``counted_domain.py``): the engine keeps all labels with their sums and
sends the count of sums; a mechanism draws over these groups, and the name of the r-th label with a
winning sum, in the labels' own order, is fetched for each that passed. The number of persons of a
named label comes with its name. With another measure the sums are of parts, and the scores by that
measure are in place of the persons.

The first and the last label of a sum that only several persons can reach come with its count: most
large sums have no third, and their names need no second row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlglot import exp

from topsecret.errors import InvalidParameter, SourceError
from topsecret.sources.domains.domain import Interval
from topsecret.sources.domains.domain_items import members
from topsecret.sources.session import Engine, Rows, Session, charged, check, items_of
from topsecret.sources.source import CountQuery, Item, LeadingCounts
from topsecret.sources.sql.dialects import ascending
from topsecret.sources.sql.scaled_parts import Clip, scores_and_parts
from topsecret.sources.sql.statements import (
    column,
    derived,
    item_names,
    named,
    person_items,
    ranking,
)
from topsecret.sources.sql.weighted_sums import ONE_STATEMENT, weighted_sums

SOME, SOME_UPLOADED = 2_000, 50_000
"""How many places are asked for in one statement: where they are a part of its text, and where they
are a table of their own. Every statement reads all sums."""
SEVERAL = 8
"""Labels come with the count of their sum from so many whole persons on: what one person alone
wrote, of whatever length, is not read unless it is named."""


class WeightedLabels:
    """The sums of all labels, kept by the engine while its session lasts. Secret."""

    def __init__(
        self,
        session: Session,
        query: CountQuery,
        kept: exp.Expression,
        size: int | None,
        named_from: int | None = None,
    ) -> None:
        self._session = session
        self._query = query
        self._kept = kept
        self._named_from = named_from
        self._persons: dict[Item, int] = {}
        self._along: dict[tuple[int, int], Item] = {}
        self._places: dict[Item, tuple[int, int]] = {}
        self.size = size
        """How many items the public domain has; None where it is not known. Public."""

    def __repr__(self) -> str:
        return "<WeightedLabels: secret sums>"

    def counts(self) -> list[tuple[int, int]]:
        """(sum in the table's unit, how many labels have it), rising."""
        total = column("weighted", "sums")
        shown = [total, named(exp.Count(this=exp.Star()), "labels")]
        names = item_names(self._query)
        if self._named_from is not None:
            large = exp.GTE(this=total.copy(), expression=exp.Literal.number(self._named_from))
            for end in (exp.Min, exp.Max):
                for name in names:
                    label = exp.case().when(large.copy(), end(this=column(name, "sums")))
                    shown.append(named(label, f"{end.__name__.lower()}_{name}"))
        select = exp.select(*shown).from_(self._sums()).group_by(total.copy())
        rows = self._session.run(select)
        if self._named_from is not None:
            large_sums = [row for row in rows if int(row[0]) >= self._named_from]
            self._remember(large_sums, len(names))
        return sorted((int(row[0]), int(row[1])) for row in rows)

    def _remember(self, rows: Rows, columns: int) -> None:
        """The labels that came with the counts: all of sums with one, or with two of one column."""
        firsts, lasts = (
            items_of(self._session, self._query, [(*row[2:][part], 0) for row in rows])
            for part in (slice(columns), slice(columns, None))
        )
        for row, (first, _), (last, _) in zip(rows, firsts, lasts, strict=True):
            total, labels = int(row[0]), int(row[1])
            if labels == 1:
                self._along[total, 0] = first
            elif labels == 2 and columns == 1:
                self._along |= {(total, 0): first, (total, 1): last}

    def items_at(self, wanted: Sequence[tuple[int, int]]) -> list[Item]:
        """The label at each (sum, place): the place among the labels with that sum, from 0."""
        found = {key: self._along[key] for key in wanted if key in self._along}
        found |= self._fetched([key for key in wanted if key not in found])
        if any(key not in found for key in wanted):
            raise SourceError("the data changed while they were counted; ask again")
        self._places |= {item: key for key, item in found.items()}
        return [found[key] for key in wanted]

    def leading(self, rows: int) -> LeadingCounts:
        """The leading observed items by their numbers of persons, ties in canonical order."""
        persons = column("persons", "sums")
        items = [column(name, "sums") for name in item_names(self._query)]
        seen = exp.GT(this=persons.copy(), expression=exp.Literal.number(0))
        select = exp.select(*items, persons).from_(self._sums()).where(seen)
        ranked = ranking(persons.copy(), items, self._session.dialect)
        select.set("order", exp.Order(expressions=ranked))
        leading = items_of(self._session, self._query, self._session.run(select.limit(rows)))
        self._persons |= dict(leading)
        return leading

    def persons_of(self, items: Sequence[Item]) -> list[int]:
        """The numbers of persons of labels that were named before."""
        named_alone = [item for item in items if item not in self._persons]
        self._fetched([self._places[item] for item in named_alone if item in self._places])
        return [self._persons.get(item, 0) for item in items]

    def _sums(self) -> Any:
        return exp.alias_(self._kept.copy(), "sums", table=True, quoted=True)

    def _fetched(self, wanted: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Item]:
        found: dict[tuple[int, int], Item] = {}
        some = SOME_UPLOADED if self._session.dialect == "duckdb" else SOME
        for start in range(0, len(wanted), some):
            found |= self._fetched_some(wanted[start : start + some])
        return found

    def _fetched_some(self, wanted: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Item]:
        names = item_names(self._query)
        total = column("weighted", "sums")
        items = [column(name, "sums") for name in names]
        number = exp.Window(
            this=exp.RowNumber(),
            partition_by=[total.copy()],
            order=exp.Order(
                expressions=[ascending(item.copy(), self._session.dialect) for item in items]
            ),
        )
        asked = self._session.upload([(s, place + 1) for s, place in wanted], ["total", "rank"])
        totals: Any = exp.alias_(asked.copy(), "totals", table=True, quoted=True)
        winning = exp.select(column("total", "totals")).from_(totals)
        among = exp.In(this=total.copy(), query=winning.subquery())
        placed = (
            exp.select(*items, total, column("persons", "sums"), named(number, "place"))
            .from_(self._sums())
            .where(among)
        )
        same = exp.and_(
            exp.EQ(this=column("total", "asked"), expression=column("weighted", "placed")),
            exp.EQ(this=column("rank", "asked"), expression=column("place", "placed")),
        )
        shown = [column(name, "placed") for name in (*names, "persons", "weighted", "place")]
        select = (
            exp.select(*shown)
            .from_(derived(placed, "placed"))
            .join(exp.alias_(asked, "asked", table=True, quoted=True), on=same)
        )
        rows = self._session.run(select)
        pairs = items_of(self._session, self._query, [row[:-2] for row in rows])
        self._persons |= dict(pairs)
        return {
            (int(row[-2]), int(row[-1]) - 1): item
            for (item, _), row in zip(pairs, rows, strict=True)
        }


@contextmanager
def weighted_labels(
    engine: Engine, queries: Sequence[CountQuery], table: Sequence[int] | Clip
) -> Iterator[list[WeightedLabels]]:
    """Sum the weights of each query's labels, or what persons add and their parts, in one session.

    ``table`` has the weight of each item of a person with 1, 2, … items; its length is the cut.
    """
    found: list[WeightedLabels] = []
    with engine.session(replace(queries[0], kept=True)) as session:
        if queries[0].measure is not None:
            check(session, *queries)
        for query in queries:
            with charged(after_rows=bool(found)):
                found.append(_summed(session, query, table))
        yield found


def _summed(session: Session, query: CountQuery, table: Sequence[int] | Clip) -> WeightedLabels:
    if isinstance(query.domain, Interval):
        raise InvalidParameter(
            "weighted sums need a domain that is listed, in a table or in a file; "
            "list the items instead of domain=range(…)"
        )
    events, schema = session.events(query.columns)
    public = None if query.domain is None else session.keep(members(session, query, schema))
    found = person_items(events, query, schema, session.dialect, public)
    if not isinstance(table, Sequence):
        sums = scores_and_parts(session.keep(found), query, schema, session.dialect, table)
        return WeightedLabels(session, query, session.keep(sums), None)
    pairs = found.subquery() if session.dialect in ONE_STATEMENT else session.keep(found)
    weights = session.upload(list(enumerate(table, start=1)), ["items", "weight"])
    sums = weighted_sums(pairs, weights, len(table), query, schema, session.dialect)
    # PostgreSQL knows no least truth value.
    truths = any(schema.get(str(part)) == "boolean" for part in query.item_columns)
    named_from = None if truths else SEVERAL * table[0]
    if public is None:
        return WeightedLabels(session, query, session.keep(sums), None, named_from)
    names = item_names(query)
    kept = session.keep(_with_zeros(public, sums, names))
    relation: Any = exp.alias_(public.copy(), "members", table=True, quoted=True)
    size = session.run(exp.select(exp.Count(this=exp.Star())).from_(relation))[0][0]
    return WeightedLabels(session, query, kept, int(size), named_from)


def _with_zeros(public: exp.Expression, sums: exp.Select, names: Sequence[str]) -> exp.Select:
    """Every item of the domain, with 0 for those that nobody has."""
    same = [exp.EQ(this=column(n, "counted"), expression=column(n, "members")) for n in names]
    numbers = [
        named(exp.Coalesce(this=column(n, "counted"), expressions=[exp.Literal.number(0)]), n)
        for n in ("weighted", "persons")
    ]
    return (
        exp.select(*(column(name, "members") for name in names), *numbers)
        .from_(exp.alias_(public.copy(), "members", table=True, quoted=True))
        .join(derived(sums, "counted"), on=exp.and_(*same), join_type="left")
    )
