"""Example shapes: public, made-up counts on which a plan can be tried.

>>> Zipf(exponent=1.0, items=1000, persons=5000, events=5).counts()[:3]
[2559, 1461, 1018]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topsecret.errors import InvalidParameter

LARGEST = 10_000_000


@dataclass(frozen=True, slots=True)
class Zipf:
    """Persons who each draw ``events`` items, the j-th with a probability ∝ j^(−exponent).

    The count of an item is the expected number of people who drew it at least once.
    """

    exponent: float
    """How fast items get rarer: 0 for all alike, 1 for the usual long tail."""
    items: int
    """How many items there are."""
    persons: int
    """How many people there are."""
    events: int = 10
    """How many items each person draws."""

    def __post_init__(self) -> None:
        if not 0 <= self.exponent <= 100:
            raise InvalidParameter(
                f"exponent={self.exponent} must lie between 0 and 100; 1.1 is common"
            )
        for name in ("items", "persons", "events"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidParameter(f"{name}={value!r} must be a whole number of at least 1")
        if self.items > LARGEST:
            raise InvalidParameter(f"items={self.items} must be at most {LARGEST}; lower items")

    def counts(self) -> list[int]:
        """Distinct people per item, most common first."""
        weights = np.arange(1, self.items + 1, dtype=np.float64) ** -self.exponent
        shares = weights / weights.sum()
        with np.errstate(divide="ignore"):  # a single item has share 1
            has = -np.expm1(self.events * np.log1p(-shares))
        return [int(count) for count in np.rint(self.persons * has)]

    def __str__(self) -> str:
        return (
            f"Zipf's law with exponent {self.exponent:g}: {self.items:,} items, "
            f"{self.persons:,} people with {self.events} events each"
        )


@dataclass(frozen=True, slots=True)
class PublicCounts:
    """Counts that are public already, most common first."""

    ranked: tuple[int, ...]

    @classmethod
    def of(cls, counts: Sequence[int]) -> PublicCounts:
        """From plain whole numbers in any order; nothing else is accepted."""
        if isinstance(counts, str | bytes) or not isinstance(counts, Sequence):
            raise InvalidParameter(
                "public_counts must be a list of whole numbers that are public already; "
                f"found a {type(counts).__name__}; a private source has no place in a plan"
            )
        numbers = []
        for count in counts:
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise InvalidParameter(
                    f"public_counts must hold whole numbers of at least 0; found {count!r}"
                )
            numbers.append(count)
        return cls(tuple(sorted(numbers, reverse=True)))

    def counts(self) -> list[int]:
        """The counts."""
        return list(self.ranked)

    def __str__(self) -> str:
        return f"public counts of {len(self.ranked):,} items"


Shape = Zipf | PublicCounts
