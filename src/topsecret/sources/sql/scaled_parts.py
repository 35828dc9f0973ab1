"""Scores of rows or sums with parts of bounded length beside them: one statement.

A person's amounts, each clipped, make the scores. Beside them the amounts of at most N of the
person's items (those that come first by the keyed hash of the cap, then by the item) are turned
into other units and, where the sum of their squares is too large, multiplied by a fraction of a
public table, as in ``sql.bounded_totals``. All of it is arithmetic on whole numbers of one person's
own rows: a product is at most 2⁵², a sum of squares at most 100·2²⁴.
"""

from __future__ import annotations

from typing import Any, Protocol

from sqlglot import exp

from topsecret.sources.source import CountQuery, Schema
from topsecret.sources.sql.bounded_totals import scaled
from topsecret.sources.sql.dialects import ascending
from topsecret.sources.sql.statements import choice_order, column, derived, item_names, named


class Clip(Protocol):
    """The public bounds on one person's parts."""

    @property
    def items(self) -> int: ...  # noqa: D102
    @property
    def most(self) -> int: ...  # noqa: D102
    @property
    def total(self) -> int: ...  # noqa: D102
    @property
    def rate(self) -> tuple[int, int]: ...  # noqa: D102


def scores_and_parts(
    pairs: exp.Expression, query: CountQuery, schema: Schema, dialect: str, clip: Clip
) -> exp.Select:
    """Every item with its sum of parts and its score: (item, …, weighted, persons).

    ``pairs`` is a relation of (item, …, person, amount), each person and item once. Scores are
    those after the cut to ``query.max_items``, or before any cut without one. So an item may have a
    score and a sum of 0, which was not observed.
    """
    names = item_names(query)
    person = column("person", "pairs")
    items = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[column("person", "kept")])
    kept = [column(name, "kept") for name in (*names, "person", "amount")]
    sized: Any = exp.select(*kept, named(items, "items"))
    sized = sized.from_(exp.alias_(pairs.copy(), "kept", table=True, quoted=True))
    choice = exp.Window(
        this=exp.RowNumber(),
        partition_by=[person.copy()],
        order=exp.Order(expressions=_order(query, schema, dialect, clip)),
    )
    shown = [column(name, "pairs") for name in (*names, "person", "amount")]
    numbered = exp.select(*shown, named(choice, "choice")).from_(derived(sized, "pairs"))
    within = exp.LTE(this=column("choice", "choices"), expression=_number(clip.items))
    part: Any = exp.case().when(within, _part(clip)).else_(_number(0))
    shown = [column(name, "choices") for name in (*names, "person", "amount")]
    parts: Any = exp.select(*shown, named(part, "part")).from_(derived(numbered, "choices"))
    if query.max_items is not None:
        cap = exp.LTE(this=column("choice", "choices"), expression=_number(query.max_items))
        parts = parts.where(cap)
    square = exp.Mul(this=column("part", "parts"), expression=column("part", "parts"))
    squares = exp.Window(this=exp.Sum(this=square), partition_by=[column("person", "parts")])
    shown = [column(name, "parts") for name in (*names, "amount", "part")]
    summed = exp.select(*shown, named(squares, "squares")).from_(derived(parts, "parts"))
    shown = [column(name, "summed") for name in (*names, "amount")]
    small = named(scaled("part", clip.total, clip.items * clip.most**2), "part")
    bounded = exp.select(*shown, small).from_(derived(summed, "summed"))
    labels = [column(name, "bounded") for name in names]
    totals = [
        named(exp.cast(exp.Sum(this=column(of, "bounded")), exp.DataType.Type.BIGINT), name)
        for of, name in (("part", "weighted"), ("amount", "persons"))
    ]
    found: Any = exp.select(*labels, *totals).from_(derived(bounded, "bounded"))
    return found.group_by(*(label.copy() for label in labels))  # type: ignore[no-any-return]


def _order(query: CountQuery, schema: Schema, dialect: str, clip: Clip) -> list[exp.Ordered]:
    """As for the cap, the hash computed for those alone who have more items than count."""
    hashed, *items = choice_order(query, schema, dialect)
    many = exp.GT(this=column("items", "pairs"), expression=_number(clip.items))
    key = exp.case().when(many, hashed.this).else_(exp.Literal.string(""))
    return [ascending(key, dialect), *items]


def _part(clip: Clip) -> exp.Expression:
    """An amount in units of the parts, rounded down."""
    factor, divisor = clip.rate
    product = exp.Mul(this=column("amount", "choices"), expression=_number(factor))
    if divisor == 1:
        return product
    share = exp.IntDiv(this=exp.paren(product, copy=False), expression=_number(divisor))
    return exp.cast(share, exp.DataType.Type.BIGINT)


def _number(value: int) -> exp.Expression:
    return exp.Literal.number(value)
