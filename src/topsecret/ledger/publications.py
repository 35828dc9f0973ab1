"""Lists that are published period after period and paid for once, before the first is drawn.

| a period ends | its state | on the next run |
| --- | --- | --- |
| before ``begin`` returned | absent or *begun* | as below |
| by a crash, or a failure that rows may influence | *begun*, *failed* | nothing is drawn again |
| by a failure that no row can influence | absent | drawn |
| in ``store`` | *stored*, with its answer | the stored answer |

What was begun and has no answer is not drawn again by itself: whether a program crashes may depend
on the rows, and to draw until it does not is another mechanism. ``write_off`` is the owner's word
that no answer got out. Where the answer is a function of what was sealed (``Series``), ``begin``
finds it begun and the same answer is computed again.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from topsecret.errors import InDoubt, InvalidParameter
from topsecret.ledger import statements
from topsecret.ledger.admission import admitted, exceeded, weighed
from topsecret.ledger.amounts import Amounts, shortages
from topsecret.ledger.budget import Flexible, Metered
from topsecret.ledger.chain import canonical, digest, now
from topsecret.ledger.ledger import Ledger
from topsecret.ledger.payment import Request
from topsecret.ledger.rows import DatasetRow, amounts
from topsecret.ledger.schema import ANSWERS, PERIODS, PUBLICATIONS, RESERVATIONS

BEGUN, STORED, FAILED = "begun", "stored", "failed"


@dataclass(frozen=True, slots=True)
class Publication:
    """A publication that was paid for. All but ``key`` is public."""

    id: str
    """The reservation that paid for all periods."""
    dataset: str
    """The dataset that paid."""
    name: str
    """Under which its opener finds it again."""
    record: Mapping[str, Any]
    """What is published, as its opener described it."""
    cost: Amounts
    """What it took from the budget."""
    position: int
    """Of the reservation's entry."""
    key: bytes = field(repr=False)
    """Secret: the noise of a series comes from it. Empty where noise is drawn anew."""


@dataclass(frozen=True, slots=True)
class Period:
    """How far one period got."""

    state: str
    time: str
    answer: Mapping[str, Any] | None


