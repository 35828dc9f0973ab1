"""A relation of the rebuilt tree: its statement, its columns, and whose rows it holds.

Every name in a rebuilt tree is one of ours (``t1``, ``c1``, ``own``); the caller's names are used
to look columns up and for nothing else. So no name that a caller chooses can capture one of ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from sqlglot import exp

from topsecret.sources.sql.dialects import counted, exact_text
from topsecret.sources.sql.operand_types import Sort
from topsecret.sources.sql.statements import column, derived, named, table

OWN = "own"
"""The hidden column: who owns the row. Never NULL."""

PERSON = ("person",)
"""The tag of columns that hold the owner."""

KEYS = {"text", "integer", "boolean", "date", "timestamp"}
"""Kinds whose equal values are identical: these may group, sort and separate rows."""

Tag = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column that a query can name."""

    name: str
    """As the caller calls it; empty for an expression without a name."""
    ident: str
    """In the rebuilt tree."""
    sort: Sort
    tag: Tag | None = None
    """What it identifies: the owner, or the key of a table that others link to."""
    names_person: bool = False
    """Whether it was made from a column that names a person, the owner or another."""
    origin: tuple[str, str] | None = None
    """The public table and its column that it is, unchanged."""

    def at(self, alias: str, dialect: str) -> exp.Expression:
        """Its value in the source of this alias; text always compares by code point."""
        raw = column(self.ident, alias)
        return counted(raw, "text", dialect) if self.sort == "text" else raw

    def identity(self, alias: str, dialect: str) -> exp.Expression:
        """A value that is equal for identical values alone: 0.0 and -0.0 differ."""
        if self.sort in KEYS:
            return self.at(alias, dialect)
        return exact_text(column(self.ident, alias), dialect)


@dataclass(frozen=True, slots=True)
class Linked:
    """A table whose owners are its parent's, before the parent is joined to find them."""

    select: exp.Query
    """Its rows without owners."""
    column: str
    """The linking column."""
    parent: str
    """The parent, as the privacy file calls it."""
    key: str
    """The parent's key."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A statement whose rows each have one owner, or a public one, whose rows are nobody's."""

    select: exp.Query
    columns: tuple[RelationColumn, ...]
    private: bool
    unique: frozenset[str] | None = None
    """Columns that, together with the owner, no two rows share; None where that is not known."""
    shared_keys: bool = False
    """Whether a row of a table may stand several times, once for each of several owners."""

    linked: Linked | None = None
    """Of a table that may take its owners from a parent that the query joins anyway."""

    def renamed(self, names: Iterable[str]) -> Relation:
        """The same columns under other names."""
        changed = [replace(c, name=n) for c, n in zip(self.columns, names, strict=True)]
        return replace(self, columns=tuple(changed))


class Names:
    """Fresh names for the rebuilt tree."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def alias(self) -> str:
        """A new alias of a source."""
        return f"t{next(self._numbers)}"


def projected(
    source: Any, shown: Iterable[tuple[exp.Expression, str]], own: exp.Expression | None
) -> exp.Select:
    """SELECT of these values and, for private rows, of their owner."""
    values = [named(value, ident) for value, ident in shown]
    if own is not None:
        values.append(named(own, OWN))
    if not values:  # a public relation of which no column is read
        values = [named(exp.Literal.number(1), "c1")]
    select: exp.Select = exp.select(*values).from_(source, copy=False)
    return select


def as_source(relation: Relation, alias: str) -> Any:
    """The relation as a table of this alias, for one place: copies take most of the time."""
    return derived(relation.select, alias)  # type: ignore[arg-type]


def owner(alias: str) -> exp.Column:
    """The hidden column of a source."""
    return column(OWN, alias)


def flattened(select: exp.Select) -> exp.Select:
    """The same statement with its derived tables as common table expressions, one after the other.

    SQLite's parser takes few levels of nesting. Derived tables see nothing around them, and their
    names are fresh, so that they mean the same in any place.
    """
    flat = select.copy()
    tables: list[tuple[str, Any]] = []
    for node in reversed(list(flat.find_all(exp.Subquery))):
        if isinstance(node.parent, exp.From | exp.Join) and node.alias:
            tables.append((node.alias, node.this.copy()))
            node.replace(exp.alias_(table(node.alias), node.alias, table=True, quoted=True))
    for alias, query in tables:
        flat = flat.with_(exp.to_identifier(alias, quoted=True), as_=query, copy=False)
    return flat
