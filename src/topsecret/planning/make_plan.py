"""Make a plan: calibrate every applicable mechanism, compare, and try them on a shape."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from topsecret.accounting import calibrate_zcdp
from topsecret.calibration import Question, applicable
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import exact
from topsecret.planning.plan_result import HeldQuestions, Option, Plan, option
from topsecret.planning.rule import recommend, smallest_epsilon
from topsecret.planning.shape import Shape, Zipf
from topsecret.planning.simulation import Progress, simulate

SCALES = (5, 10, 20, 50, 100)


def make_plan(
    question: Question, *, needed_lead: int | None = None, progress: Progress | None = None
) -> Plan:
    """The plan for a question; with ``needed_lead``, for the smallest epsilon that serves."""
    if needed_lead is not None:
        if needed_lead < 1:
            raise InvalidParameter(f"needed_lead={needed_lead} must be at least 1; raise it")
        if progress is not None:
            progress("searching epsilon", 0, 1)
        question = question.at(smallest_epsilon(question, needed_lead))
    names = applicable(question)
    options: list[Option] = []
    for done, name in enumerate(names):
        if progress is not None:
            progress(f"calibrating {name}", done, len(names))
        options.append(option(name, question))
    return Plan(
        question, tuple(options), recommend(question), held(question), needed_lead=needed_lead
    )


def tried(plan: Plan, shape: Shape, *, runs: int, progress: Progress | None = None) -> Plan:
    """The plan with the recall of its mechanisms on an example shape."""
    cap = plan.question.max_items
    if isinstance(shape, Zipf) and cap is not None:
        shape = replace(shape, events=min(shape.events, cap))  # each person is cut down to the cap
    names = [option.name for option in plan.options]
    each = shape.events if isinstance(shape, Zipf) else 1
    recalls = simulate(
        plan.question, names, shape.counts(), runs=runs, items_each=each, progress=progress
    )
    return replace(plan, shape=str(shape), runs=runs, recalls=recalls)


def held(question: Question) -> tuple[HeldQuestions, ...]:
    """How many picks fit into the budget when it is metered by zCDP, by noise scale.

    A pick with Gumbel noise of scale s costs 1/(8s²) (docs/proofs/many-queries.md, section 3).
    """
    if question.delta == 0:  # zCDP has no pure guarantee
        return ()
    rho = exact(calibrate_zcdp(question.epsilon, Fraction(question.delta) / 2))
    rows = []
    for scale in SCALES:
        picks = int(8 * rho * scale * scale)
        rows.append(
            HeldQuestions(
                scale, picks, None if isinstance(question.k, str) else picks // question.k
            )
        )
    return tuple(rows)
