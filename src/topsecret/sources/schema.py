"""The schema of files and databases: names of tables and columns, which are public, and no row."""

from __future__ import annotations

import os

from topsecret.sources.engines.duckdb import FileSource


def columns_of(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The names of the file's columns, in their order."""
    return FileSource(path).columns()


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
