"""What a session is told before its first statement, engine by engine; its source has the reasons.

A statement means what it says only under certain settings, and a role, a database or the caller
may have changed them. What is not listed here does not change the counts.
"""

from __future__ import annotations

POSTGRES: dict[str, str] = {
    # With "off" a backslash in a literal escapes: a value of a condition could end its quotes.
    "standard_conforming_strings": "on",
    # Where the client's encoding lacks a character, one row with it would fail the query.
    "client_encoding": "UTF8",
    # The text of a time with a zone, and what a condition without one is compared with.
    "TimeZone": "UTC",
    # The text of dates, intervals, floats and bytes, which items are counted under.
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    # "x = NULL" would become true for some rows.
    "transform_null_equals": "off",
    # Names of types would be in quotes, and what a column holds would not be known by them.
    "quote_all_identifiers": "off",
    # An index may otherwise return a random part of the rows.
    "gin_fuzzy_search_limit": "0",
}
"""For the transaction alone: the caller's connection is as it was when it ends."""

POSTGRES_PATH = "pg_catalog, pg_temp"
"""Where functions and operators are looked up while rows are read. A function of another user, of
the same name as PostgreSQL's and a better match for its arguments, would be given salt, person
and item. pg_temp stands last: where it is not named it is searched first."""

DUCKDB: dict[str, str | bool] = {
    # The order where none is written: it decides which items the cap keeps.
    "default_order": "ASC",
    "default_null_order": "NULLS_LAST",
    # Which texts are equal where no collation is written.
    "default_collation": "",
    # The text of times with a zone, and the parts of dates.
    "TimeZone": "UTC",
    "Calendar": "gregorian",
    # What casts, comparisons and divisions do.
    "old_implicit_casting": False,
    "integer_division": False,
    "ieee_floating_point_ops": True,
    # A name that is no table must not be looked up among the variables of a program.
    "python_enable_replacements": False,
    # DuckDB's own progress bar on a terminal would show how the counting goes.
    "enable_progress_bar_print": False,
}
"""For the caller's connection, and set back afterwards."""

MYSQL: dict[str, str] = {
    # NO_BACKSLASH_ESCAPES and ANSI_QUOTES change what a literal is, PIPES_AS_CONCAT an operator.
    "sql_mode": "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES",
    "time_zone": "+00:00",
}
"""For the session, and set back afterwards. Not tried on a server."""
