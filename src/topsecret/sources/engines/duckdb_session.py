"""DuckDB inside this process: an engine of our own that is closed, and statements to an engine.

A closed engine may open the files that it was opened for and its own private directory for
spilling, nothing else; no extension is loaded or fetched, no network is used.

DuckDB's own error texts quote rows of the file. They end here: an error of ours is made from the
kind of the failure alone and does not carry DuckDB's as its context.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import duckdb
from sqlglot import exp

from topsecret.errors import DataIndependentFailure, InvalidParameter, SourceError
from topsecret.sources.domains.domain import Column, FileColumn
from topsecret.sources.domains.items_file import is_plain, plain_items
from topsecret.sources.engines.duckdb_scans import file_relation
from topsecret.sources.engines.files import EventFile, common_columns, files_at, literal_pattern
from topsecret.sources.memory import VARIABLE, memory
from topsecret.sources.running_statement import interruptible, watch
from topsecret.sources.session import Relation, Rows
from topsecret.sources.source import Schema
from topsecret.sources.sql import loaded_dialects  # noqa: F401
from topsecret.sources.sql.rendering import rendered
from topsecret.sources.sql.statements import table

T = TypeVar("T")


Failed = Callable[[type[duckdb.Error]], SourceError]
"""Our error for a kind of DuckDB's."""
LARGEST_PIECE = 1 << 30
"""Bytes of a text file with columns, which is read in one piece."""
MARGIN = 1 << 20
"""What the buffer for a file in one piece has beside its bytes."""


def _memory() -> dict[str, str]:
    """How much memory the engine may use before it spills to disk, where TOPSECRET_MEMORY says."""
    named = memory() if VARIABLE in os.environ else None
    return {} if named is None else {"memory_limit": named}


