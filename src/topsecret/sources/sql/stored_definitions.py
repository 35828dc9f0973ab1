"""What a database's catalogue says of a name: a table with its columns, or the SELECT of a view."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from topsecret.sources.sql import loaded_dialects  # noqa: F401
from topsecret.sources.sql.view_columns import Name, Sort

COMPUTED = "a generated column"
"""One that is computed when it is read, which a row may make fail: one that was there before the
column (SQLite), that was changed (DuckDB), or any (PostgreSQL 18)."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What a database's catalogue says of a name."""

    name: Name
    definition: str | exp.Expression | None = None
    """The SELECT of a view; None for a table."""
    refused: str = ""
    """Why it cannot be analysed, such as "a foreign table"; empty for tables and views."""
    columns: tuple[tuple[str, Sort], ...] = ()
    """The columns of a table in their order, and what they hold."""


class Catalogue(Protocol):
    """Where names are looked up: the schema of a database, and no row."""

    def find(self, name: Name, inside: Stored | None) -> Stored | None:
        """The table or view that this name means, perhaps within the definition of a view."""
        ...

    def kin(self, name: Name) -> Collection[Name]:
        """Other tables that have rows of this one."""
        ...


def parsed_view(one: Stored, dialect: str) -> Any:
    """The SELECT of a view, also out of a CREATE VIEW; None if it cannot be read."""
    tree: Any = one.definition
    if isinstance(tree, str):
        try:
            tree = sqlglot.parse_one(tree, read=dialect)
        except (SqlglotError, RecursionError):
            return None
    if isinstance(tree, exp.Create):
        # CREATE VIEW v (a, b) renames columns: then nobody knows which one is the person's.
        tree = tree.expression if isinstance(tree.this, exp.Table) else None
    return tree if isinstance(tree, exp.Query) else None


def is_plain_name(node: exp.Table) -> bool:
    """Whether a source is a name and no function."""
    return all(isinstance(part, exp.Identifier) for part in node.parts) and bool(node.parts)


def name_of(node: exp.Table) -> Name:
    """The parts of a table's name."""
    return tuple(part.name for part in node.parts)
