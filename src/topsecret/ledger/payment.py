"""A paid query: its request, its reservation, its stored answer, and the order of events.

docs/ledger.md says why the order is this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.errors import DataIndependentFailure, LedgerError
from topsecret.ledger.amounts import Amounts
from topsecret.ledger.budget import Flexible, Metered, Price, PriceAtEpsilon
from topsecret.ledger.chain import canonical, digest

if TYPE_CHECKING:
    from topsecret.ledger.ledger import Ledger

Drawn = tuple[Mapping[str, object], int]
"""An answer and how many symbols it has."""


@dataclass(frozen=True, slots=True)
class FirstForm:
    """A question as topsecret 0.1 recognised it: by texts of inner objects.

    Its answers are found by what was asked. What the calibration had found is left out, since a
    later version may find better.
    """

    key: str
    """A hash of those texts."""
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
    """Whose budget pays."""
    price: Price
    """What the query may cost."""
    question: Mapping[str, object]
    """The fingerprint: everything that the answer's law depends on but the rows."""
    unit: PrivacyUnit
    """Who is protected, which must be as the budget says."""
    analyst: str | None = None
    """In whose name it is asked; None where there are no allowances."""
    request_id: str | None = None
    """The caller's name for the request; None for none."""
    bargain: PriceAtEpsilon | None = None
    """The same query at another ε, for the advice of a refusal."""
    repeatable: bool = True
    """Whether an equal question is certain to be about the same data."""
    first_form: FirstForm | None = None
    """The question as version 0.1 wrote it; None if that had none."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """The worst case of a question, durably spent: the data may be read now."""

    id: str
    """By which it is settled, given back or written off."""
    request: Request
    """What it is for."""
    budget: Metered | Flexible
    """What it was taken from."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer that was paid for: it may be shown."""

    answer: dict[str, object]
    """The answer's record."""
    cost: Amounts
    """What it took from the budget."""
    position: int
    """Of the reservation's entry."""
    time: str
    """Of the reservation, which was made before any row was read."""
    fresh: bool = False
    """Whether it was drawn for this request; otherwise it costs nothing."""


def paid(ledger: Ledger, request: Request, read_and_draw: Callable[[], Drawn]) -> Stored:
    """Reserve durably → read → draw → store and settle in one transaction → hand out.

    | it ends | the reservation | the answer |
    | --- | --- | --- |
    | before ``reserve`` returned | spent or not, in doubt if spent | none was drawn |
    | by a failure that no row can influence | given back | none was drawn |
    | by any other failure | charged in full, *failed* | not shown |
    | by a crash before ``settle`` returned | charged in full, *in doubt*, or settled | not shown |
    | in ``settle`` | as far as the answer went | stored, shown, and shown again free of charge |

    Between drawing and settling, ``Ledger.paced`` may wait: the ledger then moves at fixed times.

    Parameters: ``ledger``: which pays; ``request``: what is asked, and its price;
    ``read_and_draw``: reads the data and draws; called once, and only after the reservation.
    """
    reserved = ledger.reserve(request)
    if isinstance(reserved, Stored):
        return reserved
    try:
        ledger.pace.reading()
        answer, symbols = read_and_draw()
        ledger.pace.drawn()
    except DataIndependentFailure:
        # Without the ledger it stays in doubt; the caller must hear of the first failure.
        with suppress(LedgerError):
            ledger.release(reserved)
        raise
    except BaseException:
        with suppress(LedgerError):
            ledger.fail(reserved)
        raise
    return ledger.settle(reserved, answer, symbols)
