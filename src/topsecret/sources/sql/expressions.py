"""SQL expressions that trusted callers write: parsed, checked against a short list, rebuilt.

What is rendered for an engine is the checked tree, never the caller's text.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from topsecret.errors import InvalidParameter
from topsecret.sources.sql import loaded_dialects  # noqa: F401

# Each stays within its row and does not change from run to run. Arithmetic is not here: a division
# by zero or an overflow would let one row fail the query. That no value makes the others fail
# depends on the kinds of the columns: ``total`` checks it once they are known.
ALLOWED: tuple[type[exp.Expression], ...] = (
    exp.Column,
    exp.Identifier,
    exp.Literal,
    exp.Boolean,
    exp.Null,
    exp.Neg,
    exp.Paren,
    exp.And,
    exp.Or,
    exp.Not,
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.In,
    exp.Between,
    exp.Is,
    exp.Like,
    exp.Case,
    exp.If,
    exp.Coalesce,
    exp.Lower,
    exp.Upper,
    exp.Trim,
    exp.Length,
    exp.Substring,
    exp.Cast,
    exp.TryCast,
    exp.DataType,
    exp.Extract,
    exp.Year,
    exp.Month,
    exp.Day,
    exp.DayOfWeek,
    exp.DayOfYear,
    exp.Week,
    exp.Quarter,
    exp.DateTrunc,
    exp.TimestampTrunc,
    exp.Var,
)
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)

DATE_PARTS: dict[Any, str] = {
    exp.Year: "YEAR",
    exp.Quarter: "QUARTER",
    exp.Month: "MONTH",
    exp.Week: "WEEK",
    exp.Day: "DAY",
    exp.DayOfWeek: "DOW",
    exp.DayOfYear: "DOY",
}
"""Functions of a date, and what EXTRACT calls them."""

TIME_PARTS = ("HOUR", "MINUTE", "SECOND")
"""Parts that a time has and a date has not."""

TRUNCATED = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", *TIME_PARTS)

WHOLE = (exp.Extract, exp.Length, *DATE_PARTS)
"""Functions whose result is a whole number."""

CASTS = {
    exp.DataType.Type.DATE,
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.VARCHAR,
    exp.DataType.Type.TEXT,
    exp.DataType.Type.INT,
    exp.DataType.Type.BIGINT,
    exp.DataType.Type.DOUBLE,
    exp.DataType.Type.BOOLEAN,
}


DEEPEST = 32
"""So many parentheses may be open at once: how many Python can follow is the process's affair."""


def parse(text: str) -> exp.Expression:
    """The expression as a tree, or an error that names what is not allowed."""
    if is_deep(text):
        raise too_deep()
    try:
        trees = sqlglot.parse(text)
    except (SqlglotError, RecursionError):
        trees = []
    if len(trees) != 1 or trees[0] is None:
        raise InvalidParameter(
            f"{shown(text)} is not one SQL expression; write, say: country = 'FR' AND age >= 18"
        )
    tree: Any = trees[0]
    for node in tree.walk():
        _check(node)
    return tree  # type: ignore[no-any-return]


def is_deep(text: str, dialect: str | None = None) -> bool:
    """Whether too many parentheses are open at once."""
    try:
        kinds = [token.token_type for token in sqlglot.tokenize(text, read=dialect)]
    except SqlglotError:  # which is for the parser to say
        return False
    steps = ((kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN) for kind in kinds)
    return max(accumulate(steps, initial=0)) > DEEPEST


def too_deep() -> InvalidParameter:
    """The error for an expression that is read by going into it too far."""
    return InvalidParameter("an expression is nested too deeply; write it with fewer parentheses")


def _check(node: exp.Expression) -> None:
    if node.comments:
        node.comments = None
    if isinstance(node, exp.Query | exp.Subquery):
        raise InvalidParameter(
            f"an expression may not hold a subquery; pass it to topsecret.sql: {shown(node.sql())}"
        )
    if not isinstance(node, ALLOWED):
        raise InvalidParameter(
            f"an expression may not use {shown(node.sql())}; it may compare columns with "
            "literals and use AND, OR, NOT, IN, BETWEEN, IS NULL, LIKE, CASE, COALESCE, LOWER, "
            "UPPER, TRIM, LENGTH, SUBSTRING, CAST, EXTRACT and DATE_TRUNC"
        )
    if isinstance(node, exp.Column) and (node.table or isinstance(node.this, exp.Star)):
        raise InvalidParameter(
            "an expression may use columns of its own table only; pass a join to topsecret.sql; "
            f"found: {shown(node.sql())}"
        )
    if isinstance(node, exp.DataType) and (node.this not in CASTS or node.expressions):
        raise InvalidParameter(
            f"an expression may not cast to {shown(node.sql())}; "
            "use DATE, TIMESTAMP, TEXT, INT, BIGINT, DOUBLE or BOOLEAN"
        )


def columns(tree: exp.Expression) -> tuple[str, ...]:
    """The names of the columns in order of appearance, each once."""
    found = [node.name for node in tree.find_all(exp.Column, bfs=False)]
    return tuple(dict.fromkeys(found))


def is_whole(tree: exp.Expression) -> bool:
    """Whether the value is a whole number on every engine, such as a date part."""
    return isinstance(tree.unnest(), WHOLE)


def shown(text: str) -> str:
    """The caller's own text, on one line and cut."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:60]}…"
