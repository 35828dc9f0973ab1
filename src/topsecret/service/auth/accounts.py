"""Who may come in: the owner, the analysts, their sessions and their machines' keys."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import RowMapping, delete, func, select, update

from topsecret.errors import InvalidParameter, Taken
from topsecret.ledger.store import Store
from topsecret.service.auth import credentials
from topsecret.service.schema import KEYS, NOTES, SESSIONS, USERS

Role = Literal["owner", "analyst"]

SESSION_SECONDS = 12 * 3600.0
RECENT = 5.0
"""Seconds for which a session or key that was found valid is believed without looking again."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
_SET_UP = "set-up token"


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who was recognised."""

    name: str
    role: Role

    @property
    def owns(self) -> bool:
        """Whether this is the owner."""
        return self.role == "owner"


@dataclass(frozen=True, slots=True)
class Key:
    """An API key as its user may see it: never the secret."""

    id: str
    label: str
    created: float


class Accounts:
    """Accounts in the service's store. Every method may block: call it from a thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._recent: dict[bytes, tuple[User, float]] = {}
        self._verified: dict[bytes, str] = {}

    # The first run

    @property
    def empty(self) -> bool:
        """Whether nobody has an account yet."""
        with self._store.reading() as connection:
            return connection.execute(select(func.count()).select_from(USERS)).scalar_one() == 0

    def new_set_up_token(self) -> str:
        """A token that makes the owner's account, once; an earlier one ends."""
        token = credentials.token()
        with self._store.writing() as connection:
            connection.execute(delete(NOTES).where(NOTES.c.name == _SET_UP))
            values = {"name": _SET_UP, "value": credentials.hash_token(token)}
            connection.execute(NOTES.insert().values(values))
        return token

    def may_set_up(self, token: str) -> bool:
        """Whether the token is the one that was printed and is still unused."""
        with self._store.reading() as connection:
            query = select(NOTES.c.value).where(NOTES.c.name == _SET_UP)
            kept = connection.execute(query).scalar_one_or_none()
        return credentials.same(kept or "", credentials.hash_token(token))

    def set_up(self, token: str, name: str, password: str) -> None:
        """Make the owner's account; the token is used up with it."""
        row = _user_row(name, "owner", password)
        with self._store.writing() as connection:
            used = connection.execute(
                delete(NOTES).where(
                    NOTES.c.name == _SET_UP, NOTES.c.value == credentials.hash_token(token)
                )
            )
            if used.rowcount != 1:
                raise InvalidParameter("this set-up link was used already; log in instead")
            connection.execute(USERS.insert().values(row))

    # People

    def add(self, name: str, role: Role, password: str) -> None:
        """Make an account."""
        row = _user_row(name, role, password)
        try:
            with self._store.writing() as connection:
                connection.execute(USERS.insert().values(row))
        except Taken:
            raise InvalidParameter(f"there is an account {name!r} already") from None

    def users(self) -> list[User]:
        """Everybody with an active account."""
        with self._store.reading() as connection:
            query = select(USERS).where(USERS.c.active == 1).order_by("name")
            return [_user(row) for row in connection.execute(query).mappings()]

    def set_password(self, name: str, password: str) -> None:
        """Change a password; all sessions of the account end."""
        hashed = credentials.hash_password(password)
        with self._store.writing() as connection:
            changed = connection.execute(
                update(USERS).where(USERS.c.name == name).values(password=hashed)
            )
            if changed.rowcount != 1:
                raise InvalidParameter(f"there is no account {name!r}")
            connection.execute(delete(SESSIONS).where(SESSIONS.c.user == name))
        self._recent.clear()

    def deactivate(self, name: str) -> None:
        """Let an analyst in no more; what was asked stays."""
        with self._store.writing() as connection:
            done = connection.execute(
                update(USERS)
                .where(USERS.c.name == name, USERS.c.role == "analyst", USERS.c.active == 1)
                .values(active=0)
            )
            if done.rowcount != 1:
                raise InvalidParameter(f"there is no analyst {name!r}")
            connection.execute(delete(SESSIONS).where(SESSIONS.c.user == name))
        self._recent.clear()

    # Sessions

    def check_password(self, name: str, password: str) -> bool:
        """Whether name and password belong together."""
        with self._store.reading() as connection:
            query = select(USERS).where(USERS.c.name == name, USERS.c.active == 1)
            row = connection.execute(query).mappings().one_or_none()
        return credentials.password_matches(password, None if row is None else row["password"])

    def log_in(self, name: str, password: str) -> str | None:
        """A new session's token, or None."""
        if not self.check_password(name, password):
            return None
        token, now = credentials.token(), time.time()
        values = {
            "hash": credentials.hash_token(token),
            "user": name,
            "expires": now + SESSION_SECONDS,
        }
        with self._store.writing() as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.expires < now))
            connection.execute(SESSIONS.insert().values(values))
        return token

    def log_out(self, token: str) -> None:
        """End a session."""
        with self._store.writing() as connection:
            connection.execute(
                delete(SESSIONS).where(SESSIONS.c.hash == credentials.hash_token(token))
            )
        self._recent.clear()

    def recent(self, secret: str) -> User | None:
        """Whom this process recognised by the secret a moment ago, without blocking."""
        found = self._recent.get(credentials.fingerprint(secret))
        return found[0] if found is not None and found[1] > time.monotonic() else None

    def by_session(self, token: str) -> User | None:
        """Whose session it is."""
        with self._store.reading() as connection:
            query = (
                select(USERS)
                .join(SESSIONS, SESSIONS.c.user == USERS.c.name)
                .where(
                    SESSIONS.c.hash == credentials.hash_token(token),
                    SESSIONS.c.expires > time.time(),
                    USERS.c.active == 1,
                )
            )
            row = connection.execute(query).mappings().one_or_none()
        return None if row is None else self._remember(token, _user(row))

    # Machines

    def new_key(self, user: str, label: str) -> str:
        """A key for a machine that asks in the user's name; shown this once."""
        if not 0 < len(label) <= 60 or not label.isprintable():
            raise InvalidParameter("a key needs a label of 1 to 60 printable characters")
        identity, key, hashed = credentials.new_key()
        values = {"id": identity, "user": user, "label": label, "hash": hashed}
        with self._store.writing() as connection:
            connection.execute(KEYS.insert().values(**values, revoked=0, created=time.time()))
        return key

    def keys(self, user: str) -> list[Key]:
        """The user's keys that still open the door."""
        query = select(KEYS).where(KEYS.c.user == user, KEYS.c.revoked == 0).order_by("created")
        with self._store.reading() as connection:
            rows = connection.execute(query).mappings()
            return [Key(row["id"], row["label"], row["created"]) for row in rows]

    def revoke_key(self, user: str, identity: str) -> bool:
        """End a key of the user's; False when there is no such key."""
        mine = (KEYS.c.id == identity, KEYS.c.user == user, KEYS.c.revoked == 0)
        with self._store.writing() as connection:
            done = connection.execute(update(KEYS).where(*mine).values(revoked=1))
        self._recent.clear()
        return done.rowcount == 1

    def verified(self, key: str) -> bool:
        """Whether this process has found the key right before; it may be revoked by now."""
        return credentials.fingerprint(key) in self._verified

    def by_key(self, key: str) -> User | None:
        """Whose key it is."""
        identity, secret = credentials.parse_key(key)
        with self._store.reading() as connection:
            query = (
                select(USERS.c.name, USERS.c.role, KEYS.c.hash)
                .join(KEYS, KEYS.c.user == USERS.c.name)
                .where(KEYS.c.id == identity, KEYS.c.revoked == 0, USERS.c.active == 1)
            )
            row = connection.execute(query).mappings().one_or_none()
        # The slow hash once per key and process; afterwards whether the key still stands.
        known = row is not None and self._verified.get(credentials.fingerprint(key)) == row["hash"]
        if not known and not credentials.key_matches(secret, None if row is None else row["hash"]):
            self._verified.pop(credentials.fingerprint(key), None)
            return None
        if row is None:
            return None
        if len(self._verified) > 10_000:
            self._verified.clear()
        self._verified[credentials.fingerprint(key)] = row["hash"]
        return self._remember(key, _user(row))

    def _remember(self, secret: str, user: User) -> User:
        if len(self._recent) > 10_000:
            self._recent.clear()
        self._recent[credentials.fingerprint(secret)] = user, time.monotonic() + RECENT
        return user


def _user(row: RowMapping) -> User:
    return User(row["name"], row["role"])


def _user_row(name: str, role: Role, password: str) -> dict[str, object]:
    if not _NAME.fullmatch(name):
        raise InvalidParameter(
            "an account's name has 1 to 40 small letters, digits, dots, dashes or underscores"
        )
    hashed = credentials.hash_password(password)
    return {"name": name, "role": role, "password": hashed, "active": 1, "created": time.time()}
