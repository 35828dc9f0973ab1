"""What differs between engines, in one place: text, its order, its hash.

Counting needs four things of an engine to be the same everywhere: the text of a value, equality
of text by its code points, the order of text by its code points, and a hash. sqlglot knows the
spelling of the functions; what it cannot know (collations, encodings) is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import Dialect, exp

from topsecret.errors import InvalidParameter
from topsecret.sources.source import Kind
from topsecret.sources.sql import loaded_dialects  # noqa: F401

Rewrite = Callable[[exp.Expression], exp.Expression]


def _same(value: exp.Expression) -> exp.Expression:
    return value


def _collated(collation: exp.Expression) -> Rewrite:
    return lambda value: exp.Collate(this=value, expression=collation.copy())


def _utf8mb4(value: exp.Expression) -> exp.Expression:
    charset = exp.DataType(this=exp.DataType.Type.CHARACTER_SET, kind=exp.var("utf8mb4"))
    return exp.Cast(this=value, to=charset)


def _utf8mb4_binary(value: exp.Expression) -> exp.Expression:
    return exp.Collate(this=_utf8mb4(value), expression=exp.var("utf8mb4_0900_bin"))


# Text that is equal, grouped and ordered by code point, whatever collation its column has.
_BY_CODE_POINT: dict[str, Rewrite] = {
    "duckdb": _collated(exp.var("C")),
    "postgres": _collated(exp.to_identifier("C", quoted=True)),
    "sqlite": _collated(exp.var("BINARY")),
    "mysql": _utf8mb4_binary,
    "spark": _same,  # a cast to STRING has UTF8_BINARY
    "clickhouse": _same,
    "bigquery": lambda value: exp.Collate(this=value, expression=exp.Literal.string("")),
    "snowflake": lambda value: exp.Collate(this=value, expression=exp.Literal.string("utf8")),
    "trino": _same,
}
# What MD5 is given: the text's UTF-8 bytes.
_ENCODED: dict[str, Rewrite] = {
    "postgres": lambda text: exp.Anonymous(
        this="PG_CATALOG.CONVERT_TO", expressions=[text, exp.Literal.string("UTF8")]
    ),
    "mysql": _utf8mb4,
    "trino": lambda text: exp.Anonymous(this="TO_UTF8", expressions=[text]),
    # As bytes: text that is not UTF-8 could not be handed over.
    "sqlite": lambda text: exp.cast(text, exp.DataType.Type.BLOB),
}
# It is given the salt, so nobody else's function of that name may stand in: named in full, or our
# own (SQLite has none).
_HASHES = {"postgres": "PG_CATALOG.MD5", "sqlite": "topsecret_md5"}

LETTERS = "und-x-icu"
"""PostgreSQL's collation that knows all letters, where it was built with ICU."""

MARK = "\x01"
"""In front of a person's value that is not text where a column may hold both. Text that begins
with it has the mark and ``text:`` in front, too, so that nobody shares another's name."""

DIALECTS = tuple(_BY_CODE_POINT)
"""The engines that the SQL is written for, by sqlglot's names."""

_TRIES = {"duckdb", "bigquery", "spark", "trino"}
"""Engines where TRY_CAST makes NULL of what cannot be cast, as sqlglot renders it."""


def check_dialect(dialect: str) -> str:
    """The dialect, if the SQL is written for it."""
    if dialect not in DIALECTS:
        raise InvalidParameter(f"dialect={dialect!r} must be one of: {', '.join(DIALECTS)}")
    return dialect


def as_text(value: exp.Expression, dialect: str) -> exp.Expression:
    """The canonical text of a value, compared by code point."""
    return _BY_CODE_POINT[dialect](exp.cast(value, exp.DataType.Type.TEXT))


def counted(value: exp.Expression, kind: Kind, dialect: str) -> exp.Expression:
    """The value as it is counted: an integer or a boolean as it is, all else as text."""
    if kind in {"integer", "boolean"}:
        if dialect != "sqlite":
            return value
        # SQLite keeps whatever was written: a cast makes one kind of it, row by row.
        whole = exp.cast(value, exp.DataType.Type.BIGINT)
        none = exp.Literal.number(0)
        return whole if kind == "integer" else exp.paren(exp.NEQ(this=whole, expression=none))
    if kind == "text" and dialect == "duckdb":
        return _BY_CODE_POINT[dialect](value)
    return time_text(value, dialect) if kind == "timestamp" else as_text(value, dialect)


