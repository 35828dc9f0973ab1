"""Scores of which one person's part is a vector of bounded length: one statement.

A person's amounts, each clipped, of at most so many items, have a sum of squares. Where it is above
the square of the bound C all amounts are multiplied by a fraction n/2²⁰ of a public table and
rounded down: the table has a fraction for squares of up to C²·2^(t/4), t = 1, 2, …, so small that
the squares of what is left add up to C² at most. All of it is arithmetic on whole numbers of one
person's own rows.

>>> [(most, numerator) for most, numerator in shrinking(10, 200)]
[(118, 965292), (141, 883060), (168, 808993), (200, 741455)]
>>> all(numerator**2 * most <= 10**2 * 2**40 for most, numerator in shrinking(10, 200))
True
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from topsecret.sources.measures import MOST_ITEMS
from topsecret.sources.source import CountQuery, Schema
from topsecret.sources.sql.statements import (
    column,
    derived,
    item_names,
    named,
    numbered_pairs,
    person_items,
)

SHIFT = 20
"""Fractions are whole numbers over two to the power of this."""


def shrinking(total: int, squares: int) -> list[tuple[int, int]]:
    """For sums of squares above total², up to which, and the numerator to multiply by."""
    found: list[tuple[int, int]] = []
    step = 0
    while (found[-1][0] if found else total**2) < squares:
        step += 1
        most = min(squares, math.isqrt(math.isqrt(total**8 << step)))  # total²·2^(step/4)
        if most > (found[-1][0] if found else total**2):
            found.append((most, math.isqrt((total**2 << 2 * SHIFT) // most)))
    return found


def bounded_totals(
    events: exp.Expression,
    query: CountQuery,
    schema: Schema,
    dialect: str,
    members: exp.Expression | None = None,
) -> exp.Select:
    """Every item with the sum of what people add, each one's part scaled: (item, …, persons)."""
    kept = person_items(events, query, schema, dialect, members)
    return totals_of_pairs(kept, query, schema, dialect)


def totals_of_pairs(
    kept: exp.Select, query: CountQuery, schema: Schema, dialect: str, more: Sequence[str] = ()
) -> exp.Select:
    """The totals of each item among the pairs of people: (…, item, …, persons).

    ``more`` are columns that the person decides, by which the totals are separate, too.
    """
    measure, names = query.measure, [*more, *item_names(query)]
    assert measure is not None
    assert query.max_items is not None
    numbered = numbered_pairs(kept, query, schema, dialect, [*more, "person", "amount"])
    within = exp.LTE(
        this=column("choice", "choices"), expression=exp.Literal.number(query.max_items)
    )
    chosen: Any = exp.select(*(column(name, "choices") for name in (*names, "person", "amount")))
    chosen = chosen.from_(derived(numbered, "choices")).where(within)
    amount = column("amount", "kept")
    squares = exp.Window(
        this=exp.Sum(this=exp.Mul(this=amount.copy(), expression=amount.copy())),
        partition_by=[column("person", "kept")],
    )
    shown = [column(name, "kept") for name in (*names, "amount")]
    summed = exp.select(*shown, named(squares, "squares")).from_(derived(chosen, "kept"))
    largest = min(query.max_items, MOST_ITEMS) * measure.most**2
    part = named(scaled("amount", measure.total, largest), "part")
    parts = exp.select(*(column(name, "summed") for name in names), part).from_(
        derived(summed, "summed")
    )
    items = [column(name, "parts") for name in names]
    total = exp.cast(exp.Sum(this=column("part", "parts")), exp.DataType.Type.BIGINT)
    some = exp.GT(this=column("part", "parts"), expression=exp.Literal.number(0))
    counts = exp.select(*items, named(total, "persons")).from_(derived(parts, "parts"))
    return counts.where(some).group_by(*(item.copy() for item in items))


def scaled(name: str, total: int, largest: int) -> exp.Expression:
    """The amount, or as much of it as keeps the person within the bound.

    ``largest`` is at least every sum of squares.
    """
    amount, squares = column(name, "summed"), column("squares", "summed")
    short = exp.LTE(this=squares.copy(), expression=exp.Literal.number(total**2))
    cases: Any = exp.case().when(short, amount.copy())
    for most, numerator in shrinking(total, largest):
        below = exp.LTE(this=squares.copy(), expression=exp.Literal.number(most))
        product = exp.Mul(this=amount.copy(), expression=exp.Literal.number(numerator))
        # Of a positive number over a power of two: the same whether the engine divides whole
        # numbers or floats, which hold numbers of up to 53 bits exactly.
        share = exp.IntDiv(
            this=exp.paren(product, copy=False), expression=exp.Literal.number(1 << SHIFT)
        )
        cases = cases.when(below, exp.cast(share, exp.DataType.Type.BIGINT))
    return cases.else_(exp.Literal.number(0))  # type: ignore[no-any-return]  # no such person
