"""Whether a request fits into what is left of a budget, and spending it.

Every decision depends on the ledger and on public parameters alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from topsecret.accounting.charge import described
from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.errors import BudgetExceeded, InvalidParameter
from topsecret.ledger import rows, statements
from topsecret.ledger.amounts import Amounts, as_text, least, minus, shortages
from topsecret.ledger.budget import Flexible, Metered
from topsecret.ledger.chain import canonical
from topsecret.ledger.request import Request
from topsecret.ledger.rows import DatasetRow, amounts


def weighed(row: DatasetRow, request: Request, analyst: str) -> tuple[Amounts, Amounts]:
    """What the query may need, and what there is for it."""
    left = left_for(row, request.unit, analyst)
    return row.budget.worst(request.price), left


def left_for(row: DatasetRow, unit: PrivacyUnit, analyst: str) -> Amounts:
    """What there is for an analyst's queries about these persons."""
    if row.state != rows.OPEN:
        raise InvalidParameter(
            f"the budget of data set {row.name!r} is closed and admits nothing more; ask its owner"
        )
    if (unit.person, unit.adjacency) != (row.person, row.adjacency):
        raise InvalidParameter(
            f"the budget of data set {row.name!r} protects persons identified by "
            f"{row.person!r} under {row.adjacency}; ask with these"
        )
    left = minus(row.budget.limits, row.spent)
    mine = [share for share in row.shares if share["analyst"] == analyst]
    if row.shares and not mine:
        who = f"analyst {analyst!r}" if analyst else "a query without analyst"
        raise InvalidParameter(
            f"{who} has no allowance from data set {row.name!r}; its owner gives one with "
            "topsecret budget allow"
        )
    for share in mine:
        left = least(left, minus(amounts(share["limits"]), amounts(share["spent"])))
    return left


def admitted(row: DatasetRow, request: Request, question: str, worst: Amounts) -> str:
    """Spend the worst case and note the reservation, whose name is returned."""
    named = {"analyst": request.analyst or "", "request": request.request_id, "question": question}
    return spent(row, rows.RESERVED, named, worst, {"asked": dict(request.question)})


def spent(
    row: DatasetRow,
    state: str,
    named: Mapping[str, str | None],
    cost: Amounts,
    more: Mapping[str, object],
) -> str:
    """Spend an amount and note the reservation, under its state's name."""
    identity = secrets.token_hex(6)
    row.spend(named["analyst"] or "", cost)
    text = as_text(cost)
    entry = row.append(state, {"reservation": identity, **named, **more, "cost": text})
    values = {
        "id": identity,
        "dataset": row.name,
        **named,
        "state": state,
        "cost": canonical(text),
        "position": entry.position,
        "time": entry.time,
    }
    row.connection.execute(statements.ADD_RESERVATION, values)
    return identity


def exceeded(
    request: Request, budget: Metered | Flexible, worst: Amounts, left: Amounts
) -> BudgetExceeded:
    """The refusal, with what would have fitted."""
    lacking = shortages(worst, left)
    needs = " and ".join(described(name, worst[name], needed=True) for name in lacking)
    rest = " and ".join(described(name, left[name], needed=False) for name in lacking)
    return BudgetExceeded(
        f"the query may need {needs}, and data set {request.dataset!r} has {rest} left for it; "
        f"{budget.advice(left, request.bargain)}",
        dataset=request.dataset,
        needed=worst,
        left=left,
    )
