"""Who was recognised a moment ago: programs that look again and again are not looked up each time.

What was found is forgotten by all processes of a service, at once, when anybody's rights change:
they share a mark in a file, and a new mark makes everything that was found before it count for
nothing. A process on another machine, which has another file, forgets within ``RECENT`` seconds.

>>> from topsecret.service.auth.people import User
>>> recognised = Recognised()
>>> mark = recognised.mark
>>> recognised.remember("key", "tsk_secret", User("ann", "analyst"), mark).name
'ann'
>>> recognised.by("key", "tsk_secret").name
'ann'
>>> recognised.by("session", "tsk_secret")
>>> recognised.forget()
>>> recognised.by("key", "tsk_secret")
"""

from __future__ import annotations

import mmap
import os
import secrets
import time
from pathlib import Path
from typing import Literal

from topsecret.errors import InvalidParameter
from topsecret.service.auth import credentials
from topsecret.service.auth.people import User

RECENT = 5.0
"""Seconds for which a session or key that was found valid is believed without looking again."""

Kind = Literal["key", "session"]
_MARK = 16
_MOST = 10_000


class Recognised:
    """Sessions and keys that were found valid, in one process; the mark is in ``file``."""

    def __init__(self, file: Path | None = None) -> None:
        self._mark = mmap.mmap(-1, _MARK) if file is None else _shared(file)
        self._found: dict[tuple[Kind, bytes], tuple[User, float, bytes]] = {}

    @property
    def mark(self) -> bytes:
        """What to remember somebody under: read before the look at the store."""
        return self._mark[:_MARK]

    def by(self, kind: Kind, secret: str) -> User | None:
        """Whom this process recognised by the secret a moment ago, without blocking."""
        found = self._found.get((kind, credentials.fingerprint(secret)))
        if found is None or found[1] <= time.monotonic() or found[2] != self._mark[:_MARK]:
            return None
        return found[0]

    def remember(self, kind: Kind, secret: str, user: User, mark: bytes) -> User:
        """Believe the secret for a moment, unless the mark has moved since.

        It is believed as what it is: a session's token that came as a key would need no form's
        token.
        """
        if len(self._found) > _MOST:
            self._found.clear()
        place = kind, credentials.fingerprint(secret)
        self._found[place] = user, time.monotonic() + RECENT, mark
        return user

    def forget(self) -> None:
        """Somebody's rights have changed, and the store has it: look everybody up again."""
        self._mark[:_MARK] = secrets.token_bytes(_MARK)
        self._found.clear()


def _shared(file: Path) -> mmap.mmap:
    try:
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(handle, _MARK)
            return mmap.mmap(handle, _MARK)
        finally:
            os.close(handle)
    except OSError:
        pass  # raised below, in words of our own
    raise InvalidParameter(f"{file} cannot be written; --home must be a folder that can")
