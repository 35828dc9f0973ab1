"""From a query's text and what a caller has to a source that can be counted."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlglot import exp

from topsecret.errors import InvalidParameter
from topsecret.sources.engines.table_names import table_parts
from topsecret.sources.file_form import File
from topsecret.sources.open_source import SourceLike, open_source
from topsecret.sources.relations.catalogue import Catalogue, FixedCatalogue, SomeColumns, TableEntry
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.query_source import FRAME, QuerySource
from topsecret.sources.relations.ranked_query import RankedQuery, read
from topsecret.sources.source import CountQuery
from topsecret.sources.sql import loaded_dialects  # noqa: F401
from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.statements import table

_ANY = CountQuery(item="any item", person="any person", rows=1)
_NO_TABLE = "any table"
FRAMES = {"pandas", "polars", "pyarrow", "pyspark"}
"""Packages whose objects are one table."""
Privacy = PrivacyFile | str | os.PathLike[str]


def open_query(
    text: str,
    source: SourceLike,
    *,
    privacy: Privacy | None = None,
    person: str | None = None,
    dialect: str | None = None,
    bounded: bool = False,
    only: Collection[str] | None = None,
) -> tuple[QuerySource, RankedQuery]:
    """The query as a source, and the question that it asks. No row is read.

    ``privacy`` is a privacy file or its path. ``person`` alone is a file of one table, the one
    that the query reads. ``only`` are the columns that there are for the query, by exact name.
    """
    if (privacy is None) == (person is None):
        raise InvalidParameter(
            "a query needs privacy=, a privacy file, or person=, the person's column of the one "
            "table that it reads"
        )
    file = privacy if isinstance(privacy, PrivacyFile) else None
    if person is None and file is None:
        file = PrivacyFile.load(privacy or "")  # type: ignore[arg-type]
    one = _spark_table(text, dialect) if _is_spark_session(source) else None
    database: Any = opened_database(source, one)
    columns = _frame_columns(database)
    holder = person if file is None else file.person
    rules = () if file is None else file.tables.values()
    persons = [person or "", *(rule.person or "" for rule in rules)]
    opened = (
        _one_frame(database, columns, holder or "") if columns else catalogue_of(database, persons)
    )
    with opened as catalogue:
        if file is None or isinstance(catalogue, _AnyName):
            # One table under two names would be its own public table.
            named = _only_table(text, dialect or catalogue.dialect)
            if isinstance(catalogue, _AnyName):
                catalogue = catalogue.called(named.rpartition(".")[2])
        if file is None:
            file = PrivacyFile.of_one_table(named, person or "")
        seen = catalogue if only is None else SomeColumns(catalogue, frozenset(only))
        asked = read(text, file, seen, dialect or "", bounded=bounded)
    return QuerySource(database, asked, file.person, columns), asked


def smallest_query(named: str, item: str, person: str) -> str:
    """A query about one column of a table, which is understood if any about it is.

    >>> smallest_query("v", "item", "who")
    'SELECT "item", COUNT(DISTINCT "who") AS n FROM "v" GROUP BY "item" ORDER BY n DESC LIMIT 1'
    """
    column = exp.column(item, quoted=True)
    count = exp.Count(this=exp.Distinct(expressions=[exp.column(person, quoted=True)]))
    query = exp.select(column, exp.alias_(count, "n")).from_(table(*table_parts(named)))
    return query.group_by(column).order_by(exp.column("n").desc()).limit(1).sql("duckdb")


def opened_database(source: SourceLike, one: str | None = None) -> Any:
    """The engine behind what a caller has; of a database, all its tables.

    ``one`` is the table of a Spark session that is read.
    """
    if one is not None:
        return open_source(source, one)
    package = type(source).__module__.split(".")[0]
    if package in FRAMES or isinstance(source, File):
        return open_source(source)
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    single = path is not None and "://" not in str(source)
    from topsecret.sources.engines.duckdb_tables import DATABASES

    if single and path is not None and path.suffix.lower() not in DATABASES:
        return open_source(source)
    return open_source(source, _NO_TABLE)


@contextmanager
def catalogue_of(database: Any, persons: Iterable[str] = ()) -> Iterator[Catalogue]:
    """What the database says about itself. Of a file, one of ``persons`` is the person's column."""
    from topsecret.sources.engines.duckdb import FileSource
    from topsecret.sources.engines.duckdb_session import DuckSession
    from topsecret.sources.engines.duckdb_tables import DatabaseFile, OpenConnection
    from topsecret.sources.relations.engine_catalogue import DuckCatalogue, SqlCatalogue

    if isinstance(database, FileSource):
        yield _one_table(database, persons)
        return
    with database.session(_ANY) as session:
        if isinstance(database, DatabaseFile):
            yield DuckCatalogue(session.ask, "source", "main")
        elif isinstance(database, OpenConnection) and isinstance(session, DuckSession):
            ((name, schema),) = session.ask("SELECT current_database(), current_schema()", [])
            yield DuckCatalogue(session.ask, name, schema)
        elif hasattr(session, "connection"):
            yield SqlCatalogue(session.connection, session.dialect)
        else:
            raise InvalidParameter(
                f"{database.name} cannot be asked in SQL; pass a file, a data frame, or a "
                "database of DuckDB, PostgreSQL or SQLite"
            )


