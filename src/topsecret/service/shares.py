"""Shares of a budget: how much of each resource goes with a share of ε, and what ran out, in words.

A flexible budget has three sums: ρ, failures (δ) and slack. A share of ε takes the same part of
all three, and a question's δ grows with its ε² as its ρ does (``ledger.question_delta``), so that
nobody uses up the failures of everybody with questions that take next to nothing of ρ.

>>> from topsecret.ledger import Flexible
>>> budget = Flexible.of(epsilon=4, delta=1e-5)
>>> part = part_of(budget, {"rho": budget.rho / 2})
>>> part["delta"] == budget.failures / 2, part["slack"] == budget.slack / 2
(True, True)
"""

from __future__ import annotations

import math
from fractions import Fraction

from topsecret.errors import BudgetExceeded
from topsecret.exact.rounding import rounded_down
from topsecret.ledger import Account, Allowance, Flexible
from topsecret.ledger.amounts import Amounts, shortages

LEAST_EPSILON = 0.001
_WORDS = {
    "rho": "epsilon",
    "delta": "delta",
    "slack": "slack",
    "queries": "questions",
    "picks": "items",
}


def part_of(budget: Flexible, share: Amounts) -> Amounts:
    """A share of ρ with as large a part of failures and slack."""
    part = min(Fraction(1), share["rho"] / budget.rho)
    return {"rho": share["rho"], "delta": budget.failures * part, "slack": budget.slack * part}


def refusal(
    error: BudgetExceeded, account: Account, share: Allowance | None, epsilon: float | None
) -> str:
    """What ran out, what would fit, and who can help."""
    whole = shortages(error.needed, account.left)
    mine = () if share is None else shortages(error.needed, share.left)
    short = whole or mine
    names = " and ".join(_WORDS[name] for name in (("rho",) if "rho" in short else short))
    fits = _fits(error, epsilon)
    if whole:
        return (
            f"The dataset has not enough {names} left for this question, whoever asks it. {fits}"
            "A dataset's budget cannot be raised; stored answers stay free."
        )
    return (
        f"Your share of the dataset has not enough {names} left for this question. {fits}"
        "The owner can give you a larger share."
    )


def _fits(error: BudgetExceeded, epsilon: float | None) -> str:
    """What would have fitted: all that a question takes grows about as ε²."""
    if epsilon is None:
        items = int(error.left.get("picks", 0)) if error.left.get("queries", 0) >= 1 else 0
        return f"At most {items} items fit. " if items > 0 else ""
    parts = [error.left.get(key, 0) / value for key, value in error.needed.items() if value]
    best = 0.97 * epsilon * math.sqrt(max(0, min(parts, default=0)))
    return f"An epsilon of {rounded_down(best, 2)} would fit. " if best >= LEAST_EPSILON else ""
