"""Weighted sums counted by the engine: how many labels have each sum, and names on demand.

As for a public domain (``counted_domain.py``): the engine keeps all labels with their sums and
sends the count of sums; a mechanism draws over these groups, and the name of the r-th label with a
winning sum, in the labels' own order, is fetched for each that passed. The number of people of a
named label comes with its name. With another measure the sums are of parts, and the scores by that
measure take the place of the numbers of people.

The first and the last label of a sum that only several people can reach come with its count: most
large sums have no third, and their names need no second row.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from sqlglot import exp

from topsecret.errors import InvalidParameter, SourceError
from topsecret.sources.domains.domain import Interval
from topsecret.sources.domains.domain_items import members
from topsecret.sources.session import Engine, Rows, Session, charged, check, items_of
from topsecret.sources.source import SALT_BYTES, CountQuery, Item, LeadingCounts, Schema
from topsecret.sources.sql.dialects import ascending
from topsecret.sources.sql.rendering import rendered
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
"""Labels come with the count of their sum from so many whole people on: what one person alone
wrote, of whatever length, is not read unless it is named."""


@dataclass(frozen=True, slots=True)
class _Relation:
    """A relation to select from, known by its text: whose text is the same is read the same.

    A statement that stands where no table could be made holds its question's salt, and may be
    long: what is written about it is not kept.
    """

    text: str
    expression: exp.Expression = field(compare=False)

    @classmethod
    def of(cls, expression: exp.Expression, dialect: str) -> _Relation:
        return cls(rendered(expression, dialect), expression)

    def writer(self, written_once: Any) -> Any:
        """What writes a statement about it: once for a table, anew for another relation."""
        is_table = isinstance(self.expression, exp.Table)
        return written_once if is_table else written_once.__wrapped__

    def called(self, name: str) -> Any:
        """A copy of it under a name."""
        return exp.alias_(self.expression.copy(), name, table=True, quoted=True)


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
        self._kept = _Relation.of(kept, session.dialect)
        self._names = tuple(item_names(query))
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
        write = self._kept.writer(_counts_of_sums)
        rows = self._session.run(write(self._kept, self._names, self._named_from).copy())
        if self._named_from is not None:
            large_sums = [row for row in rows if int(row[0]) >= self._named_from]
            self._remember(large_sums, len(self._names))
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
        """The leading observed items by their numbers of people, ties in canonical order."""
        write = self._kept.writer(_leading_items)
        select = write(self._kept, self._names, self._session.dialect, rows)
        leading = items_of(self._session, self._query, self._session.run(select.copy()))
        self._persons |= dict(leading)
        return leading

    def persons_of(self, items: Sequence[Item]) -> list[int]:
        """The numbers of people of labels that were named before."""
        named_alone = [item for item in items if item not in self._persons]
        self._fetched([self._places[item] for item in named_alone if item in self._places])
        return [self._persons.get(item, 0) for item in items]

    def _fetched(self, wanted: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Item]:
        found: dict[tuple[int, int], Item] = {}
        some = SOME_UPLOADED if self._session.dialect == "duckdb" else SOME
        for start in range(0, len(wanted), some):
            found |= self._fetched_some(wanted[start : start + some])
        return found

    def _fetched_some(self, wanted: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Item]:
        names = self._names
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
            .from_(self._kept.called("sums"))
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


# Statements are written once for a question: nothing but public values goes into one. Its salt,
# which is fresh each time, is put in afterwards.
_ANY_SALT = secrets.token_bytes(SALT_BYTES)
"""Stands for a question's salt: drawn anew in each process, so that no name can be taken for it."""


def _salted(select: exp.Select, salt: bytes) -> exp.Select:
    """A copy with this salt."""
    found = select.copy()
    for literal in found.find_all(exp.Literal):
        if _ANY_SALT.hex() in literal.this:
            literal.set("this", literal.this.replace(_ANY_SALT.hex(), salt.hex()))
    return found


@lru_cache(maxsize=64)
def _counts_of_sums(kept: _Relation, names: tuple[str, ...], named_from: int | None) -> exp.Select:
    """(sum, how many labels have it), and the first and the last label of a large sum."""
    total = column("weighted", "sums")
    shown = [total, named(exp.Count(this=exp.Star()), "labels")]
    if named_from is not None:
        large = exp.GTE(this=total.copy(), expression=exp.Literal.number(named_from))
        for end in (exp.Min, exp.Max):
            for name in names:
                label = exp.case().when(large.copy(), end(this=column(name, "sums")))
                shown.append(named(label, f"{end.__name__.lower()}_{name}"))
    return exp.select(*shown).from_(kept.called("sums")).group_by(total.copy())


@lru_cache(maxsize=64)
def _leading_items(kept: _Relation, names: tuple[str, ...], dialect: str, rows: int) -> exp.Select:
    """The leading observed items by their numbers of people."""
    persons = column("persons", "sums")
    items = [column(name, "sums") for name in names]
    seen = exp.GT(this=persons.copy(), expression=exp.Literal.number(0))
    select = exp.select(*items, persons).from_(kept.called("sums")).where(seen)
    ranked = ranking(persons.copy(), items, dialect)
    select.set("order", exp.Order(expressions=ranked))
    return select.limit(rows)


@lru_cache(maxsize=64)
def _sums_of_texts(
    events: _Relation,
    weights: _Relation,
    longest: int,
    query: CountQuery,
    dialect: str,
) -> exp.Select:
    """The weighted sums of columns of text, in the salt's place ``_ANY_SALT``."""
    texts: Schema = dict.fromkeys(query.columns, "text")
    asked = replace(query, salt=_ANY_SALT)
    pairs = person_items(events.expression.copy(), asked, texts, dialect).subquery()
    return weighted_sums(pairs, weights.expression.copy(), longest, asked, texts, dialect)


@contextmanager
def weighted_labels(
    engine: Engine, queries: Sequence[CountQuery], table: Sequence[int] | Clip
) -> Iterator[list[WeightedLabels]]:
    """Sum the weights of each query's labels, or what people add and their parts, in one session.

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
    dialect = session.dialect
    if not isinstance(table, Sequence):
        found = person_items(events, query, schema, dialect, public)
        sums = scores_and_parts(session.keep(found), query, schema, dialect, table)
        return WeightedLabels(session, query, session.keep(sums), None)
    if public is None and dialect in ONE_STATEMENT and _is_of_texts(query, schema):
        weights = session.upload(list(enumerate(table, start=1)), ["items", "weight"])
        relations = (_Relation.of(events, dialect), _Relation.of(weights, dialect))
        sums = _salted(_sums_of_texts(*relations, len(table), query, dialect), query.salt)
    else:
        found = person_items(events, query, schema, dialect, public)
        pairs = found.subquery() if dialect in ONE_STATEMENT else session.keep(found)
        weights = session.upload(list(enumerate(table, start=1)), ["items", "weight"])
        sums = weighted_sums(pairs, weights, len(table), query, schema, dialect)
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


def _is_of_texts(query: CountQuery, schema: Schema) -> bool:
    """Whether all columns are plain text, and a query that is equal asks the same.

    Values of conditions may be equal in Python and not in SQL: 1, 1.0 and True.
    """
    plain = type(schema) is dict and set(schema.values()) <= {"text"}
    return plain and not query.where and query.home is None


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
