"""Who may come in: owners, analysts, their sessions and their machines' keys."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, func, or_, select, update

from topsecret.errors import InvalidParameter, LedgerError, Taken
from topsecret.ledger.store import Store
from topsecret.service.auth import credentials
from topsecret.service.auth.people import SCOPES, Key, Role, Scope, Session, User
from topsecret.service.auth.recognised import Recognised
from topsecret.service.auth.standing import check_standing, ended, locked
from topsecret.service.problems import Problem
from topsecret.service.schema import IDENTITIES, KEYS, NOTES, ROLES, SAVED, SESSIONS, USERS, put

SESSION_SECONDS = 12 * 3600.0
MOST_KEYS = 100
"""How many keys of one account may open the door."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
_SET_UP = "set-up token"
_SHOWN = 16
"""How much of its hash names a session: a random token cannot be found from it."""


class Accounts:
    """Accounts in the service's store. Every method may block: call it from a thread."""

    def __init__(self, store: Store, recognised: Recognised | None = None) -> None:
        self._store = store
        self.recognised = recognised or Recognised()

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
            put(connection, NOTES, {"name": _SET_UP, "value": credentials.hash_token(token)})
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

    def add(self, name: str, role: Role, password: str, *, first: bool = False) -> None:
        """Make an account; a ``first`` password opens nothing but the form for another."""
        row = _user_row(name, role, password) | {"first": int(first)}
        try:
            with self._store.writing() as connection:
                connection.execute(USERS.insert().values(row))
        except Taken:
            raise InvalidParameter(
                f"there is an account {name!r} already; choose another name"
            ) from None

    def users(self) -> list[User]:
        """Everybody with an active account."""
        with self._store.reading() as connection:
            query = select(USERS).where(USERS.c.active == 1).order_by("name")
            return [_user(row) for row in connection.execute(query).mappings()]

    def set_password(
        self, name: str, password: str, *, first: bool = False, checked: str | None = None
    ) -> str:
        """Change a password; all sessions and keys of the account end. The hash that is kept.

        Whoever changes their own has had the old one ``checked``: it is that still, or nothing is.
        """
        hashed = credentials.hash_password(password)
        standing = [USERS.c.name == name, USERS.c.active == 1]
        standing += [] if checked is None else [USERS.c.password == checked]
        with self._store.writing() as connection:
            changed = connection.execute(
                update(USERS).where(*standing).values(password=hashed, first=int(first))
            )
            if changed.rowcount != 1 and checked is not None:
                raise ended()
            if changed.rowcount != 1:
                raise InvalidParameter(f"there is no account {name!r}; check its name")
            _end_all(connection, name)
        self.recognised.forget()
        return hashed

    def deactivate(self, name: str) -> None:
        """Delete what an account had: password, sessions, keys, roles, saved questions.

        One owner remains. The name stays taken: the ledger knows by it who spent what.
        """
        active = USERS.c.active == 1
        owners = select(USERS.c.name).where(USERS.c.role == "owner", active)
        with self._store.writing() as connection:
            # Two owners at once who delete each other are one after the other.
            connection.execute(owners.order_by(USERS.c.name).with_for_update())
            done = connection.execute(
                update(USERS).where(USERS.c.name == name, active).values(active=0, password="")
            )
            if done.rowcount != 1:
                raise InvalidParameter(f"there is no account {name!r}; check its name")
            if connection.execute(owners.limit(1)).first() is None:
                raise InvalidParameter("the last owner stays; make another owner first")
            _end_all(connection, name)
            connection.execute(delete(KEYS).where(KEYS.c.user == name))
            connection.execute(delete(ROLES).where(ROLES.c.user == name))
            connection.execute(delete(SAVED).where(SAVED.c.user == name))
            connection.execute(delete(IDENTITIES).where(IDENTITIES.c.user == name))
        self.recognised.forget()

    # Sessions

    def check_password(self, name: str, password: str) -> bool:
        """Whether name and password belong together."""
        return self.checked(name, password) is not None

    def checked(self, name: str, password: str) -> str | None:
        """The hash of the account's password, if this is the password."""
        name = "" if "\0" in name else name  # nobody's, and no text that PostgreSQL looks up
        with self._store.reading() as connection:
            query = select(USERS).where(USERS.c.name == name, USERS.c.active == 1)
            row = connection.execute(query).mappings().one_or_none()
        kept: str | None = None if row is None else row["password"]
        return kept if credentials.password_matches(password, kept) else None

    def log_in(self, name: str, password: str, agent: str = "") -> str | None:
        """A new session's token, or None."""
        checked = self.checked(name, password)
        if checked is not None:
            with suppress(Problem):  # the password is another one by now
                return self.begin(name, agent, checked)
        return None

    def begin(self, name: str, agent: str = "", checked: str | None = None) -> str:
        """A new session's token, for somebody who was recognised: by a password, its hash."""
        token, now = credentials.token(), time.time()
        values = {
            "hash": credentials.hash_token(token),
            "user": name,
            "expires": now + SESSION_SECONDS,
            "begun": now,
            "agent": "".join(c for c in agent if c.isprintable())[:120],
        }
        with self._store.writing() as connection:
            if locked(connection, name)["password"] != checked and checked is not None:
                raise ended()
            # Of all accounts, without waiting for anybody.
            old = select(SESSIONS.c.hash).where(SESSIONS.c.expires < now)
            free = old.with_for_update(skip_locked=True)
            connection.execute(delete(SESSIONS).where(SESSIONS.c.hash.in_(free)))
            connection.execute(SESSIONS.insert().values(values))
        return token

    def owners(self) -> list[str]:
        """Everybody who owns."""
        return [one.name for one in self.users() if one.owns]

    def sessions(self, name: str, token: str = "") -> list[Session]:
        """The sessions of an account, the latest first; that of ``token`` is marked."""
        mine = (SESSIONS.c.user == name, SESSIONS.c.expires > time.time())
        query = select(SESSIONS).where(*mine).order_by(SESSIONS.c.expires.desc())
        here = credentials.hash_token(token) if token else ""
        with self._store.reading() as connection:
            return [
                Session(row.hash[:_SHOWN], row.begun, row.agent or "", row.hash == here)
                for row in connection.execute(query)
            ]

    def end_session(self, name: str, identity: str) -> bool:
        """End one of an account's sessions; False when there is no such session."""
        one = func.substr(SESSIONS.c.hash, 1, _SHOWN) == identity
        with self._store.writing() as connection:
            done = connection.execute(delete(SESSIONS).where(SESSIONS.c.user == name, one))
        self.recognised.forget()
        return done.rowcount > 0

    def log_out(self, token: str) -> None:
        """End a session."""
        with self._store.writing() as connection:
            connection.execute(
                delete(SESSIONS).where(SESSIONS.c.hash == credentials.hash_token(token))
            )
        self.recognised.forget()

    def by_session(self, token: str) -> User | None:
        """Whose session it is."""
        mark = self.recognised.mark
        with self._store.reading() as connection:
            session = credentials.hash_token(token)
            query = (
                select(USERS)
                .join(SESSIONS, SESSIONS.c.user == USERS.c.name)
                .where(
                    SESSIONS.c.hash == session,
                    SESSIONS.c.expires > time.time(),
                    USERS.c.active == 1,
                )
            )
            row = connection.execute(query).mappings().one_or_none()
            roles = () if row is None else _roles(connection, row["name"])
        if row is None:
            return None
        who = replace(_user(row), roles=roles, session=session)
        return self.recognised.remember("session", token, who, mark)

    # Machines

    def new_key(
        self,
        user: str,
        label: str,
        scope: Scope = "all",
        days: int | None = None,
        maker: User | None = None,
        told: Callable[[str], object] = lambda _: None,
    ) -> str:
        """A key for a machine that asks in the user's name; shown this once.

        A key that another key made ends with it, at the latest. Its id is ``told`` beforehand.
        """
        if not 0 < len(label) <= 60 or not label.isprintable():
            raise InvalidParameter("a key needs a label of 1 to 60 printable characters")
        if scope not in SCOPES:
            raise InvalidParameter(f"a key's scope is one of {', '.join(SCOPES)}")
        identity, key, hashed = credentials.new_key()
        now = time.time()
        ends = [now + 86400 * days] if days is not None else []
        if maker is not None and maker.ends is not None:
            ends.append(maker.ends)
        values: dict[str, object] = {"id": identity, "user": user, "label": label, "hash": hashed}
        values |= {"scope": scope, "expires": min(ends, default=None)}
        values |= {"parent": maker.key if maker is not None and maker.key else None}
        told(identity)
        with self._store.writing() as connection:
            # It locks the account: two keys at once would both find room for one.
            check_standing(connection, maker or User(user, "analyst"))
            mine = select(func.count()).select_from(KEYS).where(KEYS.c.user == user, *_stands())
            if connection.execute(mine).scalar_one() >= MOST_KEYS:
                raise InvalidParameter(
                    f"an account has at most {MOST_KEYS} keys; revoke one that is not used any more"
                )
            connection.execute(KEYS.insert().values(**values, revoked=0, created=now))
        return key

    def keys(self, user: str) -> list[Key]:
        """The user's keys that still open the door."""
        query = select(KEYS).where(KEYS.c.user == user, *_stands()).order_by("created")
        with self._store.reading() as connection:
            rows = connection.execute(query).mappings()
            return [
                Key(row["id"], row["label"], row["created"], row["scope"] or "all", row["expires"])
                for row in rows
            ]

    def revoke_key(self, user: str, identity: str) -> bool:
        """End a key of the user's and those that it made; False when there is no such key."""
        mine = (KEYS.c.id == identity, KEYS.c.user == user, KEYS.c.revoked == 0)
        account = select(USERS.c.name).where(USERS.c.name == user)
        with self._store.writing() as connection:
            connection.execute(account.with_for_update())  # first, as for a new password
            done = connection.execute(update(KEYS).where(*mine).values(revoked=1))
            ended = {identity} if done.rowcount == 1 else set()
            while ended:
                made = select(KEYS.c.id).where(KEYS.c.parent.in_(ended), KEYS.c.revoked == 0)
                ended = set(connection.execute(made).scalars())
                connection.execute(update(KEYS).where(KEYS.c.id.in_(ended)).values(revoked=1))
        self.recognised.forget()
        return done.rowcount == 1

    def key_hash(self, identity: str) -> str | None:
        """The hash of a key of this id that opens the door, if there is one."""
        query = select(KEYS.c.hash).where(KEYS.c.id == identity, *_stands())
        with self._store.reading() as connection:
            return connection.execute(query).scalar_one_or_none()

    def by_key(self, key: str) -> User | None:
        """Whose key it is."""
        mark = self.recognised.mark
        identity, secret = credentials.parse_key(key)
        with self._store.reading() as connection:
            query = (
                select(USERS.c.name, USERS.c.role, KEYS.c.hash, KEYS.c.scope, KEYS.c.expires)
                .join(KEYS, KEYS.c.user == USERS.c.name)
                .where(KEYS.c.id == identity, *_stands(), USERS.c.active == 1)
            )
            row = connection.execute(query).mappings().one_or_none()
            roles = () if row is None else _roles(connection, row["name"])
        if row is None or not credentials.key_matches(secret, row["hash"]):
            return None
        if credentials.hashed_slowly(row["hash"]):
            self._rewrite(identity, row["hash"], credentials.hash_token(secret))
        scope: Scope = row["scope"] or "all"
        who = User(row["name"], row["role"], scope, identity, row["expires"], roles=roles)
        return self.recognised.remember("key", key, who, mark)

    def _rewrite(self, identity: str, slow: str, quick: str) -> None:
        """Keep a key's quick hash from now on: 256 random bits need no slow one.

        A store that cannot be written now stops nobody who reads.
        """
        mine = update(KEYS).where(KEYS.c.id == identity, KEYS.c.hash == slow)
        with suppress(LedgerError), self._store.writing() as connection:
            connection.execute(mine.values(hash=quick))


