"""The tables and views of a DuckDB connection, as names in statements and in views mean them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Protocol

import duckdb

from topsecret.errors import DataIndependentFailure
from topsecret.sources.engines.table_names import TWO_NAMES, are_apart
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.stored_definitions import COMPUTED, Stored
from topsecret.sources.sql.view_columns import EXACT, MOMENT, Name, Sort

OWN = "duckdb"
"""The type of databases whose tables are DuckDB's own: of others a table may be a view."""


SORTS: dict[str, Sort] = {
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), "integer"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER"), "integer"),
    **{name: f"{EXACT}{name}" for name in ("UBIGINT", "HUGEINT", "UHUGEINT", "UUID")},
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP WITH TIME ZONE": MOMENT,
    "FLOAT": "float",
    "DOUBLE": "float",
}
"""What columns of a view's tables hold: whole numbers are those of 64 bits with a sign."""


FUNCTIONS = (
    "SELECT function_name, CAST(parameter_types AS VARCHAR), internal FROM duckdb_functions()"
)
"""Read without a function, which might be the caller's."""


class Asks(Protocol):
    """A session that reads the catalogue."""

    def ask(self, sql: str, values: list[Any]) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        ...


class DuckCatalogue:
    """The catalogue of one moment."""

    def __init__(self, session: Asks) -> None:
        databases = session.ask("SELECT database_name, type, path FROM duckdb_databases()", [])
        types = {name: kind for name, kind, _ in databases}
        if not are_apart([path for *_, path in databases]):
            raise DataIndependentFailure(TWO_NAMES)
        held: dict[Name, list[tuple[str, str]]] = {}
        for *name, column, type_name in session.ask(
            "SELECT database_name, schema_name, table_name, column_name, data_type "
            "FROM duckdb_columns() WHERE NOT internal ORDER BY column_index ASC NULLS LAST",
            [],
        ):
            held.setdefault(tuple(name), []).append((column, type_name))
        self._stored = []
        for *parts, sql in session.ask(
            "SELECT database_name, schema_name, table_name, sql FROM duckdb_tables()", []
        ):
            full = tuple(parts)
            refused = "" if types.get(full[0]) == OWN else "its database"
            if "generated always" in folded(str(sql)):
                refused = refused or COMPUTED
            columns = _columns(held.get(full, ()), "collate" in folded(str(sql)))
            self._stored.append(Stored(full, None, refused, columns))
        own = own_functions(session.ask(FUNCTIONS, []))
        self._stored += [
            Stored(tuple(name), sql, "a macro" if own & _words(sql) else "")
            for *name, sql in session.ask(
                "SELECT database_name, schema_name, view_name, sql FROM duckdb_views()", []
            )
        ]
        here = session.ask("SELECT current_database(), current_schema()", [])[0]
        self._here: Name = tuple(map(str, here))
        self._replaced = replaced_functions(own)

    def check_functions(self) -> None:
        """Nobody has given a function of DuckDB another meaning."""
        if self._replaced:
            raise DataIndependentFailure(
                f"the database has a macro or function {self._replaced[0]!r} in the place of "
                "DuckDB's own; drop or rename it"
            )

    def find(self, name: Name, inside: Stored | None) -> Stored | None:
        """The table or view; the temporary ones first, then where the view or the session is."""
        wanted = tuple(folded(part) for part in name)
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

    def kin(self, name: Name) -> set[Name]:
        """A row is in one table."""
        return set()


def own_functions(rows: Iterable[tuple[Any, ...]]) -> set[str]:
    """The names of functions, by ``FUNCTIONS``, that did not come with DuckDB.

    Those of Python are called internal, too, and one for other types may have a known name.
    """
    return {
        str(name).lower()
        for name, types, internal in rows
        if not internal or (str(name).lower(), str(types)) not in _functions()
    }


def replaced_functions(own: set[str]) -> list[str]:
    """Those of them that are called where DuckDB's are meant."""
    return sorted(own & {name for name, _ in _functions()})


@cache
def _functions() -> frozenset[tuple[str, str]]:
    """The functions that DuckDB comes with, and the types that they take."""
    with duckdb.connect() as fresh:
        # A cursor draws no progress bar, wherever this runs.
        rows = fresh.cursor().execute(FUNCTIONS).fetchall()
    return frozenset((str(name).lower(), str(types)) for name, types, _ in rows)


def _columns(held: Iterable[tuple[str, str]], collated: bool) -> tuple[tuple[str, Sort], ...]:
    """The columns of a table; which of them has the collation is not looked for."""
    sorts = SORTS | ({"VARCHAR": "type VARCHAR COLLATE"} if collated else {})
    return tuple((name, sorts.get(kind, f"type {kind}")) for name, kind in held)


def _is_meant(wanted: Sequence[str], name: Name) -> bool:
    """Whether a name, perhaps of fewer parts, may mean this one: "a.b" is schema or database."""
    if len(wanted) == 2:
        return wanted == name[1:] or tuple(wanted) == (name[0], name[2])
    return tuple(wanted) == name[-len(wanted) :]


def _folded(name: Name) -> Name:
    return tuple(folded(part) for part in name)


def _words(sql: str) -> set[str]:
    """What may be a function's name in a definition: a macro may read any table."""
    return {word.lower() for pair in re.findall(r'"((?:[^"]|"")*)"|(\w+)', sql) for word in pair}
