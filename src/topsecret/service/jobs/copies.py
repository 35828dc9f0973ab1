"""How often a large answer is kept for one account: repeats are free, and the disk is not."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import RowMapping, select

from topsecret.ledger.store import Store
from topsecret.results.group_releases import Releases
from topsecret.results.record import from_record
from topsecret.results.release import Release
from topsecret.service.jobs.answering import without
from topsecret.service.jobs.job import ANSWERED, REFUSED
from topsecret.service.schema import JOBS

LARGE = 2**16
"""From how many letters on an answer is large."""
COPIES = 3
"""How often a large one is kept."""


def kept_often(
    store: Store, row: RowMapping, answer: Release | Releases, ended: dict[str, Any]
) -> dict[str, object] | None:
    """The end of a question whose large answer its account has often enough; None for others.

    What was drawn for the question itself, or paid for in advance, is always kept.
    """
    entry = _entry(answer, stored=True)
    if len(ended["answer"]) < LARGE or entry is None or row["held"] is not None:
        return None
    same = (JOBS.c.user, JOBS.c.dataset, JOBS.c.question)
    mine = [column == row[column.name] for column in same]
    query = select(JOBS.c.id, JOBS.c.answer).where(*mine, JOBS.c.state == ANSWERED)
    with store.reading() as connection:
        rows = connection.execute(query.order_by(JOBS.c.asked.desc()).limit(COPIES)).all()
    # Of other data the same question has another answer.
    copies = [one.id for one in rows if _entry(from_record(json.loads(one.answer))) == entry]
    if len(copies) < COPIES:
        return None
    words = f"You have this answer {COPIES} times; look at {copies[0]}. Nothing was charged."
    return without(REFUSED, "asked_before", words)


def _entry(answer: Release | Releases, stored: bool = False) -> int | None:
    """Where the ledger has the answer; None also where it must be a ``stored`` one and is not."""
    one = next(iter(answer.values())) if isinstance(answer, Releases) else answer
    charge = one.charge
    return None if charge is None or (stored and not charge.stored) else charge.entry
