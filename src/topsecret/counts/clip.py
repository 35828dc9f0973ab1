"""Clip: how all that one person adds to several items is bounded together.

>>> clip = Clip(bound=200)
>>> clip.most, clip.total
(4000, 6929)
>>> clip.parts({"tea": 200, "jam": 7})
{'jam': 140, 'tea': 4000}
>>> clip.parts(dict.fromkeys("abcdef", 200))["a"]
2828

A person adds up to c = ``bound`` units to each item. Beside these scores there are *parts*: the
same amounts in other units, of about c/4096, of at most N = ``items`` items, and where the root of
the sum of their squares exceeds C = ``total`` all are scaled down to that. So small units lose
little where amounts are scaled and rounded down, and units no smaller keep the number of different
sums small. As with weighted people, a person with up to three items counts in full.

Guarantee: the parts of a person are a function of that person's amounts alone, each is at most
``most``, and the sum of their squares is at most ``total``², in integers.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from topsecret.counts.weights import FULL_ITEMS, MOST_ITEMS
from topsecret.errors import InvalidParameter

UNITS = 4096
"""The bound on one item is so many units of a part, or nearly."""
_SHIFT = 40


@dataclass(frozen=True, slots=True)
class Clip:
    """The bounds on one person, on each item and together. Public."""

    bound: int
    """What one person adds to one item, at most, in units of the scores: c."""
    items: int = MOST_ITEMS
    """How many items of one person have parts: N."""
    full_items: int = FULL_ITEMS
    """Who adds the bound to up to so many items counts in full: D."""

    def __post_init__(self) -> None:
        if not 1 <= self.full_items <= self.items or self.bound < 1:
            raise InvalidParameter(
                f"bound={self.bound} must be at least 1, and full_items={self.full_items} and "
                f"items={self.items} must rise from 1"
            )

    @classmethod
    def of(cls, bound: int, max_items: int | None = None) -> Clip:
        """The usual one; ``max_items`` lowers the cut of 100."""
        items = MOST_ITEMS if max_items is None else min(MOST_ITEMS, max_items)
        return cls(bound, items, min(FULL_ITEMS, items))

    @property
    def rate(self) -> tuple[int, int]:
        """By what an amount is multiplied, and then divided, rounding down. Both are positive."""
        if self.bound <= UNITS:
            return UNITS // self.bound, 1
        return (UNITS << _SHIFT) // self.bound, 1 << _SHIFT

    @property
    def most(self) -> int:
        """The largest part."""
        return self.part(self.bound)

    @property
    def total(self) -> int:
        """C: the largest root of a person's sum of squares, in units of the parts."""
        return math.isqrt(self.full_items * self.most**2 - 1) + 1  # up: so many count in full

    def part(self, amount: int) -> int:
        """An amount in units of the parts, before parts are scaled."""
        factor, divisor = self.rate
        return amount * factor // divisor

    def together(self, labels: int) -> Fraction:
        """At least what one person adds to any so many labels, in units of the parts."""
        most = min(labels, self.items)
        # Σx ≤ √n·‖x‖ for n numbers, rounded up.
        return Fraction(min(most * self.most, math.isqrt(most * self.total**2 - 1) + 1))

    def parts(self, amounts: Mapping[Hashable, int]) -> dict[Hashable, int]:
        """One person's parts, of the first items by name if there are too many."""
        kept = sorted(amounts, key=str)[: self.items]
        found = {item: self.part(min(amounts[item], self.bound)) for item in kept}
        squares = sum(part**2 for part in found.values())
        if squares > self.total**2:
            limit = self.total**2
            found = {item: math.isqrt(part**2 * limit // squares) for item, part in found.items()}
        return {item: part for item, part in found.items() if part > 0}
