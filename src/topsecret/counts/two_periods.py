"""The leading items of two periods, each with its number of people in both. Secret.

>>> from topsecret.counts.histogram import Histogram
>>> Histogram.of_periods({"tea": 9, "jam": 4}, {"tea": 8})
<Histogram: secret counts, unknown domain>
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from topsecret.counts.tables import RankedTable
from topsecret.errors import InvalidParameter
from topsecret.exact.ordering import canonical_key
from topsecret.noise.bits import BitSource
from topsecret.noise.screening import ScoreGroups

Item = Hashable
Rows = Iterable[tuple[Any, int, int]]
"""(item, how many people have it in the period, how many in the other one), best first."""


class TwoPeriods:
    """Where the counts of a histogram would be: there are two of them."""

    def __init__(self, later: Rows, earlier: Rows, limit: int | None = None) -> None:
        both = list(later), list(earlier)
        self.leading = tuple(
            RankedTable.of([(item, own) for item, own, _ in rows], limit) for rows in both
        )
        """The leading items of the later and of the earlier period."""
        self._rises: dict[object, int] = {}
        for rows, sign in zip(both, (1, -1), strict=True):
            found = {canonical_key(item): sign * (own - other) for item, own, other in rows}
            self._rises |= found

    def rise(self, item: Item) -> int:
        """How many more people have the item later; it leads in one of the periods."""
        return self._rises.get(canonical_key(item), 0)

    @property
    def domain_size(self) -> None:
        """Not known."""
        return None

    def field(self) -> ScoreGroups:
        """Never."""
        raise _two()

    def names(self, groups: Sequence[int], bits: BitSource) -> tuple[Item, ...]:
        """Never."""
        raise _two()

    def ranked(self, size: int) -> list[tuple[Item, int]]:
        """Never."""
        raise _two()

    def scores(self) -> list[tuple[Item, Fraction]]:
        """Never."""
        raise _two()

    def counts_of(self, items: Sequence[Item]) -> list[int]:
        """Never."""
        raise _two()


def _two() -> InvalidParameter:
    return InvalidParameter(
        "the histogram has the counts of two periods; use a mechanism that ranks by rises"
    )