def time_text(
    value: exp.Expression, dialect: str, without: exp.Expression | None = None
) -> exp.Expression:
    """The text of a time. DuckDB fails on those of its first day and beyond microseconds.

    Those are ``without`` a text: items share one, people must not. What is cast is guarded, not
    the text: DuckDB casts every entry of a dictionary, also where a CASE takes another way.
    """
    if dialect != "duckdb":
        return as_text(value, dialect)
    time = try_cast(value, "TIMESTAMP")
    lowest = exp.Neg(this=exp.Literal.number(290_307))
    first = exp.LT(this=_call("YEAR", time), expression=lowest)
    beyond = exp.and_(_is_null(time), exp.not_(_is_null(value)))
    none = without or exp.Literal.string("a time that has no text")
    written = exp.case().when(exp.or_(first, beyond), exp.null()).else_(value.copy())
    text = exp.cast(written, exp.DataType.Type.TEXT)
    otherwise = exp.case().when(exp.not_(_is_null(value)), none)
    either = exp.Coalesce(this=text, expressions=[otherwise])
    return _BY_CODE_POINT[dialect](either)


def _is_null(value: exp.Expression) -> exp.Expression:
    return exp.Is(this=value.copy(), expression=exp.null())


def person(value: exp.Expression, kind: Kind, dialect: str) -> exp.Expression:
    """The value that identifies a person: two people never share it, whatever was written."""
    if dialect == "sqlite":
        return _BY_CODE_POINT[dialect](_sqlite_person(value, kind))
    if dialect == "duckdb" and kind == "timestamp":
        return time_text(value, dialect, exp.cast(_call("EPOCH_US", value), "TEXT"))
    return counted(value, kind, dialect)


def without_zeros(number: exp.Expression, dialect: str) -> exp.Expression:
    """A number with one text: 1 for 1.00 of a decimal, 0 for -0 of a float, nan for -nan."""
    if dialect == "postgres":
        return _call("PG_CATALOG.TRIM_SCALE", number)
    whole = exp.Add(this=number.copy(), expression=exp.Literal.number(0))
    # As FLOAT: a DOUBLE would make one of every float beside it, whose text is another.
    none = exp.cast(exp.Literal.string("nan"), exp.DataType.Type.FLOAT)
    return exp.case().when(_call("ISNAN", number), none).else_(whole)


def _sqlite_person(value: exp.Expression, kind: Kind) -> exp.Expression:
    """A text for any value of SQLite, which keeps 'ann' and 0.5 in a column of integers.

    A cast would make one person of 'ann' and 'bob' there. What the column is for is its own text,
    as on other engines. The rest begins with a character and a type that no such text begins
    with; a whole number is the same person whether it is stored as 1 or as 1.0.
    """
    text = exp.cast(value, exp.DataType.Type.TEXT)
    whole = exp.cast(value.copy(), exp.DataType.Type.BIGINT)
    type_of = _call("TYPEOF", value)
    mark = _call("CHAR", exp.Literal.number(1))

    def is_a(name: str) -> exp.Expression:
        return exp.EQ(this=type_of.copy(), expression=exp.Literal.string(name))

    plain_text = [is_a("text"), exp.NEQ(this=_first(text), expression=mark)]
    if kind == "other":  # '1' beside 1, in a column without a type
        again = exp.cast(exp.cast(text.copy(), exp.DataType.Type.BIGINT), exp.DataType.Type.TEXT)
        plain_text.append(exp.NEQ(this=_BY_CODE_POINT["sqlite"](text.copy()), expression=again))
    plain_number = exp.or_(
        is_a("integer"),
        exp.and_(is_a("real"), exp.EQ(this=value.copy(), expression=whole)),
    )
    exact = (
        exp.case(type_of.copy())
        .when(exp.Literal.string("real"), _call("topsecret_float_hex", value))
        .when(exp.Literal.string("blob"), _call("HEX", value))
        .else_(text.copy())
    )
    number: exp.Expression = exp.cast(whole.copy(), exp.DataType.Type.TEXT)
    if kind == "text":
        number = _joined(mark, exp.Literal.string("integer:"), number)
    cases = exp.case().when(plain_number, number)
    if kind in {"text", "other"}:
        cases = cases.when(exp.and_(*plain_text), text.copy())
    return cases.else_(_joined(mark, type_of, exp.Literal.string(":"), exact))


