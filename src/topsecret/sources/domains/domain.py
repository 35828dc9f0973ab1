"""Public domains: all items that may be named, known without looking at the data.

>>> domain_of(["tea", "coffee"])
Listed(2 items, 5c76bfa0c3fe6066d1a9cb4f2d3af6dd)
>>> domain_of(range(10_000))
Interval(range(0, 10000))
>>> domain_of(Column("venues", "id"))
Column(table='venues', columns=('id',))
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topsecret.errors import InvalidParameter
from topsecret.sources.fingerprints import Fingerprint, digest

Value = str | int | bool
FARTHEST = 2**62
"""Numbers of a range keep to ±2⁶², so that differences fit an engine's integers."""


@dataclass(frozen=True, slots=True, repr=False)
class Listed:
    """Items listed by the caller: values, or tuples of values for several columns."""

    items: tuple[Any, ...]

    def __repr__(self) -> str:
        """How many, and a digest that two different lists do not share."""
        told_apart = hashlib.sha256(repr(self.items).encode()).hexdigest()[:32]
        return f"Listed({len(self.items)} items, {told_apart})"

    def fingerprint(self) -> Fingerprint:
        """The list, as short as it identifies it."""
        return {"listed": len(self.items), "digest": digest(self.items)}

    @property
    def described(self) -> str:
        """In words."""
        return f"a list of {len(self.items)} items"


@dataclass(frozen=True, slots=True, repr=False)
class Interval:
    """Whole numbers from one to another, perhaps very many."""

    low: int
    step: int
    size: int

    def __repr__(self) -> str:
        return f"Interval({range(self.low, self.low + self.size * self.step, self.step)!r})"

    def fingerprint(self) -> Fingerprint:
        """The three numbers."""
        return {"low": self.low, "step": self.step, "size": self.size}

    @property
    def described(self) -> str:
        """In words."""
        every = f", every {self.step}th" if self.step > 1 else ""
        return f"the whole numbers from {self.low} to {self.high}{every}"

    @property
    def high(self) -> int:
        """The last number."""
        return self.low + (self.size - 1) * self.step


@dataclass(frozen=True, slots=True, init=False)
class Column:
    """The values of a column of another table of the same database.

    Parameters: ``table``: the table that lists the items; with its schema as a pair; ``column``:
    its column, or several.
    """

    table: str | tuple[str, ...]
    columns: tuple[str, ...]

    def __init__(self, table: str | tuple[str, ...], column: str | tuple[str, ...]) -> None:
        columns = (column,) if isinstance(column, str) else tuple(column)
        if not table or not columns or not all(isinstance(c, str) and c for c in columns):
            raise InvalidParameter(
                f"a domain needs a table and a column; found {table!r} and {column!r}; "
                "write Column('venues', 'id')"
            )
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "columns", columns)

    def fingerprint(self) -> Fingerprint:
        """The table and its columns, whatever they hold."""
        table = [self.table] if isinstance(self.table, str) else list(self.table)
        return {"table": table, "columns": list(self.columns)}

    @property
    def described(self) -> str:
        """In words."""
        name = self.table if isinstance(self.table, str) else ".".join(self.table)
        return f"column {', '.join(self.columns)} of the table {name}"


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A file of items: a text file with one per line, or a column of a file of a known format."""

    path: Path
    """The file."""
    columns: tuple[str, ...] = ()
    """The columns; none for a text file, or to take the item's own column names."""

    def fingerprint(self) -> Fingerprint:
        """The file as it was written last."""
        from topsecret.sources.engines.files import file_version

        path = Path(os.path.abspath(self.path.expanduser()))
        return {"file": str(path), "columns": list(self.columns), "version": file_version(path)}

    @property
    def described(self) -> str:
        """In words."""
        return f"the file {self.path.name}"


Domain = Listed | Interval | Column | FileColumn

DomainLike = Domain | str | os.PathLike[str] | Iterable[Value | tuple[Value, ...] | list[Value]]
"""What a caller may pass as ``domain``: also a range, or the path of a file."""


def domain_of(given: DomainLike) -> Domain:
    """What a caller may pass as ``domain``, checked."""
    if isinstance(given, Listed | Interval | Column | FileColumn):
        return given
    if isinstance(given, range):
        return _interval(given)
    if isinstance(given, str | os.PathLike):
        return FileColumn(Path(given))
    if isinstance(given, Iterable) and not isinstance(given, bytes):
        return _listed(given)
    raise InvalidParameter(
        f"domain must be a list, a range, a file or Column(table, column); "
        f"found a {type(given).__name__}"
    )


def _interval(given: range) -> Interval:
    if not given:
        raise InvalidParameter(f"domain={given!r} must not be empty; widen the range")
    low, high = sorted((given[0], given[-1]))
    step = abs(given.step)
    size = (high - low) // step + 1
    # However few of them are observed, so many unseen ones fit a number of 64 bits, and so does
    # the distance between the first and the last.
    if low < -FARTHEST or high > FARTHEST or high - low == 2 * FARTHEST or size > FARTHEST:
        raise InvalidParameter(
            f"domain={given!r} must keep to ±2**62, one end left out, and to 2**62 numbers; "
            "narrow the range"
        )
    return Interval(low, step, size)


def _listed(given: Iterable[Any]) -> Listed:
    items = tuple(tuple(item) if isinstance(item, list) else item for item in given)
    if not items:
        raise InvalidParameter("domain must not be empty; list the items that may be named")
    kinds = {type(item) for item in items}
    if len(kinds) > 1 or not kinds <= {str, int, bool, tuple}:
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InvalidParameter(
            f"the items of a domain must be all text, all whole numbers or all tuples; "
            f"found {found}"
        )
    if len(set(items)) != len(items):
        raise InvalidParameter("domain must not name an item twice; remove the repetition")
    if any("\0" in item for item in items if isinstance(item, str)):
        raise InvalidParameter("an item of a domain must not hold a NUL character; take it out")
    return Listed(items)
