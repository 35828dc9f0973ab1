"""Everything that can go wrong, in one shape: {error, message, request_id}.

A message is made of public words. Neither an exception's text nor what a client sent is repeated,
except for our own errors, whose texts never hold data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, Field

from topsecret.errors import BudgetExceeded, InvalidParameter, LedgerError, TopSecretError

IN_WORDS = "in_words"
"""The type of a rule's own error, whose message is for people and repeats nothing."""


class ProblemShape(BaseModel):
    """The one shape of all errors."""

    error: str = Field(description="A short name for programs.")
    message: str = Field(description="What is wrong and what to do, for people.")
    request_id: str = Field(description="For the operator, who finds the request by it in the log.")


class Problem(Exception):
    """An answer that is an error."""

    def __init__(
        self, status: int, error: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(error)
        self.status, self.error, self.message = status, error, message
        self.headers = dict(headers or {})


_STATUS: tuple[tuple[type[TopSecretError], int, str], ...] = (
    (BudgetExceeded, 409, "budget_exceeded"),
    (InvalidParameter, 400, "invalid"),
)


def of_error(error: TopSecretError) -> Problem:
    """The problem for one of our own errors."""
    for kind, status, name in _STATUS:
        if isinstance(error, kind):
            return Problem(status, name, str(error))
    if isinstance(error, LedgerError):
        return Problem(503, "ledger_failed", "The ledger cannot be reached; try again later.")
    return unforeseen()


def of_status(status: int) -> Problem:
    """The problem for a bare status of the framework."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Error"
    words = {
        404: "There is nothing at this address.",
        405: "This address does not take this method.",
    }
    return Problem(status, phrase.lower().replace(" ", "_"), words.get(status, f"{phrase}."))


def of_validation(errors: Sequence[Any]) -> Problem:
    """The problem for a request that does not keep to the schema: fields and rules, no values."""
    faults: dict[str, None] = {}
    for error in errors:
        if error.get("type") == IN_WORDS:
            return Problem(422, "invalid_request", str(error["msg"]))
        where = [str(part) for part in error.get("loc", ()) if isinstance(part, str)]
        # An unknown field's name is the client's text: it is not repeated.
        known = (
            error.get("type") != "extra_forbidden" and len(where) > 1 and where[1].isidentifier()
        )
        rule = str(error.get("type", "invalid")).replace("_", " ")
        faults[f"{where[1][:40]}: {rule}" if known else rule] = None
    shown = "; ".join(list(faults)[:5]) or "invalid"
    return Problem(422, "invalid_request", f"The request does not keep to the schema ({shown}).")


def unforeseen() -> Problem:
    """The problem for whatever nobody thought of."""
    return Problem(
        500, "internal_error", "Something went wrong here. The operator finds it by the request id."
    )


RESPONSES: dict[int | str, dict[str, Any]] = {
    400: {"model": ProblemShape, "description": "A value breaks a rule"},
    401: {"model": ProblemShape, "description": "Nobody is logged in"},
    403: {"model": ProblemShape, "description": "Not for this account"},
    404: {"model": ProblemShape, "description": "Not there, or not for this account"},
    409: {"model": ProblemShape, "description": "The request id was used for another question"},
    422: {"model": ProblemShape, "description": "The request does not keep to the schema"},
    429: {"model": ProblemShape, "description": "Too many requests"},
    503: {"model": ProblemShape, "description": "The ledger cannot be reached"},
}
