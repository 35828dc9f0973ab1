"""What a mechanism answers: a list of items, perhaps cut short by ``NOTHING``."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum


class _Nothing(Enum):
    NOTHING = "NOTHING"

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = _Nothing.NOTHING
"""The symbol ⊥: "the rest is too close to call". It ends a list early."""

Outcome = tuple[Hashable, ...]
"""One possible answer as a key of a distribution: the items, then ``NOTHING`` if it ended early."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The released answer of one mechanism: already private, free to be shown.

    >>> Selection(items=("a", "b"), complete=False).outcome
    ('a', 'b', NOTHING)
    """

    items: tuple[Hashable, ...]
    """The items, best first when ``ordered``; otherwise in the canonical order of the items."""
    complete: bool
    """False when ``NOTHING`` ended the list."""
    ordered: bool = True
    """Whether the order of the items is part of the answer."""
    chosen: int | None = None
    """A public number that the mechanism chose on the way and releases too, such as k̄."""
    values: tuple[int, ...] | None = None
    """The noisy weighted people of each item, in 1/1024, where the mechanism releases them."""
    at_least: tuple[int, ...] | None = None
    """How many people each item surely has (all of them with probability .95)."""
    branch: str | None = None
    """Which of several mechanisms a private choice named, where there was one."""

    @property
    def outcome(self) -> Outcome:
        """The answer as a key of the mechanism's ``distribution``: what was chosen comes first."""
        ending = () if self.complete else (NOTHING,)
        first = tuple(chosen for chosen in (self.branch, self.chosen) if chosen is not None)
        return (*first, *self.items, *ending)
