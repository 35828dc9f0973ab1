"""By how much the counts of items rise between two periods, in one session.

**Statement.** Person u counts at most once for item j in each of two counts. Let d_j be the second
count less the first. One person more moves each d_j by −1, 0 or 1, one item up and another down. A
mechanism whose law is the same for d and for d + c, whatever the number c, and which is private for
scores that one person raises by 0, 1 or 2, is private for d.

**Proof.** Let n be the number of all people, and e_j = n + d_j = Σ_u (1 + [u counts for j in the
second] − [u counts for j in the first]). One person more raises every e_j by 0, 1 or 2: e keeps to
the precondition. The law on d is that on e, since they differ by one number for all items. ∎

What leaves here is d + 2⁴⁰, so that no score is negative: a public number added to all.

Without a public domain the leading items of both counts leave here, each with both counts:
`LeadingRises` names items by private lists first, and takes the rises of those alone.

*Why it matters:* with noise for a move of 1 the loss is twice what is claimed, because one person
may raise a rise and lower its rival's (tests/questions/test_rises.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlglot import exp

from topsecret.sources.domains.counted_domain import CountedDomain, counted_domains
from topsecret.sources.session import Engine, Session, charged, check, items_of
from topsecret.sources.source import CountQuery, Item
from topsecret.sources.sql.statements import column, item_counts, item_names, named, ranking

SHIFT = 1 << 40
"""More people than there will be."""


@contextmanager
def counted_rises(engine: Engine, queries: Sequence[CountQuery]) -> Iterator[list[CountedDomain]]:
    """The later count less the earlier one, of every item of their domain; all in one session."""
    later, earlier = queries
    with counted_domains(engine, [later, earlier]) as (after, before):
        names = item_names(later)
        same = [exp.EQ(this=column(n, "before"), expression=column(n, "after")) for n in names]
        rise = exp.Sub(
            this=exp.Add(
                this=exp.Literal.number(SHIFT),
                expression=exp.cast(column("persons", "after"), exp.DataType.Type.BIGINT),
            ),
            expression=exp.cast(column("persons", "before"), exp.DataType.Type.BIGINT),
        )
        shown: Any = exp.select(*(column(n, "after") for n in names), named(rise, "persons"))
        both = shown.from_(exp.alias_(after.kept.copy(), "after", table=True, quoted=True)).join(
            exp.alias_(before.kept.copy(), "before", table=True, quoted=True),
            on=exp.and_(*same),
        )
        yield [CountedDomain(after.session, later, both.subquery(), after.size)]


@contextmanager
def leading_rises(
    engine: Engine, queries: Sequence[CountQuery]
) -> Iterator[list[list[tuple[Item, int, int]]]]:
    """The leading items of the later and of the earlier count: (item, its own, the other one's).

    As many of each as the queries ask for. Both are counted before either is read, in one session.
    """
    counts: list[exp.Expression] = []
    with engine.session(replace(queries[0], kept=True)) as session:
        check(session, *queries)
        session.events(list(dict.fromkeys(one for query in queries for one in query.columns)))
        for query in queries:
            with charged(after_rows=bool(counts)):
                events, schema = session.events(query.columns)
                counts.append(session.keep(item_counts(events, query, schema, session.dialect)))
        with charged(after_rows=True):
            found = [
                _leading(session, query, own, other)
                for query, own, other in zip(queries, counts, reversed(counts), strict=True)
            ]
        yield found


def _leading(
    session: Session, query: CountQuery, own: exp.Expression, other: exp.Expression
) -> list[tuple[Item, int, int]]:
    """The leading items of one count with what the other has of them."""
    names = item_names(query)
    items, persons = [column(name, "own") for name in names], column("persons", "own")
    same = [exp.EQ(this=column(n, "other"), expression=column(n, "own")) for n in names]
    others = exp.Coalesce(this=column("persons", "other"), expressions=[exp.Literal.number(0)])
    select: Any = exp.select(*items, persons, named(others, "others"))
    select = select.from_(exp.alias_(own.copy(), "own", table=True, quoted=True)).join(
        exp.alias_(other.copy(), "other", table=True, quoted=True),
        on=exp.and_(*same),
        join_type="left",
    )
    ranked = ranking(persons.copy(), [one.copy() for one in items], session.dialect)
    select.set("order", exp.Order(expressions=ranked))
    rows = session.run(select.limit(query.rows))
    pairs = items_of(session, query, [row[:-1] for row in rows])
    return [(item, n, int(row[-1])) for (item, n), row in zip(pairs, rows, strict=True)]
