"""What a database says about itself: tables, their columns, unique columns, views. No row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from sqlglot import exp

from topsecret.sources.source import Columns, Schema
from topsecret.sources.sql.identifier_case import folded


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
    shares_rows: bool = False
    """Whether it is a part of another table, or has parts: their rows are its own."""


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
class SomeColumns:
    """A catalogue whose tables have these columns alone; views are not there."""

    whole: Catalogue
    names: frozenset[str]

    @property
    def dialect(self) -> str:
        """The engine's dialect."""
        return self.whole.dialect

    def table(self, parts: tuple[str, ...]) -> TableEntry | None:
        """The table without its other columns."""
        entry = self.whole.table(parts)
        if entry is None or entry.definition is not None:
            return None
        return replace(entry, schema=_part(entry.schema, self.names))

    def tables(self) -> tuple[str, ...]:
        """The names of all tables."""
        return self.whole.tables()

    def foreign_keys(self) -> list[tuple[str, str, str, str]]:
        """None: they lead to other tables."""
        return []


def _part(schema: Schema, names: frozenset[str]) -> Schema:
    kept = {name: kind for name, kind in schema.items() if name in names}
    if not isinstance(schema, Columns):
        return kept
    marks = {"zeros": schema.zeros, "unclear": schema.unclear, "zoned": schema.zoned}
    return Columns(kept, **marks, marked=schema.marked)


@dataclass(frozen=True, slots=True)
class FixedCatalogue:
    """A catalogue that was read before."""

    dialect: str
    entries: Mapping[str, TableEntry]
    """By the name without its schema, in lower case."""

    def table(self, parts: tuple[str, ...]) -> TableEntry | None:
        """The entry of this name, if the schema agrees where one was given."""
        entry = self.entries.get(folded(parts[-1]))
        if entry is None or len(parts) > len(entry.parts):
            return None
        same = [folded(p) for p in entry.parts[-len(parts) :]] == [folded(p) for p in parts]
        return entry if same else None

    def tables(self) -> tuple[str, ...]:
        """The names of all tables."""
        return tuple(name for name, entry in self.entries.items() if entry.definition is None)

    def foreign_keys(self) -> list[tuple[str, str, str, str]]:
        """None: it was read without them."""
        return []
