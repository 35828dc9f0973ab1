"""Catalogues of real databases, read without any row: DuckDB, PostgreSQL, SQLite.

What could change the meaning of a statement behind our back is refused here: functions of users
that have the name of one of the engine's own, row-level security, tables that others inherit from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy
import sqlglot
from sqlalchemy import Connection, exc
from sqlglot import exp
from sqlglot.errors import SqlglotError

from topsecret.errors import DataIndependentFailure
from topsecret.sources.engines.duckdb_catalogue import (
    FUNCTIONS,
    own_functions,
    replaced_functions,
)
from topsecret.sources.engines.duckdb_types import kinds, may_lack_a_text
from topsecret.sources.engines.sql_catalogues import OWN_CAST, SqliteCatalogue, has_own_cast
from topsecret.sources.engines.sql_types import columns_of
from topsecret.sources.relations.catalogue import TableEntry
from topsecret.sources.relations.refusal import QueryRefused
from topsecret.sources.sql import loaded_dialects  # noqa: F401
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.stored_definitions import COMPUTED

Described = tuple[frozenset[str], str | None, str | None, bool]
"""Columns that are unique, a view's text, why it is refused, whether it shares rows."""
Ask = Callable[[str, list[Any]], list[tuple[Any, ...]]]
"""Runs a statement with its values."""

COLUMNS = (
    "SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns() "
    "WHERE database_name = ? AND NOT internal ORDER BY column_index ASC NULLS LAST"
)
FOREIGN_DATABASE = "SELECT 1 FROM duckdb_databases() WHERE database_name = ? AND type <> 'duckdb'"
GENERATED = (
    "SELECT schema_name, table_name FROM duckdb_tables() "
    "WHERE database_name = ? AND contains(lower(sql), 'generated always')"
)
VIEWS = "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE database_name = ?"
UNIQUE = (
    "SELECT schema_name, table_name, constraint_column_names FROM duckdb_constraints() "
    "WHERE database_name = ? AND constraint_type IN ('PRIMARY KEY', 'UNIQUE')"
)
FOREIGN = (
    "SELECT table_name, constraint_column_names, referenced_table, referenced_column_names "
    "FROM duckdb_constraints() WHERE database_name = ? AND constraint_type = 'FOREIGN KEY'"
)
POSTGRES_TABLE = """
SELECT c.relkind::text, c.relrowsecurity, c.relhassubclass,
       EXISTS (SELECT 1 FROM pg_catalog.pg_partition_tree(c.oid) p
               JOIN pg_catalog.pg_class q ON q.oid = p.relid WHERE q.relkind = 'f'),
       CASE WHEN c.relkind IN ('v', 'm') THEN pg_catalog.pg_get_viewdef(c.oid) END,
       ARRAY(SELECT a.attname::text FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a
             ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
             WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
             AND i.indexprs IS NULL AND i.indnkeyatts = 1),
       EXISTS (SELECT 1 FROM pg_catalog.pg_attribute a
               WHERE a.attrelid = c.oid AND a.attgenerated = 'v'),
       EXISTS (SELECT 1 FROM pg_catalog.pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent))
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relname = %(table)s
"""
SECURED = "has row-level security, which decides by the user whose rows are seen"
INHERITED = "has tables that inherit from it, so that its keys are not unique"


@dataclass(slots=True)
class DuckCatalogue:
    """The tables and views of one database of a DuckDB connection."""

    ask: Ask
    database: str
    default_schema: str
    entries: dict[tuple[str, str], TableEntry] = field(init=False)
    dialect: str = "duckdb"

    def __post_init__(self) -> None:
        if replaced_functions(own_functions(self.ask(FUNCTIONS, []))):
            raise QueryRefused(
                "macro",
                "the database defines functions that have the names of DuckDB's own; drop or "
                "rename them",
            )
        if self.ask(FOREIGN_DATABASE, [self.database]):
            raise QueryRefused(
                "database",
                "the tables are another engine's, and what DuckDB shows as a table may be a view "
                "there; pass the address of that database",
            )
        types: dict[tuple[str, str], dict[str, str]] = {}
        for schema, table, column, type_name in self.ask(COLUMNS, [self.database]):
            if may_lack_a_text(type_name):
                continue  # a query that reads it is refused
            types.setdefault((schema, table), {})[column] = type_name
        views = {(s, v): text for s, v, text in self.ask(VIEWS, [self.database])}
        unique: dict[tuple[str, str], set[str]] = {}
        for schema, table, columns in self.ask(UNIQUE, [self.database]):
            if len(columns) == 1:
                unique.setdefault((schema, table), set()).add(columns[0])
        computed = {(schema, name) for schema, name in self.ask(GENERATED, [self.database])}
        self.entries = {
            key: TableEntry(
                (self.database, *key),
                kinds(held),
                frozenset(unique.get(key, ())),
                definition(views[key], "duckdb") if key in views else None,
                refused=f"has {COMPUTED}" if key in computed else None,
            )
            for key, held in types.items()
        }

    def table(self, parts: tuple[str, ...]) -> TableEntry | None:
        """The table of this name, in the connection's schema unless another is named."""
        if len(parts) > 2 and folded(parts[-3]) != folded(self.database):
            return None
        schema = parts[-2] if len(parts) > 1 else self.default_schema
        wanted = folded(schema), folded(parts[-1])
        for (held_schema, held), entry in self.entries.items():
            if (folded(held_schema), folded(held)) == wanted:
                return entry
        return None

    def tables(self) -> tuple[str, ...]:
        """The tables of the connection's schema, others with theirs."""
        return tuple(
            name if schema == self.default_schema else f"{schema}.{name}"
            for (schema, name), entry in self.entries.items()
            if entry.definition is None
        )

    def foreign_keys(self) -> list[tuple[str, str, str, str]]:
        """Of one column each."""
        return [
            (table, columns[0], parent, keys[0])
            for table, columns, parent, keys in self.ask(FOREIGN, [self.database])
            if len(columns) == 1
        ]


