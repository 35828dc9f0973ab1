"""A DuckDB of our own that is closed: it reads the files that it was opened for, nothing else.

No extension is loaded or fetched, no network is used; it spills to a private directory.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
from sqlglot import exp

from topsecret.errors import SourceError
from topsecret.sources.engines.files import literal_pattern
from topsecret.sources.memory import VARIABLE, memory
from topsecret.sources.sql import loaded_dialects  # noqa: F401


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
    with tempfile.TemporaryDirectory(prefix="topsecret-") as spill:
        engine = duckdb.connect(
            config={
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
        )
        try:
            names = {name for path in paths for name in (str(path), literal_pattern(str(path)))}
            allowed = exp.Array(expressions=[exp.Literal.string(name) for name in sorted(names)])
            if names:
                engine.execute(f"SET allowed_paths = {allowed.sql('duckdb')}")
            if attached is not None:
                literal = exp.Literal.string(str(attached)).sql("duckdb")
                engine.execute(f"ATTACH {literal} AS source (READ_ONLY)")
            # Measures progress for the bar that is ours, on a terminal; never draws its own. In a
            # Jupyter kernel it asks for ipywidgets: without a bar a query is as good.
            with suppress(duckdb.Error):
                engine.execute("SET enable_progress_bar_print = false")
                engine.execute(f"SET enable_progress_bar = {str(sys.stderr.isatty()).lower()}")
            for name, value in (
                ("TimeZone", "UTC"),
                ("enable_external_access", False),
                ("lock_configuration", True),
            ):
                engine.execute(f"SET {name} = {exp.convert(value).sql('duckdb')}")
            yield engine
        finally:
            engine.close()


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
