"""A public domain counted by the engine: how many items have each count, and names on demand.

The engine joins the domain with the counts and sends the *count of counts*: a few thousand rows
for millions of items. A mechanism runs its race over these groups; then the name of the r-th item
with the winning count, in the items' own order, is fetched for each pick.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlglot import exp

from topsecret.errors import SourceError
from topsecret.sources.domains.domain import Interval, Listed
from topsecret.sources.domains.domain_items import members
from topsecret.sources.session import Engine, Session, charged, check, items_of, persons_of
from topsecret.sources.source import CountQuery, Item, LeadingCounts, Schema
from topsecret.sources.sql.amounts import score_names
from topsecret.sources.sql.bounded_totals import bounded_totals
from topsecret.sources.sql.dialects import ascending
from topsecret.sources.sql.groups import counts_by_group, numbered
from topsecret.sources.sql.statements import (
    column,
    derived,
    item_counts,
    item_names,
    named,
    ranking,
)

SOME = 200
"""How many places are asked for in one statement."""


class CountedDomain:
    """The counts of a public domain, kept by the engine while its session lasts. Secret."""

    def __init__(
        self,
        session: Session,
        query: CountQuery,
        kept: exp.Expression,
        size: int | None,
        members: exp.Expression | None = None,
    ):
        self.session = session
        self._query = query
        self.kept = kept
        """The table of items and counts, as the engine has it."""
        self._members = members
        self.size = size
        """How many items the domain has; None where only what was observed counts. Public."""

    def __repr__(self) -> str:
        return f"<CountedDomain: secret counts of {self.size} public items>"

    def counts(self) -> list[tuple[int, int]]:
        """(count, how many items have it), rising, zero among them."""
        number = named(exp.Count(this=exp.Star()), "items")
        persons = column("persons", "scores")
        select = exp.select(persons, number).from_(self._scores()).group_by(persons.copy())
        groups = sorted((int(count), int(items)) for count, items in self.session.run(select))
        if self.size is None:
            return groups
        missing = self.size - sum(items for _, items in groups)
        if missing < 0:
            raise self._changed()
        if missing:  # an interval: its engine counted the observed numbers alone
            groups = [(0, missing), *groups]
        return groups

    def items_at(self, wanted: Sequence[tuple[int, int]]) -> list[Item]:
        """The item at each (count, place): the place among the items with that count, from 0."""
        places: dict[int, list[int]] = defaultdict(list)
        for count, place in wanted:
            places[count].append(place)
        found: dict[tuple[int, int], Item] = {}
        domain = self._query.domain
        if isinstance(domain, Interval) and 0 in places:
            unseen = places.pop(0)
            found |= {(0, p): i for p, i in zip(unseen, self._unseen(domain, unseen), strict=True)}
        for start in range(0, len(wanted), SOME):
            asked = _cut(places, start, start + SOME)
            if asked:
                found |= self._fetched(asked)
        if any(key not in found for key in wanted):
            raise self._changed()
        return [found[key] for key in wanted]

    def persons(self) -> int:
        """How many people the counts are of."""
        return persons_of(self.session, [self._query], self._members)[0]

    def leading(self, rows: int) -> LeadingCounts:
        """The leading observed items, as for an unknown domain."""
        names = item_names(self._query)
        persons = column("persons", "scores")
        items = [column(name, "scores") for name in names]
        seen = exp.GT(this=persons.copy(), expression=exp.Literal.number(0))
        select = exp.select(*items, persons).from_(self._scores()).where(seen)
        ranked = ranking(persons.copy(), items, self.session.dialect)
        select.set("order", exp.Order(expressions=ranked))
        return items_of(self.session, self._query, self.session.run(select.limit(rows)))

    def _scores(self) -> Any:
        return exp.alias_(self.kept.copy(), "scores", table=True, quoted=True)

    def _fetched(self, places: dict[int, list[int]]) -> dict[tuple[int, int], Item]:
        names = item_names(self._query)
        persons = column("persons", "scores")
        items = [column(name, "scores") for name in names]
        number = exp.Window(
            this=exp.RowNumber(),
            partition_by=[persons.copy()],
            order=exp.Order(
                expressions=[ascending(item.copy(), self.session.dialect) for item in items]
            ),
        )
        among = exp.In(this=persons.copy(), expressions=[_number(count) for count in places])
        placed = (
            exp.select(*items, persons, named(number, "place")).from_(self._scores()).where(among)
        )
        shown = [column(name, "placed") for name in (*names, "persons", "place")]
        chosen = [
            exp.and_(
                exp.EQ(this=column("persons", "placed"), expression=_number(count)),
                exp.In(
                    this=column("place", "placed"),
                    expressions=[_number(place + 1) for place in mine],
                ),
            )
            for count, mine in places.items()
        ]
        select = exp.select(*shown).from_(derived(placed, "placed")).where(exp.or_(*chosen))
        rows = self.session.run(select)
        pairs = items_of(self.session, self._query, [row[:-1] for row in rows])
        return {
            (count, int(row[-1]) - 1): item for (item, count), row in zip(pairs, rows, strict=True)
        }

    def _unseen(self, domain: Interval, places: Sequence[int]) -> Iterator[int]:
        """The numbers at these places among those that nobody has.

        Before the j-th observed number n, rising and from 0, stand (n − low)/step − j unobserved
        ones. So the r-th unobserved number has as many observed ones before it as there are j
        with n − low − j·step ≤ r·step, and it stands at the place of r and theirs together.
        """
        number = column("item", "scores")
        rising = ascending(number.copy(), self.session.dialect)
        row = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=[rising]))
        # The difference may be too large for the column's own type.
        wide = exp.cast(number, exp.DataType.Type.BIGINT)
        offset = exp.Sub(this=wide, expression=_number(domain.low))
        before = exp.Sub(
            this=exp.paren(offset, copy=False),
            expression=exp.Mul(
                this=exp.paren(exp.Sub(this=row, expression=_number(1)), copy=False),
                expression=_number(domain.step),
            ),
        )
        ahead = exp.select(named(before, "ahead")).from_(self._scores())
        for start in range(0, len(places), SOME):
            some = places[start : start + SOME]
            sums = [
                named(
                    exp.Sum(
                        this=exp.case()
                        .when(
                            exp.LTE(
                                this=column("ahead", "seen"),
                                expression=_number(place * domain.step),
                            ),
                            _number(1),
                        )
                        .else_(_number(0))
                    ),
                    f"at_{position}",
                )
                for position, place in enumerate(some)
            ]
            counts = self.session.run(exp.select(*sums).from_(derived(ahead.copy(), "seen")))[0]
            for place, count in zip(some, counts, strict=True):
                yield domain.low + domain.step * (place + int(count or 0))

    def _changed(self) -> SourceError:
        return SourceError("the data changed while they were counted; ask again")


@contextmanager
def counted_domains(engine: Engine, queries: Sequence[CountQuery]) -> Iterator[list[CountedDomain]]:
    """Count the public domain of each query, all in one session."""
    found: list[CountedDomain] = []
    with engine.session(queries[0]) as session:
        check(session, *queries)
        if queries[0].home is not None:
            yield _counted_groups(session, queries)
            return
        if len(queries) > 1:  # a column that one of them lacks is missed before rows are counted
            session.events(list(dict.fromkeys(one for query in queries for one in query.columns)))
        for query in queries:
            with charged(after_rows=bool(found)):
                found.append(_counted(session, query))
        yield found


def _counted(session: Session, query: CountQuery) -> CountedDomain:
    events, schema = session.events(query.columns)
    if query.measure is not None and query.measure.total:
        public, size = public_items(session, query, schema)
        totals = session.keep(bounded_totals(events, query, schema, session.dialect, public))
        scores = totals
        if public is not None:
            scores = joined(public, totals, item_names(query)).subquery()
        return CountedDomain(session, query, scores, size)
    if isinstance(query.domain, Interval):
        observed = item_counts(events, query, schema, session.dialect)
        return CountedDomain(session, query, session.keep(observed), query.domain.size)
    public = session.keep(members(session, query, schema))
    narrow = public if query.max_items is not None else None
    counts = session.keep(item_counts(events, query, schema, session.dialect, narrow))
    scores = joined(public, counts, item_names(query)).subquery()
    return CountedDomain(session, query, scores, size_of(session, public))


def _counted_groups(session: Session, queries: Sequence[CountQuery]) -> list[CountedDomain]:
    """The domain of each group; all groups are counted by one statement, whose result is kept."""
    query = queries[0]
    events, schema = session.events(query.columns)
    public, size = public_items(session, query, schema)
    names = item_names(query)
    found = []
    for one, counts in kept_groups(session, queries, events, schema, public):
        scores = counts if public is None else joined(public, counts.subquery(), names)
        found.append(CountedDomain(session, one, scores.subquery(), size, public))
    return found


def public_items(
    session: Session, query: CountQuery, schema: Schema
) -> tuple[exp.Expression | None, int | None]:
    """A table of the domain's items, where they are listed, and how many there are, if known."""
    if query.domain is None or isinstance(query.domain, Interval):
        return None, None if query.domain is None else query.domain.size
    public = session.keep(members(session, query, schema))
    return public, size_of(session, public)


