"""What passes between a query and the ledger: a request, its reservation, a stored answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.ledger.amounts import Amounts
from topsecret.ledger.budget import Flexible, Metered, Price, PriceAtEpsilon
from topsecret.ledger.chain import canonical, digest


@dataclass(frozen=True, slots=True)
class FirstForm:
    """A question as topsecret 0.1 recognised it: by texts of inner objects.

    Its answers are found by what was asked. What the calibration had found is left out, since a
    later version may find better.
    """

    key: str
    mechanism: str | None
    """The name of the mechanism's class; None for any."""

    @classmethod
    def of(cls, written: Mapping[str, object], mechanism: str | None) -> FirstForm:
        """From what version 0.1 wrote about a question."""
        known = {name: value for name, value in written.items() if name != "mechanism"}
        if "counts" in known:
            known["counts"] = True
        return cls(digest(canonical(known)), mechanism)


@dataclass(frozen=True, slots=True)
class Request:
    """A question to be paid for. All of it is public."""

    dataset: str
    price: Price
    question: Mapping[str, object]
    """The fingerprint: everything that the answer's law depends on but the rows."""
    unit: PrivacyUnit
    analyst: str | None = None
    request_id: str | None = None
    bargain: PriceAtEpsilon | None = None
    repeatable: bool = True
    """Whether an equal question is certain to be about the same data."""
    first_form: FirstForm | None = None


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
