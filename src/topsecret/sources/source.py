"""What every source offers: the leading counts of distinct persons per item.

A source turns a table with one row per event into the first rows of a ranked histogram.
Three rules keep neighbours neighbours, so that one person more or less moves each count by at
most one; every source must keep them:

- *Row by row.* How a row is read depends on that row and on the file's format, never on other
  rows: no guessed types, delimiters or headers. (A guessed type would merge ``"01"`` and
  ``"1"`` or split them, depending on what one person wrote.)
- *Distinct and exact.* A person counts once per item; rows without person or item are dropped.
- *Ranked by public rules.* Largest count first, equal counts by the item's own order (text by
  code point, numbers by value), never by input order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from topsecret.errors import InvalidParameter

Item = str | int | bool
"""Items are text, integers or booleans; a column of another type is counted under its text."""

LeadingCounts = list[tuple[Item, int]]
"""Ranked rows of (item, count of distinct persons). Secret: a mechanism must stand in between."""


@dataclass(frozen=True, slots=True)
class CountQuery:
    """Which column names the item, which the person, and how many leading rows are wanted.

    >>> CountQuery(item="place", person="user", rows=201)
    CountQuery(item='place', person='user', rows=201)
    """

    item: str
    person: str
    rows: int

    def __post_init__(self) -> None:
        for role, column in (("item", self.item), ("person", self.person)):
            if not isinstance(column, str) or not column:
                raise InvalidParameter(
                    f"{role}={column!r} must be the name of a column; pass {role}='...'"
                )
        if self.item.casefold() == self.person.casefold():
            raise InvalidParameter(
                f"item={self.item!r} and person={self.person!r} must be two different columns; "
                "person names who is protected, item what is counted"
            )


@runtime_checkable
class Source(Protocol):
    """Anything that can rank items by their number of distinct persons."""

    @property
    def name(self) -> str:
        """What the receipt calls this source. Public."""
        ...

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        """The first ``query.rows`` rows of the ranked counts, fewer when there are fewer items."""
        ...
