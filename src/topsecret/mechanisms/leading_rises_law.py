"""Rises on small histograms: how verification has the counts of two periods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flint import arb

from topsecret.accounting import Loss
from topsecret.counts.histogram import Histogram
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import NOTHING, Outcome, Selection
from topsecret.noise.bits import BitSource

if TYPE_CHECKING:
    from topsecret.mechanisms.leading_rises import LeadingRises

LATER = {"a": "x", "c": "y", "e": "z"}
EARLIER = {"b": "x", "d": "y"}
"""What verification calls items are items of one period here. One person more raises any of these
counts by 1: whoever has x in both periods raises a and b."""
_MOST = 1000


@dataclass(frozen=True)
class PeriodsOfCounts:
    """`LeadingRises` whose two periods are read from the counts of one histogram."""

    release: LeadingRises
    joint: bool = False
    """Whether the law is that of the names and the answer together."""

    @property
    def ordered(self) -> bool:
        """As the list is."""
        return self.release.ordered

    @property
    def loss(self) -> Loss:
        """That of the release."""
        return self.release.loss

    def _split(self, histogram: Histogram) -> Histogram:
        counts = dict(histogram.ranked(_MOST))
        later, earlier = (
            {item: counts[name] for name, item in names.items() if name in counts}
            for names in (LATER, EARLIER)
        )
        return Histogram.of_periods(later, earlier)

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the release, with the names it came from if they are asked for."""
        (first, second), answer = self.release.drawn(self._split(histogram), bits)
        if not self.joint:
            return answer
        return Selection(((*first, NOTHING, *second), answer.outcome), complete=True)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The exact law of the release, with the names it came from if they are asked for."""
        split = self._split(histogram)
        if not self.joint:
            return self.release.probabilities(split)
        return {(names, answer): p for (names, answer), p in self.release.joint(split).items()}

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The law as floats."""
        return as_floats(self.probabilities(histogram))
