"""Aggregates and window functions of one person's rows, as functions of bags of rows.

Nothing depends on the order of rows: numbering sorts by all columns in the end, and what an engine
would choose freely (MODE, ANY_VALUE, float sums) is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from topsecret.sources.relations.refusal import QueryRefused, quoted
from topsecret.sources.relations.relation import KEYS, RelationColumn
from topsecret.sources.relations.scope import Expressions
from topsecret.sources.sql.dialects import try_cast
from topsecret.sources.sql.operand_types import Typed

CLIP = 2**31 - 1
"""SQLite adds within 64 bits and fails beyond: its values are clipped, so that 4·10⁹ rows fit."""

NUMBERING = (exp.RowNumber, exp.Rank, exp.DenseRank)


def aggregate(node: Any, expressions: Expressions, dialect: str) -> Typed:
    """An aggregate over the rows of a group."""
    if isinstance(node, exp.Filter):
        inner = aggregate(node.this, expressions, dialect)
        kept = exp.Where(this=expressions.truth(node.expression.this))
        if isinstance(inner.node, exp.TryCast):  # of a sum, which is what is filtered
            summed = exp.Filter(this=inner.node.this, expression=kept)
            return Typed(try_cast(summed, "BIGINT"), inner.sort)
        return Typed(exp.Filter(this=inner.node, expression=kept), inner.sort)
    if isinstance(node, exp.Count):
        return Typed(_count(node, expressions), "integer")
    if isinstance(node, exp.Min | exp.Max):
        _only_this(node)
        value = expressions.typed(node.this)
        if value.sort not in KEYS - {"boolean"}:
            raise QueryRefused(
                "unstable",
                f"{quoted(node)} needs text, whole numbers, dates or times; cast its column",
            )
        return Typed(type(node)(this=value.node), value.sort)
    if isinstance(node, exp.Sum):
        _only_this(node)
        value = expressions.typed(node.this)
        if value.sort != "integer":
            raise QueryRefused(
                "unstable",
                f"{quoted(node)} adds fractions, whose sum depends on the order of rows; cast "
                "it to BIGINT",
            )
        return Typed(_sum(value.node, dialect), "integer")
    raise QueryRefused(
        "unstable",
        f"{quoted(node)} is not COUNT, MIN, MAX or SUM, and its value may depend on the order of "
        "rows; use one of these",
    )


def numbering(
    node: exp.Window,
    expressions: Expressions,
    own: exp.Expression | None,
    rows: Sequence[tuple[str, RelationColumn]],
    dialect: str,
) -> exp.Expression:
    """A window function over one owner's rows; ``rows`` are all columns that break ties."""
    known = {"this", "partition_by", "order", "over"}
    if any(v for k, v in node.args.items() if k not in known) or node.args.get("over") != "OVER":
        raise QueryRefused(
            "window",
            f"{quoted(node)} has a frame or a name; write ROW_NUMBER() OVER (PARTITION BY …)",
        )
    parts = [expressions.typed(part).node for part in node.args.get("partition_by") or []]
    partition = [*([] if own is None else [own.copy()]), *parts]
    if not isinstance(node.this, NUMBERING) or node.this.expressions:
        raise QueryRefused(
            "window", f"{quoted(node)} is not ROW_NUMBER, RANK or DENSE_RANK; use one of these"
        )
    order = node.args.get("order")
    if order is None and not isinstance(node.this, exp.RowNumber):
        raise QueryRefused("window", f"{quoted(node)} needs ORDER BY; add it to OVER")
    keys = [
        exp.Ordered(
            this=expressions.typed(one.this).node,
            desc=bool(one.args.get("desc")),
            nulls_first=bool(one.args.get("nulls_first")),
        )
        for one in (order.expressions if order is not None else [])
    ]
    if isinstance(node.this, exp.RowNumber):
        keys += [
            exp.Ordered(this=held.identity(alias, dialect), nulls_first=False)
            for alias, held in rows
        ]
    return exp.Window(
        this=type(node.this)(), partition_by=partition, order=exp.Order(expressions=keys)
    )


def outermost(node: Any, kinds: Any) -> list[Any]:
    """The nodes of these kinds that stand in no other of them; those of a window are its own."""
    if isinstance(node, kinds):
        return [node]
    if not isinstance(node, exp.Expression):
        return []
    return [one for child in node.iter_expressions() for one in outermost(child, kinds)]


def _count(node: Any, expressions: Expressions) -> exp.Expression:
    if any(v for k, v in node.args.items() if k not in {"this", "big_int"}):
        raise QueryRefused(
            "unstable", f"{quoted(node)} is not supported; leave out what is beside its argument"
        )
    inner = node.this
    if isinstance(inner, exp.Star):
        return exp.Count(this=exp.Star())
    if isinstance(inner, exp.Distinct):
        if len(inner.expressions) != 1 or inner.args.get("on"):
            raise QueryRefused("unstable", f"{quoted(node)} must count one value; name one")
        value = expressions.typed(inner.expressions[0])
        if value.sort not in KEYS:
            raise QueryRefused(
                "unstable",
                f"{quoted(node)} needs text, whole numbers, dates or times; cast its column",
            )
        return exp.Count(this=exp.Distinct(expressions=[value.node]))
    return exp.Count(this=expressions.typed(inner).node)


def _sum(value: exp.Expression, dialect: str) -> exp.Expression:
    if dialect == "sqlite":
        low, high = exp.Literal.number(CLIP), exp.Neg(this=exp.Literal.number(CLIP))
        clipped = exp.Anonymous(this="MIN", expressions=[value, low])
        return exp.Sum(this=exp.Anonymous(this="MAX", expressions=[clipped, high]))
    if dialect == "duckdb":  # sums of 64 bits have 128
        return exp.Sum(this=try_cast(value, "BIGINT"))
    if dialect == "spark":  # whose sums of 64 bits fail beyond: 38 digits are enough for any rows
        wide = exp.cast(try_cast(value, "BIGINT"), "DECIMAL(38, 0)")
        return try_cast(exp.Sum(this=wide), "BIGINT")
    return exp.Sum(this=value)


def _only_this(node: Any) -> None:
    if any(value for name, value in node.args.items() if name != "this"):
        raise QueryRefused(
            "unstable", f"{quoted(node)} is not supported; leave out what is beside its argument"
        )