def _frame_columns(database: Any) -> tuple[str, ...]:
    """The columns of a data frame, which is one table of whatever name the query gives it."""
    from topsecret.sources.engines.duckdb_tables import FrameSource
    from topsecret.sources.engines.spark import SparkSource

    return database.columns() if isinstance(database, FrameSource | SparkSource) else ()


@contextmanager
def _one_frame(database: Any, columns: tuple[str, ...], person: str) -> Iterator[Catalogue]:
    if person not in columns:
        raise InvalidParameter(
            f"the data frame has no person's column {person!r}; a frame is one table, and its "
            "privacy file has that table alone"
        )
    items = tuple(name for name in columns if name != person)
    query = CountQuery(item=items, person=person, rows=1)
    with database.session(query) as session:
        _, schema = session.events(columns)
        entry = TableEntry(("data",), schema, relation=table(FRAME))
        yield _AnyName(session.dialect, entry)


def _is_spark_session(source: Any) -> bool:
    kind = type(source)
    return kind.__module__.split(".")[0] == "pyspark" and kind.__name__ == "SparkSession"


def _spark_table(text: str, dialect: str | None) -> str:
    return _only_table(text, dialect or "spark")


def _one_table(database: Any, persons: Iterable[str]) -> Catalogue:
    """A file as the only table, of whatever name the query gives it."""
    query = _query_of(database, persons)
    with database.session(query) as session:
        relation, schema = database.unread(session, _columns(database), query.person)
    return _AnyName(session.dialect, TableEntry(("data",), schema, relation=relation))


class _AnyName(FixedCatalogue):
    """One table, which has whatever name the query gives it, and that name alone."""

    def __init__(self, dialect: str, entry: TableEntry, name: str = "") -> None:
        super().__init__(dialect, {folded(name): entry})

    def called(self, name: str) -> _AnyName:
        """The table under this name."""
        (entry,) = self.entries.values()
        return _AnyName(self.dialect, entry, name)

    def table(self, parts: tuple[str, ...]) -> TableEntry | None:
        """The table, if that is its name."""
        entry = self.entries.get(folded(parts[-1]))
        return None if entry is None else replace(entry, parts=parts[-1:])


def _columns(database: Any) -> tuple[str, ...]:
    return tuple(database.columns())


def _query_of(database: Any, persons: Iterable[str]) -> CountQuery:
    names = _columns(database)
    if not names:
        raise InvalidParameter(
            "each line of JSON lines names its own fields: say which ones a query may read, by "
            "File(path, header=['user', 'place']) or --header user,place"
        )
    if len(names) < 2:
        raise InvalidParameter(
            "a query needs a person's column and another; there is one column: add one"
        )
    # JSON lines tell a person 1 from a person "1". Without a person's column none is read as one.
    wanted = {folded(one) for one in persons}
    holder, *more = [name for name in names if folded(name) in wanted] or ["(nobody)"]
    if more:
        raise InvalidParameter("a file is one table: its privacy file needs one person column")
    items = tuple(name for name in names if name != holder)
    return CountQuery(item=items, person=holder, rows=1)


def _only_table(text: str, dialect: str) -> str:
    """The one table that a query reads."""
    from sqlglot import exp

    from topsecret.sources.relations.privacy_clause import cut
    from topsecret.sources.relations.rebuild import parsed

    tree = parsed(cut(text, dialect)[0], dialect)
    own = {folded(one.alias) for one in tree.find_all(exp.CTE)}
    names = {
        ".".join(part.name for part in one.parts)
        for one in tree.find_all(exp.Table)
        if one.db or folded(one.name) not in own
    }
    if len(names) != 1:
        raise InvalidParameter(
            "person=, files and data frames serve a query of one table; this one reads "
            f"{', '.join(sorted(names))}: put them into a database and pass privacy="
        )
    return names.pop()
