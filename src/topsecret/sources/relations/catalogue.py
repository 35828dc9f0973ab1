"""What a database says about itself: tables, their columns, unique columns, views. No row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from topsecret.sources.source import Schema


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table or a view of the database."""

    parts: tuple[str, ...]
    """Its whole name, the schema first."""
    schema: Schema
    unique: frozenset[str] = frozenset()
    """Columns that are unique by themselves, kept so by the engine for every row of the table."""
    definition: str | None = None
    """The text of a view; None for a table."""
    relation: exp.Expression | None = None
    """What to select from where a name is not enough, such as a file."""
    refused: str | None = None
    """Why it cannot be read, such as row-level security; None if it can."""


class Catalogue(Protocol):
    """The tables of one database."""

    @property
    def dialect(self) -> str:
        """The engine's dialect, by sqlglot's name."""
        ...

    def table(self, parts: tuple[str, ...]) -> TableEntry | None:
        """The table or view that the engine itself would read under this name."""
        ...

    def tables(self) -> tuple[str, ...]:
        """The names of all tables, without views."""
        ...

    def foreign_keys(self) -> list[tuple[str, str, str, str]]:
        """(table, column, parent, key) of every foreign key of one column."""
        ...


@dataclass(frozen=True, slots=True)
class FixedCatalogue:
    """A catalogue that was read before."""

    dialect: str
    entries: Mapping[str, TableEntry]
    """By the name without its schema, in lower case."""

    def table(self, parts: tuple[str, ...]) -> TableEntry | None:
        """The entry of this name, if the schema agrees where one was given."""
        entry = self.entries.get(parts[-1].casefold())
        if entry is None or len(parts) > len(entry.parts):
            return None
        same = [p.casefold() for p in entry.parts[-len(parts) :]] == [p.casefold() for p in parts]
        return entry if same else None

    def tables(self) -> tuple[str, ...]:
        """The names of all tables."""
        return tuple(name for name, entry in self.entries.items() if entry.definition is None)

    def foreign_keys(self) -> list[tuple[str, str, str, str]]:
        """None: it was read without them."""
        return []
