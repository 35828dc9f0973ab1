"""The schema of files and databases: names of tables and columns, which are public."""

from __future__ import annotations

import codecs
import json
import os
from contextlib import suppress

from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.engines.files import files_at, open_bytes, unpacking_errors


def columns_of(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The names of the file's columns, in their order.

    Of JSON lines, which have no schema, the fields of the first: a proposal for the owner, who may
    see it. No answer depends on it.
    """
    return FileSource(path).columns() or _first_fields(path)


def _first_fields(path: str | os.PathLike[str]) -> tuple[str, ...]:
    (file, *_) = files_at(path)
    with suppress(ValueError, RecursionError, *unpacking_errors()):
        with open_bytes(file.path, file.compression) as lines:
            first = next((line for line in lines if not line.isspace()), b"{}")
        found = json.loads(first.removeprefix(codecs.BOM_UTF8))
        return tuple(found) if isinstance(found, dict) else ()
    return ()


def tables_of(url: str) -> tuple[str, ...]:
    """The tables and views of a database, as ``visits`` or, in another schema, ``shop.visits``."""
    from topsecret.sources.engines.sqlalchemy import tables

    return tables(url)


def table_columns_of(url: str, table: str) -> tuple[str, ...]:
    """The names of a table's columns, in their order."""
    from topsecret.sources.engines.sqlalchemy import SqlSource

    return SqlSource(url, table).columns()


def check_address(url: str) -> None:
    """The address is one of a database that can be counted; nobody connects to it."""
    from topsecret.sources.engines.sqlalchemy import SqlSource

    SqlSource(url, "any")
