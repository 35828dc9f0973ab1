"""What a budget will buy, from public numbers only.

>>> from topsecret import plan
>>> preview = plan(k=1, epsilon=1.0)
>>> preview.recommended, preview["limited-domain"].needed_lead
('limited-domain', 21)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex

from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number
from topsecret.planning.shape import PublicCounts, Shape, Zipf

if TYPE_CHECKING:
    from decimal import Decimal

    from topsecret.planning.plan_result import Plan
    from topsecret.planning.simulation import Progress
    from topsecret.sources.measures import Amount, BoundLike, MeasureLike

__all__ = ["Zipf", "plan"]


def plan(
    *,
    k: SupportsIndex | str,
    epsilon: Number | None = None,
    delta: Number = 1e-6,
    k_bar: SupportsIndex | None = None,
    max_items: SupportsIndex | None = None,
    domain_size: SupportsIndex | None = None,
    ordered: bool = False,
    fill: bool = False,
    choose: str | None = None,
    at_least: SupportsIndex | None = None,
    needed_lead: int | None = None,
    shape: Zipf | None = None,
    public_counts: Sequence[int] | None = None,
    measure: MeasureLike = "persons",
    max_per_item: BoundLike | None = None,
    max_total: Amount | None = None,
    public_amounts: Sequence[Sequence[int | float | Decimal]] | None = None,
    runs: int = 50,
    progress: Progress | None = None,
) -> Plan:
    """What each mechanism would need and give for a top-k question, before anything is spent.

    Give ``epsilon``, or ``needed_lead``: then the plan is for the smallest epsilon at which an
    item with that many people more than the rest is named with 95% probability. ``max_items`` is
    the cap on one person's items, ``domain_size`` the size of a public list of all items; with one
    ``delta`` may be 0. ``ordered``, ``fill``, ``choose`` and ``at_least`` are those of ``top_k``. A
    ``shape`` (or ``public_counts``, counts that are public already) is an example on which the
    expected recall is simulated.

    ``measure``, ``max_per_item`` and ``max_total`` are those of ``top_k``: leads and noise are then
    in rows, or in what is summed. Without a bound one is proposed from an example: the rows of the
    ``shape``, or ``public_amounts``, which are lists of what each person adds to an item, one list
    for each item.

    Parameters: ``k``: how many items; "auto" or "all" as for ``top_k``; ``epsilon``: how much one
    person may change the chance of any answer; or give ``needed_lead``; ``delta``: a probability
    that is added to what epsilon allows; ``k_bar``: how many leading items may be looked at;
    ``max_items``: how many items of one person are counted; None for no cap; ``domain_size``: how
    many items a public list of all items has; None if there is none; ``ordered``: whether the order
    must be part of the answer; ``fill``: whether a set is completed to k items at random;
    ``choose``: "private" or "public": whether the data may be asked which mechanism suits them;
    ``at_least``: plan for items that surely have so many people; ``needed_lead``: find the
    smallest epsilon at which so large a lead is enough; ``shape``: an example of data, on which the
    recall is simulated; ``public_counts``: counts that are public already, as the example;
    ``measure``: "persons", "rows" or ``Sum("column")``; ``max_per_item``: the most that one person
    adds to one item, by rows or sums; ``max_total``: a bound on all that one person adds;
    ``public_amounts``: for each item what each person adds, as the example for rows and sums;
    ``runs``: how many times the example is simulated; ``progress``: called while the plan is being
    made, to show how far it is.

    *Guarantee.* A plan is made of the numbers given here. There is no way to give it a private
    source, so it costs nothing and may be shown to anyone.
    """
    from topsecret.accounting.weak_privacy import check_strength
    from topsecret.calibration import Question
    from topsecret.planning.make_plan import make_plan, tried

    if (epsilon is None) == (needed_lead is None):
        raise InvalidParameter("give either epsilon=1.0, say, or needed_lead=200, say")
    if shape is not None and public_counts is not None:
        raise InvalidParameter("give either shape=… or public_counts=…, not both")
    if public_amounts is not None and (shape is not None or public_counts is not None):
        raise InvalidParameter("give public_amounts=… alone, without another example")
    question = Question.of(
        k=k,
        epsilon=1.0 if epsilon is None else epsilon,
        delta=delta,
        k_bar=k_bar,
        max_items=max_items,
        domain_size=domain_size,
        ordered=ordered,
        fill=fill,
        choose=choose,
        at_least=at_least,
    )
    check_strength(question.epsilon, question.delta)  # one that is looked for is at most 10
    if measure != "persons" or max_per_item is not None or max_total is not None:
        from topsecret.planning.measured_plan import measured_plan

        if public_counts is not None:
            raise InvalidParameter(
                "public_counts are of people; give public_amounts=[[…], …], what each person adds"
            )
        return measured_plan(
            question,
            (measure, max_per_item, max_total),
            shape=shape,
            public_amounts=public_amounts,
            needed_lead=needed_lead,
            runs=runs,
            progress=progress,
        )
    if public_amounts is not None:
        raise InvalidParameter("public_amounts are for measure='rows' or Sum(…); add measure")
    example: Shape | None = shape
    if public_counts is not None:
        example = PublicCounts.of(public_counts)
    made = make_plan(question, needed_lead=needed_lead, progress=progress)
    return made if example is None else tried(made, example, runs=runs, progress=progress)
