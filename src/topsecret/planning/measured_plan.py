"""Plans by rows and sums, whose bound on one person is given, chosen privately later, or proposed.

>>> from topsecret import Zipf, plan
>>> made = plan(k=10, epsilon=1.0, measure="rows", max_per_item=3)
>>> made["limited-domain"].needed_lead  # three times that for people
462
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from topsecret.calibration import Question
from topsecret.calibration.question import Scores
from topsecret.errors import InvalidParameter
from topsecret.planning.make_plan import make_plan
from topsecret.planning.plan_result import Plan
from topsecret.planning.proposed_bound import Example, PublicAmounts, RowsOfShape, proposed
from topsecret.planning.shape import Zipf
from topsecret.planning.simulation import Progress, simulate
from topsecret.sources.measures import PRIVATE, Amount, BoundLike, Measure, MeasureLike, measure_of

ByWhat = tuple[MeasureLike, BoundLike | None, Amount | None]
"""The measure, its bound for one item, and that for all."""


def measured_plan(
    question: Question,
    by: ByWhat,
    *,
    shape: Zipf | None,
    public_amounts: Sequence[Sequence[int | float | Decimal]] | None,
    needed_lead: int | None,
    runs: int,
    progress: Progress | None,
) -> Plan:
    """The plan for a question by rows or sums; the example, if any, is tried at its bound."""
    kind, bound, total = by
    examined = shape is not None or public_amounts is not None
    to_propose = examined and bound is None and total is None and kind != "persons"
    measure = measure_of(kind, PRIVATE if to_propose else bound, total)
    assert measure is not None  # refused with the bounds of people
    example = _example(measure, shape, public_amounts)
    if example is not None and not to_propose and (measure.bounds or measure.total):
        raise InvalidParameter(
            "an example is tried with one public max_per_item; pass it, or leave all bounds out "
            "to have one proposed"
        )
    words = ""
    if to_propose and example is not None:
        if needed_lead is not None:
            raise InvalidParameter("a bound is proposed at an epsilon; pass epsilon=1.0, say")
        candidates = measure.bounds
        best, recalls = proposed(
            question, Scores.of(measure), candidates, example, runs=runs, progress=progress
        )
        measure = measure.at(best)
        tried = ", ".join(f"{measure.at(one).bound} ({mean:.2f})" for one, mean in recalls.items())
        words = (
            f"Proposed: max_per_item={measure.bound}. Of the usual bounds it finds most of the "
            f"example's top {question.k}, or is the smallest of those that do; their recalls: "
            f"{tried}."
        )
    asked = question.ranked_by(Scores.of(measure))
    lead = None if needed_lead is None else _multiples(needed_lead, measure)
    made = make_plan(asked, needed_lead=lead, progress=progress)
    made = replace(made, needed_lead=needed_lead, proposed=words)
    if example is None:
        return made
    # An example says of each item what people add, and not who they are: no bound on all of it.
    names = [option.name for option in made.options if option.name != "tested-or-weighted"]
    recalls_now = simulate(
        asked,
        names,
        example.whole(),
        runs=runs,
        scores=example.clipped(measure.most),
        progress=progress,
    )
    return replace(made, shape=str(example), runs=runs, recalls=recalls_now)


def _example(
    measure: Measure,
    shape: Zipf | None,
    amounts: Sequence[Sequence[int | float | Decimal]] | None,
) -> Example | None:
    if amounts is not None:
        return PublicAmounts.of(amounts, measure.per_unit)
    if shape is not None and measure.column is not None:
        raise InvalidParameter(
            "a shape has rows and no values to sum; give public_amounts=[[…], …] instead"
        )
    return None if shape is None else RowsOfShape(shape)


def _multiples(lead: int, measure: Measure) -> int:
    """A lead in rows, or in what is summed, in whole multiples of the bound."""
    if measure.bounds or measure.total:
        raise InvalidParameter("needed_lead needs one public max_per_item, without max_total")
    times = lead * measure.per_unit // measure.most
    if times < 1:
        raise InvalidParameter(
            f"needed_lead={lead} must be at least max_per_item={measure.bound}; raise it"
        )
    return times
