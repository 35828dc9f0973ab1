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
from topsecret.calibration.unknown_domain import limited_domain, tested
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import ball, down, exact, up
from topsecret.mechanisms.chosen_bound import ChosenBound
from topsecret.mechanisms.tested_prices import Target

BOUND_SHARE = Fraction(1, 20)
"""The part of the budget (as zCDP) for the bound."""
TARGET, HANDICAP = 8, 2
"""How many noise scales, of the list or of the choice if that has more, a bound may cut off in
people, and by how many it must be better than a smaller one. Chosen on made-up shapes
(docs/results/private-bound.md)."""
LEFT = Fraction(4, 5)
"""The part of delta for which the price of the choice is computed."""
_IN_UNITS = Scores(1, 1, "times the bound")
_SHRINK = Fraction(995, 1000)
"""What is left of the list's Gaussian from one try to the next."""
_STEP = -math.log(_SHRINK)
_USUAL = 0.9956
"""Where more of epsilon is spent, the step before spent more than all of it."""
_STEEPEST = 1.2
"""How many times as fast as the Gaussian what is spent may fall, for the second try."""
_FEW_FALL = 0.97
"""The same for two or three items, where it is known."""
_FEW_STEP = {2: 9, 3: 6}
"""For so many items, a step before the last one, hardly ever after it."""


def with_private_bound(question: Question, build: Callable[[Question], Prepared]) -> Prepared:
    """The list in units of each bound, with what the choice leaves of the budget.

    *Guarantee.* Choice and list keep to the question's (ε, δ), compared without tolerance.
    """
    units = question.ranked_by(_IN_UNITS)
    epsilon, left = exact(question.epsilon), LEFT * exact(question.delta)
    price = price_of_bound(exact(calibrate(gaussian, epsilon, left)))
    too_little = InvalidParameter(
        f"epsilon={question.epsilon} and delta={question.delta} leave nothing for choosing a "
        "bound; raise them, or pass one max_per_item"
    )
    if price == 0:
        raise too_little
    most = Fraction(Target(epsilon, left, price, Fraction(0)).limit)

    def at(step: int) -> tuple[Prepared, ChosenBound]:
        rest = gaussian_epsilon((most * _SHRINK**step) ** 2, left)
        if rest == 0:  # delta alone pays for what is left
            raise too_little
        listed = build(units.at(rest))
        return listed, _bound_and(listed, question, price)

    first = int(build is tested and _overspends(question))
    few = question.length if build is limited_domain and question.length in _FEW_STEP else 0
    listed, mechanism = _first_that_fits(at, question, first, few)
    return _described(question, listed, mechanism)


def at_prices(
    question: Question, price_of_the_bound: float, build: Callable[[Question], Prepared]
) -> Prepared:
    """The same where the price of the choice, and what ``build`` makes, were fixed before."""
    listed = build(question.ranked_by(_IN_UNITS))
    return _described(question, listed, _bound_and(listed, question, exact(price_of_the_bound)))


def price_of_bound(mu_squared: Fraction) -> Fraction:
    """The epsilon of the choice where all of the budget is a Gaussian of this mu²; rounded down."""
    return Fraction(down(2 * ball(BOUND_SHARE * mu_squared).sqrt()))


def _bound_and(listed: Prepared, question: Question, price: Fraction) -> ChosenBound:
    """The choice, with what it looks for, and the list behind it."""
    noise = max(exact(listed.scale), 1 / price)
    return ChosenBound.of(
        listed.mechanism,  # type: ignore[arg-type]  # those that rank by measures are
        question.bounds,
        price,
        rank=(question.length + 1) // 2,
        target=math.ceil(TARGET * noise),
        handicap=math.ceil(HANDICAP * noise),
    )


def _described(question: Question, listed: Prepared, mechanism: ChosenBound) -> Prepared:
    shown = {name: value for name, value in listed.parameters.items() if name != "sensitivity"}
    bounds = len(question.bounds)
    return replace(
        listed,
        question=question,
        mechanism=mechanism,
        parameters={
            "epsilon_of_the_bound": up(exact(mechanism.epsilon)),
            "bounds": bounds,
            "bound_rank": mechanism.rank,
            "bound_target": mechanism.target,
            "bound_handicap": mechanism.handicap,
            **shown,
        },
        named_when=f"{listed.named_when}. The bound on what one person adds was chosen with noise "
        f"out of {bounds} public ones, for a twentieth of the budget: one that cuts off about "
        f"{mechanism.target} people at the item of rank {mechanism.rank}",
    )


def _first_that_fits(
    at: Callable[[int], tuple[Prepared, ChosenBound]], question: Question, first: int, few: int = 0
) -> tuple[Prepared, ChosenBound]:
    """The first step from this one on that keeps to the budget, with few of them tried.

    What is spent falls nearly evenly from step to step. Where the list has so ``few`` items, the
    search begins near its end; which step it ends with is the same.
    """
    tried: list[tuple[int, float]] = []
    step = max(first, _FEW_STEP.get(few, first))
    too_much, found = first - 1, None
    while found is None or step > too_much:
        listed, mechanism = at(step)
        keeps = mechanism.loss.keeps_to(question.epsilon, question.delta)
        if not keeps and found is not None:
            break
        spent = mechanism.loss.epsilon(question.delta) / question.epsilon
        if keeps:
            found, step = (listed, mechanism), step - 1
            if spent > _USUAL:
                break  # the step before it spends too much
            if few and not tried and spent < _USUAL - 3 * _STEP:  # far beyond the end
                return _first_that_fits(at, question, first)
            continue
        over, too_much = math.log(spent) if spent < math.inf else 0.0, step
        fall = _STEP * (_FEW_FALL if few else _STEEPEST)
        if tried:
            fall = max((tried[-1][1] - over) / (step - tried[-1][0]), _STEP / 2)
        tried.append((step, over))
        step += max(1, math.ceil(over / fall - (0.1 if few or len(tried) > 1 else 1)))
    return found


def _overspends(question: Question) -> bool:
    """Whether tested picks behind the choice surely cost more than the Gaussian that it leaves.

    Fitted on the safe side (k from 4 to 100, ε from .02 to 8, δ from 10⁻¹¹ to 10⁻⁴), so that a list
    is hardly ever calibrated for nothing: by about 1.7‰ at ε = 1 and δ = 10⁻⁷, less for a few k.
    """
    least = 0.65 if 13 <= question.length <= 15 else 1.6
    return least + 0.38 * math.log(question.epsilon) - 0.27 * math.log(1e7 * question.delta) > 0
