"""The catalogues of databases behind SQLAlchemy: what a name means, and what a view is made of.

Everything here is schema: no statement reads a row of a table.
"""

from __future__ import annotations

from typing import Any, Protocol

from sqlalchemy import exc, inspect, text
from sqlalchemy.engine import Connection

from topsecret.sources.engines.settings import POSTGRES_PATH
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.stored_definitions import COMPUTED, Catalogue, Stored
from topsecret.sources.sql.view_columns import EXACT, MOMENT, Name, Sort

_POSTGRES_ONE = """
SELECT n.nspname, c.relname, c.relkind, c.relrowsecurity,
       CASE WHEN c.relkind IN ('v', 'm') THEN c.oid END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.to_regclass(CAST(:name AS text))
"""
_POSTGRES_FOREIGN = """
WITH RECURSIVE parts(oid) AS (
  SELECT CAST(pg_catalog.to_regclass(CAST(:name AS text)) AS oid)
  UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN parts p ON i.inhparent = p.oid
)
SELECT count(*) FROM parts p JOIN pg_catalog.pg_class c ON c.oid = p.oid WHERE c.relkind = 'f'
"""
_POSTGRES_KIN = """
WITH RECURSIVE kin(oid) AS (
  SELECT CAST(pg_catalog.to_regclass(CAST(:name AS text)) AS oid)
  UNION SELECT CASE WHEN i.inhparent = k.oid THEN i.inhrelid ELSE i.inhparent END
  FROM pg_catalog.pg_inherits i JOIN kin k ON k.oid IN (i.inhparent, i.inhrelid)
)
SELECT n.nspname, c.relname FROM kin k JOIN pg_catalog.pg_class c ON c.oid = k.oid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
"""
_POSTGRES_SET_PATH = "SELECT pg_catalog.set_config('search_path', CAST(:path AS text), true)"
_POSTGRES_COLUMNS = """
SELECT a.attname, t.typname, t.typnamespace = CAST('pg_catalog' AS regnamespace),
       a.attcollation, c.collisdeterministic, pg_catalog.format_type(a.atttypid, NULL),
       a.attgenerated = 'v'
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
WHERE a.attrelid = pg_catalog.to_regclass(CAST(:name AS text)) AND a.attnum > 0
  AND NOT a.attisdropped ORDER BY a.attnum
"""
_POSTGRES_CASTS = """
WITH RECURSIVE held(type) AS (
  SELECT a.atttypid FROM pg_catalog.pg_attribute a WHERE a.attnum > 0 AND NOT a.attisdropped
    AND a.attrelid = pg_catalog.to_regclass(CAST(:name AS text))
  UNION SELECT t.typbasetype FROM pg_catalog.pg_type t JOIN held h ON t.oid = h.type
    WHERE t.typbasetype <> 0
)
SELECT count(*) FROM pg_catalog.pg_cast k WHERE k.castfunc >= :first AND (
    k.castsource IN (SELECT type FROM held) OR k.castsource < :first AND k.casttarget < :first)
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d WHERE d.objid = k.castfunc
    AND d.classid = CAST('pg_catalog.pg_proc' AS regclass) AND d.deptype = 'e')
"""
FIRST_OF_USERS = 16384
"""The numbers below are those of what PostgreSQL comes with."""
OWN_CAST = "a cast by a function of a user's own"
POSTGRES_SORTS: dict[str, Sort] = {
    **dict.fromkeys(("int2", "int4", "int8"), "integer"),
    **dict.fromkeys(("text", "varchar"), "text"),
    **dict.fromkeys(("float4", "float8"), "float"),
    "bool": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "timestamptz": MOMENT,
    "numeric": "decimal",
    "uuid": f"{EXACT}uuid",
}
VIRTUAL = 2
"""What SQLite calls a virtual generated column in ``hidden``."""
DEFAULT_COLLATION = 100
"""The number of the database's own, which is deterministic."""

SYSTEM = {"information_schema", "pg_catalog", "pg_toast"}


class SqlCatalogue(Catalogue, Protocol):
    """A catalogue that also knows the full name of a table."""


