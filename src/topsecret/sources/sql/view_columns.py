"""What the columns of a view hold, and which of them may be the person."""

from __future__ import annotations

from dataclasses import dataclass

Sort = str
"""What a column holds: a kind of KINDS, ``float``, ``decimal`` (of any digits), ``any`` (SQLite),
``null``, another type by its engine's name (``type JSON``), or ``other`` where nothing is known.
Types beside KINDS whose equal values are identical begin with EXACT."""

KINDS = {"text", "integer", "boolean", "date", "timestamp"}
"""Kinds that are compared without a cast that fails, and whose equal values are identical."""

EXACT = "exact "
MOMENT = f"{EXACT}time with a zone"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a query."""

    name: str
    """In small letters."""
    sort: Sort
    mixed: str = ""
    """The clause for which it cannot be the person; empty if it can."""


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
