"""Whether a question, or a request by its id, was asked before, and what became of it."""

from __future__ import annotations

import json

from sqlalchemy import Connection, RowMapping

from topsecret.errors import InDoubt, InvalidParameter
from topsecret.ledger import rows, statements
from topsecret.ledger.request import Request, Stored
from topsecret.ledger.rows import amounts


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
