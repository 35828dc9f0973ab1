"""The audit trail: who did what, each entry tied to all before it by its hash.

What an account changes is noted before it is done, so that nothing is done without an entry; where
it was refused after all, a second entry says so. What was asked, and what it cost, is in the
ledger, whose chains are of the same kind.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, select, text

from topsecret.ledger.chain import GENESIS, Entry, canonical, now
from topsecret.ledger.store import Store
from topsecret.service import texts
from topsecret.service.schema import AUDIT

NAME = "service"
LOCK = 0x746F7075  # any constant: two processes must not append at once
PAGE = 1000
FIELDS = (
    "analyst",
    "answer",
    "cap",
    "columns",
    "dataset",
    "days",
    "delta",
    "epsilon",
    "every",
    "file",
    "filters",
    "key",
    "label",
    "name",
    "person",
    "person_column",
    "picks",
    "queries",
    "reservation",
    "role",
    "schedule",
    "scope",
    "session",
    "sign_in",
    "source",
    "sql",
    "start",
    "state",
    "table",
    "times",
    "title",
    "trust_view",
    "version",
    "version_column",
    "version_from",
    "version_table",
    "version_trusted",
)
"""What an entry repeats of a request. Passwords and tokens have other names."""
CUT = "…"
LONGEST = 200
"""Characters of a value's JSON that an entry keeps, for entries are never deleted."""
_LONGER = {"columns": 10_000}
"""Which columns were opened, which owners alone can send."""
_KEY = 16
"""A key's id is shorter; were the whole key sent in its place, its secret is cut off."""


class Trail:
    """The trail of one service. Every method may block."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def note(self, by: str, action: str, details: Mapping[str, object] | None = None) -> int:
        """Append an entry; its position."""
        with self._store.writing() as connection:
            if not self._store.sqlite:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
            last = _last(connection)
            body = {"by": by} | dict(details or {})
            entry = Entry.after(last, NAME, now(), action, body)
            values = {name: getattr(entry, name) for name in AUDIT.columns.keys()}  # noqa: SIM118
            connection.execute(AUDIT.insert().values(values))
        return entry.position

    def page(self, before: int | None = None, most: int = 100) -> list[Entry]:
        """The latest entries, newest first."""
        query = select(AUDIT).order_by(AUDIT.c.position.desc()).limit(most)
        if before is not None:
            query = query.where(AUDIT.c.position < before)
        with self._store.reading() as connection:
            return [_entry(row) for row in connection.execute(query).mappings()]

    def all(self) -> Iterator[Entry]:
        """Every entry, oldest first."""
        position = 0
        while True:
            query = select(AUDIT).where(AUDIT.c.position > position).order_by(AUDIT.c.position)
            with self._store.reading() as connection:
                found = connection.execute(query.limit(PAGE)).mappings().all()
            yield from (_entry(row) for row in found)
            if len(found) < PAGE:
                return
            position = found[-1]["position"]

    def reached(self) -> tuple[int, str]:
        """How many entries there are, and the hash of the last."""
        with self._store.reading() as connection:
            last = _last(connection)
        return (0, GENESIS) if last is None else (last.position, last.hash)

    def passed(self, entries: int, head: str) -> bool:
        """Whether the chain once ended so."""
        at = (AUDIT.c.position == entries, AUDIT.c.hash == head)
        with self._store.reading() as connection:
            return entries == 0 or connection.execute(select(AUDIT).where(*at)).first() is not None


def faults(entries: Iterator[Entry]) -> Iterator[str]:
    """What is wrong with a chain that should be whole."""
    position, head = 0, GENESIS
    for entry in entries:
        position += 1
        if (entry.position, entry.previous) != (position, head) or not entry.genuine():
            yield f"entry {entry.position} is not what was written"
        position, head = entry.position, entry.hash


def shown(entry: Entry) -> dict[str, Any]:
    """An entry as plain values, as it was written."""
    details = dict(entry.record)
    return {
        "position": entry.position,
        "time": entry.time,
        "by": details.pop("by"),
        "action": entry.event,
        "details": details,
        "hash": entry.hash,
    }


def details(given: Mapping[str, Any]) -> dict[str, object]:
    """What an entry repeats of a request: public fields, each cut to a length."""
    found = {
        name: _short(given[name], _LONGER.get(name, LONGEST))
        for name in FIELDS
        if given.get(name) not in (None, "", [])
    }
    if "key" in found:
        found["key"] = str(found["key"])[:_KEY]
    return found


def _short(value: object, most: int) -> object:
    """A value whose JSON has at most so many letters, or the beginning of its text."""
    try:
        plain = _plain(value)
    except RecursionError:  # lists in lists
        return CUT
    if len(canonical(plain)) <= most:
        return plain
    text = ", ".join(plain) if isinstance(plain, list) else str(plain)
    # What is not ASCII is written as six letters or twelve.
    fits = bisect_right(range(most), most, key=lambda length: len(canonical(text[:length] + CUT)))
    return text[: fits - 1] + CUT


def _plain(value: object) -> object:
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return [texts.shown(str(one)) for one in value]
    return texts.shown(str(value))


def _last(connection: Connection) -> Entry | None:
    query = select(AUDIT).order_by(AUDIT.c.position.desc()).limit(1)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _entry(row)


def _entry(row: Mapping[Any, Any]) -> Entry:
    return Entry(NAME, **row)
