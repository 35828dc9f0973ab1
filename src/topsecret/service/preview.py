"""What a question would buy and cost, in plain words, from public numbers only."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from topsecret.exact.rounding import down, rounded_up
from topsecret.ledger import Account, Allowance, Flexible, Metered, Price
from topsecret.ledger.amounts import Amounts
from topsecret.planning.summary import Summary, outlook, outlook_at, outlook_of
from topsecret.questions.answer import planned
from topsecret.questions.payment import plan_price
from topsecret.questions.question import Groups, Question
from topsecret.service.datasets import Dataset
from topsecret.service.ranked_by import RankedBy

if TYPE_CHECKING:
    from topsecret.service.jobs.job import Asked

LARGEST_K = 100
_NONE = Fraction(0)
EPSILONS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0)
"""The steps of the slider."""

CLOSED = (
    "The budget of this dataset is closed: nothing more is paid from it, and nobody can open it "
    "again. Ask its owner for another dataset."
)

Length = int | Literal["auto", "all"]

_PEOPLE = ("people", "weighted people")
_CLIPPED = ", counted after clipping"


@dataclass(frozen=True, slots=True)
class Preview:
    """What would come back, and what it would take."""

    k: Length
    epsilon: float | None
    """None where the owner fixed the price."""
    mechanism: str
    lead: int | None
    """How many people an item must be ahead, or have, to be named with 95% probability."""
    lead_in: str
    """What the lead counts: people, or what is ranked by in place of them, such as rows."""
    fits: bool
    cost: float
    """The share of the analyst's whole allowance that it may take, 0 to 1 and more."""
    left: float
    """The share of the allowance that is left."""
    again: int
    """How many such questions fit."""
    buys: str
    answer: str
    protects: str
    takes: str

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return asdict(self)


def preview(
    dataset: Dataset,
    account: Account,
    share: Allowance,
    asked: Asked,
) -> Preview:
    """The preview of one question."""
    seen, worst = _foreseen(dataset, account.budget, asked)
    groups = asked.grouped_by
    # A share may have been lowered below what was spent of it: nothing is left then, no less.
    left = {name: max(_NONE, min(value, share.left[name])) for name, value in account.left.items()}
    whole = {name: min(value, share.limits[name]) for name, value in account.budget.limits.items()}
    again = min((int(left[name] / value) for name, value in worst.items() if value), default=0)
    cost = max(_part(worst[name], whole[name]) for name in worst)
    remaining = min(_part(left[name], whole[name]) for name in left if whole[name] or worst[name])
    if account.state != "open":
        again = 0
    fits = again >= 1
    buys = _buys(seen, asked.k, smaller_cap(dataset.cap, asked.max_items), asked.at_least)
    each = "" if groups is None else f", for each of {len(groups.values)} groups,"
    return Preview(
        asked.k,
        asked.epsilon,
        seen.name,
        seen.lead,
        seen.lead_in,
        fits,
        float(cost),
        float(remaining),
        again,
        buys if groups is None else _in_each(buys),
        f"You get{each} {seen.answer}{', each with a noisy count' if asked.counts else ''}.",
        _protects(seen.epsilon),
        CLOSED if account.state != "open" else _takes(fits, float(cost), again),
    )


def smaller_cap(*caps: int | None) -> int | None:
    """The cap that holds where the owner has one and a query may have its own."""
    return min((cap for cap in caps if cap is not None), default=None)


def worst_case(
    dataset: Dataset,
    budget: Metered | Flexible,
    asked: Asked,
) -> Amounts:
    """What a question may take from the budget."""
    return _foreseen(dataset, budget, asked)[1]


def _foreseen(
    dataset: Dataset, budget: Metered | Flexible, asked: Asked
) -> tuple[Summary, Amounts]:
    k, epsilon, delta = asked.k, asked.epsilon, dataset.delta_of(asked)
    cap = smaller_cap(dataset.cap, asked.max_items)
    if asked.grouped_by is not None:
        assert isinstance(budget, Flexible)  # refused before
        assert epsilon is not None
        seen, price = _seen_by_group(
            asked.grouped_by.groups(dataset.filters),
            k,
            epsilon,
            delta,
            cap,
            asked.counts,
            asked.ranked_by,
        )
        return seen, budget.worst(price)
    public = (delta, cap, asked.counts, asked.at_least, asked.ranked_by)
    seen = _seen(budget, k, epsilon, *public)
    if isinstance(budget, Metered):
        items = Fraction(0 if isinstance(k, str) else k)
        return seen, {"picks": items, "queries": Fraction(1)}
    return seen, budget.worst(Price(seen.loss))


