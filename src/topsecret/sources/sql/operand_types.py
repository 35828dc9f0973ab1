"""Parts of an expression and the one kind that they must share before they are compared."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp

from topsecret.errors import InvalidParameter
from topsecret.sources.source import Kind
from topsecret.sources.sql.dialects import as_text, counted, tries, try_cast

Sort = Kind | str
"""A column's kind, or that of a literal: ``number``, or ``null``, which goes with everything."""

NAMES: dict[Sort, str] = {
    "text": "text",
    "integer": "a whole number",
    "boolean": "a truth value",
    "date": "a date",
    "timestamp": "a time",
    "float": "a float",
    "decimal": "a decimal",
    "number": "a number",
    "null": "no value",
    "other": "of another type",
}
DATED: dict[Sort, str] = {"date": "%Y-%m-%d", "timestamp": "%Y-%m-%d %H:%M:%f"}
"""Kinds that SQLite keeps as text, and the form in which such texts are compared."""

DECIMALS = {"postgres", "sqlite", "mysql"}
"""Where decimals are compared with numbers of any precision. Elsewhere they become floats."""

LARGEST_DIGITS = 38
"""Digits of a whole number that every engine can compare exactly."""

CASTS: dict[Any, tuple[str, str]] = {
    exp.DataType.Type.DATE: ("date", "DATE"),
    exp.DataType.Type.TIMESTAMP: ("timestamp", "TIMESTAMP"),
    exp.DataType.Type.VARCHAR: ("text", "TEXT"),
    exp.DataType.Type.TEXT: ("text", "TEXT"),
    exp.DataType.Type.INT: ("integer", "INT"),
    exp.DataType.Type.BIGINT: ("integer", "BIGINT"),
    exp.DataType.Type.DOUBLE: ("float", "DOUBLE"),
    exp.DataType.Type.BOOLEAN: ("boolean", "BOOLEAN"),
}
# From which kinds a cast that tries may start; other casts do not exist.
TRIED: dict[str, set[Sort]] = {
    "date": {"text", "date", "timestamp"},
    "timestamp": {"text", "date", "timestamp"},
    "integer": {"text", "integer", "float", "boolean", "number"},
    "float": {"text", "integer", "float", "number"},
    "boolean": {"text", "integer", "boolean"},
}


@dataclass(frozen=True, slots=True)
class Typed:
    """A part of an expression, what it holds, and its value if it is a literal."""

    node: exp.Expression
    sort: Sort
    value: Any = None


def literal(value: Any) -> Typed:
    """A value of Python as a part of an expression."""
    if value is None:
        return Typed(exp.null(), "null")
    if isinstance(value, bool):
        return Typed(exp.Boolean(this=value), "boolean", value)
    if isinstance(value, str):
        return Typed(exp.Literal.string(value), "text", value)
    if isinstance(value, datetime.datetime):
        return Typed(constant(value.isoformat(sep=" "), "TIMESTAMP"), "timestamp", value)
    if isinstance(value, datetime.date):
        return Typed(constant(value.isoformat(), "DATE"), "date", value)
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return Typed(_plain(number), "number", number)


def moment(value: Any, zoned: bool, dialect: str) -> Typed | None:
    """A time for Spark, whose TIMESTAMP is read in the session's zone: in UTC, or in no zone."""
    if dialect != "spark" or not isinstance(value, datetime.datetime):
        return None
    text = value.isoformat(sep=" ")
    node = constant(f"{text}+00:00", "TIMESTAMP") if zoned else constant(text, "TIMESTAMPNTZ")
    return Typed(node, "timestamp", value)


def constant(text: str, type_name: str) -> exp.Expression:
    """A literal of this type."""
    return exp.cast(exp.Literal.string(text), type_name)


def _plain(number: Decimal) -> exp.Expression:
    if number and not -400 < number.adjusted() < 400:
        raise InvalidParameter("a number is too large or too small to be compared; leave it out")
    digits: exp.Expression = exp.Literal.number(format(abs(number), "f"))
    return exp.Neg(this=digits) if number < 0 else digits


def is_whole_number(number: Decimal) -> bool:
    """Whether it is a whole number, however it is written."""
    return number == number.to_integral_value()


def whole(number: Decimal) -> exp.Expression:
    """A whole number that every engine can compare whole numbers with."""
    if number and number.adjusted() >= LARGEST_DIGITS:
        raise InvalidParameter(
            f"a number beside whole numbers must have at most {LARGEST_DIGITS} digits; shorten it"
        )
    return _plain(Decimal(int(number)))


def double(part: Typed) -> exp.Expression:
    """A number as a float; every whole number has one."""
    if part.sort not in {"number", "integer"}:
        return part.node
    node = part.node
    if part.sort == "number":
        near = float(part.value)
        if near in {float("inf"), float("-inf")}:
            raise InvalidParameter("a number is too large to be compared with floats; shorten it")
        node = _plain(Decimal(repr(near)))
    return exp.cast(node, exp.DataType.Type.DOUBLE)


