"""The tables and views of a DuckDB connection, as names in statements and in views mean them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from topsecret.errors import DataIndependentFailure
from topsecret.sources.engines.duckdb import kinds
from topsecret.sources.sql.relations import Name, Stored

OWN = "duckdb"
"""The type of databases whose tables are DuckDB's own: of others a table may be a view."""


IDENTICAL = re.compile(r"VARCHAR|BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|DATE|TIMESTAMP|UUID")
"""Types whose equal values are identical, without a collation."""


class Asks(Protocol):
    """A session that reads the catalogue."""

    def ask(self, sql: str, values: list[Any]) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        ...


class DuckCatalogue:
    """The catalogue of one moment. ``frames`` are names of tables in memory that are no views."""

    def __init__(self, session: Asks, frames: Iterable[str] = ()) -> None:
        self._frames = set(frames)
        types = dict(session.ask("SELECT database_name, type FROM duckdb_databases()", []))
        columns: dict[Name, set[str]] = {}
        held: dict[Name, dict[str, str]] = {}
        for *name, column, type_name in session.ask(
            "SELECT database_name, schema_name, table_name, column_name, data_type "
            "FROM duckdb_columns() WHERE NOT internal",
            [],
        ):
            held.setdefault(tuple(name), {})[column.casefold()] = type_name
            if IDENTICAL.fullmatch(type_name):
                columns.setdefault(tuple(name), set()).add(column.casefold())
        self._stored = []
        for *parts, sql in session.ask(
            "SELECT database_name, schema_name, table_name, sql FROM duckdb_tables()", []
        ):
            full = tuple(parts)
            collated = "collate" in str(sql).casefold()
            identical = frozenset() if collated else frozenset(columns.get(full, ()))
            refused = "" if types.get(full[0]) == OWN else "its database"
            sorts = kinds(held.get(full, {}))
            self._stored.append(Stored(full, None, refused, identical, sorts))
        self._stored += [
            Stored(tuple(name), None, sorts=kinds(held.get(tuple(name), {})))
            if name[-1] in self._frames
            else Stored(tuple(name), sql)
            for *name, sql in session.ask(
                "SELECT database_name, schema_name, view_name, sql FROM duckdb_views()", []
            )
        ]
        here = session.ask("SELECT current_database(), current_schema()", [])[0]
        self._here: Name = tuple(map(str, here))
        macros = session.ask(
            "SELECT function_name FROM duckdb_functions() GROUP BY ALL "
            "HAVING bool_or(internal) AND NOT bool_and(internal)",
            [],
        )
        self._macros = sorted(str(name) for (name,) in macros)

    def check_functions(self) -> None:
        """Nobody has given a function of DuckDB another meaning."""
        if self._macros:
            raise DataIndependentFailure(
                f"the database has a macro {self._macros[0]!r} in the place of DuckDB's own "
                "function; drop or rename it"
            )

    def find(self, name: Name, inside: Stored | None) -> Stored | None:
        """The table or view; the temporary ones first, then where the view or the session is."""
        wanted = tuple(part.casefold() for part in name)
        found = [one for one in self._stored if _is_meant(wanted, _folded(one.name))]
        if len(found) <= 1:
            return found[0] if found else None
        temporary = [one for one in found if one.name[0] == "temp"]
        if temporary and inside is not None:
            return None  # versions of DuckDB differ in which one a view means
        place = self._here if inside is None or len(inside.name) < 3 else inside.name[:2]
        if len(name) == 1:
            ordered = [("temp", "main"), place, (place[0], "main")]
            return next((o for p in ordered for o in found if o.name[:2] == p), None)
        same = [one for one in found if one.name[0] == place[0]]
        return same[0] if len(same) == 1 else None


def _is_meant(wanted: Sequence[str], name: Name) -> bool:
    """Whether a name, perhaps of fewer parts, may mean this one: "a.b" is schema or database."""
    if len(wanted) == 2:
        return wanted == name[1:] or tuple(wanted) == (name[0], name[2])
    return tuple(wanted) == name[-len(wanted) :]


def _folded(name: Name) -> Name:
    return tuple(part.casefold() for part in name)
