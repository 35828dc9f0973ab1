"""DuckDB inside this process: sessions, and event files (CSV, TSV, JSON lines, Parquet).

For files the engine is closed: it may open the files named and its own private directory for
spilling, nothing else; no extension is loaded or fetched, no network is used.

DuckDB's own error texts quote rows of the file. They end here: an error of ours is made from the
kind of the failure alone and does not carry DuckDB's as its context.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
from sqlglot import exp

from topsecret.errors import DataIndependentFailure, InvalidParameter, SourceError
from topsecret.sources import session as asking
from topsecret.sources.domains.domain import Column, FileColumn
from topsecret.sources.domains.items_file import is_plain, plain_items
from topsecret.sources.engines.closed_duckdb import closed_engine, translated
from topsecret.sources.engines.duckdb_types import check_texts, kinds
from topsecret.sources.engines.files import (
    EventFile,
    check_columns,
    check_types,
    common_columns,
    exact_persons,
    files_at,
)
from topsecret.sources.engines.files_to_read import FilesToRead
from topsecret.sources.file_form import File
from topsecret.sources.fingerprints import Fingerprint
from topsecret.sources.interruption import interruptible
from topsecret.sources.progress import watch
from topsecret.sources.session import Relation, Rows
from topsecret.sources.source import Columns, CountQuery, Kind, LeadingCounts, Schema
from topsecret.sources.sql.rendering import rendered
from topsecret.sources.sql.statements import leading_counts, table

LARGEST_PIECE, MARGIN = 1 << 30, 1 << 20
"""Bytes of a text file that is read in one piece, and what its buffer has beside them."""

Failed = Callable[[type[duckdb.Error]], SourceError]
"""Our error for a kind of DuckDB's."""