def kept_groups(
    session: Session,
    queries: Sequence[CountQuery],
    events: exp.Expression,
    schema: Schema,
    public: exp.Expression | None,
) -> Iterator[tuple[CountQuery, exp.Select]]:
    """Each group's items and scores. One statement counted all groups, and its result is kept."""
    query = queries[0]
    kept = session.keep(
        counts_by_group(events, query, schema, session.dialect, public, session.once)
    )
    shown, numbers = (*item_names(query), *score_names(query.measure)), numbered(query)
    for one in queries:
        assert one.home is not None
        number = numbers[one.home.group]
        mine = exp.EQ(this=column("home", "kept"), expression=_number(number))
        counts: Any = exp.select(*(column(name, "kept") for name in shown))
        relation = exp.alias_(kept.copy(), "kept", table=True, quoted=True)
        yield one, counts.from_(relation).where(mine)


def domain_size(engine: Engine, query: CountQuery) -> int:
    """How many items the domain has. Public, and asked before anything is paid: no event is read.

    One exception: a view of the caller's DuckDB connection, with a domain in a table or a file,
    must be described, and DuckDB may read rows for that.
    """
    domain = query.domain
    if isinstance(domain, Interval):
        return domain.size
    with engine.session(query) as session:
        schema = session.schema(query.columns)
        if schema is None and isinstance(domain, Listed):
            return len({_texts(item) for item in domain.items})
        if schema is None:
            schema = session.events(query.columns)[1]
        return size_of(session, members(session, query, schema).subquery())


