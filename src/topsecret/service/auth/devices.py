"""Browsers from which somebody came in before: others' tries at the name do not stop them."""

from __future__ import annotations

from contextlib import suppress

from sqlalchemy import select

from topsecret.errors import Taken
from topsecret.ledger.store import Store
from topsecret.service.auth import credentials
from topsecret.service.schema import NOTES

_DEVICES = "device secret"


class Devices:
    """What browsers keep, signed with the service's own secret. Every method may block."""

    def __init__(self, store: Store) -> None:
        self._store, self._kept = store, ""

    def new(self, name: str) -> str:
        """What the browser keeps from which this person came in."""
        drawn = credentials.token()
        return f"{drawn}.{credentials.signature(self._secret(), f'{name} {drawn}')}"

    def knows(self, device: str, name: str) -> bool:
        """Whether the person of this name came in from the browser before."""
        drawn, _, signed = device[:200].partition(".")
        return credentials.same(signed, credentials.signature(self._secret(), f"{name} {drawn}"))

    def sign(self, text: str) -> str:
        """What proves that a text which a browser brings back was written here."""
        return credentials.signature(self._secret(), f"\0openid {text}")

    def _secret(self) -> str:
        """The service's own secret, made when it is first needed."""
        if self._kept:
            return self._kept
        query = select(NOTES.c.value).where(NOTES.c.name == _DEVICES)
        with suppress(Taken), self._store.writing() as connection:
            if connection.execute(query).first() is None:
                row = {"name": _DEVICES, "value": credentials.token()}
                connection.execute(NOTES.insert().values(row))
        with self._store.reading() as connection:
            self._kept = str(connection.execute(query).scalar_one())
        return self._kept
