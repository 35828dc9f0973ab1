"""The items of a public domain as a table, each once and of the same kind as the events' items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from topsecret.errors import InvalidParameter
from topsecret.sources.domains.domain import Column, FileColumn, Listed
from topsecret.sources.session import Session
from topsecret.sources.source import CountQuery, Kind, Schema
from topsecret.sources.sql.conditions import Expression
from topsecret.sources.sql.dialects import as_text, counted, tries, try_cast
from topsecret.sources.sql.expressions import is_whole
from topsecret.sources.sql.statements import column, item_names, named


def members(session: Session, query: CountQuery, schema: Schema) -> exp.Select:
    """The distinct items of the query's domain."""
    names = item_names(query)
    kinds = [_kind(part, schema) for part in query.item_columns]
    domain = query.domain
    if isinstance(domain, Listed):
        rows = _rows(domain, kinds)
        relation = session.upload(rows, names)
        values = [
            as_text(column(name, "listed"), session.dialect)
            if kind == "text"
            else column(name, "listed")
            for name, kind in zip(names, kinds, strict=True)
        ]
        return _distinct(values, names, relation)
    assert isinstance(domain, Column | FileColumn)
    columns = domain.columns or _own_columns(query)
    if len(columns) != len(names):
        raise InvalidParameter(
            f"the domain has {len(columns)} columns and the item {len(names)}; name as many"
        )
    relation, theirs = session.other(domain, columns)
    values = [
        _matching(column(name, "listed"), theirs[name], kind, name, session.dialect)
        for name, kind in zip(columns, kinds, strict=True)
    ]
    return _distinct(values, names, relation)


def _distinct(
    values: Sequence[exp.Expression], names: Sequence[str], relation: exp.Expression
) -> exp.Select:
    shown = [named(value, name) for value, name in zip(values, names, strict=True)]
    present = [exp.not_(exp.Is(this=value.copy(), expression=exp.null())) for value in values]
    listed: Any = exp.alias_(relation, "listed", table=True, quoted=True)
    return exp.select(*shown).distinct().from_(listed).where(*present)


def _kind(part: str | Expression, schema: Schema) -> Kind:
    """What the item is counted as."""
    if isinstance(part, Expression):
        return "integer" if is_whole(part.tree) else "text"
    kind = schema[part]
    return kind if kind in {"integer", "boolean"} else "text"


def _own_columns(query: CountQuery) -> tuple[str, ...]:
    columns = [part for part in query.item_columns if isinstance(part, str)]
    if len(columns) != len(query.item_columns):
        raise InvalidParameter("the domain of an expression needs its column's name; give it")
    return tuple(columns)


def _matching(
    value: exp.Expression, theirs: Kind, wanted: Kind, name: str, dialect: str
) -> exp.Expression:
    """A column of the domain as the events' items are counted."""
    if wanted == "text":
        return as_text(value, dialect)
    if theirs == wanted:
        return counted(value, theirs, dialect)
    if theirs == "text" and tries(dialect):
        return try_cast(value, "BIGINT" if wanted == "integer" else "BOOLEAN")
    raise InvalidParameter(
        f"column {name!r} of the domain must hold what the item does; its type is another"
    )


_TYPES: dict[Kind, type] = {"text": str, "integer": int, "boolean": bool}


def _rows(domain: Listed, kinds: Sequence[Kind]) -> list[tuple[Any, ...]]:
    rows = [item if isinstance(item, tuple) else (item,) for item in domain.items]
    for row in rows:
        if len(row) != len(kinds):
            raise InvalidParameter(
                f"an item of the domain has {len(row)} parts and the item {len(kinds)} columns; "
                "list one value for each column"
            )
    return [
        tuple(_fitting(value, kind) for value, kind in zip(row, kinds, strict=True)) for row in rows
    ]


def _fitting(value: Any, kind: Kind) -> Any:
    if type(value) is _TYPES[kind]:
        return value
    if kind == "text" and type(value) is int:  # an identifier that the events hold as text
        return str(value)
    raise InvalidParameter(
        f"the items of the domain must be what the column holds ({kind}); "
        f"found a {type(value).__name__}"
    )
