"""Scores of rows or sums with parts of bounded length beside them: one statement.

A person's amounts, each clipped, make the scores. Beside them the amounts of at most N of the
person's items (those that come first by the keyed hash of the cap, then by the item) are turned
into other units and, where the sum of their squares is too large, multiplied by a fraction of a
public table, as in ``sql.bounded_totals``. All of it is arithmetic on whole numbers of one person's
own rows: a product is at most 2⁵², a sum of squares at most 2²⁴ for each of the person's items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sqlglot import exp

from topsecret.sources.source import CountQuery, Schema
from topsecret.sources.sql.bounded_totals import scaled
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
    summed = exp.union(_light(names, clip), _heavy(query, schema, dialect, clip), distinct=False)
    shown = [column(name, "summed") for name in (*names, "amount")]
    small = named(scaled("part", clip.total, clip.items * clip.most**2), "part")
    bounded = exp.select(*shown, small).from_(derived(summed, "summed"))  # type: ignore[arg-type]
    labels = [column(name, "bounded") for name in names]
    totals = [
        named(exp.cast(exp.Sum(this=column(of, "bounded")), exp.DataType.Type.BIGINT), name)
        for of, name in (("part", "weighted"), ("amount", "persons"))
    ]
    found: Any = exp.select(*labels, *totals).from_(derived(bounded, "bounded"))
    found = found.group_by(*(label.copy() for label in labels))
    kept = [column(name, "kept_pairs") for name in (*names, "person", "amount")]
    source = exp.alias_(pairs.copy(), "kept_pairs", table=True, quoted=True)
    with_parts = exp.select(*kept, named(_part(clip), "part")).from_(source)
    sizes = exp.select(
        column("person", "pairs"),
        named(exp.Count(this=exp.Star()), "items"),
        named(_squares("pairs"), "squares"),
    )
    sizes = sizes.from_(_table("pairs")).group_by(column("person", "pairs"))
    # Both are read twice: where no table of them was made, the statement names them.
    return found.with_(_name("pairs"), as_=with_parts).with_(_name("sizes"), as_=sizes)  # type: ignore[no-any-return]


def _light(names: Sequence[str], clip: Clip) -> exp.Select:
    """The pairs of people all of whose items count, with the person's sum of squares."""
    few = exp.LTE(this=column("items", "sizes"), expression=_number(clip.items))
    shown = [column(name, "pairs") for name in (*names, "amount", "part")]
    return _joined([*shown, column("squares", "sizes")]).where(few)


def _heavy(query: CountQuery, schema: Schema, dialect: str, clip: Clip) -> exp.Select:
    """The pairs of other people, with a part for those alone that come first by the hash."""
    names = item_names(query)
    many = exp.GT(this=column("items", "sizes"), expression=_number(clip.items))
    choice = exp.Window(
        this=exp.RowNumber(),
        partition_by=[column("person", "pairs")],
        order=exp.Order(expressions=choice_order(query, schema, dialect)),
    )
    shown = [column(name, "pairs") for name in (*names, "person", "amount", "part")]
    numbered = _joined([*shown, named(choice, "choice")]).where(many)
    within = exp.LTE(this=column("choice", "choices"), expression=_number(clip.items))
    part: Any = exp.case().when(within, column("part", "choices")).else_(_number(0))
    shown = [column(name, "choices") for name in (*names, "person", "amount")]
    parts: Any = exp.select(*shown, named(part, "part")).from_(derived(numbered, "choices"))
    if query.max_items is not None:
        cap = exp.LTE(this=column("choice", "choices"), expression=_number(query.max_items))
        parts = parts.where(cap)
    squares = exp.Window(this=_squares("parts"), partition_by=[column("person", "parts")])
    shown = [column(name, "parts") for name in (*names, "amount", "part")]
    return exp.select(*shown, named(squares, "squares")).from_(derived(parts, "parts"))


def _joined(shown: Sequence[exp.Expression]) -> exp.Select:
    same = exp.EQ(this=column("person", "sizes"), expression=column("person", "pairs"))
    return exp.select(*shown).from_(_table("pairs")).join(_table("sizes"), on=same)


def _squares(table: str) -> exp.Expression:
    return exp.Sum(this=exp.Mul(this=column("part", table), expression=column("part", table)))


def _part(clip: Clip) -> exp.Expression:
    """An amount in units of the parts, rounded down."""
    factor, divisor = clip.rate
    product = exp.Mul(this=column("amount", "kept_pairs"), expression=_number(factor))
    if divisor == 1:
        return product
    share = exp.IntDiv(this=exp.paren(product, copy=False), expression=_number(divisor))
    return exp.cast(share, exp.DataType.Type.BIGINT)


def _number(value: int) -> exp.Expression:
    return exp.Literal.number(value)


def _name(name: str) -> Any:
    return exp.to_identifier(name, quoted=True)


def _table(name: str) -> Any:
    return exp.Table(this=_name(name))
