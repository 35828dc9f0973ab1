"""Conditions as SQL: each column compared as its kind demands, so that no row can fail the query.

Text is compared by code point on every engine. Comparing a column of text with a number would
make engines cast every row, and fail on the first that is no number: where the engine can try,
such rows are left out instead; elsewhere the condition is refused before any row is read.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from sqlglot import exp

from topsecret.errors import InvalidParameter
from topsecret.sources.dialects import as_text, counted, tries, try_cast
from topsecret.sources.source import Kind, Schema
from topsecret.sources.where import Condition, Expression, Scalar, Where

_COMPARISONS: dict[str, Any] = {
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}


def holds(where: Where, schema: Schema, dialect: str) -> list[exp.Expression]:
    """What the rows must fulfil, over a table called ``events``; all of it."""
    return [
        exp.paren(rebuilt(one, schema, dialect), copy=False)
        if isinstance(one, Expression)
        else _condition(one, schema[one.column], dialect)
        for one in where
    ]


def _condition(condition: Condition, kind: Kind, dialect: str) -> exp.Expression:
    column = _events(condition.column)
    if condition.value is None:
        missing = exp.Is(this=column, expression=exp.null())
        return missing if condition.operator == "=" else exp.not_(missing)
    compared = _comparable(column, kind, condition, dialect)
    values = [_literal(value, dialect) for value in condition.values]
    if condition.operator in _COMPARISONS:
        comparison: exp.Expression = _COMPARISONS[condition.operator](
            this=compared, expression=values[0]
        )
        return comparison
    among = exp.In(this=compared, expressions=values)
    return among if condition.operator == "in" else exp.not_(among)


def _comparable(
    column: exp.Expression, kind: Kind, condition: Condition, dialect: str
) -> exp.Expression:
    """The column as something that the values can be compared with."""
    wanted = {_type_of(value) for value in condition.values}
    if len(wanted) > 1:
        raise InvalidParameter(
            f"the values for {condition.column!r} must be of one kind; "
            f"found {' and '.join(sorted(wanted))}"
        )
    type_of = wanted.pop()
    if type_of == "text" and kind in {"text", "other"}:
        return as_text(column, dialect) if kind == "other" else counted(column, kind, dialect)
    if type_of == "number" and kind in {"integer", "other"}:
        return column
    if type_of == "truth value" and kind == "boolean":
        return column
    if type_of in {"date", "time"} and kind == "other":
        return column
    if kind == "text" and tries(dialect):
        return try_cast(column, _TRIED[type_of])
    raise InvalidParameter(
        f"column {condition.column!r} is {_KIND_NAMES[kind]} and cannot be compared with a "
        f"{type_of}; write the value as the column has it"
    )


_TRIED = {"number": "DOUBLE", "truth value": "BOOLEAN", "date": "DATE", "time": "TIMESTAMP"}
_KIND_NAMES: dict[Kind, str] = {
    "text": "text",
    "integer": "a whole number",
    "boolean": "a truth value",
    "other": "of another type",
}


def _type_of(value: Scalar) -> str:
    if isinstance(value, bool):
        return "truth value"
    if isinstance(value, int | float | Decimal):
        return "number"
    if isinstance(value, datetime.datetime):
        return "time"
    return "date" if isinstance(value, datetime.date) else "text"


def _literal(value: Scalar, dialect: str) -> exp.Expression:
    if isinstance(value, datetime.datetime):
        text = value.isoformat(sep=" ")
        return exp.cast(exp.Literal.string(text), exp.DataType.Type.TIMESTAMP)
    if isinstance(value, datetime.date):
        return exp.cast(exp.Literal.string(value.isoformat()), exp.DataType.Type.DATE)
    if isinstance(value, float | Decimal):
        return exp.Literal.number(
            format(Decimal(repr(value)) if isinstance(value, float) else value, "f")
        )
    plain: Any = exp.convert(value)
    return plain  # type: ignore[no-any-return]  # sqlglot's own classes differ by version


def rebuilt(expression: Expression, schema: Schema, dialect: str) -> exp.Expression:
    """The checked tree with qualified columns and casts that do not fail, where there are such."""

    def rewritten(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Column):
            column = _events(node.name)
            return counted(column, "text", dialect) if schema[node.name] == "text" else column
        if type(node) is exp.Cast and tries(dialect):
            return exp.TryCast(**{**node.args, "safe": True})
        return node

    tree = expression.tree.copy()
    for comparison in list(tree.find_all(*_COMPARISONS.values(), exp.Between, exp.In)):
        _check_numbers(comparison, schema, dialect)
    return tree.transform(rewritten)


def _check_numbers(node: Any, schema: Schema, dialect: str) -> None:
    """A column of text beside a number: try to read it as one, or refuse."""
    sides = [side for side in node.iter_expressions() if not isinstance(side, exp.Paren)]
    numbers = [s for s in sides if isinstance(s.unalias(), exp.Literal | exp.Neg) and _number(s)]
    if not numbers:
        return
    for side in sides:
        if isinstance(side, exp.Column) and schema[side.name] == "text":
            if not tries(dialect):
                raise InvalidParameter(
                    f"column {side.name!r} is text and cannot be compared with a number; "
                    "put the number in quotes"
                )
            side.replace(try_cast(side.copy(), "DOUBLE"))


def _number(node: exp.Expression) -> bool:
    return isinstance(node, exp.Neg) or (isinstance(node, exp.Literal) and not node.is_string)


def _events(name: str) -> exp.Column:
    return exp.column(
        exp.to_identifier(name, quoted=True), exp.to_identifier("events", quoted=True)
    )
