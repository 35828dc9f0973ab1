"""The column names of an event file: its schema, which is public, and none of its rows."""

from __future__ import annotations

import os

from topsecret.sources.duckdb import FileSource


def columns_of(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The names of the file's columns, in their order."""
    return FileSource(path).columns()
