"""Questions that ended long ago are forgotten a few at a time, so that nobody waits for all."""

from __future__ import annotations

import time
from threading import Event

from sqlalchemy import delete, select

from topsecret.ledger.store import Store
from topsecret.service.jobs.job import IN_DOUBT, WORKING
from topsecret.service.schema import JOBS

FEW = 50
"""How many are deleted in one transaction."""


def forget(store: Store, before: float, closing: Event) -> int:
    """Delete the questions that were asked before and have ended; how many there were.

    They are looked up without the lock that writers take, and after each few of them the lock is
    free for as long as they took.
    """
    ended = JOBS.c.state.not_in((WORKING, IN_DOUBT))
    old = select(JOBS.c.id).where(JOBS.c.asked < before, ended).limit(FEW)
    number, took = 0, 0.0
    while not closing.wait(took):
        with store.reading() as connection:
            found = connection.execute(old).scalars().all()
        if not found:
            break
        begun = time.monotonic()
        with store.writing() as connection:
            for identity in sorted(found):
                one = delete(JOBS).where(JOBS.c.id == identity)
                number += connection.execute(one).rowcount
        took = time.monotonic() - begun
    return number
