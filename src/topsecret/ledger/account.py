"""What is left of a budget, for people: an ``Account`` and its words."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from topsecret.accounting.charge import NOUNS, described
from topsecret.exact.rounding import rounded_down
from topsecret.ledger.amounts import Amounts, as_text, minus
from topsecret.ledger.budget import Flexible, Metered

NONE = Fraction(0)
PARTS = {"rho": "for epsilon (rho)", "delta": "for delta"}
"""What people see of a flexible budget: its slack does not end first in usual questions."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A reservation without an end: under way, or in doubt after a crash."""

    id: str
    """The reservation's name."""
    analyst: str
    """Who asked."""
    time: str
    """When it was made."""
    cost: Amounts
    """What it took, at most."""

    def to_dict(self) -> dict[str, object]:
        """As plain values that JSON can hold."""
        who = {"reservation": self.id, "analyst": self.analyst or None}
        return who | {"time": self.time, "cost": as_text(self.cost)}


@dataclass(frozen=True, slots=True)
class Allowance:
    """An analyst's share."""

    analyst: str
    """Whose share it is."""
    limits: Amounts
    """The most of each resource that they may spend."""
    spent: Amounts
    """What they have spent."""

    @property
    def left(self) -> Amounts:
        """What the analyst may still spend, if the dataset has it."""
        return minus(self.limits, self.spent)


@dataclass(frozen=True, slots=True)
class Account:
    """A dataset's budget as it stands.

    Guarantee: everything that was and will be answered from this budget is together
    (``budget.guarantee``)-DP for ``person`` under ``adjacency``.
    """

    dataset: str
    """The dataset's name."""
    budget: Metered | Flexible
    """The terms of the budget."""
    person: str
    """The column that identifies each person."""
    adjacency: str
    """Which datasets are neighbours: "add-remove", "replace" or, in rankings, "outcomes"."""
    state: str
    """open or closed."""
    spent: Amounts
    """What was spent of each resource, reservations included."""
    pending: tuple[Pending, ...]
    """Reservations under way, or in doubt."""
    allowances: tuple[Allowance, ...]
    """The analysts' shares."""
    held: tuple[Pending, ...] = ()
    """What is set aside for questions to come."""

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
            "in_doubt": [one.to_dict() for one in self.pending],
            "held": [one.to_dict() for one in self.held],
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
    """A metered budget as "37 of 50 items left", a flexible one as a part of it, rounded down.

    The part is that of the resource of which least is left; the figures have more digits than the
    part, so that it follows from them.

    Parameters: ``left``: what is left of each resource; ``limits``: what there was of each.
    """
    if "rho" not in limits:
        return ", ".join(resource_left(name, left[name], limits[name]) for name in limits)
    part = min((_part(left[name], limit) for name, limit in limits.items() if limit), default=NONE)
    exactly = ", ".join(
        f"{name} {rounded_down(max(left[name], NONE))} of {rounded_down(limits[name])}"
        for name in PARTS
    )
    return f"{_percent(part)} of the budget left ({exactly})"


def resource_left(name: str, left: Fraction, limit: Fraction) -> str:
    """What is left of one resource, rounded down."""
    if name in NOUNS:
        return f"{int(max(left, NONE))} of {described(name, limit, needed=False)} left"
    return f"{PARTS.get(name, name)}: {_percent(_part(left, limit))} left"


def _part(left: Fraction, limit: Fraction) -> Fraction:
    return max(left, NONE) / limit if limit else NONE


def _percent(part: Fraction) -> str:
    return f"{rounded_down(100 * part, 3)}%"
