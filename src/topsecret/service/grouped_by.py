"""One list for each of several public values of a column: a question's groups.

>>> GroupedBy("country", ("FR", "DE")).words
', for each of country FR, DE'
>>> GroupedBy("country", ("FR", "DE")).groups({"country": "text"}).values
('FR', 'DE')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from topsecret.questions.question import Groups
from topsecret.results.group_releases import Group
from topsecret.service.filters import typed
from topsecret.service.problems import Problem

MOST_GROUPS = 20
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class GroupedBy:
    """The column and the values, which whoever asks lists: they are never found in the data."""

    by: str
    values: tuple[str, ...]
    """As texts, as somebody wrote them."""
    disjoint: bool = False
    """Whether each person is kept in one group alone."""

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> GroupedBy:
        """As it was stored."""
        return cls(stored["by"], tuple(stored["values"]), stored.get("disjoint", False))

    def to_dict(self) -> dict[str, Any]:
        """As it is stored and shown."""
        return {"by": self.by, "values": list(self.values), "disjoint": self.disjoint}

    @property
    def words(self) -> str:
        """After the question's own words."""
        more = len(self.values) - _SHOWN
        rest = f" and {more} more" if more > 0 else ""
        kept = ", each person in one of them" if self.disjoint else ""
        return f", for each of {self.by} {', '.join(self.values[:_SHOWN])}{rest}{kept}"

    def groups(self, allowed: Mapping[str, str]) -> Groups:
        """As the library takes them: of a column that rows may be chosen by, each value once."""
        kinds = {name: kind for name, kind in allowed.items() if kind != "date"}
        if self.by not in kinds:
            names = ", ".join(kinds) or "none"
            raise _wrong(f"Groups cannot be by this column; choose from: {names}")
        if not 1 <= len(self.values) <= MOST_GROUPS:
            raise _wrong(f"List 1 to {MOST_GROUPS} groups.")
        values: list[Group] = []
        for value in self.values:
            found = value if kinds[self.by] == "text" else typed("number", "is", value)[1]
            if not isinstance(found, str | int) or not value.strip():
                raise _wrong("A group is a text or, of a column of numbers, a whole number.")
            values.append(found)
        if len(set(values)) < len(values):
            raise _wrong("List each group once.")
        return Groups(self.by, tuple(values), self.disjoint)


def _wrong(message: str) -> Problem:
    return Problem(400, "invalid", message)
