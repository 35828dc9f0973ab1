"""What every source offers: the leading counts of distinct people per item.

A source turns a table with one row per event into the first rows of a ranked histogram.
Four rules keep neighbours neighbours, so that one person more or less moves each count by at
most one; every source must keep them:

- *Row by row.* How a row is read depends on that row and on the table's schema, never on other
  rows: no guessed types, delimiters or headers. (A guessed type would merge ``"01"`` and
  ``"1"`` or split them, depending on what one person wrote.)
- *Distinct and exact.* A person counts once per item; rows without person or item are dropped.
- *Capped person by person.* With ``max_items`` each person keeps at most that many items, chosen
  by a function of the salt and that person's own items, whatever the others have.
- *Ranked by public rules.* Largest count first, equal counts by the item's own order (text by
  code point, numbers by value), never by input order.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

from topsecret.errors import InvalidParameter
from topsecret.sources.domains.domain import Domain, Value
from topsecret.sources.fingerprints import Fingerprint
from topsecret.sources.measures import Measure
from topsecret.sources.sql.conditions import Condition, Expression, Where, conditions

Item = Value | tuple[Value, ...]
"""Items are text, integers or booleans, or tuples of these when several columns name the item; a
column of another type is counted under its text."""

LeadingCounts = list[tuple[Item, int]]
"""Ranked rows of (item, count of distinct people). Secret: a mechanism must stand in between."""

Kind = Literal["text", "integer", "boolean", "date", "timestamp", "float", "decimal", "other"]
"""What a column holds: all but text, integers and booleans are counted under their text, and
"other" is compared as text, too."""

Schema = Mapping[str, Kind]
"""The columns of a table. Public."""


class Columns(dict[str, Kind]):
    """A schema that knows which columns hold equal values with different texts, or the reverse.

    A person is known by the text of a value: two texts for one value would make two people of one
    person, and one text for two values one person of two.
    """

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        *,
        zeros: Iterable[str] = (),
        unclear: Iterable[str] = (),
        zoned: Iterable[str] = (),
        marked: Iterable[str] = (),
    ) -> None:
        super().__init__(kinds)
        self.zeros = frozenset(zeros)
        """Numbers that differ in zeros alone (1.0 and 1.00, 0 and -0), which can be removed."""
        self.unclear = frozenset(unclear)
        """Others: intervals (1 month and 30 days), unions and lists (1 and "1")."""
        self.zoned = frozenset(zoned)
        """Times that are moments: the engine knows their distance from UTC."""
        self.marked = frozenset(marked)
        """Texts where values of other types are told from text by a mark (``dialects.MARK``)."""

    @classmethod
    def marking(cls, schema: Schema, kind: Kind) -> Columns:
        """The same schema, with the columns of one kind marked."""
        assert isinstance(schema, cls)
        return cls(
            schema,
            zeros=schema.zeros,
            unclear=schema.unclear,
            zoned=schema.zoned,
            marked={name for name, held in schema.items() if held == kind},
        )


SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """One of several public groups of rows, with each person kept in one of them alone.

    A person with rows in several groups stays in one of them, chosen by the salt and that person
    alone (``sql.groups``); so one person more or less changes the counts of one group only.
    """

    column: str
    """The column whose values are the groups."""
    groups: tuple[Value, ...]
    """All of them."""
    group: Value
    """The one that is asked about."""


@dataclass(frozen=True, slots=True)
class CountQuery:
    """Which column names the item, which the person, and how many leading rows are wanted.

    >>> CountQuery(item="place", person="user", rows=201)
    CountQuery(item='place', person='user', rows=201)

    Parameters: ``item``: the column to rank, several, or an expression; ``person``: the column
    that identifies each person; ``rows``: how many leading rows are wanted; ``where``: conditions,
    all of which a row must meet; ``max_items``: how many items of each person are kept, chosen by
    a hash of salt, person and item; ``domain``: the public list of items that may be named; others
    are left out before anything is chosen or counted; ``home``: one group of rows, each person
    being in one group only; ``salt``: the secret of the hash; fresh from the operating system
    unless given; ``measure``: clipped rows or sums; None for distinct people; ``kept``: whether
    several statements will ask for the counts, so that an engine that reads alone otherwise may
    keep them in a temporary table.

    *Guarantee.* Neighbours stay neighbours whatever the salt, since each person's choice depends
    on nobody else. That it is secret and not drawn from the data keeps the choice fair: nobody
    can name items so that theirs are kept.
    """

    item: str | tuple[str, ...] | Expression
    person: str
    rows: int
    where: Where = ()
    max_items: int | None = None
    domain: Domain | None = None
    home: GroupAssignment | None = None
    salt: bytes = field(default=b"", repr=False, compare=False)
    measure: Measure | None = None
    kept: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.item, list):
            object.__setattr__(self, "item", tuple(self.item))
        if not isinstance(self.person, str) or not self.person:
            raise InvalidParameter(
                f"person={self.person!r} must be the name of a column; pass person='...'"
            )
        _check_item(self.item, self.person)
        object.__setattr__(self, "where", conditions(self.where) if self.where else ())
        _check_cap(self.max_items)
        if not self.salt:
            object.__setattr__(self, "salt", secrets.token_bytes(SALT_BYTES))
        if not isinstance(self.salt, bytes) or len(self.salt) != SALT_BYTES:
            raise InvalidParameter(f"salt must be {SALT_BYTES} bytes; use secrets.token_bytes(16)")

    def __repr__(self) -> str:
        """The question without its salt: what was left at its default is left out."""
        shown = [f"item={self.item!r}, person={self.person!r}, rows={self.rows}"]
        if self.where:
            shown.append(f"where={self.where!r}")
        if self.max_items is not None:
            shown.append(f"max_items={self.max_items}")
        if self.domain is not None:
            shown.append(f"domain={self.domain!r}")
        if self.home is not None:
            shown.append(f"home={self.home!r}")
        if self.measure is not None:
            shown.append(f"measure={self.measure!r}")
        return f"CountQuery({', '.join(shown)})"

    def fingerprint(self) -> Fingerprint:
        """What is counted of whom; how many rows are looked at is a matter of the mechanism."""
        named = [
            part.fingerprint() if isinstance(part, Expression) else part
            for part in self.item_columns
        ]
        measured = {} if self.measure is None else {"measure": self.measure.fingerprint()}
        return {
            "item": named if isinstance(self.item, tuple) else named[0],
            "person": self.person,
            "where": [one.fingerprint() for one in self.where],
            "max_items": self.max_items,
            "domain": None if self.domain is None else self.domain.fingerprint(),
            **measured,
        }

    @property
    def item_columns(self) -> tuple[str | Expression, ...]:
        """What names the item: one column, several, or an expression."""
        return self.item if isinstance(self.item, tuple) else (self.item,)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read, each once: items', person's, conditions', the measure's."""
        wanted: list[str] = []
        for part in self.item_columns:
            wanted += part.columns if isinstance(part, Expression) else (part,)
        wanted.append(self.person)
        for one in self.where:
            wanted += one.columns if isinstance(one, Expression) else (one.column,)
        if self.home is not None:
            wanted.append(self.home.column)
        if self.measure is not None and self.measure.column is not None:
            wanted.append(self.measure.column)
        return tuple(dict.fromkeys(wanted))

    def only(self, *more: Condition | Expression) -> CountQuery:
        """The same question about fewer rows, with the same salt."""
        return replace(self, where=(*self.where, *more))

    def items(self, rows: Sequence[Sequence[Any]]) -> LeadingCounts:
        """An engine's rows (item, …, count) as pairs; several columns become one tuple."""
        if isinstance(self.item, tuple):
            return [(tuple(row[:-1]), int(row[-1])) for row in rows]
        return [(row[0], int(row[1])) for row in rows]


