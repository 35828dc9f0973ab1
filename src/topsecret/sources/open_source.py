"""From what a caller has to a source: a path, a pattern, a URL, an engine, a data frame."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

from topsecret.errors import InvalidParameter
from topsecret.sources.file_form import File
from topsecret.sources.memory import VARIABLE, memory
from topsecret.sources.source import Source

Table = str | tuple[str, ...]


class Frame(Protocol):
    """A data frame of pandas, polars, ibis or Spark."""

    @property
    def columns(self) -> Any:
        """The names of its columns."""
        ...


class ArrowTable(Protocol):
    """A table of pyarrow."""

    @property
    def column_names(self) -> list[str]:
        """The names of its columns."""
        ...


class OpenDatabase(Protocol):
    """An open DuckDB connection, or a Spark session."""

    def sql(self, query: str, /) -> Any:
        """Run a statement."""
        ...


class DatabaseEngine(Protocol):
    """An engine of SQLAlchemy."""

    def connect(self) -> Any:
        """Open a connection."""
        ...


SourceLike = (
    str | os.PathLike[str] | File | Source | Frame | ArrowTable | OpenDatabase | DatabaseEngine
)
"""What a caller may pass as ``source``."""


def open_source(source: Any, table: Table | None = None, *, trust_view: bool = False) -> Source:
    """The source for ``source``, with ``table`` where it is a database.

    Parameters: ``source``: a file, a database's URL or engine, a data frame, or a source of your
    own; ``table``: the table or view, where it is a database; ``trust_view``: the data owner's
    word that each row of a view depends on its own person alone: it is then not analysed.

    Nothing but the schema is read. The engines' packages are imported only when they are needed.
    """
    if VARIABLE in os.environ:
        memory()  # a wrong one must not be found when the answer is paid for
    if isinstance(source, str) and "://" in source:
        from topsecret.sources.engines.sqlalchemy import SqlSource

        return SqlSource(source, _needed(table, "a database"), trust_view=trust_view)
    if isinstance(source, str | os.PathLike | File):
        return _path(source, table, trust_view)
    # Before the question whether it is a source: a remote frame claims to have any attribute.
    if _is_spark(source):
        return _spark(source, table, trust_view)
    if isinstance(source, Source):
        _unneeded(table, "a source")
        _untrusted(trust_view, "a source")
        return source
    return _object(source, table, trust_view)


def _path(source: str | os.PathLike[str] | File, table: Table | None, trust_view: bool) -> Source:
    from topsecret.sources.engines.duckdb import FileSource
    from topsecret.sources.engines.duckdb_tables import DATABASES, DatabaseFile

    if not isinstance(source, File) and Path(source).suffix.lower() in DATABASES:
        return DatabaseFile(source, _needed(table, "a database"), trust_view=trust_view)
    _unneeded(table, "a file")
    _untrusted(trust_view, "a file")
    return FileSource(source)


def _object(source: Any, table: Table | None, trust_view: bool) -> Source:
    package = type(source).__module__.split(".")[0]
    if package == "sqlalchemy":
        from topsecret.sources.engines.sqlalchemy import SqlSource

        return SqlSource(source, _needed(table, "a database"), trust_view=trust_view)
    if package in {"duckdb", "_duckdb"} and hasattr(source, "cursor"):
        from topsecret.sources.engines.duckdb_tables import OpenConnection

        return OpenConnection(source, _needed(table, "a connection"), trust_view=trust_view)
    if package in {"pandas", "polars", "pyarrow"}:
        from topsecret.sources.engines.duckdb_tables import FrameSource

        _unneeded(table, "a data frame")
        _untrusted(trust_view, "a data frame")
        if hasattr(source, "collect_schema") and not hasattr(source, "height"):
            raise InvalidParameter("a lazy frame has no rows yet; pass frame.collect()")
        return FrameSource(source)
    if package == "ibis":
        from topsecret.sources.engines.duckdb_tables import OpenConnection

        _unneeded(table, "an ibis table")
        return OpenConnection.of_ibis(source, trust_view=trust_view)
    for opened in (opener(source, table) for opener in _registered()):
        if opened is not None:
            return opened
    raise InvalidParameter(
        "source must be a file, a database's URL, an SQLAlchemy engine, a DuckDB connection, or a "
        f"data frame of pandas, polars, pyarrow, ibis or Spark; found a {type(source).__name__}"
    )


Opener = Callable[[Any, Table | None], Source | None]
"""What a package registers under the entry point group ``topsecret.sources``: the source for what
it knows, None for everything else."""


@lru_cache(maxsize=1)
def _registered() -> tuple[Opener, ...]:
    return tuple(point.load() for point in entry_points(group="topsecret.sources"))


def _is_spark(source: Any) -> bool:
    kind = type(source)
    names = {"DataFrame", "SparkSession"}
    return kind.__module__.split(".")[0] == "pyspark" and kind.__name__ in names


def _spark(source: Any, table: Table | None, trust_view: bool) -> Source:
    from topsecret.sources.engines.spark import SparkSource, is_data_frame

    if is_data_frame(source):
        _unneeded(table, "a data frame")
        return SparkSource(source, trust_view=trust_view)
    return SparkSource(_needed(table, "a Spark session"), source, trust_view=trust_view)


def _needed(table: Table | None, what: str) -> Table:
    if not table:
        raise InvalidParameter(f"{what} needs the name of a table; pass table='visits'")
    return table


def _unneeded(table: Table | None, what: str) -> None:
    if table is not None:
        raise InvalidParameter(f"table={table!r} must be left out: {what} has no tables")


def _untrusted(trust_view: bool, what: str) -> None:
    if trust_view:
        raise InvalidParameter(f"trust_view=True must be left out: {what} is no view")
