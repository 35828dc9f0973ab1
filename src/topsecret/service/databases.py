"""The databases that the operator named: owners choose by name and never see an address.

An address may hold a password, and whoever could type one would make the service connect to any
place in its network. Hence addresses come from the command line or the environment alone, and
every error here is in words of our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from sqlalchemy import exc, make_url

from topsecret.errors import DataIndependentFailure, InvalidParameter, SourceError
from topsecret.service.data_files import Extents
from topsecret.sources.schema import check_address, table_columns_of, tables_of

ENVIRONMENT = "TOPSECRET_SOURCES"
"""Names and addresses, ``NAME=URL``, separated by spaces or newlines."""

NAME = r"[a-z0-9][a-z0-9_-]{0,39}"
PATIENCE = "10"
"""Seconds to wait for a PostgreSQL that does not answer."""

Named = tuple[tuple[str, str], ...]
Events = tuple[str, str | None]
"""A file; or a database by its name, and a table of it."""


def named(given: Iterable[str], environment: str = "") -> Named:
    """The names and addresses in texts ``NAME=URL``.

    >>> named(["shop=sqlite:////srv/shop.db"])
    (('shop', 'sqlite:////srv/shop.db'),)
    """
    found: dict[str, str] = {}
    for text in (*environment.split(), *given):
        name, _, url = text.partition("=")
        if not re.fullmatch(NAME, name) or "://" not in url:
            # What was given may hold a password: it is not repeated.
            raise InvalidParameter(
                f"--source and {ENVIRONMENT} take NAME=URL, say "
                "shop=postgresql://user@host/database, with a name of 1 to 40 small letters, "
                "digits, dashes or underscores"
            )
        if name in found:
            raise InvalidParameter(f"there are two sources {name!r}; name each once")
        found[name] = _address(url)
    return tuple(found.items())


def _address(url: str) -> str:
    """The address with the drivers that the service comes with."""
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError):
        parsed = None
    if parsed is not None:
        if parsed.drivername in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.drivername == "postgresql+psycopg" and "connect_timeout" not in parsed.query:
            parsed = parsed.update_query_dict({"connect_timeout": PATIENCE})
        url = parsed.render_as_string(hide_password=False)
    check_address(url)
    return url


class Databases:
    """The named databases. Every method but ``names`` may block."""

    def __init__(self, sources: Named) -> None:
        self._addresses = dict(sources)

    def __repr__(self) -> str:
        return f"Databases({', '.join(self.names)})"

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""
        return tuple(sorted(self._addresses))

    def tables(self, name: str) -> tuple[str, ...]:
        """The tables that may be registered."""
        return self._schema(name)

    def columns(self, name: str, table: str) -> tuple[str, ...]:
        """The columns of one of the tables; no other can be reached, such as a system's."""
        if table not in self._schema(name):
            raise InvalidParameter(
                "there is no such table in this database; choose one that is listed"
            )
        return self._schema(name, table)

    def address(self, name: str) -> str:
        """Where it is, for the engine alone."""
        if name in self._addresses:
            return self._addresses[name]
        raise DataIndependentFailure(
            "the service was started without this dataset's database; give it as a --source"
        )

    def may_be_one(self, name: str, other: str) -> bool:
        """Whether two names may lead to one database: they may, unless they are seen not to."""
        if name == other or not {name, other} <= set(self._addresses):
            return True
        one, two = (make_url(self._addresses[each]) for each in (name, other))
        kinds = {url.get_backend_name().replace("mariadb", "mysql") for url in (one, two)}
        if len(kinds) > 1:
            return False
        named = one.database, two.database
        if not all(named) or any(str(each).startswith("file:") for each in named):
            return True
        if kinds <= {"sqlite", "duckdb"}:
            paths = [Path(str(each)).resolve() for each in named]
            with suppress(OSError):
                return paths[0].samefile(paths[1])
            return paths[0] == paths[1]
        # A server has many names, but a database of PostgreSQL one.
        elsewhere = {"dbname", "service"} & {*one.query, *two.query}
        return kinds != {"postgresql"} or bool(elsewhere) or named[0] == named[1]

    def may_be_same(self, one: Events, other: Events, extents: Extents | None = None) -> bool:
        """Whether two files, or two tables, may be the same under two names."""
        (source, table), (other_source, other_table) = one, other
        if table is None or other_table is None:
            files = Extents() if extents is None else extents
            return table == other_table and files[source].may_overlap(files[other_source])
        if source == other_source:
            return table == other_table
        # What one address calls shop.visits is visits where another's schema is shop.
        shorter, longer = sorted((table, other_table), key=len)
        same = shorter == longer or ("." not in shorter and longer.endswith(f".{shorter}"))
        return same and self.may_be_one(source, other_source)

    def _schema(self, name: str, table: str | None = None) -> tuple[str, ...]:
        if name not in self._addresses:
            raise InvalidParameter(
                "the service was started without a database of this name; give it as a --source"
            )
        url = self._addresses[name]
        try:
            return tables_of(url) if table is None else table_columns_of(url, table)
        except SourceError:
            pass  # raised below, outside: the text tells where the database is
        raise InvalidParameter("the database cannot be read at present; its operator should look")
