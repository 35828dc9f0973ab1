"""Several lists that one person may be in: about the epsilon of each.

Each list is calibrated to (x, δ/n), and what all cost together is known only then. A search over x
would calibrate list after list; here rough prices stand in for calibrated ones, so that the first x
is nearly always the last. For searching only: what is drawn is calibrated and added up by itself.

>>> from topsecret.calibration import Question, refusal
>>> 0.48 < epsilon_of_each("tested", Question.of(k=10, epsilon=1, delta=1e-7), 3) < 0.56
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from topsecret.accounting import (
    Loss,
    calibrate,
    calibrate_gaussian,
    calibrate_limited_domain,
    failure,
    picks,
    rdp,
)
from topsecret.accounting.calibration import limited_domain_loss
from topsecret.accounting.chosen import ChosenSteps
from topsecret.accounting.classical import gaussian_epsilon
from topsecret.accounting.tested import Branch, TestedSteps
from topsecret.calibration import Question, refusal
from topsecret.calibration.calibrated import calibrated
from topsecret.calibration.counts import default_share
from topsecret.calibration.prepared import Calibrated
from topsecret.calibration.private_bound import BOUND_SHARE, price_of_bound
from topsecret.calibration.private_bound import LEFT as LEFT_FOR_BOUND
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import down, exact
from topsecret.mechanisms.tested_or_weighted import CHOICE_SHARE
from topsecret.mechanisms.tested_prices import Target, rough_price_of
from topsecret.mechanisms.tested_schedule import CONSTANTS, planned
from topsecret.planning.rule import SHORTEST_TESTED, settled_name

FEW = 12
"""Of the lengths of a tested list the short ones are the costliest to repeat."""
LEFT = 1 - CONSTANTS.test_failure
"""The part of delta that is not the test's failure."""
AIM = {"tested": 1.005, "tested-or-weighted": 1.007}
"""What to aim at by rough prices, as a part of epsilon, to spend 97 to 99.7% of it (k from 4 to
100, 2 to 20 lists, ε from .05 to 4, δ from 10⁻¹⁰ to 10⁻⁵)."""
USUAL_AIM, CLOSE = 0.99, 0.03
TOLERANCE, WITH_BOUNDS = 1e-3, 6e-3
"""The share of epsilon that lists which are calibrated at once may leave; and where they choose
bounds, for which the first try is .15 to .55% too much (k to 3, 2 to 20 lists, ε from .02 to 4)."""

PRICES = {1: (0.498, 1.28, 3.773), 2: (0.2561, 0.7077, 4.698), 3: (0.1691, 0.5849, 4.761)}
"""Price over epsilon of one to three picks before counts, as a polynomial in mu over epsilon:
within half a percent (ε from .01 to 2.5, δ from 10⁻¹¹ to 10⁻⁶)."""

Rough = Callable[[float], Loss]


def likely_name(question: Question, mechanism: str) -> str:
    """Which mechanism "auto" is likely to stand for, without comparing leads; or nothing."""
    if mechanism != "auto" or question.two_periods:
        return mechanism
    known = settled_name(question)
    if known or question.domain_size is not None or isinstance(question.k, str):
        return known
    return "tested" if question.k >= SHORTEST_TESTED else "limited-domain"


def calibrated_together(mechanism: str, question: Question, lists: int) -> Calibrated | None:
    """One of several lists whose picks are all calibrated at once; None for other mechanisms.

    Few picks use δ up by themselves (their ε add up), and many lists of them would pay for that:
    ten lists of two picks are twenty picks.
    """
    name = mechanism
    if mechanism == "auto" and not question.two_periods:
        name = settled_name(replace(question, delta=down(exact(question.delta) / lists)))
    if name != "limited-domain" or refusal(name, question) is not None:
        return None
    k, cap, share = question.length, question.max_items, down(exact(question.delta) / lists)
    touched = None if cap is None else lists * cap
    numbers = (lists * k, lists * question.k_bar, question.epsilon, question.delta, touched)
    price, threshold = calibrate_limited_domain(*numbers, tolerance=TOLERANCE)
    own = down(exact(threshold) / lists)
    if price <= 0 or own <= 0:
        return None
    if question.bounds:
        return _with_bounds(question, lists, price, own)
    epsilon = limited_domain_loss(k, price, own).epsilon(share)
    return calibrated(name, replace(question, epsilon=epsilon, delta=share), None, (price, own))


