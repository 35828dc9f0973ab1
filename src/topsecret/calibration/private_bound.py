"""A list by rows or sums whose bound on one person is chosen privately, calibrated as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from topsecret.accounting import calibrate, gaussian
from topsecret.accounting.classical import gaussian_epsilon
from topsecret.calibration.prepared import Prepared
from topsecret.calibration.question import Question, Scores
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import ball, down, exact, up
from topsecret.mechanisms.chosen_bound import ChosenBound
from topsecret.mechanisms.tested_prices import Target

BOUND_SHARE = Fraction(1, 20)
"""The part of the budget (as zCDP) for the bound."""
TARGET, HANDICAP = 8, 2
"""How many noise scales, of the list or of the choice if that has more, a bound may cut off in
persons, and by how many it must be better than a smaller one. Chosen on made-up shapes
(docs/results/private-bound.md)."""
_LEFT = Fraction(4, 5)
_SHRINK = Fraction(995, 1000)


def with_private_bound(question: Question, build: Callable[[Question], Prepared]) -> Prepared:
    """The list in units of each bound, with what the choice leaves of the budget.

    *Guarantee.* Choice and list keep to the question's (ε, δ), compared without tolerance.
    """
    scores = question.scores
    assert scores is not None
    units = question.ranked_by(Scores(1, 1, "times the bound"))
    epsilon, left = exact(question.epsilon), _LEFT * exact(question.delta)
    price = Fraction(down(2 * ball(BOUND_SHARE * exact(calibrate(gaussian, epsilon, left))).sqrt()))
    if price == 0:
        raise InvalidParameter(
            f"epsilon={question.epsilon} and delta={question.delta} leave nothing for choosing a "
            "bound; raise them, or pass one max_per_item"
        )
    mu = Fraction(Target(epsilon, left, price, Fraction(0)).limit)
    while True:
        listed = build(units.at(gaussian_epsilon(mu**2, left)))
        noise = max(exact(listed.scale), 1 / price)
        mechanism = ChosenBound.of(
            listed.mechanism,  # type: ignore[arg-type]  # those that rank by measures are
            scores.bounds,
            price,
            rank=(question.length + 1) // 2,
            target=math.ceil(TARGET * noise),
            handicap=math.ceil(HANDICAP * noise),
        )
        if mechanism.loss.keeps_to(question.epsilon, question.delta):
            break
        mu *= _SHRINK
    shown = {name: value for name, value in listed.parameters.items() if name != "sensitivity"}
    return replace(
        listed,
        question=question,
        mechanism=mechanism,
        parameters={
            "epsilon_of_the_bound": up(price),
            "bounds": len(scores.bounds),
            "bound_rank": mechanism.rank,
            "bound_target": mechanism.target,
            "bound_handicap": mechanism.handicap,
            **shown,
        },
        named_when=f"{listed.named_when}. The bound on what one person adds was chosen with noise "
        f"out of {len(scores.bounds)} public ones, for a twentieth of the budget: one that cuts "
        f"off about {mechanism.target} persons at the item of rank {mechanism.rank}",
    )
