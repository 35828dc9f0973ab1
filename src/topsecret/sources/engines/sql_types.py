"""What columns of SQLAlchemy's types hold, and which of them can identify people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import types

from topsecret.sources.source import Columns, Kind

OTHER_KINDS: tuple[tuple[Any, Kind], ...] = (
    (types.DateTime, "timestamp"),
    (types.Date, "date"),
    (types.Float, "float"),
    (types.Numeric, "decimal"),
)


CANONICAL = (
    types.Integer,
    types.Boolean,
    types.String,  # compared by code point, whatever the collation
    types.Enum,
    types.Uuid,
    types.Date,
    types.DateTime,
    types.Time,
    types.LargeBinary,
)
"""Types whose equal values have equal texts."""


def columns_of(held: Mapping[str, Any], dialect: str) -> Columns:
    """What columns of these SQLAlchemy types hold.

    SQLite is left out: there a column's type does not say what it holds, and ``person`` does
    not need to know.
    """
    zeros: set[str] = set()
    unclear: set[str] = set()
    zoned: set[str] = set()
    for name, given in held.items():
        type_ = getattr(given, "data_type", given)  # a domain of PostgreSQL
        if isinstance(type_, types.DateTime) and type_.timezone:
            zoned.add(name)
        if dialect == "postgres" and isinstance(type_, types.Numeric):
            (unclear if isinstance(type_, types.Float) else zeros).add(name)
        elif dialect == "postgres" and not isinstance(type_, CANONICAL):
            unclear.add(name)
    return Columns(
        {name: kind_of(type_) for name, type_ in held.items()},
        zeros=zeros,
        unclear=unclear,
        zoned=zoned,
    )


def kind_of(type_: Any) -> Kind:
    """What a column of this SQLAlchemy type holds."""
    if isinstance(type_, types.Boolean):
        return "boolean"
    if isinstance(type_, types.Integer):
        return "integer"
    if isinstance(type_, types.Enum):
        return "other"
    for parent, kind in OTHER_KINDS:
        if isinstance(type_, parent):
            return kind
    return "text" if isinstance(type_, types.String) else "other"
