"""Paying from a ledger that keeps the budget of a dataset.

The order of events of a paid question is that of ``topsecret.ledger.payment``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from topsecret.accounting import Loss
from topsecret.accounting.charge import Charge
from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.calibration import Prepared, paid_by_symbol
from topsecret.calibration.calibrated import calibrated
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import down, exact
from topsecret.questions.answer import Answer, Bill, Draws
from topsecret.questions.planned_lists import Plan
from topsecret.questions.question import USUAL_DELTA, usual_delta
from topsecret.results.record import from_record, to_record
from topsecret.results.release import Release
from topsecret.sources.source import source_fingerprint

if TYPE_CHECKING:
    from topsecret.calibration.counts import PreparedCounts
    from topsecret.ledger import (
        FirstForm,
        Flexible,
        Ledger,
        Metered,
        Price,
        PriceAtEpsilon,
        Request,
        Stored,
    )


FIRST_SHARE = 0.25
"""The part of epsilon that topsecret 0.1 gave to counts."""


@dataclass(frozen=True)
class Paid:
    """The budget of a dataset that a ledger keeps, perhaps an analyst's share of it."""

    ledger: Ledger
    dataset: str
    analyst: str | None = None
    request_id: str | None = None

    @cached_property
    def terms(self) -> Metered | Flexible:
        """As the owner opened it, once and for all."""
        return self.ledger.account(self.dataset).budget

    def charge(self, stored: Stored) -> Charge:
        """What the answer took, and what all answers from the budget have together."""
        limits = self.terms.limits
        part = max(
            (cost / limits[name] for name, cost in stored.cost.items() if cost), default=None
        )
        return Charge(
            self.dataset,
            stored.position,
            stored.cost,
            stored=not stored.fresh,
            part=part,
            total=self.terms.guarantee,
        )

    def pay(self, bill: Bill, read_and_draw: Draws) -> Answer:
        """The answer, shown only once the ledger has stored it, with what it cost and when.

        The time is the reservation's: that of the drawing would tell how long the engine counted.
        """
        from topsecret.ledger import paid

        def drawn() -> tuple[dict[str, object], int]:
            answer, symbols = read_and_draw()
            return to_record(answer), symbols

        stored = paid(self.ledger, self._request(bill), drawn)
        charge = self.charge(stored)
        return charged(from_record(stored.answer), charge, datetime.fromisoformat(stored.time))

    def _request(self, bill: Bill) -> Request:
        """The price, and all that tells this question from another."""
        from topsecret.ledger import Request

        source, recognised = source_fingerprint(bill.source, bill.question.version)
        return Request(
            dataset=self.dataset,
            price=plan_price(bill.plan, grouped=bill.question.groups is not None),
            question={"source": source, **bill.question.fingerprint()},
            unit=bill.question.unit,
            analyst=self.analyst,
            request_id=self.request_id,
            bargain=_at_another_epsilon(bill, self.terms),
            repeatable=recognised,
            first_form=first_form(bill) if isinstance(bill.question.mechanism, str) else None,
        )


def purse(
    ledger: Ledger | None,
    dataset: str | None,
    analyst: str | None = None,
    request_id: str | None = None,
) -> Paid:
    """The dataset's budget, or the analyst's share of it."""
    if ledger is None:
        raise InvalidParameter(f"dataset={dataset!r} needs a ledger; pass ledger=Ledger()")
    if dataset is None:
        raise InvalidParameter("a ledger needs the name of a dataset; pass dataset='...'")
    return Paid(ledger, dataset, analyst, request_id)


def charged(answer: Answer, charge: Charge, time: datetime) -> Answer:
    """The answer with what it took from a budget, and when."""
    if isinstance(answer, Release):
        return replace(answer, charge=charge, time=time)
    charge = replace(charge, groups=len(answer))
    lists = {group: replace(one, charge=charge, time=time) for group, one in answer.items()}
    return replace(answer, groups=lists)