class Publications:
    """The publications of one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._store = ledger._store

    def find(self, dataset: str, name: str) -> Publication | None:
        """The publication of this name, if it was opened."""
        with self._store.reading() as connection:
            return _found(connection, dataset, name)

    def terms(self, publication: Publication) -> Metered | Flexible:
        """The budget that paid for it."""
        return self._ledger.account(publication.dataset).budget

    def names(self, dataset: str) -> list[str]:
        """All publications of a dataset."""
        query = select(PUBLICATIONS.c.name).where(PUBLICATIONS.c.dataset == dataset)
        with self._store.reading() as connection:
            return list(connection.execute(query.order_by("name")).scalars())

    def open(
        self, request: Request, name: str, record: Mapping[str, object], *, keyed: bool = False
    ) -> Publication:
        """Pay for all periods at once, in one transaction; find it if that was done before.

        Nothing was read yet. ``keyed`` draws a secret key that is kept with it.
        """
        if not isinstance(name, str) or not 0 < len(name) <= 200 or not name.isprintable():
            raise InvalidParameter(f"name={name!r} must be a printable text of 1 to 200 characters")
        text = canonical(dict(record))
        with self._store.writing() as connection:
            row = DatasetRow.locked(connection, request.dataset)
            known = _found(connection, request.dataset, name)
            if known is not None:
                if canonical(dict(known.record)) != text:
                    raise InvalidParameter(
                        f"{name!r} of dataset {request.dataset!r} was begun with other terms; "
                        "choose another name, or leave the terms out to go on with it"
                    )
                return known
            worst, left = weighed(row, request, request.analyst or "")
            if not shortages(worst, left):
                question = digest(canonical(dict(request.question)))
                identity = admitted(row, request, question, worst)
                query = statements.ONE_RESERVATION, {"the_id": identity}
                reservation = connection.execute(*query).mappings().one()
                values = {"reservation": identity, "answer": text}
                connection.execute(statements.ADD_ANSWER, values)
                row.end(reservation, "settled", worst, symbols=0, answer=digest(text))
                key = secrets.token_hex(32) if keyed else ""
                named = {"dataset": request.dataset, "name": name, "key": key}
                connection.execute(PUBLICATIONS.insert().values(reservation=identity, **named))
                body = {"reservation": identity, "name": name, "key": digest(key)}
                row.append("published", body)
                found = _found(connection, request.dataset, name)
                assert found is not None  # it was written above
                return found
        raise exceeded(request, row.budget, worst, left)

    def periods(self, publication: Publication) -> dict[int, Period]:
        """All periods that were begun."""
        query = select(PERIODS).where(PERIODS.c.reservation == publication.id).order_by("period")
        with self._store.reading() as connection:
            return {row["period"]: _period(row) for row in connection.execute(query).mappings()}

    def begin(self, publication: Publication, period: int) -> Period | None:
        """Note durably that a period's rows are about to be read; None if that is new."""
        with self._store.writing() as connection:
            row = DatasetRow.locked(connection, publication.dataset)
            known = _state(connection, publication, period)
            if known is not None:
                return known
            key = {"reservation": publication.id, "period": period}
            values = {"state": BEGUN, "time": now(), "answer": None}
            connection.execute(PERIODS.insert().values(**key, **values))
            row.append("period begun", key)
        return None

    def store(
        self, publication: Publication, period: int, answer: Mapping[str, object]
    ) -> Mapping[str, Any]:
        """Keep the answer; from then on it may be shown, and it is what is shown."""
        text = canonical(dict(answer))
        with self._store.writing() as connection:
            row = self._begun(connection, publication, period)
            key = {"reservation": publication.id, "period": period}
            self._move(connection, publication, period, STORED, text)
            row.append("period stored", key | {"answer": digest(text)})
        kept: dict[str, Any] = json.loads(text)
        return kept

    def fail(self, publication: Publication, period: int) -> None:
        """The period ended without an answer, for a reason that rows may influence."""
        with self._store.writing() as connection:
            row = self._begun(connection, publication, period)
            self._move(connection, publication, period, FAILED, None)
            row.append("period failed", {"reservation": publication.id, "period": period})

    def release(self, publication: Publication, period: int) -> None:
        """Nothing was read, for a reason that no row can influence."""
        with self._store.writing() as connection:
            row = self._begun(connection, publication, period)
            self._forget(connection, publication, period)
            row.append("period released", {"reservation": publication.id, "period": period})

    def write_off(self, publication: Publication, period: int) -> None:
        """Let a period be drawn again, on the owner's word that no answer of it got out.

        If its program is still running, that program will not show its answer.
        """
        with self._store.writing() as connection:
            row = DatasetRow.locked(connection, publication.dataset)
            known = _state(connection, publication, period)
            if known is None or known.state == STORED:
                state = "has its answer" if known else "was not begun"
                raise InvalidParameter(
                    f"period {period} of {publication.name!r} {state}; only one that was cut "
                    "short can be written off"
                )
            self._forget(connection, publication, period)
            row.append("period written off", {"reservation": publication.id, "period": period})

    def _begun(self, connection: Connection, publication: Publication, period: int) -> DatasetRow:
        row = DatasetRow.locked(connection, publication.dataset)
        known = _state(connection, publication, period)
        if known is None or known.state != BEGUN:
            raise InDoubt(
                f"period {period} of {publication.name!r} was ended elsewhere; "
                "its answer is not shown"
            )
        return row

    def _move(
        self, connection: Connection, publication: Publication, period: int, state: str, text: Any
    ) -> None:
        connection.execute(
            PERIODS.update()
            .where(PERIODS.c.reservation == publication.id, PERIODS.c.period == period)
            .values(state=state, answer=text)
        )

    def _forget(self, connection: Connection, publication: Publication, period: int) -> None:
        connection.execute(
            PERIODS.delete().where(
                PERIODS.c.reservation == publication.id, PERIODS.c.period == period
            )
        )


def _found(connection: Connection, dataset: str, name: str) -> Publication | None:
    query = (
        select(PUBLICATIONS, RESERVATIONS.c.cost, RESERVATIONS.c.position, ANSWERS.c.answer)
        .join(RESERVATIONS, RESERVATIONS.c.id == PUBLICATIONS.c.reservation)
        .join(ANSWERS, ANSWERS.c.reservation == PUBLICATIONS.c.reservation)
        .where(PUBLICATIONS.c.dataset == dataset, PUBLICATIONS.c.name == name)
    )
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        return None
    return Publication(
        row["reservation"],
        dataset,
        name,
        json.loads(row["answer"]),
        amounts(row["cost"]),
        row["position"],
        bytes.fromhex(row["key"]),
    )


def _state(connection: Connection, publication: Publication, period: int) -> Period | None:
    query = select(PERIODS).where(
        PERIODS.c.reservation == publication.id, PERIODS.c.period == period
    )
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _period(row)


def _period(row: RowMapping) -> Period:
    answer = None if row["answer"] is None else json.loads(row["answer"])
    return Period(row["state"], row["time"], answer)
