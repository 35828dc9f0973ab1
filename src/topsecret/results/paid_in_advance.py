"""The schedule or series that a list belongs to: all of its lists were paid for before the first.

>>> weekly = PaidInAdvance("schedule", "weekly", "shop", 6, 1.0, 1e-6)
>>> print(weekly)
paid in advance from dataset 'shop', with all lists of schedule 'weekly'. Showing this list again \
costs nothing
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from topsecret.results.receipt import FURTHER, without_or_with


@dataclass(frozen=True, slots=True)
class PaidInAdvance:
    """What a list was paid for with. The ledger knows it: it is no part of the stored answer."""

    publication: Literal["schedule", "series"]
    """Which of the two it is."""
    name: str
    """Under which the ledger knows it."""
    dataset: str
    """The dataset whose budget paid."""
    lists: int
    """How many lists there are, at most."""
    epsilon: float
    """Of all lists together."""
    delta: float
    """Of all lists together."""

    def __str__(self) -> str:
        lists = "all lists" if self.lists > 1 else "the one list"
        return (
            f"paid in advance from dataset {self.dataset!r}, with {lists} of {self.publication} "
            f"{self.name!r}. Showing this list again costs nothing"
        )

    @property
    def holds(self) -> str:
        """For what the numbers of a list's receipt hold, going on after "This holds"."""
        known = f"{self.publication} {self.name!r}"
        if self.publication == "series":  # its noise is of all lists at once: none has a part
            return (
                f"for all lists of {known} together, {self.lists:,} at most, under what 'Assumes' "
                "says; answers outside of the series weaken it."
            )
        if self.lists == 1:
            return f"for the one list of {known}. {FURTHER}"
        return (
            f"for this one list. All {self.lists} lists of {known} together have "
            f"{without_or_with(self.epsilon, self.delta)}; answers outside of the schedule add to "
            "that."
        )

    def to_dict(self) -> dict[str, object]:
        """Plain values that JSON can hold."""
        return asdict(self)
