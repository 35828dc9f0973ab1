"""One list for each public group of rows: a country, a year, a branch.

The groups are named by the caller, never found in the data: that a group exists may give
somebody away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, down, exact, up
from topsecret.questions.payment import budget_of, paid_for, price_of, request_for
from topsecret.questions.prepare import Asked, ask, histograms
from topsecret.results.group_releases import Group, Releases
from topsecret.results.record import from_records, to_records
from topsecret.sources import Condition, CountQuery, Expression, GroupAssignment

if TYPE_CHECKING:
    from topsecret.ledger import Ledger

STEPS = 6
"""How often the price of one group is bisected."""


def top_k_by(
    source: Any,
    *,
    by: str,
    groups: Sequence[Group],
    disjoint: bool = False,
    item: str | Sequence[str] | Expression,
    person: str,
    k: int | Literal["auto"],
    epsilon: Number,
    delta: Number = 1e-6,
    k_bar: int | None = None,
    mechanism: str = "auto",
    table: str | tuple[str, ...] | None = None,
    where: Any = (),
    max_items: int | None = None,
    domain: Any = None,
    counts: bool = False,
    counts_share: float = 0.25,
    salt: bytes = b"",
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    request_id: str | None = None,
) -> Releases:
    """``top_k`` for each value of the column ``by`` that ``groups`` lists.

    With ``disjoint`` each person is kept in one group alone: with rows in several, in the one
    that a secret hash chooses. Each group then has the whole budget. Without it a person counts
    in all their groups and the budget is divided among them.

    With a ``ledger`` all lists are one query of ``dataset``, which needs a flexible budget.

    *Guarantee.* All lists together are (``epsilon``, ``delta``)-differentially private. With
    ``disjoint`` one person more or less changes the counts of a single group, whichever it is
    (parallel composition, enforced and not believed); otherwise by composition of all groups.
    """
    values = _checked(by, groups)
    budget = budget_of(ledger, dataset)
    if budget is not None and budget.kind == "metered":
        raise InvalidParameter(
            f"the budget of data set {dataset!r} is metered, for one list at a time; groups need "
            "a flexible one"
        )

    def asked_at(price: Number, failure: Number) -> Asked:
        return ask(
            source,
            item=item,
            person=person,
            k=k,
            epsilon=price,
            delta=failure,
            k_bar=k_bar,
            mechanism=mechanism,
            table=table,
            where=where,
            max_items=max_items,
            domain=domain,
            counts_share=counts_share if counts else None,
            salt=salt,
        )

    if disjoint:
        asked = asked_at(epsilon, delta)
        queries = [
            replace(asked.query, home=GroupAssignment(by, values, value)) for value in values
        ]
        total = asked.loss.epsilon(asked.budget[1]), asked.budget[1]
    else:
        whole = asked_at(epsilon, delta).budget
        asked = _divided(asked_at, *whole, len(values))
        queries = [asked.query.only(Condition(by, "=", value)) for value in values]
        total = _together(asked, len(values), whole[1]), whole[1]

    def drawn() -> tuple[dict[str, object], int]:
        releases, symbols = _drawn(asked, queries, values, by, disjoint, total)
        return to_records(releases), symbols

    if ledger is None or dataset is None:
        return _drawn(asked, queries, values, by, disjoint, total)[0]
    from topsecret.ledger import Price

    # Kept in one group alone, a person is touched by one list: it is paid in full, because how
    # far the lists of others went is no measure of it.
    price = Price(asked.loss) if disjoint else price_of(asked.prepared, asked.counts, len(values))
    grouped = {"by": by, "groups": list(values), "disjoint": disjoint}
    request = request_for(asked, dataset, price, analyst, request_id, grouped)
    return from_records(*paid_for(ledger, request, drawn))


def _drawn(
    asked: Asked,
    queries: Sequence[CountQuery],
    values: Sequence[Group],
    by: str,
    disjoint: bool,
    total: tuple[float, float],
) -> tuple[Releases, int]:
    """All lists, and how many symbols they took together."""
    with histograms(asked.opened, queries) as counted:
        drawn = {
            value: replace(asked, query=query).draw(histogram)
            for value, query, histogram in zip(values, queries, counted, strict=True)
        }
    shown = {
        value: replace(release, group=f"{by} = {value}") for value, (release, _) in drawn.items()
    }
    composition = "parallel" if disjoint else "sequential"
    return Releases(by, shown, composition, *total), sum(symbols for _, symbols in drawn.values())


def _checked(by: str, groups: Sequence[Group]) -> tuple[Group, ...]:
    values = tuple(groups) if not isinstance(groups, str) else ()
    if not isinstance(by, str) or not by or not values or len(set(values)) != len(values):
        raise InvalidParameter(
            f"by={by!r} needs groups=[…], the public values to answer for, each once; "
            "they are not taken from the data"
        )
    return values


def _divided(asked_at: Any, epsilon: float, delta: float, number: int) -> Asked:
    """The dearest question, or nearly, that ``number`` groups can afford together.

    δ is divided evenly. ε/number is always affordable (basic composition); the sum of all losses
    is usually far smaller than the sum of their epsilons, so that more is tried.
    """
    share = down(exact(delta) / number)
    low, high = down(exact(epsilon) / number), epsilon
    best: Asked = asked_at(low, share)
    for _ in range(STEPS if number > 1 else 0):
        middle = (low * high) ** 0.5
        tried: Asked = asked_at(middle, share)
        if _together(tried, number, delta) <= epsilon:
            best, low = tried, middle
        else:
            high = middle
    return best


def _together(asked: Asked, number: int, delta: float) -> float:
    """What ``number`` such answers cost at delta: by their summed losses, or one by one."""
    one_by_one = up(number * exact(asked.loss.epsilon(asked.budget[1])))
    return min(one_by_one, (number * asked.loss).epsilon(delta))
