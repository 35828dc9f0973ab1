"""Who is protected, and from which difference: the privacy unit.

>>> unit = PrivacyUnit(person="user")
>>> print(unit.protected)
each person, identified by the exact value of 'user', with all their rows at once
>>> print(unit.neighbours)
the same data with one person more or one person less
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from topsecret.errors import InvalidParameter

Adjacency = Literal["add-remove", "replace", "outcomes"]

_NEIGHBOURS: dict[str, str] = {
    "add-remove": "the same data with one person more or one person less",
    "replace": "the same data with one person's rows replaced by any others",
    "outcomes": "the same comparisons with one person's outcomes changed",
}


@dataclass(frozen=True, slots=True)
class PrivacyUnit:
    """The column that identifies each person, the neighbouring relation, and the cap on items.

    *Guarantee.* Two datasets that differ in one unit are neighbours; every epsilon and delta of
    a release speaks about neighbours. ``max_items`` is a promise that the source must enforce by
    cutting each person down to that many items; ``None`` needs no promise.
    """

    person: str
    """The column that identifies each person."""
    adjacency: Adjacency = "add-remove"
    """Which datasets are neighbours: "add-remove", "replace" or, in rankings, "outcomes"."""
    max_items: int | None = None
    """How many items of one person are counted; None for no cap."""

    def __post_init__(self) -> None:
        if not isinstance(self.person, str) or not self.person:
            raise InvalidParameter(
                f"person={self.person!r} must be the name of a column; pass person='...'"
            )
        if self.adjacency not in _NEIGHBOURS:
            raise InvalidParameter(
                f"adjacency={self.adjacency!r} must be one of {', '.join(_NEIGHBOURS)}"
            )
        if self.max_items is not None and self.max_items < 1:
            raise InvalidParameter(
                f"max_items={self.max_items} must be at least 1; raise it or leave it out"
            )

    @property
    def protected(self) -> str:
        """Who is protected, in words."""
        if self.adjacency == "outcomes":
            return f"how each person, identified by {self.person!r}, decided their comparisons"
        return (
            f"each person, identified by the exact value of {self.person!r}, "
            "with all their rows at once"
        )

    @property
    def neighbours(self) -> str:
        """Which difference must not show, in words."""
        return _NEIGHBOURS[self.adjacency]
