"""What is left of a budget, for people: an ``Account`` and its words.

>>> from fractions import Fraction
>>> described("picks", Fraction(37), needed=False), described("queries", Fraction(1), needed=True)
('37 items', '1 query')
>>> described("rho", Fraction(1, 3), needed=True), described("rho", Fraction(1, 3), needed=False)
('rho 0.334', 'rho 0.333')
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from topsecret.exact.rounding import down, up
from topsecret.ledger.amounts import Amounts, as_text, minus
from topsecret.ledger.budget import Flexible, Metered

NOUNS = {"picks": ("item", "items"), "queries": ("query", "queries")}


@dataclass(frozen=True, slots=True)
class Pending:
    """A reservation without an end: under way, or in doubt after a crash."""

    id: str
    analyst: str
    time: str
    cost: Amounts


@dataclass(frozen=True, slots=True)
class Allowance:
    """An analyst's share."""

    analyst: str
    limits: Amounts
    spent: Amounts

    @property
    def left(self) -> Amounts:
        """What the analyst may still spend, if the data set has it."""
        return minus(self.limits, self.spent)


@dataclass(frozen=True, slots=True)
class Account:
    """A data set's budget as it stands.

    Guarantee: everything that was and will be answered from this budget is together
    (``budget.guarantee``)-DP for ``person`` under ``adjacency``.
    """

    dataset: str
    budget: Metered | Flexible
    person: str
    adjacency: str
    state: str
    spent: Amounts
    pending: tuple[Pending, ...]
    allowances: tuple[Allowance, ...]

    @property
    def left(self) -> Amounts:
        """What is not spent; reservations count as spent."""
        return minus(self.budget.limits, self.spent)

    @property
    def summary(self) -> str:
        """What is left, in one line."""
        return what_is_left(self.left, self.budget.limits)

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values that JSON can hold; amounts are exact fractions as text."""
        epsilon, delta = self.budget.guarantee
        return {
            "dataset": self.dataset,
            "kind": self.budget.kind,
            "epsilon": epsilon,
            "delta": delta,
            "person": self.person,
            "adjacency": self.adjacency,
            "state": self.state,
            "summary": self.summary,
            "terms": self.budget.to_record(),
            "limits": as_text(self.budget.limits),
            "spent": as_text(self.spent),
            "left": as_text(self.left),
            "in_doubt": [
                {
                    "reservation": one.id,
                    "analyst": one.analyst or None,
                    "time": one.time,
                    "cost": as_text(one.cost),
                }
                for one in self.pending
            ],
            "allowances": [
                {
                    "analyst": one.analyst,
                    "limits": as_text(one.limits),
                    "spent": as_text(one.spent),
                    "left": as_text(one.left),
                }
                for one in self.allowances
            ],
        }


def what_is_left(left: Amounts, limits: Amounts) -> str:
    """Each resource as "37 of 50 items left", rounded down."""
    return ", ".join(
        f"{int(left[name])} of {described(name, limit, needed=False)} left"
        if name in NOUNS
        else f"{name} {_number(left[name], ROUND_FLOOR)} of {_number(limit, ROUND_FLOOR)} left"
        for name, limit in limits.items()
    )


def in_words(amounts: Amounts) -> str:
    """What was spent, rounded up."""
    return " and ".join(described(name, value, needed=True) for name, value in amounts.items())


def described(name: str, value: Fraction, *, needed: bool) -> str:
    """An amount in words: what is needed is rounded up, what is left down."""
    if name in NOUNS:
        return f"{int(value)} {NOUNS[name][value != 1]}"
    return f"{name} {_number(value, ROUND_CEILING if needed else ROUND_FLOOR)}"


def _number(value: Fraction, rounding: str) -> str:
    nearest = up(value) if rounding == ROUND_CEILING else down(value)
    shown = Context(prec=3, rounding=rounding).plus(Decimal(repr(nearest)))
    return f"{float(shown):.3g}"
