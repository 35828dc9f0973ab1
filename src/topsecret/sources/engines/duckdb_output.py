"""What a caller's DuckDB connection shows or keeps of its statements beside their results.

Its profile has the true numbers of rows, on standard output, in a file or for whoever asks; its
logs have the statements, the salt of a cap among them, and may have numbers of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb
from sqlglot import exp

from topsecret.errors import DataIndependentFailure
from topsecret.sources.sql import loaded_dialects  # noqa: F401

UNUSABLE = (
    "the DuckDB connection cannot be used: it must be open, without an unfinished result, and "
    "free to change its settings"
)

LOGS = {
    "enable_logging": (
        "the database of the DuckDB connection logs statements, which would keep the salt of the "
        "cap and may keep numbers of rows; CALL disable_logging() before you ask"
    ),
    "log_query_path": (
        "the DuckDB connection writes its statements to a file, which would keep the salt of the "
        "cap; SET log_query_path = '' before you ask"
    ),
}
"""Settings that cannot be off for one question alone: the first is of all connections to the
database, another question's among them, and the second begins its file anew."""


@contextmanager
def unseen(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """No statement is profiled within, and then as before; a connection that logs is refused."""
    wanted = ", ".join(f"current_setting('{name}')" for name in ("enable_profiling", *LOGS))
    profile: str | None = None
    refused = UNUSABLE
    with suppress(duckdb.Error):
        ((profile, *on),) = connection.execute(f"SELECT {wanted}").fetchall()
        why = next((why for why, is_on in zip(LOGS.values(), on, strict=True) if is_on), "")
        if profile is not None and not why:
            connection.execute("PRAGMA disable_profiling")
        refused = why
    if refused:
        raise DataIndependentFailure(refused)
    try:
        yield
    finally:
        if profile is not None:
            with suppress(duckdb.Error):
                literal = exp.Literal.string(profile).sql("duckdb")
                connection.execute(f"SET enable_profiling = {literal}")
