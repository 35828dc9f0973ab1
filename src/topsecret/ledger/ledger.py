"""The ledger: budgets that hold across programs, analysts and crashes.

>>> import tempfile, os
>>> from topsecret.ledger import Flexible, Ledger
>>> ledger = Ledger(os.path.join(tempfile.mkdtemp(), "ledger.db"))
>>> ledger.open_budget("checkins", Flexible.of(epsilon=1, delta=1e-6), person="user")
>>> ledger.account("checkins").state
'open'

Guarantee: see ``Metered`` and ``Flexible``. A reservation is durable before ``reserve`` returns,
and an answer is stored in the same transaction in which its reservation is settled, so an answer
that anybody has seen is in the ledger with its cost. Every decision depends on the ledger and on
public parameters alone.
"""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, RowMapping, select

from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.errors import InDoubt, InvalidParameter, Taken
from topsecret.ledger import rows, statements
from topsecret.ledger.account import Account, Allowance, Pending
from topsecret.ledger.admission import (
    admitted,
    asked_before,
    exceeded,
    retried,
    stored,
    weighed,
)
from topsecret.ledger.amounts import Amounts, as_text, named, plus, shortages
from topsecret.ledger.audit import Report, audit
from topsecret.ledger.budget import Flexible, Metered
from topsecret.ledger.chain import GENESIS, Entry, canonical, digest
from topsecret.ledger.holds import HeldAgain, given_back, held
from topsecret.ledger.payment import Request, Reservation, Stored
from topsecret.ledger.rows import DatasetRow, allowances, amounts
from topsecret.ledger.schema import ALLOWANCES, DATASETS, ENTRIES, RESERVATIONS
from topsecret.ledger.settlement_time import SettlementTime
from topsecret.ledger.store import Store, default_place

WAIT = 10.0
"""Seconds to wait for the same request or question that another client has under way."""


