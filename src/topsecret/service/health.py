"""Whether the service works: tried by writing, because a full disk still reads.

The route is open to all, so what was found is believed for a moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from topsecret.ledger.store import Store
from topsecret.service.schema import NOTES, put

RECENT = 2.0
_NAME = "health"


class Health:
    """The last look at the store."""

    def __init__(self, store: Store, trust: Callable[[], None]) -> None:
        self._store, self._lock, self._good_until = store, Lock(), 0.0
        self._trust = trust

    def check(self) -> None:
        """Write something; a ``LedgerError`` says that it cannot be done, or must not."""
        self._trust()
        with self._lock:
            if time.monotonic() < self._good_until:
                return
            with self._store.writing() as connection:
                put(connection, NOTES, {"name": _NAME, "value": str(time.time())})
            self._good_until = time.monotonic() + RECENT
