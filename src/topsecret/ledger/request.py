"""What passes between a query and the ledger: a request, its reservation, a stored answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from topsecret.ledger.amounts import Amounts
from topsecret.ledger.budget import Flexible, Metered, Price, PriceAtEpsilon
from topsecret.questions.privacy_unit import PrivacyUnit


@dataclass(frozen=True, slots=True)
class Request:
    """A question to be paid for. All of it is public."""

    dataset: str
    price: Price
    question: Mapping[str, object]
    """Everything that the answer's law depends on but the data: equal questions, equal laws."""
    unit: PrivacyUnit
    analyst: str | None = None
    request_id: str | None = None
    bargain: PriceAtEpsilon | None = None


@dataclass(frozen=True, slots=True)
class Reservation:
    """The worst case of a question, durably spent: the data may be read now."""

    id: str
    request: Request
    budget: Metered | Flexible


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer that was paid for: it may be shown."""

    answer: dict[str, object]
    cost: Amounts
    position: int
    """Of the reservation's entry."""
    time: str
    """Of the reservation, which was made before any row was read."""
    fresh: bool = False
    """Whether it was drawn for this request; otherwise it costs nothing."""
