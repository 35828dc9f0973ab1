"""What an answer took from a budget: a value first, words made from it.

>>> from fractions import Fraction
>>> described("picks", Fraction(37), needed=False), described("queries", Fraction(1), needed=True)
('37 items', '1 query')
>>> described("rho", Fraction(1, 3), needed=True), described("rho", Fraction(1, 3), needed=False)
('rho 0.334', 'rho 0.333')
>>> print(Charge("checkins", 7, {"picks": Fraction(3), "queries": Fraction(1)}))
3 items and 1 query of dataset 'checkins' (entry 7)
>>> print(Charge("checkins", 7, {"picks": Fraction(3)}, stored=True))
nothing: this is the stored answer to the same question from dataset 'checkins' (entry 7)
>>> print(Charge("checkins", 7, {"picks": Fraction(6)}, groups=2))
6 items of dataset 'checkins' (entry 7), for all 2 groups together
>>> print(Charge("checkins", 7, {"rho": Fraction(1, 150)}, part=Fraction(1, 15), total=(1.0, 1e-6)))
6.67% of the budget of dataset 'checkins' (entry 7), not 6.67% of epsilon: many answers together \
cost less than the sum of their epsilons; all answers from it together, this one included: epsilon \
at most 1, delta at most 1e-06
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from topsecret.exact.rounding import rounded_down, rounded_up

NOUNS = {"picks": ("item", "items"), "queries": ("query", "queries")}


@dataclass(frozen=True, slots=True)
class Charge:
    """Which budget paid for an answer, how much, and whether this time it was free."""

    dataset: str
    """The dataset whose budget paid."""
    entry: int
    """The position of the reservation in the dataset's history."""
    cost: Mapping[str, Fraction]
    """What the answer cost when it was drawn, exactly."""
    stored: bool = False
    """Whether the answer had been paid for before: then it took nothing this time."""
    words: str = ""
    """As version 0.1 stored it: it kept no values."""
    groups: int = 1
    """How many lists it paid for together: each of them has the same charge, which is one."""
    part: Fraction | None = None
    """Which part of the whole budget it took, by the resource of which it took most."""
    total: tuple[float, float] | None = None
    """(ε, δ) of all answers that the budget ever pays for, rounded up."""

    def __str__(self) -> str:
        if self.words:
            return self.words
        budget = f"dataset {self.dataset!r} (entry {self.entry})"
        if self.stored:
            return f"nothing: this is the stored answer to the same question from {budget}"
        taken = f"{in_words(self.cost)} of {budget}"
        if self.part is not None and not self.cost.keys() & NOUNS.keys():
            percent = f"{rounded_up(100 * self.part, 3)}%"
            taken = (
                f"{percent} of the budget of {budget}, not {percent} of epsilon: many answers "
                "together cost less than the sum of their epsilons"
            )
        together = f", for all {self.groups} groups together" if self.groups > 1 else ""
        return f"{taken}{together}{self._total}"

    @property
    def _total(self) -> str:
        if self.total is None:
            return ""
        epsilon, delta = map(rounded_up, self.total)
        return (
            f"; all answers from it together, this one included: epsilon at most {epsilon}, delta "
            f"at most {delta}"
        )

    def to_dict(self) -> dict[str, object]:
        """Plain values that JSON can hold; amounts are exact fractions as text."""
        return {
            "dataset": self.dataset,
            "entry": self.entry,
            "cost": {name: str(amount) for name, amount in self.cost.items()},
            "stored": self.stored,
            **({"groups": self.groups} if self.groups > 1 else {}),
            **({} if self.part is None else {"part": str(self.part)}),
            **({} if self.total is None else {"total": list(self.total)}),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any] | str) -> Charge:
        """The charge that ``to_dict`` described, or the words of version 0.1."""
        if isinstance(record, str):
            return cls("", 0, {}, stored=record.startswith("nothing"), words=record)
        cost = {name: Fraction(amount) for name, amount in record["cost"].items()}
        known = (record["dataset"], record["entry"], cost, record["stored"])
        part, total = record.get("part"), record.get("total")
        return cls(
            *known,
            groups=record.get("groups", 1),
            part=None if part is None else Fraction(part),
            total=None if total is None else (float(total[0]), float(total[1])),
        )


def in_words(amounts: Mapping[str, Fraction]) -> str:
    """What was spent, rounded up, without what took nothing."""
    spent = {name: value for name, value in amounts.items() if value} or amounts
    return " and ".join(described(name, value, needed=True) for name, value in spent.items())


def described(name: str, value: Fraction, *, needed: bool) -> str:
    """An amount in words: what is needed is rounded up, what is left down."""
    if name in NOUNS:
        return f"{int(value)} {NOUNS[name][value != 1]}"
    return f"{name} {rounded_up(value, 3) if needed else rounded_down(value, 3)}"
