"""What the ledger keeps about one dataset, read and changed inside a transaction.

Every change appends an entry and moves the dataset's row with it: the sums, the number of entries
and the end of the hash chain are always those of the entries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import Connection, RowMapping

from topsecret.errors import InvalidParameter
from topsecret.ledger import statements
from topsecret.ledger.amounts import Amounts, as_text, from_text, minus, plus
from topsecret.ledger.budget import Flexible, Metered, from_record
from topsecret.ledger.chain import Entry, canonical, now

OPEN, CLOSED = "open", "closed"
HELD = "held"
RESERVED, SETTLED, FAILED = "reserved", "settled", "failed"
RELEASED, WRITTEN_OFF = "released", "written off"
ENDED_BY = {
    "settled": SETTLED,
    "failed": FAILED,
    "released": RELEASED,
    "written off": WRITTEN_OFF,
}
"""The event that leads to each end of a reservation."""

GIVEN_BACK: Amounts = {}


@dataclass(slots=True)
class DatasetRow:
    """A dataset's row, locked until the transaction ends."""

    connection: Connection
    name: str
    budget: Metered | Flexible
    person: str
    adjacency: str
    state: str
    spent: Amounts
    entries: int
    head: str
    _shares: list[RowMapping] | None = None

    @property
    def shares(self) -> list[RowMapping]:
        """The allowances as they are, asked for once until some of them is spent."""
        if self._shares is None:
            self._shares = allowances(self.connection, self.name)
        return self._shares

    @classmethod
    def locked(cls, connection: Connection, name: str) -> DatasetRow:
        """The row for a change; on SQLite the transaction itself is the lock."""
        found = connection.execute(statements.LOCK_DATASET, {"the_dataset": name})
        row = found.mappings().one_or_none()
        if row is None:
            raise unknown(name)
        return cls.of(connection, row)

    @classmethod
    def of(cls, connection: Connection, row: RowMapping) -> DatasetRow:
        """The values of a row as it was read."""
        return cls(
            connection,
            row["name"],
            budget_of(row["terms"]),
            row["person"],
            row["adjacency"],
            row["state"],
            amounts(row["spent"]),
            row["entries"],
            row["head"],
        )

    def append(self, event: str, body: Mapping[str, object]) -> Entry:
        """Add an entry and write the row."""
        entry = Entry.at(self.name, self.entries + 1, self.head, event, body, now())
        self.entries, self.head = entry.position, entry.hash
        self.connection.execute(statements.ADD_ENTRY, as_row(entry))
        self.connection.execute(
            statements.MOVE_DATASET,
            {
                "the_dataset": self.name,
                "state": self.state,
                "spent": canonical(as_text(self.spent)),
                "entries": self.entries,
                "head": self.head,
            },
        )
        return entry

    def spend(self, analyst: str, more: Amounts, less: Amounts = GIVEN_BACK) -> None:
        """Move the sums of the dataset and of the analyst; ``append`` writes the former."""
        self.spent = minus(plus(self.spent, more), less)
        if not analyst:
            return  # an allowance has a name
        for row in self.shares:
            if row["analyst"] == analyst:
                spent = minus(plus(amounts(row["spent"]), more), less)
                key = {"the_dataset": self.name, "the_analyst": analyst}
                text = {"spent": canonical(as_text(spent))}
                self.connection.execute(statements.MOVE_ALLOWANCE, key | text)
        self._shares = None  # whoever spends once more in this transaction reads them anew

    def end(self, reservation: RowMapping, event: str, cost: Amounts, **more: object) -> Entry:
        """Bring a reservation to its end at this cost."""
        self.spend(reservation["analyst"], cost, amounts(reservation["cost"]))
        body = {"reservation": reservation["id"], "cost": as_text(cost)} | more
        entry = self.append(event, body)
        state = ENDED_BY[event]
        # What was given back did not happen: its request id may be used again.
        kept = reservation["request"] if state in (SETTLED, FAILED) else None
        end = {"state": state, "cost": canonical(as_text(cost)), "request": kept}
        self.connection.execute(statements.END_RESERVATION, end | {"the_id": reservation["id"]})
        return entry


def as_row(entry: Entry) -> dict[str, object]:
    """An entry as the store has it."""
    return {name: getattr(entry, name) for name in Entry.__slots__}


def allowances(connection: Connection, dataset: str) -> list[RowMapping]:
    """All allowances of a dataset."""
    found = connection.execute(statements.ALL_ALLOWANCES, {"the_dataset": dataset})
    return list(found.mappings())


def amounts(text: str) -> Amounts:
    """Amounts as the store has them."""
    return from_text(json.loads(text))


def unknown(name: str) -> InvalidParameter:
    """The error for a dataset without a budget."""
    return InvalidParameter(
        f"dataset {name!r} has no budget; open one with "
        f"topsecret budget open {name} --person COLUMN --epsilon 1, say"
    )


@lru_cache(maxsize=256)
def budget_of(terms: str) -> Metered | Flexible:
    """The budget with these terms."""
    return from_record(json.loads(terms))