@contextmanager
def closed_engine(
    *paths: Path, attached: Path | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB that can read these files and nothing else, anywhere.

    ``attached`` is a database file, opened for reading under the name ``source``.
    """
    with _begun(lambda: tempfile.TemporaryDirectory(prefix="topsecret-")) as spill:
        config: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "allow_persistent_secrets": False,
            "preserve_insertion_order": False,
            "temp_directory": spill,
            **_memory(),
            # A sample of the rows would decide the type of a pandas column: all are text.
            "pandas_analyze_sample": 0,
        }
        engine = _begun(lambda: duckdb.connect(config=config))
        try:
            # First of all: where no file is run, as in a worker of the service, DuckDB draws a bar
            # of its own, with the time, of whatever takes two seconds, reading a database's log
            # included. Ours, on a terminal, needs the progress measured. In a Jupyter kernel DuckDB
            # asks for ipywidgets: without a bar a query is as good.
            with suppress(duckdb.Error):
                engine.execute("SET enable_progress_bar_print = false")
                engine.execute(f"SET enable_progress_bar = {str(sys.stderr.isatty()).lower()}")
            names = {name for path in paths for name in (str(path), literal_pattern(str(path)))}
            allowed = exp.Array(expressions=[exp.Literal.string(name) for name in sorted(names)])
            if names:
                _set(engine, f"allowed_paths = {allowed.sql('duckdb')}")
            if attached is not None:  # reads rows of its log: what fails is the caller's to judge
                literal = exp.Literal.string(str(attached)).sql("duckdb")
                engine.execute(f"ATTACH {literal} AS source (READ_ONLY)")
            for name, value in (
                ("TimeZone", "UTC"),
                ("enable_external_access", False),
                ("lock_configuration", True),
            ):
                _set(engine, f"{name} = {exp.convert(value).sql('duckdb')}")
            yield engine
        finally:
            engine.close()


def _set(engine: duckdb.DuckDBPyConnection, setting: str) -> None:
    _begun(lambda: engine.execute(f"SET {setting}"))


def _begun(step: Callable[[], T]) -> T:
    """What a step before any row is read makes; its errors' words are not shown."""
    try:
        return step()
    except (duckdb.OutOfMemoryException, duckdb.IOException):
        kind: type[SourceError] = (
            SourceError  # rows that others read may have filled memory or disk
        )
    except (duckdb.Error, PermissionError):
        kind = DataIndependentFailure
    except OSError:
        kind = SourceError
    raise kind(
        "DuckDB cannot be started: it needs memory, and a folder for temporary files that can be "
        "written; set TMPDIR to one, and install duckdb as topsecret wants it"
    )


def translated(kind: type[duckdb.Error], name: str) -> SourceError | None:
    """Our error for what may go wrong with any source; None for what the data are to blame for."""
    if issubclass(kind, duckdb.OutOfMemoryException):
        return SourceError(
            f"{name} needs more memory and temporary disk space than there is; "
            "free some, raise TOPSECRET_MEMORY or set TMPDIR to a larger disk"
        )
    if issubclass(kind, duckdb.IOException | duckdb.PermissionException):
        return SourceError(f"{name} could not be read to its end; check that it is whole")
    return None


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
        self.piece = 0
        """Bytes that hold the largest of the session's text files, once they are prepared."""
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
            # Public rows: one of them may take in others.
            files = tuple(replace(file, multiline=True) for file in files_at(domain.path))
            listed, schema = file_relation(self, files, common_columns(files), columns)
            # A buffer of the private file's size would be measured before the question is paid.
            return in_one_piece(listed, lambda: piece_of(files, domain.path.name)), schema
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
        return self._ask_in_one_piece(select, [])

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
        self._ask_in_one_piece(create, values)
        return table("temp", "main", name)

    def _piece(self) -> int:
        if not self.piece:
            self.prepare()
        return self.piece

    def _ask_in_one_piece(self, statement: exp.Expression, values: list[Any]) -> Rows:
        """Run a statement that reads every CSV file in one piece."""
        found = self._attempt(rendered(in_one_piece(statement, self._piece), "duckdb"), values)
        if isinstance(found, type):
            raise self._failed(found)
        return found


def piece_of(files: Sequence[EventFile], name: str) -> int:
    """Bytes that hold the largest of these files; more than DuckDB should hold are refused."""
    sizes = [
        # Of a file that is not packed the system knows it.
        os.stat(file.path).st_size if file.compression == "none" else file.size(LARGEST_PIECE)
        for file in files
    ]
    if max(sizes) > LARGEST_PIECE:
        raise SourceError(
            f"{name} holds more than 1 GiB of text: split it into several files, each "
            "with the header, and name them by a pattern (visits/*.csv), or convert it to "
            "Parquet"
        )
    return max(sizes) + MARGIN


def in_one_piece(statement: exp.Expression, piece: Callable[[], int]) -> exp.Expression:
    """The statement, in which every CSV file is read with a buffer that holds all of it.

    Where DuckDB reads several pieces and a row that breaks the format begins the last of them, it
    drops the rows behind it and says nothing; a piece that starts within a quoted field of many
    lines may take them for rows. (The option ``parallel = false`` is no help: it drops a row whose
    quotes are never closed.)

    A scan that has a buffer of its own keeps it. Only where one has none is the ``piece`` measured,
    which reads people's rows; 0 if none of their files is such a file.
    """
    reads = any(map(_has_no_buffer, statement.find_all(exp.Anonymous)))
    if not reads or not (bytes_ := piece()):
        return statement
    whole, size = statement.copy(), exp.convert(bytes_)
    for node in list(whole.find_all(exp.Anonymous)):
        if _has_no_buffer(node):
            node.append("expressions", exp.EQ(this=exp.var("buffer_size"), expression=size.copy()))
    return whole


def _has_no_buffer(node: exp.Anonymous) -> bool:
    return node.this == "READ_CSV" and not any(
        isinstance(one, exp.EQ) and one.this.name == "buffer_size" for one in node.expressions
    )