def unified(parts: Sequence[Typed], dialect: str, compared: bool) -> tuple[Sort, list[Any]] | None:
    """One kind for all parts and the parts as of that kind; None if there is no such kind.

    ``compared``: they are only compared, which needs less than being values of one expression.
    """
    sorts = {part.sort for part in parts} - {"null"}
    nodes: list[Any] = [part.node for part in parts]
    numbers = [part.value for part in parts if part.sort == "number"]
    if sorts <= {"integer", "number"} and sorts:
        if not all(is_whole_number(number) for number in numbers):
            return None if "integer" in sorts else ("float", [double(part) for part in parts])
        return "integer", [whole(p.value) if p.sort == "number" else p.node for p in parts]
    if sorts <= {"float", "integer", "number"} and sorts:
        return "float", [double(part) for part in parts]
    if sorts <= {"decimal", "integer", "number"} and sorts:
        return "decimal", nodes
    quoted = any(part.sort == "text" and part.value is not None for part in parts)
    if sorts == {"text", "number"} and compared and tries(dialect) and not quoted:
        read = [try_cast(p.node, "DOUBLE") if p.sort == "text" else double(p) for p in parts]
        return "float", read
    for sort in ("timestamp", "date"):
        if sort in sorts and sorts <= {"text", sort}:
            dated = [dated_literal(part, sort) if part.sort == "text" else part for part in parts]
            if None in dated:
                return None
            free = [part for part in dated if part is not None and part.value is None]
            if len(free) > 1 and not compared and sort == "timestamp" and dialect != "duckdb":
                return None  # one may have a zone, and some times have no counterpart in a zone
            if dialect == "sqlite":
                return sort, [sqlite_literal(part, sort) for part in dated if part is not None]
            return sort, [_in_zone(part, parts, dialect) for part in dated if part is not None]
    if sorts == {"date", "timestamp"} and compared:
        if dialect == "sqlite":
            return None
        if dialect == "duckdb":
            nodes = [try_cast(p.node, "TIMESTAMP") if p.sort == "date" else p.node for p in parts]
            return "timestamp", nodes
        return "timestamp", [_in_zone(part, parts, dialect) for part in parts]
    if len(sorts) > 1:
        return None
    return next(iter(sorts), "null"), nodes


def _in_zone(part: Typed, beside: Sequence[Typed], dialect: str) -> exp.Expression:
    """A day or time for Spark, which casts what is of another type by itself, and fails on a day
    or a time that has no counterpart there."""
    days = {one.sort for one in beside} <= {"date", "text", "null"}
    unzoned = any(isinstance(p.node, exp.Cast) and p.node.is_type("TIMESTAMPNTZ") for p in beside)
    if dialect != "spark" or part.value is not None or part.sort == "null" or days:
        return part.node
    if unzoned:
        return spark_time(part.node, "TIMESTAMPNTZ") if part.sort == "date" else part.node
    return spark_time(part.node, "TIMESTAMP")


def spark_time(day: exp.Expression, type_name: str) -> exp.Expression:
    """A day or time as a time of Spark's; even a cast that tries fails beyond 64 bits."""
    return exp.Case(ifs=[exp.If(this=spark_years(day), true=try_cast(day, type_name))])


def spark_years(day: exp.Expression) -> exp.Expression:
    """Whether it is of the years 1 to 9999, without a comparison, which would cast it."""
    year = exp.Anonymous(this="YEAR", expressions=[day.copy()])
    return exp.Between(this=year, low=exp.Literal.number(1), high=exp.Literal.number(9999))


def dated_literal(part: Typed, sort: str) -> Typed | None:
    """A literal text that is a date or a time as one."""
    if part.value is None:
        return None
    try:
        if sort == "date":
            return literal(datetime.date.fromisoformat(part.value))
        time = datetime.datetime.fromisoformat(part.value)
        return literal(time) if time.tzinfo is None else None  # its zone would be lost
    except ValueError:
        return None


def column_of(name: str, kind: Kind, dialect: str) -> Typed:
    """A column of the events as something that can be compared."""
    column = events(name)
    if kind in DATED and dialect == "sqlite":
        return Typed(_sqlite_date(column, kind), kind)
    if kind == "timestamp" and dialect == "duckdb":
        return Typed(try_cast(column, "TIMESTAMP"), kind)  # of seconds, of nanoseconds, of a zone
    if kind == "decimal" and tries(dialect):
        return Typed(try_cast(column, "DOUBLE"), "float")
    if kind == "text":
        return Typed(counted(column, kind, dialect), kind)
    if kind == "other" or (kind == "decimal" and dialect not in DECIMALS):
        return Typed(as_text(column, dialect), "text")
    return Typed(column, kind)


def _sqlite_date(column: exp.Expression, kind: Sort) -> exp.Expression:
    """The text of a date or time in one form, NULL for what is neither.

    SQLite reads "now" and numbers as times, too: only text that begins with a year is one.
    """
    text = exp.EQ(
        this=exp.Anonymous(this="TYPEOF", expressions=[column]),
        expression=exp.Literal.string("text"),
    )
    year = exp.Glob(
        this=column.copy(), expression=exp.Literal.string("[0-9][0-9][0-9][0-9]-[0-9][0-9]-*")
    )
    form = exp.Literal.string(DATED[kind])
    read = exp.Anonymous(this="STRFTIME", expressions=[form, column.copy()])
    return exp.Case(ifs=[exp.If(this=exp.and_(text, year), true=read)])


def sqlite_literal(part: Typed, sort: Sort) -> exp.Expression:
    """A date or time as the text that SQLite compares it by."""
    value = part.value
    if sort == "date" or not isinstance(value, datetime.date):
        return exp.Literal.string(value.isoformat()) if value is not None else part.node
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time())
    return exp.Literal.string(value.isoformat(sep=" ", timespec="milliseconds"))


def events(name: str) -> exp.Column:
    """The column of this name of the table called ``events``."""
    return exp.column(
        exp.to_identifier(name, quoted=True), exp.to_identifier("events", quoted=True)
    )
