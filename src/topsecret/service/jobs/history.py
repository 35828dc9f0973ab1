"""Lists of questions, the latest first: with their answers, or without, however large they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Column, and_, or_, select

from topsecret.ledger.store import Store
from topsecret.service.jobs.answering import no_such_answer
from topsecret.service.jobs.job import Job, seen
from topsecret.service.schema import JOBS

WITH_ANSWERS = tuple(JOBS.c)
WITHOUT_ANSWERS = tuple(column for column in JOBS.c if column is not JOBS.c.answer)


def latest(
    store: Store,
    columns: Iterable[Column[Any]],
    user: str | None,
    dataset: str | None,
    most: int,
    before: str | None,
    now: float,
) -> list[Job]:
    """The latest questions of a user or a dataset, or the latest before one of them."""
    query = select(*columns).order_by(JOBS.c.asked.desc(), JOBS.c.id.desc()).limit(most)
    if user is not None:
        query = query.where(JOBS.c.user == user)
    if dataset is not None:
        query = query.where(JOBS.c.dataset == dataset)
    with store.reading() as connection:
        if before is not None:
            known = select(JOBS.c.asked).where(JOBS.c.id == before)
            at = connection.execute(known).scalar_one_or_none()
            if at is None:
                raise no_such_answer()
            same = and_(JOBS.c.asked == at, JOBS.c.id < before)
            query = query.where(or_(JOBS.c.asked < at, same))
        return [seen(row, now) for row in connection.execute(query).mappings()]
