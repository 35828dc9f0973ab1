"""What one row, and then one person, adds to an item's score, in whole units.

All arithmetic is on one person's rows, in integers and decimals: a float is turned into units row
by row and never summed, so that no order of rows changes a score. No value can fail a statement:
what is multiplied is below the bound, at most 10⁹ units, and casts that can fail are tried.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from topsecret.errors import InvalidParameter
from topsecret.sources.measures import Measure
from topsecret.sources.source import Schema
from topsecret.sources.sql.dialects import tries, try_cast

DECIMAL = "DECIMAL(27, 10)"
"""Of decimals ten digits after the point count. With a factor of up to 10⁶ they have 38 digits."""

SUMMED = {"duckdb", "postgres", "spark", "sqlite"}
"""Engines on which sums are tested."""


def row_amount(
    measure: Measure, value: exp.Expression, schema: Schema, dialect: str
) -> exp.Expression:
    """What a row adds: a whole number of units from 0 to the bound, whatever the column holds."""
    assert measure.column is not None
    kind = schema[measure.column]
    if dialect not in SUMMED:
        raise InvalidParameter(f"sums are not offered on {dialect}; pass measure='rows'")
    if kind not in {"integer", "decimal", "float"} and not (kind == "text" and tries(dialect)):
        raise InvalidParameter(
            f"Sum({measure.column!r}) needs a column of numbers; declare one, or make a view"
        )
    number = value
    positive: Any = _above(value)
    if kind == "integer" and dialect != "sqlite":
        # PostgreSQL, which cannot try, compares as it is: a sum or a literal may be beyond 64 bits.
        number = try_cast(value, "BIGINT") if tries(dialect) else value
    elif kind == "float":
        number = _cast(value, "DOUBLE")
    elif dialect == "sqlite":
        pass
    elif tries(dialect):
        number = try_cast(value, DECIMAL)
    # Of a text that is no number nothing is known; of a decimal too large for a cast its sign is.
    if kind == "text":
        positive = _above(number)
    if kind == "float" or (kind == "decimal" and dialect == "postgres") or dialect == "sqlite":
        # Infinity less itself is no number, and that is not 0.
        itself = exp.Sub(this=number.copy(), expression=number.copy())
        zero = exp.EQ(this=exp.paren(itself, copy=False), expression=_number(0))
        positive = exp.and_(positive, zero)
    if dialect == "sqlite":  # which keeps text and bytes in any column
        type_of = exp.Anonymous(this="TYPEOF", expressions=[value.copy()])
        kinds = [exp.Literal.string("integer"), exp.Literal.string("real")]
        positive = exp.and_(exp.In(this=type_of, expressions=kinds), positive)
    bound, units = measure.bound, number
    if kind == "integer" and dialect != "sqlite":
        bound = str(-(-measure.most // measure.per_unit))
        units = _times(number, measure.per_unit)
    else:
        if kind == "decimal" and dialect == "postgres":  # as other engines round
            units = _cast(number, DECIMAL)
        half = exp.Literal.number("0.5")
        nearest: Any = exp.Add(this=_times(units, measure.per_unit), expression=half)
        if dialect != "sqlite":  # whose cast rounds a positive number down
            nearest = exp.Floor(this=nearest)
        units = _cast(nearest, "BIGINT")
    below = exp.LT(this=number.copy(), expression=exp.Literal.number(bound))
    amount = exp.case().when(below, units).else_(_number(measure.most))
    return exp.case().when(positive, amount).else_(_number(0))


def clipped(measure: Measure, amount: exp.Expression) -> exp.Expression:
    """What a person adds to an item: their rows or their sum, or the bound if it is less."""
    total: Any = exp.Count(this=exp.Star())
    if measure.column is not None:
        total = exp.Sum(this=amount)
    most = _number(measure.most)
    below = exp.LT(this=total, expression=most)
    number = _cast(total, "BIGINT") if measure.column is not None else total.copy()
    return exp.case().when(below, number).else_(most.copy())


def totals(measure: Measure, amount: exp.Expression) -> list[exp.Expression]:
    """The score of an item, what all people add: for each of several bounds, if there are.

    A person's sum cut to a bound is the same whether larger values were cut to it before or not.
    """
    if not measure.bounds:
        return [_cast(exp.Sum(this=amount), "BIGINT")]
    cut = [exp.LT(this=amount.copy(), expression=_number(bound)) for bound in measure.bounds]
    each = [
        exp.case().when(below, amount.copy()).else_(_number(bound))
        for below, bound in zip(cut, measure.bounds, strict=True)
    ]
    return [_cast(exp.Sum(this=one), "BIGINT") for one in each]


def score_names(measure: Measure | None) -> list[str]:
    """What the scores are called: ``persons``, or one name for each of several bounds."""
    bounds = () if measure is None else measure.bounds
    return [f"score_{place}" for place in range(len(bounds))] if bounds else ["persons"]


def _above(value: exp.Expression) -> exp.Expression:
    return exp.GT(this=value.copy(), expression=_number(0))


def _times(value: exp.Expression, factor: int) -> exp.Expression:
    if factor == 1:
        return value.copy()
    return exp.Mul(this=value.copy(), expression=_number(factor))


def _cast(value: exp.Expression, to: str) -> exp.Expression:
    return exp.cast(value.copy(), exp.DataType.build(to))


def _number(value: int) -> exp.Expression:
    return exp.Literal.number(value)