class Ledger:
    """Budgets in one SQLite file or PostgreSQL database; any number of programs may share it.

    ``place`` is a path or an address ``postgresql://…``; without one, what ``TOPSECRET_LEDGER``
    names, or a file in the platform's data directory.

    Parameters: ``place``: a path, or an address of PostgreSQL; ``dataset``: the dataset's name;
    ``budget``: its terms; ``person``: the column that identifies each person; ``adjacency``: which
    datasets are neighbours: "add-remove", "replace" or, in rankings, "outcomes"; ``analyst``: who
    asks; ``limits``: the most of each resource that they may spend; ``request``: the question and
    its price; ``wait``: for how many seconds at most; ``reservation``: what was spent in advance;
    ``answer``: what to store; ``symbols``: how many symbols it released; ``request_id``: the
    caller's name for a request; ``entries``: how many entries there were; ``head``: the hash of the
    last; ``held``: the name of what is held; None for nothing; ``again``: is told the new name.
    """

    def __init__(self, place: str | os.PathLike[str] | None = None) -> None:
        self._store = Store(default_place() if place is None else place)
        self.pace = SettlementTime()
        self._held: str | None = None
        self._held_again: HeldAgain | None = None

    def __repr__(self) -> str:
        return f"Ledger({self._store.name!r})"

    @property
    def name(self) -> str:
        """The path or address, without a password."""
        return self._store.name

    def close(self) -> None:
        """Close all connections."""
        self._store.close()

    def paced(self, pace: SettlementTime) -> Ledger:
        """The same ledger, where ``pace`` says when the reading for a reservation ends."""
        found = copy.copy(self)
        found.pace = pace
        return found

    def paying_from(self, held: str | None, again: HeldAgain | None = None) -> Ledger:
        """The same ledger, whose next question takes the place of what is held for it, if it is.

        Where the question is given back, because nothing was read, its amount is held again, and
        ``again`` is told under which name, in the same transaction.
        """
        found = copy.copy(self)
        found._held, found._held_again = held, again
        return found

    # The owner

    def open_budget(
        self,
        dataset: str,
        budget: Metered | Flexible,
        *,
        person: str,
        adjacency: str = "add-remove",
    ) -> None:
        """Give a dataset its budget, once, for the people that ``person`` identifies."""
        _name("dataset", dataset)
        unit = PrivacyUnit(person=person, adjacency=adjacency)  # type: ignore[arg-type]  # checked there
        terms = canonical(budget.to_record())
        try:
            with self._store.writing() as connection:
                empty = {"state": rows.OPEN, "spent": "{}", "entries": 0, "head": GENESIS}
                public = {"terms": terms, "person": person, "adjacency": unit.adjacency}
                connection.execute(DATASETS.insert().values(name=dataset, **public, **empty))
                row = DatasetRow.locked(connection, dataset)
                row.append("opened", public)
        except Taken:
            raise InvalidParameter(
                f"dataset {dataset!r} has a budget already; a second one would add to the first, "
                "so choose another name only for other data"
            ) from None

    def allow(self, dataset: str, analyst: str, limits: Amounts) -> None:
        """Give an analyst a share; from then on only analysts with an allowance may ask.

        The dataset's total binds whatever the allowances add up to. A second call replaces the
        limits; what the analyst has spent stays.
        """
        _name("analyst", analyst)
        with self._store.writing() as connection:
            row = DatasetRow.locked(connection, dataset)
            foreign = set(limits) ^ set(row.budget.limits)
            if foreign or any(value < 0 for value in limits.values()):
                raise InvalidParameter(
                    f"an allowance from dataset {dataset!r} states "
                    f"{', '.join(row.budget.limits)}, each 0 or more; give these alone"
                )
            spent: Amounts = {}
            query = select(RESERVATIONS.c.cost).where(
                RESERVATIONS.c.dataset == dataset, RESERVATIONS.c.analyst == analyst
            )
            for cost in connection.execute(query).scalars():
                spent = plus(spent, amounts(cost))
            key = {"dataset": dataset, "analyst": analyst}
            connection.execute(
                ALLOWANCES.delete().where(
                    ALLOWANCES.c.dataset == dataset, ALLOWANCES.c.analyst == analyst
                )
            )
            text = {"limits": canonical(as_text(limits)), "spent": canonical(as_text(spent))}
            connection.execute(ALLOWANCES.insert().values(**key, **text))
            row.append("allowed", {"analyst": analyst, "limits": as_text(limits)})

    def close_budget(self, dataset: str) -> None:
        """Admit nothing more; stored answers stay."""
        with self._store.writing() as connection:
            row = DatasetRow.locked(connection, dataset)
            if row.state == rows.CLOSED:
                raise InvalidParameter(
                    f"the budget of dataset {dataset!r} is closed already; nothing is left to do"
                )
            row.state = rows.CLOSED
            row.append("closed", {})

    def write_off(self, reservation: str) -> None:
        """Give back a reservation in doubt, on the owner's word that no answer got out.

        If its program is still running, that program will not show its answer.
        """
        with self._store.writing() as connection:
            query = statements.ONE_RESERVATION, {"the_id": reservation}
            found = connection.execute(*query).mappings().one_or_none()
            if found is None:
                raise InvalidParameter(
                    f"there is no reservation {reservation!r}; topsecret budget show lists them"
                )
            row = DatasetRow.locked(connection, found["dataset"])
            found = connection.execute(*query).mappings().one()  # as it is under the lock
            if found["state"] != rows.RESERVED:
                raise InvalidParameter(
                    f"reservation {reservation} is {found['state']}, not in doubt; "
                    "only a reservation in doubt can be written off"
                )
            row.end(found, "written off", {})

    # A query, in this order

    def reserve(self, request: Request, *, wait: float = WAIT) -> Reservation | Stored:
        """Spend the worst case durably, or find the answer that was paid for before.

        While another client has the same question under way, wait for its answer.
        """
        _name("dataset", request.dataset)
        for role, value in (("analyst", request.analyst), ("request_id", request.request_id)):
            if value is not None:
                _name(role, value)
        question = digest(canonical(dict(request.question)))
        deadline, old = time.monotonic() + wait + self.pace.longer, set[str]()
        while True:
            found = self._reserved(request, question, old)
            if isinstance(found, Reservation | Stored):
                return found
            if time.monotonic() < deadline and self._young(found):
                self.pace.polling(0.05)
            else:
                self.pace.outwaited(found["analyst"], found["request"])
                old.add(found["id"])

    def _reserved(
        self, request: Request, question: str, old: set[str]
    ) -> Reservation | Stored | RowMapping:
        analyst = request.analyst or ""
        with self._store.writing() as connection:
            row = DatasetRow.locked(connection, request.dataset)
            key = {"the_dataset": request.dataset, "the_analyst": analyst}
            if request.request_id is not None:
                mine = {**key, "the_request": request.request_id}
                for earlier in connection.execute(statements.SAME_REQUEST, mine).mappings():
                    return retried(request, question, earlier, earlier["id"] not in old) or earlier
            for earlier in asked_before(connection, request, question):
                if earlier["state"] == rows.SETTLED:
                    self._use_what_is_held(row)
                    return stored(earlier)
                if earlier["id"] not in old:
                    return earlier
            self._use_what_is_held(row)
            worst, left = weighed(row, request, analyst)
            if not shortages(worst, left):
                identity = admitted(row, request, question, worst)
                return Reservation(identity, request, row.budget)
        raise exceeded(request, row.budget, worst, left)

    def _use_what_is_held(self, row: DatasetRow) -> None:
        if self._held is not None and not given_back(row, self._held):
            self._held = None  # nobody waits for as much to be held again

    def _young(self, row: RowMapping) -> bool:
        age = datetime.now(UTC) - datetime.fromisoformat(row["time"])
        return age < timedelta(seconds=WAIT + self.pace.longer)

    def settle(
        self, reservation: Reservation, answer: Mapping[str, object], symbols: int
    ) -> Stored:
        """Store the answer and give back what it did not use, in one transaction."""
        text = canonical(dict(answer))
        cost = reservation.budget.actual(reservation.request.price, symbols)
        self.pace.ending()
        with self._store.writing() as connection:
            row, found = self._under_way(connection, reservation)
            values = {"reservation": found["id"], "answer": text}
            connection.execute(statements.ADD_ANSWER, values)
            row.end(found, "settled", cost, symbols=symbols, answer=digest(text))
        return Stored(json.loads(text), cost, found["position"], found["time"], fresh=True)

    def fail(self, reservation: Reservation) -> None:
        """The query ended without an answer: it stays charged."""
        self.pace.ending()
        with self._store.writing() as connection:
            row, found = self._under_way(connection, reservation)
            row.end(found, "failed", amounts(found["cost"]))

    def release(self, reservation: Reservation) -> None:
        """Give everything back: nothing was read, for a reason that no row can influence."""
        self.pace.ending()
        with self._store.writing() as connection:
            row, found = self._under_way(connection, reservation)
            row.end(found, "released", {})
            if self._held is not None and self._held_again is not None:
                amount = amounts(found["cost"])
                self._held_again(connection, held(row, found["analyst"], amount))

    def _under_way(
        self, connection: Connection, reservation: Reservation
    ) -> tuple[DatasetRow, RowMapping]:
        row = DatasetRow.locked(connection, reservation.request.dataset)
        query = statements.ONE_RESERVATION, {"the_id": reservation.id}
        found = connection.execute(*query).mappings().one()
        if found["state"] != rows.RESERVED:
            raise InDoubt(
                f"reservation {reservation.id} is {found['state']} by now; its answer is not shown"
            )
        return row, found

    # Whoever wants to know

    def datasets(self) -> list[str]:
        """The datasets that have a budget."""
        with self._store.reading() as connection:
            return list(connection.execute(select(DATASETS.c.name).order_by("name")).scalars())

    def account(self, dataset: str) -> Account:
        """The budget of a dataset, what was spent of it and by whom."""
        with self._store.reading() as connection:
            query = select(DATASETS).where(DATASETS.c.name == dataset)
            opened = connection.execute(query).mappings().one_or_none()
            if opened is None:
                raise rows.unknown(dataset)
            row = DatasetRow.of(connection, opened)
            endless = RESERVATIONS.c.state.in_((rows.RESERVED, rows.HELD))
            query = select(RESERVATIONS).where(RESERVATIONS.c.dataset == dataset, endless)
            found = connection.execute(query.order_by(RESERVATIONS.c.position)).mappings().all()

            def those(state: str) -> tuple[Pending, ...]:
                return tuple(
                    Pending(one["id"], one["analyst"], one["time"], amounts(one["cost"]))
                    for one in found
                    if one["state"] == state
                )

            return Account(
                dataset,
                row.budget,
                row.person,
                row.adjacency,
                row.state,
                row.spent,
                those(rows.RESERVED),
                tuple(
                    Allowance(
                        one["analyst"],
                        named(amounts(one["limits"]), row.budget.limits),
                        amounts(one["spent"]),
                    )
                    for one in allowances(connection, dataset)
                ),
                those(rows.HELD),
            )

    def position(self, dataset: str) -> int:
        """How many entries a dataset has: it moves with every change, and is cheap to ask."""
        with self._store.reading() as connection:
            query = select(DATASETS.c.entries).where(DATASETS.c.name == dataset)
            found: int | None = connection.execute(query).scalar_one_or_none()
        if found is None:
            raise rows.unknown(dataset)
        return found

    def requested(self, dataset: str, analyst: str, request_id: str) -> bool:
        """Whether a request has a reservation that was not given back: under way, or ended."""
        key = {"the_dataset": dataset, "the_analyst": analyst, "the_request": request_id}
        with self._store.reading() as connection:
            return connection.execute(statements.SAME_REQUEST, key).first() is not None

    def asked(self, dataset: str, analyst: str, request_id: str) -> dict[str, object] | None:
        """The question of such a request as it was reserved; None where there is none."""
        key = {"the_dataset": dataset, "the_analyst": analyst, "the_request": request_id}
        with self._store.reading() as connection:
            found = connection.execute(statements.SAME_REQUEST, key).mappings().first()
            if found is None:
                return None
            at = (ENTRIES.c.dataset == dataset, ENTRIES.c.position == found["position"])
            body = connection.execute(select(ENTRIES.c.body).where(*at)).scalar_one()
        return dict(json.loads(body)["asked"])

    def reached(self) -> dict[str, tuple[int, str]]:
        """For each dataset: how many entries it has, and the hash of the last."""
        query = select(DATASETS.c.name, DATASETS.c.entries, DATASETS.c.head)
        with self._store.reading() as connection:
            return {row.name: (row.entries, row.head) for row in connection.execute(query)}

    def passed(self, dataset: str, entries: int, head: str) -> bool:
        """Whether the dataset's chain once ended so."""
        if entries == 0:
            return True
        at = (ENTRIES.c.dataset == dataset, ENTRIES.c.position == entries, ENTRIES.c.hash == head)
        with self._store.reading() as connection:
            return connection.execute(select(ENTRIES.c.position).where(*at)).first() is not None

    def had(self, dataset: str, head: str) -> bool:
        """Whether the chain of a dataset once ended with this hash."""
        at = (ENTRIES.c.dataset == dataset, ENTRIES.c.hash == head)
        with self._store.reading() as connection:
            return connection.execute(select(ENTRIES.c.position).where(*at)).first() is not None

    def history(self, dataset: str) -> list[Entry]:
        """Everything that happened to a dataset's budget, oldest first."""
        with self._store.reading() as connection:
            query = select(ENTRIES).where(ENTRIES.c.dataset == dataset).order_by("position")
            found = [Entry(**row) for row in connection.execute(query).mappings()]
        if not found:
            raise rows.unknown(dataset)
        return found

    def check(self) -> Report:
        """Verify the hash chain, and everything else against it."""
        with self._store.reading() as connection:
            return audit(connection)


def _name(role: str, value: str) -> None:
    if not isinstance(value, str) or not 0 < len(value) <= 200 or not value.isprintable():
        raise InvalidParameter(f"{role}={value!r} must be a printable text of 1 to 200 characters")
