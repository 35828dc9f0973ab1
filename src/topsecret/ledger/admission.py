"""Whether a request was made before, whether it fits into what is left of a budget, spending it.

Every decision depends on the ledger and on public parameters alone.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from fractions import Fraction

from sqlalchemy import Connection, RowMapping

from topsecret.accounting.charge import NOUNS, described
from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.errors import BudgetExceeded, InDoubt, InvalidParameter
from topsecret.ledger import rows, statements
from topsecret.ledger.amounts import Amounts, as_text, least, minus, shortages
from topsecret.ledger.budget import Flexible, Metered
from topsecret.ledger.chain import canonical
from topsecret.ledger.payment import Request, Stored
from topsecret.ledger.rows import DatasetRow, amounts

_ASKED_FOR = {"rho": "epsilon", "slack": "epsilon"}
"""What a question says to take less of a resource."""


def asked_before(connection: Connection, request: Request, question: str) -> list[RowMapping]:
    """The same question's reservations, answers first; none where other data may be meant."""
    if not request.repeatable:
        return []
    key = {"the_dataset": request.dataset}
    same = connection.execute(statements.SAME_QUESTION, key | {"the_question": question})
    if (earlier := list(same.mappings())) or request.first_form is None:
        return earlier
    first = request.first_form
    key |= {"the_key": first.key, "the_mechanism": first.mechanism or ""}
    found = connection.execute(
        statements.SAME_FIRST_FORM, key | {"any_mechanism": first.mechanism is None}
    )
    return list(found.mappings())


def retried(request: Request, question: str, earlier: RowMapping, may_wait: bool) -> Stored | None:
    """What became of the request with the same id; None if it is worth waiting for."""
    name = f"request_id={request.request_id!r}"
    first = None if request.first_form is None else request.first_form.key
    if question != earlier["question"] and (first is None or first != earlier["first_form"]):
        raise InvalidParameter(f"{name} was used for another question; choose a new one")
    if earlier["state"] == rows.SETTLED:
        return stored(earlier)
    if earlier["state"] == rows.FAILED:
        raise InvalidParameter(
            f"{name} failed after it was charged; choose a new one to pay and ask again"
        )
    if may_wait:
        return None
    raise InDoubt(
        f"{name} is under way elsewhere or was cut short (reservation {earlier['id']} of "
        f"{earlier['time']}); try again later, or ask the owner to write it off"
    )


def stored(row: RowMapping) -> Stored:
    """The answer that a settled reservation has."""
    return Stored(json.loads(row["answer"]), amounts(row["cost"]), row["position"], row["time"])


def weighed(row: DatasetRow, request: Request, analyst: str) -> tuple[Amounts, Amounts]:
    """What the query may need, and what there is for it."""
    left = left_for(row, request.unit, analyst)
    return row.budget.worst(request.price), left


def left_for(row: DatasetRow, unit: PrivacyUnit, analyst: str) -> Amounts:
    """What there is for an analyst's queries about these people."""
    if row.state != rows.OPEN:
        raise InvalidParameter(
            f"the budget of dataset {row.name!r} is closed and admits nothing more; ask its owner"
        )
    if (unit.person, unit.adjacency) != (row.person, row.adjacency):
        raise InvalidParameter(
            f"the budget of dataset {row.name!r} protects people identified by "
            f"{row.person!r} under {row.adjacency}; ask with these"
        )
    left = minus(row.budget.limits, row.spent)
    mine = [share for share in row.shares if share["analyst"] == analyst]
    if row.shares and not mine:
        who = f"analyst {analyst!r}" if analyst else "a query without analyst"
        raise InvalidParameter(
            f"{who} has no allowance from dataset {row.name!r}; its owner gives one with "
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
    return BudgetExceeded(
        f"{too_much('the query', request.dataset, worst, left)}; "
        f"{budget.advice(left, request.bargain)}",
        dataset=request.dataset,
        needed=worst,
        left=left,
    )


def too_much(what: str, dataset: str, needed: Amounts, left: Amounts) -> str:
    """What is not enough: items and queries by number, the rest by name, with numbers in brackets.

    >>> needed, left = {"rho": Fraction(1, 8), "slack": Fraction(1)}, {"rho": Fraction(1, 16)}
    >>> too_much("the query", "visits", needed, left)
    "the query may need more epsilon than dataset 'visits' has left for it (for specialists: \
rho 0.125 and slack 1 needed, rho 0.0625 and slack 0 left)"
    """
    lacking = shortages(needed, left)
    needs = " and ".join(described(name, needed[name], needed=True) for name in lacking)
    rest = " and ".join(
        described(name, max(Fraction(0), left.get(name, Fraction(0))), needed=False)
        for name in lacking
    )
    if NOUNS.keys() & needed.keys():
        return f"{what} may need {needs}, and dataset {dataset!r} has {rest} left for it"
    short = " and ".join(dict.fromkeys(_ASKED_FOR.get(name, name) for name in lacking))
    return (
        f"{what} may need more {short} than dataset {dataset!r} has left for it "
        f"(for specialists: {needs} needed, {rest} left)"
    )
