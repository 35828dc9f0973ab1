"""Event files (CSV, TSV, JSON lines, Parquet), read by a DuckDB of our own that is closed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from pathlib import Path

import duckdb

from topsecret.errors import DataIndependentFailure, InvalidParameter, SourceError
from topsecret.sources import session as asking
from topsecret.sources.domains.domain import FileColumn
from topsecret.sources.domains.items_file import is_plain
from topsecret.sources.engines.duckdb_scans import file_relation, scan
from topsecret.sources.engines.duckdb_session import (
    DuckSession,
    closed_engine,
    in_one_piece,
    piece_of,
    translated,
)
from topsecret.sources.engines.files import (
    EventFile,
    Spool,
    check_columns,
    common_columns,
    file_version,
    files_at,
)
from topsecret.sources.file_form import File
from topsecret.sources.fingerprints import Fingerprint, digest
from topsecret.sources.session import Relation
from topsecret.sources.source import CountQuery, LeadingCounts, Schema
from topsecret.sources.sql.rendering import rendered
from topsecret.sources.sql.statements import leading_counts


class FileSource:
    """A file of events, or several that match a pattern such as ``events/*.parquet``.

    >>> FileSource("no-such-file.csv")
    Traceback (most recent call last):
    topsecret.errors.DataIndependentFailure: no-such-file.csv does not exist; check the path
    """

    def __init__(self, path: str | os.PathLike[str] | File) -> None:
        self._found = files_at(path)
        self._said = path.options if isinstance(path, File) else {}
        self._spool = Spool()
        given = path.path if isinstance(path, File) else path
        several, first = len(self._found) > 1, self._found[0].path
        self.name = Path(given).name if several else first.name
        """The file's name, or the pattern, without its directory."""
        self._place = str(given if several else first)

    @property
    def version(self) -> str:
        """Changes when a file is written anew."""
        return file_version(*(file.path for file in self._found))

    def fingerprint(self) -> Fingerprint:
        """Where the files are, how they are read, and when they were written."""
        paths = [str(file.path) for file in self._found]
        where = {"path": paths[0]} if len(paths) == 1 else {"files": digest(paths)}
        version = None if self._found[0].standard_input else self.version
        return {"kind": "file", **where, **self._said, "version": version}

    def __repr__(self) -> str:
        return f"FileSource({self._place!r})"

    @cached_property
    def _arrived(self) -> tuple[EventFile, ...]:
        """The files, and what came on standard input as it came."""
        return tuple(file.arrived(self._spool) for file in self._found)

    @cached_property
    def _header(self) -> tuple[str, ...] | None:
        """The columns of text files, by their first lines alone; None of JSON lines."""
        return common_columns(self._arrived)

    @cached_property
    def _readable(self) -> tuple[EventFile, ...]:
        """As DuckDB can read them, once they are ``_copied``."""
        return tuple(file.readable(self._spool) for file in self._arrived)

    @cached_property
    def _copied(self) -> tuple[EventFile, ...]:
        """The same, made: rows are read, so the question is paid for."""
        for found, file, readable in zip(self._found, self._arrived, self._readable, strict=True):
            if readable is not file and not file.is_copied_to(readable):
                raise found.malformed()
        return self._readable

    def columns(self) -> tuple[str, ...]:
        """The names of the file's columns: its schema, which is public."""
        if self._found[0].format != "Parquet":
            return self._header or ()
        first = self._copied[0]
        with closed_engine(first.path) as engine:
            session = DuckSession(
                engine,
                lambda one, names: file_relation(one, self._copied, None, names),
                self._failed,
            )
            return tuple(session.types(scan(first, (), ())) or ())

    def unread(self, session: DuckSession, columns: Sequence[str], person: str) -> Relation:
        """The files as a relation, of which no row is read; ``prepare`` comes before its rows."""
        return file_relation(session, self._readable, self._header, columns, person)

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        """Count distinct people per item in one query and return the leading rows."""
        # Values of conditions may be equal in Python and not in SQL: 1, 1.0 and True.
        if self._found[0].format not in ("CSV", "TSV") or query.where or query.home is not None:
            return asking.leading_counts(self, query)
        with self.session(query) as session:
            # The salt of a cap is secret: a statement that holds one is not kept.
            write = _text_statement if query.max_items is None else _text_statement.__wrapped__
            statement = write(
                self._copied, self._header or (), query, piece_of(self._copied, self.name)
            )
            found = session.attempt(statement)
            if found is not None:
                return query.items(found)
        with asking.charged(after_rows=True):
            return asking.leading_counts(self, query)  # fails in our words

    def sql(self, query: CountQuery) -> str:
        """The query that DuckDB is asked, for reading."""
        return asking.sql(self, query)

    @contextmanager
    def session(self, query: CountQuery) -> Iterator[DuckSession]:
        """A closed engine over these files, and over the file of a domain."""
        for file in self._found:
            if not file.standard_input and not file.path.is_file():
                raise DataIndependentFailure(
                    f"{file.path.name} does not exist any more; check the path"
                )

        def events(session: DuckSession, columns: Sequence[str]) -> Relation:
            return file_relation(session, self._copied, self._header, columns, query.person)

        def schema(session: DuckSession, columns: Sequence[str]) -> Schema:
            # Of a text file nothing is read: its start holds people's rows.
            text = self._found[0].format != "Parquet"
            return dict.fromkeys(columns, "text") if text else events(session, columns)[1]

        paths = [file.path for file in self._found]
        if isinstance(query.domain, FileColumn):
            check_apart(paths, query.domain)
        read = self._readable
        with closed_engine(*(file.path for file in read), *domain_paths(query)) as engine:
            session = DuckSession(engine, events, self._failed, schema=schema)

            def prepare() -> None:
                if self._copied[0].format in ("CSV", "TSV"):
                    session.piece = piece_of(self._copied, self.name)

            session.prepare = prepare
            try:
                yield session
            finally:  # it holds this source, whose copies end with it
                session.prepare = tuple

    def _failed(self, kind: type[duckdb.Error]) -> SourceError:
        common = translated(kind, self.name)
        return self._found[0].malformed() if common is None else common


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
    files: tuple[EventFile, ...], header: tuple[str, ...], query: CountQuery, piece: int
) -> str:
    """The leading counts of text files, in a statement without a salt if nothing is capped."""
    texts: Schema = dict.fromkeys(query.columns, "text")

    def statement() -> str:
        check_columns(files[0], query.columns, header)
        events = in_one_piece(scan(files[0], query.columns, header, files[1:]), lambda: piece)
        return rendered(leading_counts(events, query, texts, "duckdb"), "duckdb")

    return asking.built_for_schema(statement)


def domain_paths(query: CountQuery) -> list[Path]:
    """The files that a query's domain is read from."""
    if not isinstance(query.domain, FileColumn) or is_plain(query.domain.path):
        return []
    return [file.path for file in files_at(query.domain.path)]
