"""A bound on what one person adds to an item, proposed from an example that is public.

>>> example = PublicAmounts.of([[9, 1, 1], [2, 2, 2], [1, 1]], 1)
>>> example.whole(), example.clipped(2)
([11, 6, 2], [4, 6, 2])

An example says what each of its people adds to each item: made-up rows of a `Zipf` shape, or
amounts that are public already. Items are named by their places in the true order, by all that
everybody adds. A list is drawn several times, by picks, at each of the usual bounds, and the bound
with the highest recall, the smallest of equals, is proposed. No private data take part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

import numpy as np

from topsecret.calibration import Question
from topsecret.calibration.question import Scores
from topsecret.errors import InvalidParameter
from topsecret.planning.rule import recommend
from topsecret.planning.shape import Zipf
from topsecret.planning.simulation import Progress, simulate


class Example(Protocol):
    """What people add to items, in whole units; items by their places in the true order."""

    def whole(self) -> list[int]:
        """All that everybody adds to each item, most first."""
        ...

    def clipped(self, bound: int) -> list[int]:
        """The same, of each person at most the bound for each item."""
        ...

    @property
    def largest(self) -> int:
        """The most that a person adds to an item."""
        ...


@dataclass(frozen=True, slots=True)
class PublicAmounts:
    """Amounts that are public already: of each item, what each person adds to it."""

    items: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, given: Sequence[Sequence[int | float | Decimal]], per_unit: int) -> PublicAmounts:
        """From plain numbers, in units; nothing else is accepted."""
        listed = isinstance(given, Sequence) and not isinstance(given, str | bytes)
        if not listed or not all(isinstance(one, list | tuple) for one in given):
            raise InvalidParameter(
                "public_amounts must be lists of numbers that are public already, one list for "
                "each item; a private source has no place in a plan"
            )
        items = [tuple(_units(amount, per_unit) for amount in one) for one in given]
        return cls(tuple(sorted(items, key=sum, reverse=True)))

    def whole(self) -> list[int]:
        """See ``Example``."""
        return [sum(one) for one in self.items]

    def clipped(self, bound: int) -> list[int]:
        """See ``Example``."""
        return [sum(min(amount, bound) for amount in one) for one in self.items]

    @property
    def largest(self) -> int:
        """See ``Example``."""
        return max((amount for one in self.items for amount in one), default=0)

    def __str__(self) -> str:
        return f"public amounts of {len(self.items):,} items"


@dataclass(frozen=True, slots=True)
class RowsOfShape:
    """The rows of a Zipf shape: how often each person draws an item is binomial."""

    shape: Zipf

    def whole(self) -> list[int]:
        """See ``Example``."""
        return self.clipped(self.shape.events)

    def clipped(self, bound: int) -> list[int]:
        """The expected sum of min(X, bound), that of the probabilities of X ≥ 1, …, X ≥ bound."""
        events = self.shape.events
        weights = np.arange(1, self.shape.items + 1, dtype=np.float64) ** -self.shape.exponent
        share = weights / weights.sum()
        chance = np.exp(events * np.log1p(-np.minimum(share, 1 - 1e-12)))
        odds, below, total = share / np.maximum(1 - share, 1e-12), 0 * share, 0 * share
        for times in range(min(bound, events)):
            below = below + chance  # P(X ≤ times)
            total += np.maximum(1 - below, 0)
            chance = chance * odds * (events - times) / (times + 1)
        return [int(count) for count in np.rint(self.shape.persons * total)]

    @property
    def largest(self) -> int:
        """See ``Example``."""
        return self.shape.events

    def __str__(self) -> str:
        return str(self.shape)


def proposed(
    question: Question,
    scores: Scores,
    candidates: Sequence[int],
    example: Example,
    *,
    runs: int,
    progress: Progress | None = None,
) -> tuple[int, dict[int, float]]:
    """The bound at which the example's list is best, and the recall at each that was tried."""
    usual = [bound for bound in candidates if bound < example.largest]
    beyond = [bound for bound in candidates if bound >= example.largest]
    recalls: dict[int, float] = {}
    truth = example.whole()
    for bound in (*usual, *beyond[:1]):
        asked = question.ranked_by(Scores(bound, scores.per_unit, scores.noun)).choosing("public")
        name = recommend(asked).name
        [found] = simulate(
            asked, [name], truth, runs=runs, scores=example.clipped(bound), progress=progress
        )
        recalls[bound] = found.mean
    return max(recalls, key=lambda bound: (recalls[bound], -bound)), recalls


def _units(amount: int | float | Decimal, per_unit: int) -> int:
    """Rounded to the nearest unit, as an engine does it row by row."""
    plain = isinstance(amount, int | float | Decimal) and not isinstance(amount, bool)
    if not plain or not 0 <= amount < float("inf"):
        raise InvalidParameter(f"public_amounts must hold numbers of at least 0; found {amount!r}")
    return int(Fraction(str(amount)) * per_unit + Fraction(1, 2))
