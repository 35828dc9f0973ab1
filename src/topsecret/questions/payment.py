"""How a ledger pays for a question: its price, its request, and the answer that was stored.

The order of events is that of ``topsecret.ledger.payment``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import exact
from topsecret.questions.prepare import Asked, prepared_for

if TYPE_CHECKING:
    from topsecret.calibration import Prepared
    from topsecret.calibration.counts import PreparedCounts
    from topsecret.ledger import Flexible, Ledger, Metered, Price, PriceAtEpsilon, Request


def request_for(
    asked: Asked,
    dataset: str,
    price: Price,
    analyst: str | None,
    request_id: str | None,
    more: Mapping[str, object] = MappingProxyType({}),
) -> Request:
    """What a ledger is asked: the price, and all that tells this question from another."""
    from topsecret.ledger import Request

    prepared = asked.prepared
    return Request(
        dataset=dataset,
        price=price,
        # Names alone would miss a parameter: the objects that decide the answer's law are asked.
        question={
            "source": asked.opened.name,
            "version": str(getattr(asked.opened, "version", "")),
            "counted": repr(asked.query),
            "unit": repr(asked.unit),
            "asked": prepared.question.to_dict(),
            "mechanism": repr(prepared.mechanism),
            **({"counts": repr(asked.counts)} if asked.counts else {}),
            **more,
        },
        unit=asked.unit,
        analyst=analyst,
        request_id=request_id,
        bargain=None if more else _bargain(asked),
    )


def paid_for(
    ledger: Ledger, request: Request, drawn: Callable[[], tuple[Mapping[str, object], int]]
) -> tuple[Mapping[str, Any], str, datetime]:
    """The answer, shown only once the ledger has stored it, what it cost in words, and when.

    The time is the reservation's: that of the drawing would tell how long the engine counted.
    """
    from topsecret.ledger import paid
    from topsecret.ledger.account import in_words

    stored = paid(ledger, request, drawn)
    where = f"data set {request.dataset!r} (entry {stored.position})"
    charge = (
        f"{in_words(stored.cost)} of {where}"
        if stored.fresh
        else f"nothing: this is the stored answer to the same question from {where}"
    )
    return stored.answer, charge, datetime.fromisoformat(stored.time)


def budget_of(ledger: Ledger | None, dataset: str | None) -> Metered | Flexible | None:
    """The budget that pays, or None where nobody keeps one."""
    if ledger is None and dataset is None:
        return None
    if ledger is None:
        raise InvalidParameter(f"dataset={dataset!r} needs a ledger; pass ledger=Ledger()")
    if dataset is None:
        raise InvalidParameter("a ledger needs the name of a data set; pass dataset='...'")
    return ledger.account(dataset).budget


def price_of(prepared: Prepared, counts: PreparedCounts | None = None, lists: int = 1) -> Price:
    """What as many such lists cost, one after the other."""
    from topsecret.calibration import paid_by_symbol
    from topsecret.ledger import Picks, Price

    if counts is not None:  # paid in full: the discrete Gaussian's own form is kept
        return Price(lists * (prepared.mechanism.loss + counts.loss))
    loss, terms = lists * prepared.mechanism.loss, paid_by_symbol(prepared)
    if terms is None:
        return Price(loss)
    symbols, epsilon, share = terms
    return Price(loss, Picks(lists * symbols, exact(epsilon), lists * exact(share)))


def _bargain(asked: Asked) -> PriceAtEpsilon:
    """The same mechanism for another ε, to say which would have fitted."""
    from topsecret.ledger import PriceAtEpsilon

    question, name = asked.prepared.question.at(asked.budget[0]), asked.prepared.name

    def price_at(epsilon: float) -> Price:
        return price_of(*prepared_for(None, question.at(epsilon), name, asked.counts_share))

    return PriceAtEpsilon(question.epsilon, price_at)
