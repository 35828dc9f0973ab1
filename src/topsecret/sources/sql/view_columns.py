"""What the columns of a view hold, which may be the person, and what is one for a group."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sqlglot import exp

from topsecret.sources.sql.identifier_case import folded

Sort = str
"""What a column holds: a kind of KINDS, ``float``, ``decimal`` (of any digits), ``any`` (SQLite),
``null``, another type by its engine's name (``type JSON``), or ``other`` where nothing is known.
Types beside KINDS whose equal values are identical begin with EXACT."""

KINDS = {"text", "integer", "boolean", "date", "timestamp"}
"""Kinds that are compared without a cast that fails, and whose equal values are identical."""

EXACT = "exact "
MOMENT = f"{EXACT}time with a zone"

AGGREGATES = (exp.Count, exp.Min, exp.Max)
"""Of one person's rows, in any order: the same value, if equal values are identical."""


Name = tuple[str, ...]
Origins = frozenset[tuple[Name, str]]
"""Tables, and what of their columns a value is: a column by its name, an expression by its hash."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a query."""

    name: str
    """In small letters."""
    sort: Sort
    mixed: str = ""
    """The clause for which it cannot be the person; empty if it can."""
    origins: Origins = frozenset()
    """What it is of which tables: of all that its query reads."""


Columns = tuple[Column, ...]


def is_identical(sort: Sort) -> bool:
    """Whether equal values of this sort are identical: not 0.0 and -0.0, not ``Ann`` and ``ann``.

    >>> is_identical("text"), is_identical("exact UUID"), is_identical("float")
    (True, True, False)
    """
    return sort in KINDS or sort.startswith(EXACT)


def is_sorted(sort: Sort, dialect: str) -> bool:
    """Whether rows can be sorted by such a column without a failure."""
    known = {*KINDS, "float", "decimal", "null"}
    return dialect == "sqlite" or sort in known or sort.startswith((EXACT, "type DECIMAL("))


def merged(one: Sort, other: Sort, dialect: str) -> Sort | None:
    """What a column of a union holds; None where the engine would cast, which may fail.

    >>> merged("text", "null", "duckdb"), merged("date", "timestamp", "duckdb")
    ('text', None)
    """
    both = {one, other} - {"null"}
    if len(both) < 2:
        return None if both == {"other"} and dialect != "sqlite" else next(iter(both), "null")
    if dialect == "sqlite":
        return "other" if "other" in both else "any"
    return "float" if both == {"integer", "float"} else None


def is_same(one: exp.Expression, other: exp.Expression) -> bool:
    """Whether both are one column, however qualified, or the same expression."""
    if isinstance(one, exp.Column) and isinstance(other, exp.Column):
        return folded(one.name) == folded(other.name)
    return one == other


def is_aggregate(node: exp.Expression) -> bool:
    """Whether it is a value of several rows."""
    return isinstance(node, exp.AggFunc) or counts_rows(node)


def is_of_group(part: exp.Expression, keys: Sequence[exp.Expression]) -> bool:
    """Whether a value is the same for a whole group: of its keys, or an aggregate."""
    if is_aggregate(part) or any(is_same(key, part) for key in keys):
        return True
    if isinstance(part, exp.Column | exp.Star):
        return False
    return all(is_of_group(child, keys) for child in part.iter_expressions())


def counts_rows(node: Any) -> bool:
    """DuckDB's own name for COUNT(*)."""
    return isinstance(node, exp.Anonymous) and node.name.upper() == "COUNT_STAR"


def origins_of(node: exp.Expression, columns: Mapping[str, Column]) -> Origins:
    """What an expression over these columns is of the tables that they are of."""
    inner: Any = node.unnest()
    if isinstance(inner, exp.Column):
        return columns[folded(inner.name)].origins
    made: set[tuple[Name, str]] = set()
    for table in {table for one in columns.values() for table, _ in one.origins}:
        copied, several = exp.Paren(this=inner.copy()), False
        for column in list(copied.find_all(exp.Column)):
            origins = columns[folded(column.name)].origins
            held = sorted(what for of, what in origins if of == table)
            several = several or len(held) > 1
            column.replace(exp.column(" or ".join(held), quoted=True))
        written = hashlib.sha256(copied.sql().encode()).hexdigest()
        # One of several values stays one: two sides of a union that differ in it.
        made |= {(table, f"({written}) {place}") for place in range(1 + several)}
    return frozenset(made)


def is_of_several(origins: Origins, kin: Callable[[Name], Collection[Name]]) -> bool:
    """Whether one row of a table may be there for several values, by the sides of a union.

    >>> is_of_several(frozenset({(("m",), "sender"), (("m",), "receiver")}), lambda _: ())
    True
    >>> is_of_several(frozenset({(("m",), "sender"), (("n",), "receiver")}), lambda _: ())
    False
    """
    return any(
        what != another and (_may_be_one(one, other) or other in kin(one))
        for (one, what), (other, another) in combinations(origins, 2)
    )


def _may_be_one(one: Name, other: Name) -> bool:
    """Whether both name one table, with or without its schema."""
    parts = min(len(one), len(other))
    return [*map(folded, one[-parts:])] == [*map(folded, other[-parts:])]
