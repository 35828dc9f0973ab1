"""What a question ranks by where it is not people: rows, or the sum of a column, with its bounds.

>>> RankedBy("price", "0.01", ("7.5",)).words
', by the sum of price, of one person at most 7.5'
>>> RankedBy().keywords
{'measure': 'rows', 'max_per_item': 'private'}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from topsecret.service.problems import Problem
from topsecret.sources.measures import PRIVATE, Measure, Sum, measure_of

UNSAID: dict[str, Any] = {"column": None, "unit": "1", "max_total": None}
"""What ``RankedBy.to_dict`` leaves out where it was not said."""


@dataclass(frozen=True, slots=True)
class RankedBy:
    """Rows, or a column's sum; all numbers as texts, as somebody wrote them."""

    column: str | None = None
    """The column that is summed; None for rows."""
    unit: str = "1"
    max_per_item: tuple[str, ...] = (PRIVATE,)
    """One bound, several of which one is chosen privately, or "private"."""
    max_total: str | None = None

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> RankedBy:
        """As it was stored."""
        return cls(
            stored.get("column"),
            stored.get("unit", "1"),
            tuple(stored["max_per_item"]),
            stored.get("max_total"),
        )

    def to_dict(self) -> dict[str, Any]:
        """As it is stored and shown; what was not said is left out."""
        summed = {} if self.column is None else {"column": self.column, "unit": self.unit}
        total = {} if self.max_total is None else {"max_total": self.max_total}
        of = "rows" if self.column is None else "sum"
        return {"of": of, **summed, "max_per_item": list(self.max_per_item), **total}

    @property
    def keywords(self) -> dict[str, Any]:
        """As ``top_k`` takes it."""
        bounds = self.max_per_item
        return {
            "measure": "rows" if self.column is None else Sum(self.column, self.unit),
            "max_per_item": bounds[0] if len(bounds) == 1 else list(bounds),
            **({} if self.max_total is None else {"max_total": self.max_total}),
        }

    @property
    def measure(self) -> Measure:
        """With its bounds, checked."""
        found = measure_of(**self.keywords)
        assert found is not None  # not people
        return found

    @property
    def words(self) -> str:
        """After the question's own words."""
        what = "rows" if self.column is None else f"the sum of {self.column}"
        bound = f"of one person at most {' or '.join(self.max_per_item)}"
        if self.max_per_item == (PRIVATE,):
            bound = "the bound on one person chosen privately"
        total = "" if self.max_total is None else f", in total {self.max_total}"
        return f", by {what}, {bound}{total}"


def check_sum(asked: RankedBy | None, allowed: Mapping[str, str]) -> None:
    """A sum is of a column of numbers that rows may be chosen by."""
    numbers = [name for name, kind in allowed.items() if kind == "number"]
    if asked is not None and asked.column is not None and asked.column not in numbers:
        names = ", ".join(numbers) or "none"
        raise Problem(400, "invalid", f"This column cannot be summed; choose from: {names}")
