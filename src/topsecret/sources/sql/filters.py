"""Conditions as SQL: each column compared as its kind demands, so that no row can fail the query.

Text is compared by code point on every engine. Comparing a column of text with a number would
make engines cast every row, and fail on the first that is no number: where the engine can try,
such rows are left out instead; elsewhere the condition is refused before any row is read. Whole
numbers are compared with whole numbers alone: beside a fraction an engine may widen both to a
decimal, which not every whole number fits into.
"""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

from sqlglot import exp

from topsecret.errors import InvalidParameter
from topsecret.sources.source import Columns, Kind, Schema
from topsecret.sources.sql.conditions import Condition, Expression, Scalar, Where
from topsecret.sources.sql.dialects import tries, try_cast
from topsecret.sources.sql.expressions import too_deep
from topsecret.sources.sql.operand_types import (
    NAMES,
    Typed,
    column_of,
    events,
    is_whole_number,
    literal,
    moment,
    unified,
)
from topsecret.sources.sql.safe_expressions import Total

_COMPARISONS: dict[str, Any] = {
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}
_TRIED = {
    "truth value": ("BOOLEAN", "boolean"),
    "date": ("DATE", "date"),
    "time": ("TIMESTAMP", "timestamp"),
}
_FITTING: dict[str, set[Kind]] = {
    "text": {"text", "other"},
    "number": {"integer", "float", "decimal"},
    "truth value": {"boolean"},
    "date": {"date", "timestamp"},
    "time": {"date", "timestamp"},
}


def holds(where: Where, schema: Schema, dialect: str) -> list[exp.Expression]:
    """What the rows must fulfil, over a table called ``events``; all of it."""
    return [
        exp.paren(_truth(one, schema, dialect), copy=False)
        if isinstance(one, Expression)
        else _condition(one, schema[one.column], dialect, _is_zoned(one.column, schema))
        for one in where
    ]


def _is_zoned(column: str, schema: Schema) -> bool:
    return isinstance(schema, Columns) and column in schema.zoned


def _condition(
    condition: Condition, kind: Kind, dialect: str, zoned: bool = False
) -> exp.Expression:
    if condition.value is None:
        missing = exp.Is(this=events(condition.column), expression=exp.null())
        return missing if condition.operator == "=" else exp.not_(missing)
    condition = _as_the_column(condition, kind, zoned)
    column = _comparable(condition, kind, dialect)
    values: list[Any] = list(condition.values)
    if column.sort == "integer":
        values = _whole(condition.operator, values)
        if not values:  # a fraction is no whole number
            present = exp.not_(exp.Is(this=column.node, expression=exp.null()))
            return present if condition.operator in {"!=", "not in"} else exp.false()
    parts = [moment(value, zoned, dialect) or literal(value) for value in values]
    found = unified([column, *parts], dialect, compared=True)
    if found is None:
        raise _unlike(condition, kind)
    _, (compared, *literals) = found
    if condition.operator in _COMPARISONS:
        comparison: exp.Expression = _COMPARISONS[condition.operator](
            this=compared, expression=literals[0]
        )
        return comparison
    among = exp.In(this=compared, expressions=literals)
    return among if condition.operator == "in" else exp.not_(among)


def _as_the_column(condition: Condition, kind: Kind, zoned: bool) -> Condition:
    """The condition with values of the column's type: text that stands for one is read as one.

    As texts, 9.5 would be more than 10, and 19:00 before T18:00. A time with a zone is compared
    with moments alone, in UTC; one without a zone is taken for UTC there.
    """
    values: list[Any] = list(condition.values)
    if kind not in _FITTING["text"]:
        values = [
            _read(value, kind, condition) if isinstance(value, str) else value for value in values
        ]
    for place, value in enumerate(values):
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            if not zoned:
                raise InvalidParameter(
                    f"column {condition.column!r} holds times without a zone; give the time "
                    "without one"
                )
            values[place] = value.astimezone(datetime.UTC).replace(tzinfo=None)
    several = isinstance(condition.value, tuple)
    return Condition(condition.column, condition.operator, tuple(values) if several else values[0])


def _read(text: str, kind: Kind, condition: Condition) -> Scalar:
    """The value of the column's type that the text stands for."""
    try:
        if kind == "boolean":
            return {"true": True, "false": False}[text.strip().casefold()]
        if kind in {"date", "timestamp"}:
            try:
                return datetime.date.fromisoformat(text) if kind == "date" else _moment(text)
            except ValueError:
                return _moment(text)
        number = Decimal(text.strip())
        if number.is_finite():
            return number
    except (KeyError, ValueError, ArithmeticError):
        pass
    raise _unlike(condition, kind)


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def _comparable(condition: Condition, kind: Kind, dialect: str) -> Typed:
    """The column as something that the values can be compared with."""
    wanted = {_type_of(value) for value in condition.values}
    if len(wanted) > 1:
        raise InvalidParameter(
            f"the values for {condition.column!r} must be of one kind; "
            f"found {' and '.join(sorted(wanted))}"
        )
    type_of = wanted.pop()
    column = column_of(condition.column, kind, dialect)
    if kind in _FITTING[type_of]:
        return column
    if column.sort == "text" and tries(dialect):
        if type_of == "number":
            return column
        to, sort = _TRIED[type_of]
        return Typed(try_cast(column.node, to), sort)
    if kind == "other" and dialect == "sqlite" and type_of == "number":
        return Typed(events(condition.column), "decimal")  # compares anything with anything
    raise _unlike(condition, kind)


def _whole(operator: str, values: list[Any]) -> list[Any]:
    """Whole numbers that say the same of whole numbers as these values do."""
    if operator in {"<", ">="}:
        return [math.ceil(_exact(value)) for value in values]
    if operator in {">", "<="}:
        return [math.floor(_exact(value)) for value in values]
    return [int(_exact(value)) for value in values if is_whole_number(_exact(value))]


def _exact(value: Any) -> Decimal:
    number = Decimal(value)
    if number and not -400 < number.adjusted() < 400:
        raise InvalidParameter("a number is too large or too small to be compared; leave it out")
    return number


def _unlike(condition: Condition, kind: Kind) -> InvalidParameter:
    return InvalidParameter(
        f"column {condition.column!r} is {NAMES[kind]} and cannot be compared with a "
        f"{_type_of(condition.values[0])}; write the value as the column has it"
    )


def _type_of(value: Scalar) -> str:
    if isinstance(value, bool):
        return "truth value"
    if isinstance(value, int | float | Decimal):
        return "number"
    if isinstance(value, datetime.datetime):
        return "time"
    return "date" if isinstance(value, datetime.date) else "text"


def rebuilt(expression: Expression, schema: Schema, dialect: str) -> Typed:
    """The checked tree for an engine, and what it holds: no row makes it fail."""
    try:
        return Total(schema, dialect).typed(expression.tree)
    except RecursionError:
        pass
    raise too_deep()


def _truth(expression: Expression, schema: Schema, dialect: str) -> exp.Expression:
    try:
        return Total(schema, dialect).truth(expression.tree)
    except RecursionError:
        pass
    raise too_deep()