@runtime_checkable
class Source(Protocol):
    """Anything that can rank items by their number of distinct people."""

    @property
    def name(self) -> str:
        """What the receipt calls this source. Public."""
        ...

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        """The first ``query.rows`` rows of the ranked counts, fewer when there are fewer items."""
        ...


@runtime_checkable
class Fingerprinted(Protocol):
    """A source that a ledger can recognise."""

    def fingerprint(self) -> Fingerprint:
        """Where the data are and, under ``version``, when they were written; None if unknown."""
        ...


def source_fingerprint(source: Source, version: str | None = None) -> tuple[Fingerprint, bool]:
    """What tells the source's data from others', and whether it does.

    Data frames and open connections have no name that lasts: two of them may have equal
    fingerprints and different rows, unless the caller says which ``version`` of the data it is.
    """
    if isinstance(source, Fingerprinted):
        known = source.fingerprint()
    else:
        known = {"kind": type(source).__name__, "name": source.name}
        known["version"] = getattr(source, "version", None)
    if version is not None:
        known = known | {"version": version}
    return known, known["version"] is not None


def _check_item(item: object, person: str) -> None:
    parts = item if isinstance(item, tuple) else (item,)
    if not parts:
        raise InvalidParameter("item=() must name a column; pass item='...'")
    for part in parts:
        if isinstance(part, Expression):
            continue
        if not isinstance(part, str) or not part:
            raise InvalidParameter(f"item={part!r} must be the name of a column; pass item='...'")
        if part.casefold() == person.casefold():
            raise InvalidParameter(
                f"item={part!r} and person={person!r} must be two different columns; "
                "person names who is protected, item what is counted"
            )
    if len(set(parts)) != len(parts):
        raise InvalidParameter(f"item={item!r} must not name a column twice; leave one out")


def _check_cap(max_items: object) -> None:
    if max_items is None:
        return
    if isinstance(max_items, bool) or not isinstance(max_items, int) or max_items < 1:
        raise InvalidParameter(
            f"max_items={max_items!r} must be a whole number of at least 1; "
            "raise it or leave it out"
        )