def exact_text(value: exp.Expression, dialect: str) -> exp.Expression:
    """A text that different values never share: 0.0 and -0.0, 0.3 and the float after it."""
    if dialect != "sqlite":
        return as_text(value, dialect)
    # SQLite writes 15 digits of a float, and keeps floats, texts and bytes in one column.
    type_of = _call("TYPEOF", value)
    exact = (
        exp.case(type_of)
        .when(exp.Literal.string("real"), _call("topsecret_float_hex", value))
        .when(exp.Literal.string("blob"), _call("HEX", value))
        .else_(exp.cast(value.copy(), exp.DataType.Type.TEXT))
    )
    return _BY_CODE_POINT[dialect](exp.paren(_joined(type_of, exact), copy=False))


def _joined(first: exp.Expression, *parts: exp.Expression) -> exp.Expression:
    joined = first.copy()
    for part in parts:
        joined = exp.DPipe(this=joined, expression=part.copy(), safe=False)
    return joined


def _call(function: str, value: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=function, expressions=[value.copy()])


def _first(text: exp.Expression) -> exp.Expression:
    one = exp.Literal.number(1)
    return exp.Anonymous(this="SUBSTR", expressions=[text.copy(), one, one.copy()])


def readable(value: exp.Expression, kind: Kind, dialect: str) -> exp.Expression:
    """An item's value as it is counted, such that different items have different names.

    Spark's text may hold bytes that are not UTF-8, which all look alike once they are read:
    they become U+FFFD before they are counted.
    """
    value = counted(value, kind, dialect)
    if dialect == "spark" and kind in {"text", "other"}:
        return exp.Anonymous(this="MAKE_VALID_UTF8", expressions=[value])
    return value


def digest(text: exp.Expression, dialect: str) -> exp.Expression:
    """The MD5 of the text's UTF-8 bytes as 32 lower-case hexadecimal digits, ordered as such."""
    encoded = _ENCODED.get(dialect, _same)(text)
    named = _HASHES.get(dialect)
    return exp.Anonymous(this=named, expressions=[encoded]) if named else exp.MD5(this=encoded)


def descending(value: exp.Expression, dialect: str) -> exp.Ordered:
    """Largest first. There are no NULLs; said as the engine assumes, so that nothing is added."""
    large = Dialect.get_or_raise(dialect).NULL_ORDERING == "nulls_are_large"
    return exp.Ordered(this=value, desc=True, nulls_first=large)


def ascending(value: exp.Expression, dialect: str) -> exp.Ordered:
    """Smallest first, and said so: DuckDB has a setting for what is not said."""
    small = Dialect.get_or_raise(dialect).NULL_ORDERING == "nulls_are_small"
    return exp.Ordered(this=value, desc=False, nulls_first=small)


def truth_text(value: exp.Expression) -> exp.Expression:
    """The text of a truth value where the engine has none, as others write it."""
    true, false = exp.Literal.string("true"), exp.Literal.string("false")
    return exp.case().when(value.copy(), true).when(exp.not_(value.copy()), false)


def in_case(function: Any, text: exp.Expression, dialect: str) -> exp.Expression:
    """LOWER or UPPER of all letters, not of A to Z alone.

    The collation by which PostgreSQL compares text knows no other letters; SQLite's functions
    know none at all.
    """
    if dialect == "sqlite":
        own = "topsecret_lower" if function is exp.Lower else "topsecret_upper"
        return exp.Anonymous(this=own, expressions=[exp.cast(text, exp.DataType.Type.BLOB)])
    if dialect == "postgres":
        every = exp.Collate(
            this=exp.paren(text), expression=exp.to_identifier(LETTERS, quoted=True)
        )
        return _BY_CODE_POINT[dialect](function(this=every))
    changed: exp.Expression = function(this=text)
    return changed


def unmarked(text: exp.Expression, dialect: str) -> exp.Expression:
    """The text of a person as another engine has it, without the mark in front of it."""
    mark = f"{MARK}text:"
    length = exp.Literal.number(len(mark))
    substring = "SUBSTR" if dialect == "sqlite" else "SUBSTRING"
    start = exp.Anonymous(this=substring, expressions=[text.copy(), exp.Literal.number(1), length])
    rest = exp.Anonymous(
        this=substring, expressions=[text.copy(), exp.Literal.number(len(mark) + 1)]
    )
    is_marked = exp.EQ(this=start, expression=exp.Literal.string(mark))
    return exp.case().when(is_marked, rest).else_(text.copy())


def tries(dialect: str) -> bool:
    """Whether text that is no number can be cast to NULL instead of failing the query."""
    return dialect in _TRIES


def try_cast(value: exp.Expression, to: str) -> exp.Expression:
    """A cast that makes NULL of what cannot be cast; only where ``tries``."""
    return exp.TryCast(this=value, to=exp.DataType.build(to), safe=True)  # for Spark's sake
