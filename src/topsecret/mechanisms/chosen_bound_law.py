"""A chosen bound on small sets of people: how verification has their rows counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flint import arb

from topsecret.accounting import Loss
from topsecret.counts.histogram import Histogram
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.bits import BitSource

if TYPE_CHECKING:
    from topsecret.mechanisms.chosen_bound import ChosenBound

ROWS = {"a": ("x", 1), "b": ("x", 3), "c": ("y", 2), "d": ("z", 1)}
"""What verification calls a person's items are rows here: of which item, and what each adds."""


def amounts_of_rows(holdings: Mapping[str, Sequence[str]]) -> dict[str, dict[str, int]]:
    """What each person adds to each item."""
    amounts: dict[str, dict[str, int]] = {}
    for person, rows in holdings.items():
        own = amounts.setdefault(person, {})
        for item, amount in (ROWS[row] for row in rows):
            own[item] = own.get(item, 0) + amount
    return amounts


def items_of_rows(rows: Sequence[str]) -> list[str]:
    """The items of these rows, each once."""
    return list(dict.fromkeys(ROWS[row][0] for row in rows))


@dataclass(frozen=True)
class BoundOfRows:
    """A chosen bound whose people have rows, several of them perhaps of one item."""

    release: ChosenBound

    @property
    def ordered(self) -> bool:
        """As the list is."""
        return self.release.ordered

    @property
    def loss(self) -> Loss:
        """That of the release."""
        return self.release.loss

    def counted(
        self, holdings: Mapping[str, Sequence[str]], domain: Sequence[str] | None
    ) -> Histogram:
        """The scores of people with these rows, at each bound."""
        items = None if domain is None else items_of_rows(domain)
        return Histogram.of_amounts(amounts_of_rows(holdings), self.release.bounds, items)

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the release."""
        return self.release.select(histogram, bits)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The exact law of the release."""
        return self.release.probabilities(histogram)

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The law as floats."""
        return self.release.distribution(histogram)
