"""How large a question's δ is where nobody says: the part of the budget's that goes with its ε.

A flexible budget has a sum of failures (δ) beside its ρ. A question's δ grows with its ε², as its ρ
does, so that a question takes no larger part of the failures than of ρ, and a budget's first one
fits whatever the budget's δ is.

>>> from topsecret.ledger import Flexible
>>> budget = Flexible.of(epsilon=4, delta=1e-5)
>>> question_delta(delta_rate(budget), 1.0)
4.44e-07
>>> usual_delta(budget, 0.5)
1.11e-07
>>> usual_delta(budget, 0.5, lists=2)  # several groups; and the name in a ledger is that of one
5.55e-08
>>> _.known_as
1.11e-07
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from topsecret.exact.rounding import Number, exact, rounded_down
from topsecret.ledger.budget import Flexible

RHO_OF_A_QUESTION = Fraction(1, 32)
"""What ρ of a question is compared with its δ, times ε². Lists of up to three items take ε²/24 and
more of ρ with all of their δ, longer ones about ε²/50 with a fifth of it: so ρ ends first. No
guarantee rests on it: every question is admitted by its exact amounts."""
PLAIN = 1 / RHO_OF_A_QUESTION


class QuestionDelta(float):
    """A question's δ, and the one that a ledger knows it by: that of a plain question.

    Answers that were stored when all kinds had the δ of a plain question are found.
    """

    known_as: float

    @classmethod
    def of(cls, delta: float, known_as: float) -> QuestionDelta:
        """A δ under another name."""
        made = cls(delta)
        made.known_as = known_as
        return made


def delta_rate(budget: Flexible) -> float:
    """What a question's δ is for ε = 1: its ρ's part of all failures."""
    return float(budget.failures * RHO_OF_A_QUESTION / budget.rho)


@lru_cache(maxsize=256)
def question_delta(
    rate: float, epsilon: float, lists: int = 1, thresholded: bool = False, counts: bool = False
) -> QuestionDelta:
    """The δ of a question of this ε; public, and the same for everybody.

    Parameters: ``rate``: the δ of a plain question of ε = 1; ``epsilon``: of all lists together;
    ``lists``: how many lists one person can be in; ``thresholded``: whether all that pass a
    threshold are named (k="all", at_least); ``counts``: whether noisy counts have a part of ε.

    Each of n lists gets ε/n or more, and by δ/n² what goes with ε/n. Gaussian noise with a
    threshold takes about ε²/(2.8·ln(1/δ) + ε) of ρ, or more, with nearly all of its δ.
    """
    plain = Fraction(min(rate * epsilon * epsilon, 0.01))
    part = plain / lists * (Fraction(3, 4) if counts else 1)
    if thresholded:
        bits = -math.frexp(float(part))[1]
        part *= PLAIN / max(PLAIN, 3 * bits + 2 * Fraction(epsilon))
    return QuestionDelta.of(float(rounded_down(part, 3)), float(rounded_down(plain, 3)))


def usual_delta(
    budget: Flexible,
    epsilon: Number,
    lists: int = 1,
    thresholded: bool = False,
    counts: bool = False,
) -> QuestionDelta:
    """The δ of a question to this budget that names none."""
    asked = min(abs(exact(epsilon, "epsilon")), Fraction(100))
    return question_delta(delta_rate(budget), float(asked), lists, thresholded, counts)
