"""Amounts that are set aside for questions to come: paid in advance, spent by nobody else.

| a held amount | what happens in one transaction |
| --- | --- |
| is used (``Ledger.paying_from``) | it is given back, and the question is reserved in its place |
| is not needed, because the answer is stored | it is given back |
| is given up (``give_back``) | it is given back |
| is used by a question that is given back unread | as much is held again, under another name |

So a process that is killed leaves an amount held, or a reservation like that of any other question,
and what is spent is at every moment the sum of what is held, reserved and charged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection, RowMapping

from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.errors import BudgetExceeded, InvalidParameter
from topsecret.ledger import rows, statements
from topsecret.ledger.admission import left_for, spent, too_much
from topsecret.ledger.amounts import Amounts, shortages
from topsecret.ledger.rows import DatasetRow

if TYPE_CHECKING:
    from topsecret.ledger.ledger import Ledger

MOST = 1000
HeldAgain = Callable[[Connection, str], None]
"""Told what an amount is called that is held again."""


class Holds:
    """What is set aside in one ledger.

    Parameters: ``ledger``: whose amounts are set aside; ``dataset``: whose budget pays;
    ``analyst``: in whose name; ``cost``: what each question may cost; ``times``: how many
    questions; ``note``: is told what the amounts are called; ``chosen``: the names of those to give
    back.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._store = ledger._store

    def hold(
        self,
        dataset: str,
        analyst: str,
        cost: Amounts,
        times: int,
        note: Callable[[Connection, Sequence[str]], None] = lambda *_: None,
    ) -> list[str]:
        """Set the amount aside so many times, or refuse all of it.

        ``note`` is told what the amounts are called, and writes in the same transaction: whoever
        shares the ledger's database can lose neither without the other.
        """
        if not 1 <= times <= MOST:
            raise InvalidParameter(f"times={times} must lie between 1 and {MOST}")
        if any(value < 0 for value in cost.values()):
            raise InvalidParameter("what is set aside cannot be less than nothing")
        with self._store.writing() as connection:
            row = DatasetRow.locked(connection, dataset)
            left = left_for(row, PrivacyUnit(row.person, row.adjacency), analyst)  # type: ignore[arg-type]  # as it was opened
            all_of_it = {name: times * value for name, value in cost.items()}
            if not shortages(all_of_it, left):
                found = [held(row, analyst, cost) for _ in range(times)]
                note(connection, found)
                return found
        raise BudgetExceeded(
            too_much(f"{times} times", dataset, all_of_it, left),
            dataset=dataset,
            needed=all_of_it,
            left=left,
        )

    def give_back(
        self, dataset: str, chosen: Callable[[Connection], Sequence[str]]
    ) -> Sequence[str]:
        """Give back what is still held of what ``chosen`` names, in the same transaction."""
        with self._store.writing() as connection:
            row = DatasetRow.locked(connection, dataset)
            names = chosen(connection)
            for identity in names:
                given_back(row, identity)
        return names


def held(row: DatasetRow, analyst: str, cost: Amounts) -> str:
    """Set an amount aside that fits; its name."""
    return spent(row, rows.HELD, {"analyst": analyst, "request": None, "question": ""}, cost, {})


def given_back(row: DatasetRow, held: str) -> bool:
    """Give a held amount of this dataset back, unless it was used or given back before."""
    found: RowMapping | None = (
        row.connection.execute(statements.ONE_RESERVATION, {"the_id": held})
        .mappings()
        .one_or_none()
    )
    if found is None or (found["state"], found["dataset"]) != (rows.HELD, row.name):
        return False
    row.end(found, "released", {})
    return True