def catalogue_of(connection: Connection, dialect: str) -> SqlCatalogue:
    """The catalogue of a connection's database."""
    if dialect == "postgres":
        return PostgresCatalogue(connection)
    if dialect == "sqlite":
        return SqliteCatalogue(connection)
    return ReflectedCatalogue(connection)


def quoted(name: Name) -> str:
    """A name as PostgreSQL reads it, whatever characters it holds.

    >>> quoted(("shop", 'a"b'))
    '"shop"."a""b"'
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in name)


class PostgresCatalogue:
    """PostgreSQL's: views are printed with all names in full."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(self, name: Name, inside: Stored | None) -> Stored | None:
        """The table or view that the name means in the search path."""
        if len(name) > 2:
            return None
        given = {"name": quoted(name)}
        row = self._connection.execute(text(_POSTGRES_ONE), given).fetchone()
        if row is None:
            return None
        schema, table, kind, secured, view = row
        full = (str(schema), str(table))
        given = {"name": quoted(full)}
        if view is not None:
            return Stored(full, self._definition(view))
        refused = ""
        if _letter(kind) not in {"r", "p"} or schema in SYSTEM:
            refused = "a foreign or a system table"
        elif secured:
            refused = "its row security"
        elif self._connection.execute(text(_POSTGRES_FOREIGN), given).scalar():
            refused = "a foreign table among its parts"
        elif has_own_cast(self._connection, full):
            refused = OWN_CAST
        columns = self._connection.execute(text(_POSTGRES_COLUMNS), given).fetchall()
        if any(computed for *_, computed in columns):
            refused = refused or COMPUTED
        held = tuple((str(name), _postgres_sort(*of)) for name, *of, _ in columns)
        return Stored(full, None, refused, held)

    def kin(self, name: Name) -> set[Name]:
        """Partitions and heirs."""
        return partitions(self._connection, name)

    def _definition(self, view: int) -> str:
        """The SELECT of a view, where functions and operators of users have their schema's name.

        Else ``lower(p)`` might be one of theirs.
        """

        def ask(query: str, **given: Any) -> Any:
            return self._connection.execute(text(query), given).scalar()

        before = ask("SELECT pg_catalog.current_setting('search_path')")
        ask(_POSTGRES_SET_PATH, path=POSTGRES_PATH)
        definition = ask("SELECT pg_catalog.pg_get_viewdef(CAST(:view AS oid))", view=view)
        ask(_POSTGRES_SET_PATH, path=before)
        return str(definition)


def _postgres_sort(
    name: str, own: bool, collation: int, deterministic: bool | None, full: str
) -> Sort:
    """What a column holds. Two collations in one expression fail, on the first row."""
    sort = POSTGRES_SORTS.get(str(name)) if own else None
    if sort != "text" or collation == DEFAULT_COLLATION:
        return sort or f"type {full}"
    return f"{EXACT if deterministic else 'type '}text COLLATE {collation}"


def has_own_cast(connection: Connection, name: Name) -> bool:
    """Whether a value of this table of PostgreSQL is cast by a function that a user wrote.

    Whatever the search path. Those of extensions belong to the server.
    """
    given = {"name": quoted(name), "first": FIRST_OF_USERS}
    return bool(connection.execute(text(_POSTGRES_CASTS), given).scalar())


def partitions(connection: Connection, name: Name) -> set[Name]:
    """The tables of PostgreSQL whose rows are a table's, or hold them: partitions and heirs."""
    rows = connection.execute(text(_POSTGRES_KIN), {"name": quoted(name)})
    return {(str(schema), str(table)) for schema, table in rows}


def usable_schemas(connection: Connection) -> list[str]:
    """The schemas of PostgreSQL in which this user may look up names: others are an error."""
    query = "SELECT nspname FROM pg_catalog.pg_namespace WHERE has_schema_privilege(oid, 'USAGE')"
    return [str(row[0]) for row in connection.execute(text(query))]