def first_form(bill: Bill) -> FirstForm:
    """What topsecret 0.1 would have written about the question.

    It compared the ``repr()`` of inner objects, which ``tests/golden`` holds still. What its
    mechanism's calibration found is left out: a later version may find better.
    """
    from topsecret.ledger import FirstForm

    question, groups = bill.question, bill.question.groups
    numbers = dict(bill.plan.each.question.plain_values)
    numbers.pop("choose", None)  # that version knew one rule for "auto", and one default of delta
    delta = USUAL_DELTA if question.usual_delta else bill.plan.each.question.delta
    numbers["delta"] = delta
    if question.counts is not None:  # the selection's own part of epsilon was written down
        share = FIRST_SHARE if question.counts.part is None else question.counts.part
        part = down(1 - exact(share))
        whole = bill.plan.each.question
        numbers |= {"epsilon": whole.epsilon * part, "delta": delta * part}
    written: dict[str, object] = {
        "source": bill.source.name,
        "version": str(getattr(bill.source, "version", "")),
        "counted": repr(replace(question.counted, rows=bill.plan.each.question.k_bar + 1)),
        "unit": repr(question.unit),
        "asked": numbers,
    }
    if question.counts is not None:
        written["counts"] = True
    if groups is not None:
        written |= {"by": groups.name, "groups": list(groups.values), "disjoint": groups.disjoint}
    name = type(bill.plan.each.selection.mechanism).__name__
    return FirstForm.of(written, None if question.mechanism == "auto" else name)


@lru_cache(maxsize=256)
def plan_price(plan: Plan, *, grouped: bool) -> Price:
    """What all lists cost at most."""
    from topsecret.ledger import Price

    each, lists = plan.each, plan.lists
    if grouped and lists == 1:
        # Kept in one group alone, a person is touched by one list: it is paid in full, because how
        # far the lists of others went is no measure of it.
        return Price(each.loss)
    return price_of(each.selection, each.counts, lists)


def price_of(selection: Prepared, counts: PreparedCounts | None = None, lists: int = 1) -> Price:
    """What as many such lists cost, one after the other."""
    from topsecret.ledger import Picks, Price

    if counts is not None:  # paid in full: what a list did not take may have gone to its counts
        return Price(lists * counts.total)
    loss, terms = lists * selection.mechanism.loss, paid_by_symbol(selection)
    if terms is None:
        return Price(loss)
    symbols, epsilon, share = terms
    return Price(loss, Picks(lists * symbols, exact(epsilon), lists * exact(share)))


def _at_another_epsilon(bill: Bill, terms: Metered | Flexible) -> PriceAtEpsilon | None:
    """The same mechanism for another ε, to say which would have fitted; its δ, if said."""
    from topsecret.ledger import PriceAtEpsilon

    if bill.question.groups is not None or not isinstance(bill.question.mechanism, str):
        return None
    each, counts = bill.plan.each, bill.question.counts

    def price_at(epsilon: float) -> Price:
        asked = each.question.at(epsilon)
        if bill.question.usual_delta:
            kind = (asked.k == "all" or asked.at_least is not None, counts is not None)
            asked = replace(asked, delta=usual_delta(terms, epsilon, None, *kind))
        other = calibrated(each.selection.name, asked, counts)
        return price_of(other.selection, other.counts)

    return PriceAtEpsilon(each.question.epsilon, price_at)


def paid_in_full(
    purse: Paid,
    *,
    loss: Loss,
    asked: Mapping[str, object],
    unit: PrivacyUnit,
    repeatable: bool,
    draw: Callable[[], Mapping[str, object]],
) -> tuple[Mapping[str, Any], Charge]:
    """The record of an answer that is no top list, paid for at its whole price.

    *Guarantee.* As ``Paid.pay``: reserved before ``draw`` reads, stored before it is shown.
    ``unit`` must be the one that the dataset's budget protects.
    """
    from topsecret.ledger import Price, Request, paid

    request = Request(
        dataset=purse.dataset,
        price=Price(loss),
        question=asked,
        unit=unit,
        analyst=purse.analyst,
        request_id=purse.request_id,
        repeatable=repeatable,
    )
    _ = purse.terms  # read and kept before anything is paid: the charge is told by them
    stored = paid(purse.ledger, request, lambda: (draw(), 0))
    return stored.answer, purse.charge(stored)
