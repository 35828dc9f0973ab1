"""When two spellings name one table or column: case counts for nothing, in ASCII letters alone.

DuckDB, SQLite and PostgreSQL fold no other letter: to them ``straße`` and ``strasse``, or ``É`` and
``é``, are two tables, and what is judged must be what is read.

>>> folded("Orders") == folded("ORDERS"), folded("straße") == folded("strasse")
(True, False)
"""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def folded(name: str) -> str:
    """A name as engines compare it."""
    return name.translate(_LOWER)
