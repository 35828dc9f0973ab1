"""How large a question's δ is where nobody says: the part of the budget's that goes with its ε.

A flexible budget has a sum of failures (δ) beside its ρ. A question's δ grows with its ε², as its ρ
does, so that both run out together and a budget's first question fits whatever the budget's δ is.

>>> from topsecret.ledger import Flexible
>>> budget = Flexible.of(epsilon=4, delta=1e-5)
>>> question_delta(delta_rate(budget), 1.0)
4.44e-07
>>> usual_delta(budget, 0.5)
1.11e-07
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from topsecret.exact.rounding import Number, exact, rounded_down
from topsecret.ledger.budget import Flexible

RHO_OF_A_QUESTION = Fraction(1, 32)
"""What ρ of a question is compared with its δ, times ε². Lists of up to three items take ε²/24 and
more of ρ with all of their δ, longer ones about ε²/50 with a fifth of it: so ρ ends first. No
guarantee rests on it: every question is admitted by its exact amounts."""


def delta_rate(budget: Flexible) -> float:
    """What a question's δ is for ε = 1: its ρ's part of all failures."""
    return float(budget.failures * RHO_OF_A_QUESTION / budget.rho)


@lru_cache(maxsize=256)
def question_delta(rate: float, epsilon: float) -> float:
    """The δ of a question of this ε; public, and the same for everybody."""
    return float(rounded_down(Fraction(min(rate * epsilon * epsilon, 0.01)), 3))


def usual_delta(budget: Flexible, epsilon: Number) -> float:
    """The δ of a question to this budget that names none."""
    asked = min(abs(exact(epsilon, "epsilon")), Fraction(100))
    return question_delta(delta_rate(budget), float(asked))