@dataclass(slots=True)
class SqlCatalogue:
    """The tables and views of a PostgreSQL or SQLite database."""

    connection: Connection
    dialect: str
    known: dict[tuple[str, ...], TableEntry | None] = field(default_factory=dict)

    def table(self, parts: tuple[str, ...]) -> TableEntry | None:
        """The table of this name, in the user's default schema unless another is named."""
        if len(parts) > 2:
            return None
        if parts not in self.known:
            self.known[parts] = self._table(parts)
        return self.known[parts]

    def _table(self, parts: tuple[str, ...]) -> TableEntry | None:
        try:
            inspector = sqlalchemy.inspect(self.connection)
            schema = str(parts[0] if len(parts) > 1 else inspector.default_schema_name or "main")
            system = schema == "information_schema" or schema.startswith("pg_")
            if system or schema not in inspector.get_schema_names():
                return None
            names = [*inspector.get_table_names(schema), *inspector.get_view_names(schema)]
            if self.dialect == "postgres":
                names += inspector.get_materialized_view_names(schema)
            name = _exact(parts[-1], names)
            if name is None:
                return None
            held = {c["name"]: c["type"] for c in inspector.get_columns(name, schema=schema)}
            described = self._postgres(schema, name) if self.dialect == "postgres" else None
            if described is None:
                described = self._sqlite(inspector, schema, name)
        except (exc.SQLAlchemyError, OSError):
            described, schema, name, held = None, "", "", {}
        if described is None:
            raise DataIndependentFailure("the database's catalogue cannot be read; check the user")
        unique, text, refused, shares = described
        columns = columns_of(held, self.dialect)
        return TableEntry(
            (schema, name), columns, unique, text, refused=refused, shares_rows=shares
        )

    def tables(self) -> tuple[str, ...]:
        """The tables of the default schema."""
        return tuple(sorted(sqlalchemy.inspect(self.connection).get_table_names()))

    def foreign_keys(self) -> list[tuple[str, str, str, str]]:
        """Of one column each, within the default schema."""
        inspector = sqlalchemy.inspect(self.connection)
        return [
            (
                table,
                key["constrained_columns"][0],
                key["referred_table"],
                key["referred_columns"][0],
            )
            for table in self.tables()
            for key in inspector.get_foreign_keys(table)
            if len(key["constrained_columns"]) == 1 and not key.get("referred_schema")
        ]

    def _postgres(self, schema: str, name: str) -> Described:
        values: Mapping[str, Any] = {"schema": schema, "table": name}
        rows = self.connection.execution_options(no_parameters=False).exec_driver_sql(
            POSTGRES_TABLE, dict(values)
        )
        kind, secured, inherited, elsewhere, text, unique, computed, shares = rows.one()
        refused = SECURED if secured else INHERITED if inherited and kind == "r" else None
        if computed or has_own_cast(self.connection, (schema, name)):
            refused = f"has {COMPUTED if computed else OWN_CAST}"
        if kind not in {"r", "p", "v", "m"} or elsewhere:
            refused = "is not an ordinary table or view"
        return frozenset(unique), text, refused, shares

    def _sqlite(self, inspector: Any, schema: str, name: str) -> Described:
        keys = [inspector.get_pk_constraint(name, schema=schema).get("constrained_columns") or []]
        keys += [u["column_names"] for u in inspector.get_unique_constraints(name, schema=schema)]
        text = None
        if name in inspector.get_view_names(schema):
            text = inspector.get_view_definition(name, schema=schema)
        unique = frozenset(columns[0] for columns in keys if len(columns) == 1)
        stored = SqliteCatalogue(self.connection).find((schema, name), None)
        refused = f"is or has {stored.refused}" if stored is not None and stored.refused else None
        return unique, None if text is None else definition(text, self.dialect), refused, False


def definition(text: str, dialect: str) -> str:
    """The query of a CREATE VIEW; a view that cannot be read is refused where it is used."""
    try:
        tree: Any = sqlglot.parse_one(text, dialect=dialect)
    except (SqlglotError, RecursionError):
        return ""
    if not isinstance(tree, exp.Create) or tree.expression is None:
        return str(tree.sql(dialect))
    return str(tree.expression.sql(dialect))


def _exact(wanted: str, names: list[str]) -> str | None:
    if wanted in names:
        return wanted
    same = [name for name in names if folded(name) == folded(wanted)]
    return same[0] if len(same) == 1 else None
