"""The latest value of a public column, such as when a nightly job last filled the tables.

A value that is read from people's rows is data: one person's row can move the latest time of an
event. So the column belongs to a table that the caller declares public, and here is refused what
is seen to be made of the events after all.
"""

from __future__ import annotations

from collections.abc import Collection

from topsecret.errors import DataIndependentFailure, SourceError

LONGEST = 100
SECONDS = 10.0
"""How long PostgreSQL and SQLite may take: a table that somebody has locked, or a view that never
ends, must not hold up the caller."""


def latest_value(
    url: str,
    table: str,
    column: str,
    *,
    private: Collection[str],
    persons: Collection[str],
    elsewhere: Collection[str] = (),
    trusted: bool = False,
) -> str:
    """The largest value of a public table's column, as text.

    ``private`` are the tables of events, ``persons`` their columns of people: a table that is one
    of them, or a view made of one, is refused always. So are tables of any schema with the name of
    one that was registered by another address (``elsewhere``), and those that the database keeps
    for itself. Other views, and tables with a column of a person's name, are refused unless they
    are ``trusted``. Every failure is one that no row of the events can influence.
    """
    from topsecret.sources.engines.sqlalchemy import SqlSource

    try:
        found = SqlSource(url, table).latest(column, private, elsewhere, persons, trusted, SECONDS)
    except DataIndependentFailure:
        raise
    except SourceError:
        found = None
    text = "" if found is None else str(found).strip()
    if not 0 < len(text) <= LONGEST or not text.isprintable():
        raise DataIndependentFailure(
            f"the version cannot be read from {column} of {table}: it needs a row, a column that "
            f"has a largest value, of at most {LONGEST} printable characters, an end within "
            f"{SECONDS:g} s, and nobody who keeps the table locked"
        )
    return text
