"""Event files counted by DuckDB: CSV, TSV, JSON lines and Parquet, the default source.

The engine runs inside this process, closed: it may open the one file and its own private
directory for spilling, nothing else; no extension is loaded or fetched, no network is used.

DuckDB's own error texts quote rows of the file. They end here: an error of ours is made from the
kind of the failure alone and does not carry DuckDB's as its context.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
from sqlglot import exp

from topsecret.errors import DataIndependentFailure, SourceError
from topsecret.sources.files import EventFile, check_columns, literal_pattern
from topsecret.sources.progress import watch
from topsecret.sources.source import CountQuery, LeadingCounts
from topsecret.sources.sql import leading_counts

# Kept as they are; every other type is counted under its text, which always exists: a timestamp
# may be out of Python's range, a list is not hashable, and neither may make a query fail.
INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
PLAIN_TYPES = {"VARCHAR", "BOOLEAN", *INTEGERS, *(f"U{name}" for name in INTEGERS)}


class FileSource:
    """One file of events.

    >>> FileSource("no-such-file.csv")
    Traceback (most recent call last):
    topsecret.errors.SourceError: no-such-file.csv does not exist; check the path
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = EventFile.at(path)

    @property
    def name(self) -> str:
        """The file's name, without its directory."""
        return self._file.path.name

    @property
    def version(self) -> str:
        """Changes when the file is written anew: when, not what, so it is public."""
        try:
            return str(self._file.path.stat().st_mtime_ns)
        except OSError:
            return ""  # the missing file is found, and named, when it is read

    def __repr__(self) -> str:
        return f"FileSource({str(self._file.path)!r})"

    def columns(self) -> tuple[str, ...]:
        """The names of the file's columns: its schema, which is public."""
        if self._file.format != "Parquet":
            return self._file.text_columns() or ()
        with closed_engine(self._file.path) as engine:
            return tuple(self._types(self._file.scan((), ()), engine))

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        """Count distinct persons per item in one query and return the leading rows."""
        if not self._file.path.is_file():
            raise DataIndependentFailure(f"{self.name} does not exist any more; check the path")
        with closed_engine(self._file.path) as engine:
            select = self._select(query, engine)
            return [] if select is None else self._run(engine, select.sql("duckdb"))

    def sql(self, query: CountQuery) -> str:
        """The query that DuckDB is asked, for reading."""
        with closed_engine(self._file.path) as engine:
            select = self._select(query, engine)
            return "" if select is None else select.sql("duckdb", pretty=True)

    def _select(self, query: CountQuery, engine: duckdb.DuckDBPyConnection) -> exp.Select | None:
        wanted = (query.item, query.person)
        if self._file.format == "Parquet":
            scan = self._file.scan(wanted, ())
            types = self._types(scan, engine)
            check_columns(self._file, wanted, tuple(types))
            as_text = types[query.item] not in PLAIN_TYPES
            return leading_counts(scan, query, item_as_text=as_text)
        columns = self._file.text_columns()
        if columns is None:
            return None
        check_columns(self._file, wanted, columns)
        return leading_counts(self._file.scan(wanted, columns), query)

    def _types(self, scan: exp.Table, engine: duckdb.DuckDBPyConnection) -> dict[str, str]:
        describe = exp.Describe(this=exp.select("*").from_(scan))
        rows = self._run(engine, describe.sql("duckdb"))
        return {str(row[0]): str(row[1]) for row in rows}

    def _run(self, engine: duckdb.DuckDBPyConnection, sql: str) -> LeadingCounts:
        def ask() -> LeadingCounts:
            return engine.execute(sql).fetchall()

        try:
            return watch(
                ask,
                fraction=lambda: engine.query_progress() / 100,
                interrupt=engine.interrupt,
            )
        except duckdb.Error as error:
            kind = type(error)
        # Raised outside the handler, so that DuckDB's text is not even the error's context.
        raise self._translated(kind)

    def _translated(self, kind: type[duckdb.Error]) -> SourceError:
        if issubclass(kind, duckdb.OutOfMemoryException):
            return SourceError(
                f"{self.name} needs more memory and temporary disk space than there is; "
                "free some or set TMPDIR to a larger disk"
            )
        if issubclass(kind, duckdb.IOException | duckdb.PermissionException):
            return SourceError(f"{self.name} could not be read to its end; check that it is whole")
        return self._file.malformed()


@contextmanager
def closed_engine(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB that can read this file and nothing else, anywhere."""
    with tempfile.TemporaryDirectory(prefix="topsecret-") as spill:
        engine = duckdb.connect(
            config={
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "allow_community_extensions": False,
                "allow_persistent_secrets": False,
                "preserve_insertion_order": False,
                "temp_directory": spill,
            }
        )
        try:
            paths = exp.Array(
                expressions=[
                    exp.Literal.string(name) for name in {str(path), literal_pattern(str(path))}
                ]
            )
            engine.execute(f"SET allowed_paths = {paths.sql('duckdb')}")
            for name, value in (
                ("TimeZone", "UTC"),
                ("enable_progress_bar_print", False),
                ("enable_progress_bar", True),  # measures progress; the line above silences it
                ("enable_external_access", False),
                ("lock_configuration", True),
            ):
                engine.execute(f"SET {name} = {exp.convert(value).sql('duckdb')}")
            yield engine
        finally:
            engine.close()
