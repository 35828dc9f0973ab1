"""Rises over an unknown domain: two lists of names and the picks among them, as one budget."""

from __future__ import annotations

import math
from fractions import Fraction

from topsecret.accounting import calibrate_gaussian
from topsecret.accounting.classical import gaussian_epsilon
from topsecret.calibration.prepared import Prepared, list_of_rises
from topsecret.calibration.question import Question
from topsecret.calibration.unknown_domain import even_lead, likely_lead
from topsecret.calibration.words import about, too_small
from topsecret.errors import DomainRequired, InvalidParameter
from topsecret.exact.rounding import ball, down, exact, up
from topsecret.mechanisms import LeadingRises, TestedTopK

LEADING_RISES = "leading-rises"
"""What the answer calls its mechanism."""
NAMING = Fraction(1, 4)
"""The part of the budget (as zCDP) for the list of each period; the picks have the rest."""
_LEFT = Fraction(4, 5)
_DELTA = Fraction(1, 2)
"""The part of delta at which each list is calibrated; a fifth of that is its test's failure."""
_EPSILONS = (1e-4, 10.0)


def names_of_each(k: int) -> int:
    """How many items the list of each period may name: a public rule, from k alone."""
    return max(k, 20, min(5 * k, 200))


def leading_rises(question: Question) -> Prepared:
    """`LeadingRises`, its three parts at the largest prices, or nearly, that keep to the budget.

    *Guarantee.* All three keep to the question's (ε, δ), compared without tolerance.
    """
    if question.delta == 0:
        raise DomainRequired(
            "rise_from without a public domain needs a delta above 0; give the domain, or pass "
            "delta=1e-6"
        )
    if not _EPSILONS[0] <= question.epsilon <= _EPSILONS[1]:
        raise InvalidParameter(
            f"epsilon={question.epsilon} must lie between {_EPSILONS[0]:g} and {_EPSILONS[1]:g} "
            "with rise_from and without a public domain; change epsilon, or give the domain"
        )
    k, names = question.length, names_of_each(question.length)
    delta = exact(question.delta)
    mu_squared = Fraction(calibrate_gaussian(question.epsilon, _LEFT * delta))
    while True:
        mechanism = _at(question, names, mu_squared)
        spent = mechanism.loss.epsilon(question.delta)
        if mechanism.loss.keeps_to(question.epsilon, question.delta):
            break
        # ε is nearly proportional to μ.
        mu_squared *= (exact(question.epsilon) / exact(spent)) ** 2 * Fraction(999, 1000)
    naming, scale = mechanism.naming, up(mechanism.scale)
    assert isinstance(naming, TestedTopK)
    shortest = naming.schedule.lengths[-1]
    even, likely = math.ceil(even_lead(shortest)), math.ceil(likely_lead(shortest))
    return Prepared(
        LEADING_RISES,
        question,
        mechanism,
        {
            "names": names,
            "k_bar": naming.slots,
            "epsilon_of_the_names": up(exact(naming.epsilon)),
            "epsilon_per_pick": float(mechanism.epsilon_per_pick),
            "sensitivity": question.sensitivity,
        },
        scale,
        f"the item is in a private list of up to {names} items of the later or of the earlier "
        f"period, and its rise with noise of scale {about(scale)} is among the largest of all that "
        "these lists name. Each list passes a noisy test as a whole; a short one does half of the "
        f"time when its last item is {even:,} people ahead of the item ranked {naming.slots + 1} "
        f"of the period, and 98% of the time at {likely:,}",
        f"up to {k} items in order, of those that lead in one of the periods",
        "stands for items that the lists of both periods could not name safely",
        list_of_rises,
        None,
        naming.slots,
    )


def _at(question: Question, names: int, mu_squared: Fraction) -> LeadingRises:
    """The three parts at what a Gaussian of this mu² costs together."""
    delta = _DELTA * exact(question.delta)
    within = gaussian_epsilon(NAMING * mu_squared, _LEFT * delta)
    left = (1 - 2 * NAMING) * mu_squared
    price = down((4 * ball(left) / question.length).sqrt())  # k·ε₀²/8 is the zCDP of left/2
    if price <= 0 or within <= 0:
        raise too_small(question)
    naming = TestedTopK(names, within, down(delta))
    return LeadingRises(question.length, naming, price, question.least)