class DuckSession:
    """Statements to one DuckDB connection."""

    dialect = "duckdb"

    def __init__(
        self,
        engine: duckdb.DuckDBPyConnection,
        events: Callable[[DuckSession, Sequence[str]], Relation],
        failed: Failed,
        others: Callable[[DuckSession, Column, Sequence[str]], Relation] | None = None,
        schema: Callable[[DuckSession, Sequence[str]], Schema | None] | None = None,
    ) -> None:
        self._engine = engine
        self._events = events
        self._failed = failed
        self._others = others
        self._schema = schema
        self._kept = 0
        self._types: dict[str, dict[str, str]] = {}
        self.piece: Callable[[], int] = lambda: 0
        """Bytes that hold the largest of the session's text files; 0 where there is none."""
        self.prepare: Callable[[], object] = lambda: None
        """Makes the copies that statements read, where files need them: rows are read."""
        self.steady = False
        """Whether all statements certainly read the same rows."""
        self.registered: set[str] = set()
        """Names of frames that the connection knows."""

    def events(self, columns: Sequence[str]) -> Relation:
        """The table of events."""
        return self._events(self, columns)

    def schema(self, columns: Sequence[str]) -> Schema | None:
        """What the columns of the events hold, as far as that is known without any row."""
        return (self._schema or (lambda _, names: self.events(names)[1]))(self, columns)

    def other(self, domain: Column | FileColumn, columns: Sequence[str]) -> Relation:
        """Another table of the database, or a file."""
        if isinstance(domain, FileColumn):
            if is_plain(domain.path):
                rows = [(item,) for item in plain_items(domain.path)]
                return self.upload(rows, columns), dict.fromkeys(columns, "text")
            files = files_at(domain.path)
            return file_relation(self, files, common_columns(files), columns)
        if self._others is None:
            raise InvalidParameter(
                f"a domain in the table {domain.table!r} needs a database; "
                "for a file pass domain='items.csv'"
            )
        return self._others(self, domain, columns)

    def upload(self, rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> exp.Expression:
        """A temporary table of these rows."""
        columns = [
            exp.alias_(
                exp.Anonymous(this="UNNEST", expressions=[exp.Placeholder()]), name, quoted=True
            )
            for name in names
        ]
        values = [list(part) for part in zip(*rows, strict=True)]
        return self._create(exp.select(*columns), values)

    def keep(self, select: exp.Select) -> exp.Expression:
        """A temporary table of the result: read once, the same for all that follows."""
        return self._create(select, [])

    def once(self, select: exp.Select) -> exp.Select:
        """The select itself: the statement says that it is read once."""
        return select

    def run(self, select: exp.Expression) -> Rows:
        """The rows; a progress bar appears on a terminal when it takes long."""
        return self._ask_in_one_piece_too(select, [])

    def types(self, relation: exp.Expression) -> dict[str, str] | None:
        """The columns of a table and DuckDB's names of their types, read once in a session.

        None if there is no such name.
        """
        asked = exp.Describe(this=exp.select("*").from_(relation.copy()))
        describe = rendered(asked, "duckdb")
        if describe not in self._types:
            found = self._attempt(describe, [])
            if isinstance(found, type):
                if issubclass(found, duckdb.CatalogException):
                    return None
                raise self._failed(found)
            self._types[describe] = {str(row[0]): str(row[1]) for row in found}
        return self._types[describe]

    def ask(self, sql: str, values: list[Any]) -> Rows:
        """Run a statement; DuckDB's errors become ours."""
        found = self._attempt(sql, values)
        if isinstance(found, type):
            raise self._failed(found)
        return found

    def attempt(self, sql: str) -> Rows | None:
        """The rows, or None where the statement failed."""
        found = self._attempt(sql, [])
        return None if isinstance(found, type) else found

    def _attempt(self, sql: str, values: list[Any]) -> Rows | type[duckdb.Error]:
        """The rows, or the kind of DuckDB's error: its text is not even a context of ours."""
        engine = self._engine

        def answer() -> Rows:
            return engine.execute(sql, values).fetchall()

        try:
            with interruptible(engine.interrupt):
                return watch(
                    answer,
                    fraction=lambda: engine.query_progress() / 100,
                    interrupt=engine.interrupt,
                )
        except duckdb.Error as error:
            return type(error)

    def forget(self) -> None:
        """Drop the temporary tables: needed only where the connection goes on."""
        for number in range(1, self._kept + 1):
            name = table("temp", "main", f"topsecret kept {number}")
            self.ask(f"DROP TABLE IF EXISTS {rendered(name, 'duckdb')}", [])
        self._kept = 0

    def _create(self, select: exp.Select, values: list[Any]) -> exp.Expression:
        self._kept += 1
        name = f"topsecret kept {self._kept}"
        temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
        create = exp.Create(this=table(name), kind="TABLE", expression=select, properties=temporary)
        self._ask_in_one_piece_too(create, values)
        return table("temp", "main", name)

    def _ask_in_one_piece_too(self, statement: exp.Expression, values: list[Any]) -> Rows:
        """Run a statement; where a CSV file fails that is read in pieces, read it as one.

        A piece that starts within a quoted field of many lines may take them for rows. (The
        option ``parallel = false`` is no help: it drops a row whose quotes are never closed.)
        """
        found = self._attempt(rendered(statement, "duckdb"), values)
        if isinstance(found, type) and 0 < (piece := self.piece()) <= LARGEST_PIECE:
            whole = statement.copy()
            scans = [node for node in whole.find_all(exp.Anonymous) if node.this == "READ_CSV"]
            size = exp.EQ(this=exp.var("buffer_size"), expression=exp.convert(piece))
            for scan in scans:
                scan.append("expressions", size.copy())
            if scans:
                found = self._attempt(rendered(whole, "duckdb"), values)
        if isinstance(found, type):
            raise self._failed(found)
        return found


class FileSource:
    """A file of events, or several that match a pattern such as ``events/*.parquet``.

    >>> FileSource("no-such-file.csv")
    Traceback (most recent call last):
    topsecret.errors.DataIndependentFailure: no-such-file.csv does not exist; check the path
    """

    def __init__(self, path: str | os.PathLike[str] | File) -> None:
        self._files = FilesToRead(path)
        self.name = self._files.name

    @property
    def version(self) -> str:
        """Changes when a file is written anew."""
        return self._files.version

    def fingerprint(self) -> Fingerprint:
        """Where the files are, how they are read, and when they were written."""
        return self._files.fingerprint()

    def __repr__(self) -> str:
        return f"FileSource({self._files.place!r})"

    def columns(self) -> tuple[str, ...]:
        """The names of the file's columns: its schema, which is public."""
        if self._files.found[0].format != "Parquet":
            return self._files.header or ()
        first = self._files.copied[0]
        with closed_engine(first.path) as engine:
            session = DuckSession(
                engine,
                lambda one, names: file_relation(one, self._files.copied, None, names),
                self._failed,
            )
            return tuple(session.types(first.scan((), ())) or ())

    def unread(self, session: DuckSession, columns: Sequence[str], person: str) -> Relation:
        """The files as a relation, of which no row is read; ``prepare`` comes before its rows."""
        return file_relation(session, self._files.readable, self._files.header, columns, person)

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        """Count distinct persons per item in one query and return the leading rows."""
        # Values of conditions may be equal in Python and not in SQL: 1, 1.0 and True.
        if (
            self._files.found[0].format not in ("CSV", "TSV")
            or query.where
            or query.home is not None
        ):
            return asking.leading_counts(self, query)
        with self.session(query) as session:
            header = self._files.header or ()
            salt = b"" if query.max_items is None else query.salt
            asking.refused_for_schema(
                lambda: _text_statement(self._files.copied, header, query, salt)
            )
            found = session.attempt(_text_statement(self._files.copied, header, query, salt))
            if found is not None:
                return query.items(found)
        return asking.leading_counts(self, query)  # in one piece, where several failed

    def sql(self, query: CountQuery) -> str:
        """The query that DuckDB is asked, for reading."""
        return asking.sql(self, query)

    @contextmanager
    def session(self, query: CountQuery) -> Iterator[DuckSession]:
        """A closed engine over these files, and over the file of a domain."""
        for file in self._files.found:
            if not file.standard_input and not file.path.is_file():
                raise DataIndependentFailure(
                    f"{file.path.name} does not exist any more; check the path"
                )

        def events(session: DuckSession, columns: Sequence[str]) -> Relation:
            return file_relation(
                session, self._files.copied, self._files.header, columns, query.person
            )

        def schema(session: DuckSession, columns: Sequence[str]) -> Schema:
            # Of a text file nothing is read: its start holds persons' rows.
            text = self._files.found[0].format != "Parquet"
            return dict.fromkeys(columns, "text") if text else events(session, columns)[1]

        paths = [file.path for file in self._files.found]
        if isinstance(query.domain, FileColumn):
            check_apart(paths, query.domain)
        read = self._files.readable
        with closed_engine(*(file.path for file in read), *domain_paths(query)) as engine:
            session = DuckSession(engine, events, self._failed, schema=schema)
            session.prepare = lambda: self._files.copied
            session.piece = lambda: max(file.size(LARGEST_PIECE) for file in read) + MARGIN
            yield session

    def _failed(self, kind: type[duckdb.Error]) -> SourceError:
        common = translated(kind, self.name)
        return self._files.found[0].malformed() if common is None else common


def file_relation(
    session: DuckSession,
    files: Sequence[EventFile],
    header: tuple[str, ...] | None,
    columns: Sequence[str],
    person: str | None = None,
) -> Relation:
    """The table function over these files, with the columns wanted."""
    first, more = files[0], files[1:]
    if first.format == "Parquet":
        found = [session.types(file.scan((), ())) or {} for file in files]
        check_columns(first, columns, tuple(found[0]))
        check_texts(first.path.name, columns, found[0])
        check_types(files, [{n: t for n, t in types.items() if n in columns} for types in found])
        return first.scan(columns, (), more), kinds(found[0])
    if header is None:  # of JSON lines: a field that no line has is missing in all of them
        header = tuple(columns)
    check_columns(first, columns, header)
    texts: dict[str, Kind] = dict.fromkeys(columns, "text")
    if first.format != "JSON lines" or person is None or person not in columns:
        return first.scan(columns, header, more), texts
    scan = first.scan(columns, header, more, person)
    return exact_persons(scan, columns, person), Columns(texts, marked={person})


def check_apart(paths: Sequence[Path], domain: FileColumn) -> None:
    """A domain's file is none of the events' files, by whatever name."""
    plain = is_plain(domain.path)
    public = [domain.path] if plain else [file.path for file in files_at(domain.path)]
    with suppress(OSError):  # a missing file is found, and named, when it is read
        if any(one.samefile(other) for one in paths for other in public):
            raise InvalidParameter(private_domain(domain.path.name))


def private_domain(name: str) -> str:
    """Why a domain is refused."""
    return (
        f"the domain {name} is made of the events themselves, or may be by functions: which items "
        "they hold must not be published; pass a list that is public without them, or leave it out"
    )


@lru_cache(maxsize=64)
def _text_statement(
    files: tuple[EventFile, ...], header: tuple[str, ...], query: CountQuery, salt: bytes
) -> str:
    """The leading counts of text files; the salt is no part of a query's equality."""
    check_columns(files[0], query.columns, header)
    events = files[0].scan(query.columns, header, files[1:])
    texts: Schema = dict.fromkeys(query.columns, "text")
    statement = leading_counts(events, replace(query, salt=salt or query.salt), texts, "duckdb")
    return rendered(statement, "duckdb")


def domain_paths(query: CountQuery) -> list[Path]:
    """The files that a query's domain is read from."""
    if not isinstance(query.domain, FileColumn) or is_plain(query.domain.path):
        return []
    return [file.path for file in files_at(query.domain.path)]
