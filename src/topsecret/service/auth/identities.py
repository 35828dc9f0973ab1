"""Whose account it is that a provider's subject signs in to.

An owner makes an account that waits for a name; the first subject whom the provider calls so gets
it, for good. An account with a password is never given to a subject: a provider's names must not
open the doors of those who were here before.
"""

from __future__ import annotations

import time

from sqlalchemy import select

from topsecret.errors import InvalidParameter, Taken
from topsecret.ledger.store import Store
from topsecret.service.auth.accounts import check_name
from topsecret.service.auth.people import Role
from topsecret.service.schema import IDENTITIES, USERS


class Identities:
    """The subjects that are known. Every method may block."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def invite(self, name: str, role: Role) -> None:
        """An account without a password that waits for somebody of this name."""
        row = {"name": check_name(name), "role": role, "password": "", "active": 1, "first": 0}
        try:
            with self._store.writing() as connection:
                connection.execute(USERS.insert().values(**row, created=time.time()))
        except Taken:
            raise InvalidParameter(
                f"there is an account {name!r} already; choose another name"
            ) from None

    def account(self, issuer: str, subject: str, name: str) -> str | None:
        """The subject's account, or one that waits for the name; None when there is neither."""
        same = (IDENTITIES.c.issuer == issuer, IDENTITIES.c.subject == subject)
        with self._store.writing() as connection:
            query = select(IDENTITIES.c.user).where(*same)
            known: str | None = connection.execute(query).scalar_one_or_none()
            if known is not None:
                active = select(USERS.c.name).where(USERS.c.name == known, USERS.c.active == 1)
                return known if connection.execute(active).first() is not None else None
            mine = (USERS.c.name == name, USERS.c.active == 1, USERS.c.password == "")
            waits = select(USERS.c.name).where(*mine).with_for_update()  # for one at a time
            taken = select(IDENTITIES.c.user).where(IDENTITIES.c.user == name)
            if connection.execute(waits).first() is None or connection.execute(taken).first():
                return None
            connection.execute(
                IDENTITIES.insert().values(issuer=issuer, subject=subject, user=name)
            )
            return name