def is_shadow(connection: Connection, name: Name) -> bool:
    """Whether a table of SQLite may belong to a virtual table, whose rows it keeps.

    By its name, as SQLite has it: ``PRAGMA table_list`` knows those of loaded modules alone.
    """
    query = f"SELECT name, sql FROM {quoted((*name[:-1], 'sqlite_master'))} WHERE type = 'table'"
    return any(
        folded(name[-1]).startswith(folded(f"{table}_"))
        for table, sql in connection.exec_driver_sql(query)
        if folded(" ".join(str(sql).split())).startswith("create virtual")
    )


def _letter(kind: Any) -> str:
    """A value of PostgreSQL's type "char", which some drivers return as bytes."""
    return kind.decode() if isinstance(kind, bytes) else str(kind)


class SqliteCatalogue:
    """SQLite's: the statements that made tables and views are kept as text."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(self, name: Name, inside: Stored | None) -> Stored | None:
        """The table or view; temporary ones first, and a stored view knows its own file alone."""
        listed = self._connection.exec_driver_sql("PRAGMA database_list").fetchall()
        schemas = sorted((str(row[1]) for row in listed), key=lambda one: one != "temp")
        if inside is not None and inside.name[0] != "temp":
            schemas = [inside.name[0]]
        for schema in schemas:
            if len(name) > 2 or (len(name) == 2 and folded(name[0]) != folded(schema)):
                continue
            query = text(
                f"SELECT type, name, sql FROM {quoted((schema, 'sqlite_master'))} "
                "WHERE lower(name) = lower(:name) AND type IN ('table', 'view')"
            )
            row = self._connection.execute(query, {"name": name[-1]}).fetchone()
            if row is not None:
                return self._stored(schema, *row)
        return None

    def kin(self, name: Name) -> set[Name]:
        """A row is in one table."""
        return set()

    def _stored(self, schema: str, kind: str, name: str, sql: str | None) -> Stored:
        made = folded(" ".join(str(sql or "").split()))
        full = (schema, str(name))
        if kind == "view":
            return Stored(full, str(sql))
        refused = "a virtual table" if made.startswith("create virtual") else ""
        given = f"({quoted((str(name),))})"
        listed = self._connection.exec_driver_sql(
            f"PRAGMA {quoted((schema,))}.table_list{given}"
        ).fetchall()
        info = self._connection.exec_driver_sql(
            f"PRAGMA {quoted((schema,))}.table_xinfo{given}"
        ).fetchall()
        strict = any(row[5] for row in listed)
        if any(row[6] == VIRTUAL for row in info):
            refused = refused or COMPUTED
        columns = tuple(
            (str(row[1]), "other" if "collate" in made else sqlite_sort(str(row[2]), strict))
            for row in info
        )
        return Stored(full, None, refused, columns)


def sqlite_sort(declared: str, strict: bool) -> Sort:
    """What a column holds, by the affinity of its declared type.

    Whole numbers are certain in STRICT tables alone: elsewhere the float -2^63 stays one, and is
    equal to the integer without being identical.

    >>> sqlite_sort("VARCHAR(9)", False), sqlite_sort("INT", False), sqlite_sort("INT", True)
    ('text', 'any', 'integer')
    """
    kind = declared.upper()
    if "INT" in kind:
        return "integer" if strict else "any"
    return "text" if any(one in kind for one in ("CHAR", "CLOB", "TEXT")) else "any"


class ReflectedCatalogue:
    """What SQLAlchemy tells of any other database."""

    def __init__(self, connection: Connection) -> None:
        self._inspector: Any = inspect(connection)

    def find(self, name: Name, inside: Stored | None) -> Stored | None:
        """The table or view; without a schema, of the one that a view or the session is in."""
        schema = ".".join(name[:-1]) or None
        if schema is None and inside is not None and len(inside.name) > 1:
            schema = inside.name[0]
        full = (schema, name[-1]) if schema else (name[-1],)
        if name[-1] in self._inspector.get_table_names(schema):
            found = self._inspector.get_columns(name[-1], schema)
            return Stored(full, columns=tuple((str(one["name"]), "other") for one in found))
        try:
            definition = self._inspector.get_view_definition(name[-1], schema)
        except (exc.SQLAlchemyError, NotImplementedError):
            return None
        return Stored(full, str(definition)) if definition else None

    def kin(self, name: Name) -> set[Name]:
        """None that SQLAlchemy tells of."""
        return set()
