"""Pasted SQL behind Python's database interface (PEP 249), for tools that speak it.

>>> import pathlib, tempfile
>>> from topsecret import dbapi
>>> folder = tempfile.TemporaryDirectory()
>>> file = pathlib.Path(folder.name) / "visits.csv"
>>> _ = file.write_text("user,place\\n" + "\\n".join(f"{n},tea" for n in range(500)))
>>> cursor = dbapi.connect(file, person="user", epsilon=5).cursor()
>>> cursor.execute("SELECT place FROM visits GROUP BY place ORDER BY COUNT(DISTINCT user) DESC "
...                "LIMIT 1").fetchall()
[(1, 'tea', None, None)]
>>> cursor.receipt["Protected"].split(". ")[0]
"each person, identified by the exact value of 'user', with all their rows at once"
>>> folder.cleanup()

A row is a rank, the items, and where the query asks for counts the noisy count and how far off it
may be with 95% probability. Every ``execute`` is a question of its own and costs what the
connection says. The errors of the interface are topsecret's own.
"""

from __future__ import annotations

import builtins
from typing import Any

from topsecret.dbapi.cursor import NUMBER, STRING, Connection, Cursor
from topsecret.errors import InvalidParameter, SourceError, TopSecretError

__all__ = [
    "NUMBER",
    "STRING",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel = "2.0"
threadsafety = 1
"""Threads may share the module, not connections."""
paramstyle = "named"
"""Never used: a value of a query is written in its text."""

Warning = builtins.UserWarning  # noqa: A001 - the name that PEP 249 gives it
Error = DatabaseError = InternalError = IntegrityError = TopSecretError
InterfaceError = ProgrammingError = NotSupportedError = DataError = InvalidParameter
OperationalError = SourceError


def connect(source: Any, **options: Any) -> Connection:
    """A connection that asks about one source.

    Parameters: ``source``: where the rows are, as for ``topsecret.sql``; ``options``: its keywords,
    which hold for every query: ``privacy`` or ``person``, ``epsilon``, ``delta``, ``ledger`` and
    so on.
    """
    return Connection(source, options)