def _with_bounds(question: Question, lists: int, price: float, own: float) -> Calibrated | None:
    """The same where each list chooses a bound first: what the choices leave is for the picks."""
    budget, share = (question.epsilon, question.delta), down(exact(question.delta) / lists)
    whole = calibrate_gaussian(question.epsilon, LEFT_FOR_BOUND * exact(question.delta))
    choice = picks(1, bound := price_of_bound(exact(whole) / lists))

    def one(each: float) -> Loss:
        return choice.then(limited_domain_loss(question.length, each, own))

    start = price * math.sqrt(1 - BOUND_SHARE) * (1 - 0.9 * WITH_BOUNDS)
    each = calibrate(lambda each: lists * one(each), *budget, start, WITH_BOUNDS)
    if bound <= 0 or each <= 0:
        return None
    asked = replace(question, epsilon=one(each).epsilon(share), delta=share)
    return calibrated("limited-domain", asked, None, (each, own, float(bound)))


def epsilon_of_each(name: str, question: Question, lists: int, counts: bool = False) -> float:
    """For lists by this mechanism, with or without counts."""
    delta, counted = exact(question.delta), default_share(question) if counts else 0.0
    share = delta / lists
    aim, rough = question.epsilon * AIM.get(name, USUAL_AIM), _rough(name, question, share, counted)
    whole = calibrate_gaussian(aim, LEFT * delta)
    x = gaussian_epsilon(Fraction(whole / lists), LEFT * share) / 1.12
    if rough is None or not x:
        return x
    for _ in range(4):
        try:
            spent = (lists * rough(x)).epsilon(delta)
        except InvalidParameter:  # too little for a list of this kind: calibrating it will say so
            break
        if not 0 < spent < math.inf:
            break
        x *= aim / spent  # what they cost is nearly in proportion
        if abs(aim / spent - 1) < CLOSE:
            break
    return x


def _rough(name: str, question: Question, share: Fraction, counted: float) -> Rough | None:
    """About the loss of one list at an epsilon; None where nothing is known of it."""
    if isinstance(question.k, str):
        return None
    k, fails = question.k, failure(share - LEFT * share)
    few = min(k, FEW)

    def tested(x: float) -> Loss:
        behind = Fraction(counted * calibrate_gaussian(x, share))
        found = planned(few, exact(x), share, True, rough_price_of, behind=behind)
        return rdp("tested", found.steps.followed_by(behind)) + fails

    def tested_or_weighted(x: float) -> Loss:
        whole = Fraction(calibrate_gaussian(x, LEFT * share))
        branch = (1 - CHOICE_SHARE) * whole
        within = exact(gaussian_epsilon(branch, LEFT * share))
        picks = planned(few, within, share, True, rough_price_of).steps
        choice = Fraction(2 * math.sqrt(CHOICE_SHARE * whole))
        options = (picks, TestedSteps(Fraction(0), (), branch))
        return rdp("choice and branch", ChosenSteps(choice, options)) + fails

    def limited_domain(x: float) -> Loss:
        surprise = -math.log(share)
        part = 2 * surprise / (math.log(question.k_bar) + 3 * surprise)
        left = share * (1 - Fraction(part))
        last = Fraction(counted * calibrate_gaussian(x, left))
        unit = Branch(((k, Fraction(1)),))
        if k in PRICES:
            m = math.sqrt(last) / x
            price = Fraction(x * sum(c * m**n for n, c in enumerate(PRICES[k])))
        else:
            price = rough_price_of(unit, Target(exact(x), left, Fraction(0), last))
        steps = TestedSteps(Fraction(0), (unit.scaled(price),), last)
        return rdp("picks, then Gaussians", steps) + failure(share * Fraction(part))

    if name == "tested-or-weighted":
        return tested_or_weighted
    if name == "limited-domain" and counted:
        return limited_domain
    return tested if name == "tested" else None
