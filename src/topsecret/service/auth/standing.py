"""Whether a person may still do what they were recognised for, in the transaction that writes it.

Between the look at a key, a session or a password and the write lies a slow hash, or a folder that
does not answer. Meanwhile an owner may have reset the password, ended the key or deleted the
account, and nothing that the request makes may outlive that. So the transaction that writes looks
again. On SQLite writers are one after the other. On PostgreSQL, whose statements see what others
have committed by then, each row that is looked at is locked until the end: whoever ends it came
before, and is seen, or comes afterwards, and ends what was written as well. Two who change each
other's rows would wait for each other, so guarded transactions are one after the other there, too.
All others take the row of an account before what is the account's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping, select, text

from topsecret.ledger import Ledger
from topsecret.ledger.holds import Holds
from topsecret.ledger.store import Store
from topsecret.service.auth.people import User
from topsecret.service.problems import Problem
from topsecret.service.schema import KEYS, ROLES, SESSIONS, USERS

T = TypeVar("T")

CHANGES_LOCK = 0x746F7076  # of its own: guarded transactions are one after the other


def active(store: Store, name: str) -> bool:
    """Whether there is an account of this name, and it was not deleted."""
    query = select(USERS.c.name).where(USERS.c.name == name, USERS.c.active == 1)
    with store.reading() as connection:
        return connection.execute(query).first() is not None


def locked(connection: Connection, name: str) -> RowMapping:
    """An account that is active until the transaction ends; a ``Problem`` where there is none."""
    query = select(USERS).where(USERS.c.name == name, USERS.c.active == 1).with_for_update()
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        raise ended()
    return row


def check_standing(connection: Connection, person: User) -> RowMapping:
    """The account of somebody whose key or session stands, and who has a password of their own."""
    row = locked(connection, person.name)
    key = select(KEYS.c.id).where(KEYS.c.id == person.key, KEYS.c.revoked == 0)
    session = select(SESSIONS.c.hash).where(SESSIONS.c.hash == person.session)
    for given, query in ((person.key, key), (person.session, session)):
        if given and connection.execute(query.with_for_update()).first() is None:
            raise ended()
    if row["first"]:
        raise ended()
    return row


def check_asker(connection: Connection, asker: User | str) -> RowMapping:
    """The account of somebody who asks, or, by its name alone, whose schedule does."""
    if isinstance(asker, User):
        return check_standing(connection, asker)
    return locked(connection, asker)


def check_rights(connection: Connection, person: User) -> None:
    """The same, for somebody who has lost no role since they were recognised."""
    row = check_standing(connection, person)
    mine = select(ROLES.c.dataset, ROLES.c.role).where(ROLES.c.user == person.name)
    roles = {(one.dataset, one.role) for one in connection.execute(mine.with_for_update())}
    if row["role"] != person.role or not roles.issuperset(person.roles):
        words = "Your rights have changed meanwhile. Nothing was done; try again."
        raise Problem(403, "owner_only", words)


def guarded(part: T, person: User) -> T:
    """A part of the service that writes nothing unless the person may still have it written."""
    made = copy(part)
    for name, value in vars(part).items():
        if isinstance(value, Store):
            setattr(made, name, _Guarded(value, lambda found: check_rights(found, person)))
        elif isinstance(value, Ledger | Holds):  # they write, too
            setattr(made, name, guarded(value, person))
    return made


class _Guarded:
    """A store whose transactions begin with a check."""

    def __init__(self, store: Store, check: Callable[[Connection], None]) -> None:
        self._store, self._check = store, check

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._store.writing() as connection:
            if not self._store.sqlite:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({CHANGES_LOCK})"))
            self._check(connection)
            yield connection


def ended() -> Problem:
    """What a request came with ended while it was under way."""
    words = "What you came with has ended meanwhile. Nothing was done; sign in again."
    return Problem(401, "not_logged_in", words, {"www-authenticate": "Bearer"})
