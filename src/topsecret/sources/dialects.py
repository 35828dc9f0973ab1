"""What differs between engines, in one place: text, its order, its hash.

Counting needs four things of an engine to be the same everywhere: the text of a value, equality
of text by its code points, the order of text by its code points, and a hash. sqlglot knows the
spelling of the functions; what it cannot know (collations, encodings) is here.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import Dialect, exp

from topsecret.errors import InvalidParameter
from topsecret.sources.source import Kind

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
        this="CONVERT_TO", expressions=[text, exp.Literal.string("UTF8")]
    ),
    "mysql": _utf8mb4,
    "trino": lambda text: exp.Anonymous(this="TO_UTF8", expressions=[text]),
}
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
    if kind == "integer":
        # SQLite keeps whatever was written: a cast makes one kind of it, row by row.
        return exp.cast(value, exp.DataType.Type.BIGINT) if dialect == "sqlite" else value
    if kind == "boolean":
        return value
    if kind == "text" and dialect == "duckdb":
        return _BY_CODE_POINT[dialect](value)
    return as_text(value, dialect)


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
    return exp.MD5(this=_ENCODED.get(dialect, _same)(text))


def descending(value: exp.Expression, dialect: str) -> exp.Ordered:
    """Largest first. There are no NULLs; said as the engine assumes, so that nothing is added."""
    large = Dialect.get_or_raise(dialect).NULL_ORDERING == "nulls_are_large"
    return exp.Ordered(this=value, desc=True, nulls_first=large)


def tries(dialect: str) -> bool:
    """Whether text that is no number can be cast to NULL instead of failing the query."""
    return dialect in _TRIES


def try_cast(value: exp.Expression, to: str) -> exp.Expression:
    """A cast that makes NULL of what cannot be cast; only where ``tries``."""
    return exp.TryCast(this=value, to=exp.DataType.build(to), safe=True)  # for Spark's sake