@lru_cache(maxsize=256)
def _seen_by_group(
    groups: Groups,
    k: Length,
    epsilon: float,
    delta: float,
    cap: int | None,
    counts: bool,
    ranked_by: RankedBy | None,
) -> tuple[Summary, Price]:
    """One of the lists, and what all of them cost together."""
    more: dict[str, Any] = {} if ranked_by is None else ranked_by.keywords
    question = Question.of(
        None,
        groups,
        item="item",  # which columns are asked makes no difference to the price
        person="person",
        k=k,
        epsilon=epsilon,
        delta=delta,
        max_items=cap,
        counts=counts,
        **more,
    )
    numbers = question.numbers
    if counts or groups.disjoint:  # as in ``answer``: people are not weighted then
        numbers = numbers.choosing("public")
    plan = planned(numbers, question)
    return replace(outlook_of(plan.each), epsilon=plan.epsilon), plan_price(plan, grouped=True)


@lru_cache(maxsize=4096)
def _seen(
    budget: Metered | Flexible,
    k: Length,
    epsilon: float | None,
    delta: float,
    cap: int | None,
    counts: bool,
    at_least: int | None,
    ranked_by: RankedBy | None,
) -> Summary:
    measure = None if ranked_by is None else ranked_by.measure
    if isinstance(budget, Metered):
        assert k != "all"  # refused before
        whole = down(budget.epsilon), down(budget.delta)
        return outlook_at(k, *whole, down(budget.price), down(budget.query_delta), cap, measure)
    price = 1.0 if epsilon is None else epsilon
    return outlook(k, price, delta, cap, counts=counts, at_least=at_least, measure=measure)


def _in_each(words: str) -> str:
    return f"In each group: {words[:1].lower()}{words[1:]}"


def _buys(seen: Summary, k: Length, cap: int | None, at_least: int | None) -> str:
    """What must be so that an item is named."""
    if seen.lead is None:
        return f"An item is named when {seen.named_when}."
    words = _passes(seen, k, at_least) if seen.over_rank == 0 else _leads(seen, k)
    if seen.lead_in == "weighted people":
        words += " People with many items count less for each."
    if cap is not None:
        words += f" At most {cap} item{'' if cap == 1 else 's'} of each person count."
    return words


def _passes(seen: Summary, k: Length, at_least: int | None) -> str:
    """Of a rule that looks at one item alone; a list has room for k of those that pass."""
    named = "named" if k == "all" and at_least is None else "safe to name"
    what = f"An item with {seen.lead:,} {seen.lead_in} is {named} with 95% probability"
    if at_least is not None:
        what += f"; of those, the ones shown to have at least {at_least:,} people are named"
    elif k != "all":
        largest, are = ("the", "is") if k == 1 else (f"the {k}", "are")
        what += f"; of those, {largest} largest with noise {are} named"
    return f"{what}{_CLIPPED if seen.lead_in not in _PEOPLE else ''}."


def _leads(seen: Summary, k: Length) -> str:
    """Of a rule that compares items."""
    last = "The largest item" if k == 1 else f"The last of the top {k}, the others far ahead,"
    if seen.lead_in not in _PEOPLE:
        return (
            f"{last} is named with 95% probability if it has {seen.lead:,} {seen.lead_in} more "
            f"than any item below{_CLIPPED}."
        )
    if seen.over_rank is None:
        return (
            f"The list can end where at least {seen.lead:,} fewer people have the next item: such "
            "a drop is found with 95% probability."
        )
    return (
        f"{last} is named with 95% probability if {seen.lead:,} more people have it than any item "
        "below."
    )


def _protects(epsilon: float) -> str:
    if epsilon > 10:  # where accounting/weak_privacy.py warns; the receipt says more
        return "At this setting the guarantee is too weak to mean much."
    factor = rounded_up(math.nextafter(math.exp(epsilon), math.inf), 3)
    return (
        f"Nobody's presence in the data makes any outcome more than {factor} times as likely "
        "or as unlikely, leaving delta aside."
    )


def part_of_allowance(cost: float) -> str:
    """A part of the whole, rounded up, in words."""
    return "less than 1%" if cost < 0.01 else f"up to {math.ceil(100 * cost)}%"


def _takes(fits: bool, cost: float, again: int) -> str:
    share = part_of_allowance(cost)
    if not fits:
        if cost > 2:
            share = f"up to {math.ceil(cost):,} times the whole"
        return f"It would take {share} of your allowance: more than is left. Choose less."
    last = "; this is the last one" if again == 1 else ""
    return f"It takes {share} of your allowance{last}."


def _part(value: Fraction, whole: Fraction) -> Fraction:
    return value / whole if whole else Fraction(1 if value else 0)
