"""How often a large answer is kept for one account: repeats are free, and the disk is not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from topsecret.results.record import from_record
from topsecret.service.jobs.answering import ledger_entry, without
from topsecret.service.jobs.job import ANSWERED, REFUSED
from topsecret.service.schema import JOBS, USERS

LARGE = 2**16
"""An answer of so many characters or more is large."""
COPIES = 3
"""How many copies of a large answer are kept."""


def large_repeat(row: RowMapping, ended: Mapping[str, Any]) -> bool:
    """Whether it ended with a large answer that may be one too many.

    What was drawn for the question itself, or paid for in advance, is always kept.
    """
    if ended["state"] != ANSWERED or row["held"] is not None or len(ended["answer"]) < LARGE:
        return False
    return ledger_entry(from_record(json.loads(ended["answer"])))[1]


def kept_or_refused(
    connection: Connection, row: RowMapping, ended: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The end of a large repeat: a refusal where its account has the answer often enough.

    The same transaction stores it, and locks the account: of repeats that end at once each sees
    those before it. Answers of before 0.2 do not say where the ledger has them, and do not count.
    """
    account = select(USERS.c.name).where(USERS.c.name == row["user"])
    connection.execute(account.with_for_update())
    same = {"user": row["user"], "dataset": row["dataset"], "entry": ended["entry"]}
    mine = [JOBS.c[name] == value for name, value in same.items()]
    query = select(JOBS.c.id).where(*mine, JOBS.c.state == ANSWERED)
    copies = connection.execute(query.order_by(JOBS.c.asked.desc()).limit(COPIES)).scalars().all()
    if len(copies) < COPIES:
        return ended
    words = f"You have this answer {COPIES} times; look at {copies[0]}. Nothing was charged."
    return without(REFUSED, "asked_before", words) | {"shown": ended["shown"]}