def _stands() -> tuple[ColumnElement[bool], ...]:
    """The keys that were not revoked and have not ended."""
    return KEYS.c.revoked == 0, or_(KEYS.c.expires.is_(None), KEYS.c.expires > time.time())


def _end_all(connection: Connection, user: str) -> None:
    """Nothing that opened the door to the account opens it any more."""
    connection.execute(delete(SESSIONS).where(SESSIONS.c.user == user))
    connection.execute(update(KEYS).where(KEYS.c.user == user).values(revoked=1))


def _user(row: RowMapping) -> User:
    return User(row["name"], row["role"], first=bool(row["first"]))


def _roles(connection: Connection, user: str) -> tuple[tuple[str, str], ...]:
    query = select(ROLES.c.dataset, ROLES.c.role).where(ROLES.c.user == user)
    return tuple((row.dataset, row.role) for row in connection.execute(query))


def check_name(name: str) -> str:
    """A name that an account may have."""
    if not _NAME.fullmatch(name):
        raise InvalidParameter(
            "an account's name has 1 to 40 small letters, digits, dots, dashes or underscores"
        )
    return name


def _user_row(name: str, role: Role, password: str) -> dict[str, object]:
    check_name(name)
    hashed = credentials.hash_password(password)
    return {"name": name, "role": role, "password": hashed, "active": 1, "created": time.time()}
