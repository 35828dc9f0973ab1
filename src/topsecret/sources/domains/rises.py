"""The rises of the items of a public domain from one count of persons to another, in one session.

**Statement.** Person u counts at most once for item j in each of two counts. Let d_j be the second
count less the first. One person more moves each d_j by −1, 0 or 1, one item up and another down. A
mechanism whose law is the same for d and for d + c, whatever the number c, and which is private for
scores that one person raises by 0, 1 or 2, is private for d.

**Proof.** Let n be the number of all persons, and e_j = n + d_j = Σ_u (1 + [u counts for j in the
second] − [u counts for j in the first]). One person more raises every e_j by 0, 1 or 2: e keeps to
the precondition. The law on d is that on e, since they differ by one number for all items. ∎

What leaves here is d + 2⁴⁰, so that no score is negative: a public number added to all.

*Why it matters:* with noise for a move of 1 the loss is twice what is claimed, because one person
may raise a rise and lower its rival's (tests/questions/test_rises.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlglot import exp

from topsecret.sources.domains.counted_domain import CountedDomain, counted_domains
from topsecret.sources.session import Engine
from topsecret.sources.source import CountQuery
from topsecret.sources.sql.statements import column, item_names, named

SHIFT = 1 << 40
"""More persons than there will be."""


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
