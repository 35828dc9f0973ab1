"""The counts of a public domain in falling order, by groups of equal counts.

>>> from topsecret.counts.histogram import Histogram
>>> ranked = RankedGroups.of(Histogram.of({7: 5, 8: 3, 9: 3}, domain=range(10**18)))
>>> ranked.at_rank(np.array([1, 2, 3, 4, 10**18])).tolist()
[5, 3, 3, 0, 0]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, repr=False)
class RankedGroups:
    """Distinct counts in falling order and how many items have at least each. Secret."""

    values: NDArray[Any]
    """y₁ > y₂ > …; int64, or Python integers as objects."""
    reach: Indices
    """n₁ < n₂ < … < n_D = d."""
    groups: Indices
    """The histogram's groups in falling order of their counts, equal counts together."""
    ends: Indices
    """How many items the groups up to each one have."""

    @classmethod
    def of(cls, histogram: Histogram) -> RankedGroups:
        """The groups of a histogram over a public domain, equal counts joined."""
        field = histogram.field()
        if field.scores.dtype == np.float64:
            raise InvalidParameter(
                "real scores have no people to count; this mechanism needs integer counts"
            )
        order = np.argsort(field.scores, kind="stable")[::-1]
        sizes = np.ones(len(order), dtype=np.int64) if field.sizes is None else field.sizes[order]
        ends = np.cumsum(sizes)
        ranked = field.scores[order]
        last = np.ones(len(order), dtype=bool)
        last[:-1] = (ranked[1:] != ranked[:-1]).astype(bool)
        return cls(ranked[last], ends[last], order, ends)

    def at_rank(self, ranks: Indices) -> NDArray[Any]:
        """h₍r₎ for ranks r from 1 to d."""
        return self.values[np.searchsorted(self.reach, ranks, side="left")]

    def at_places(self, places: list[int]) -> list[int]:
        """The histogram's group of the item at each place, from 0, in falling order of counts."""
        found = np.searchsorted(self.ends, np.array(places, dtype=np.int64), side="right")
        return [int(group) for group in self.groups[found]]