def _texts(item: Item) -> tuple[str, ...]:
    """A listed item as it is compared: 1 and "1" are one where the column holds text."""
    return tuple(map(str, item if isinstance(item, tuple) else (item,)))


def size_of(session: Session, public: exp.Expression) -> int:
    """How many items a table of the domain's items has."""
    members_table: Any = exp.alias_(public.copy(), "members", table=True, quoted=True)
    rows = session.run(exp.select(exp.Count(this=exp.Star())).from_(members_table))
    return int(rows[0][0])


def joined(public: exp.Expression, counts: exp.Expression, names: Sequence[str]) -> exp.Select:
    """Every item of the domain with its count, 0 for those that nobody has."""
    same = [exp.EQ(this=column(n, "counts"), expression=column(n, "members")) for n in names]
    persons = exp.Coalesce(this=column("persons", "counts"), expressions=[_number(0)])
    return (
        exp.select(*(column(name, "members") for name in names), named(persons, "persons"))
        .from_(exp.alias_(public.copy(), "members", table=True, quoted=True))
        .join(
            exp.alias_(counts.copy(), "counts", table=True, quoted=True),
            on=exp.and_(*same),
            join_type="left",
        )
    )


def _cut(places: dict[int, list[int]], start: int, end: int) -> dict[int, list[int]]:
    """The pairs from one position to another, in the order of the counts."""
    flat = [(count, place) for count, mine in places.items() for place in mine][start:end]
    result: dict[int, list[int]] = defaultdict(list)
    for count, place in flat:
        result[count].append(place)
    return result


def _number(value: int) -> Any:
    return exp.convert(value)
