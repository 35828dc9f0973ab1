"""The exact law of `TestedOrWeighted` on a small histogram, its values put into a few bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flint import arb, ctx

from topsecret.accounting import Loss
from topsecret.counts.clip import Clip
from topsecret.counts.histogram import Histogram
from topsecret.counts.weights import Weights
from topsecret.exact.rounding import precision
from topsecret.mechanisms.chosen_bound_law import amounts_of_rows
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.mechanisms.weighted_histogram import WeightedHistogram
from topsecret.noise.bits import BitSource

if TYPE_CHECKING:
    from topsecret.mechanisms.tested_or_weighted import TestedOrWeighted


@dataclass(frozen=True)
class BinnedChoice:
    """A chosen release, its weighted people told as the number of ``cuts`` that they reach.

    An answer begins with the branch. Picks follow with their length, list and ending; weights with
    all labels above the threshold, each with its bin, of which the best k are post-processing.
    """

    release: TestedOrWeighted
    cuts: tuple[int, ...]

    @property
    def weights(self) -> Weights | Clip:
        """The weights, or the bounds, with which the people must be counted."""
        return self.release.weights

    @property
    def ordered(self) -> bool:
        """The order of the picks is published."""
        return True

    @property
    def loss(self) -> Loss:
        """That of the release."""
        return self.release.loss

    def counted(
        self, holdings: Mapping[str, Sequence[str]], domain: Sequence[str] | None
    ) -> Histogram:
        """The histogram of people with these items: how verification has them counted."""
        if isinstance(self.weights, Clip):
            return Histogram.of_parts(amounts_of_rows(holdings), self.weights)
        return Histogram.of_holdings(holdings, self.weights, domain)

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the release; weights without a limit of k, and in bins."""
        from topsecret.mechanisms.tested_or_weighted import WEIGHTED

        drawn = self.release.select(histogram, bits)
        if drawn.branch != WEIGHTED:
            return drawn
        everything = self.release.branches.weighted
        if isinstance(everything, WeightedHistogram):
            everything = replace(everything, k=None)
        binned = everything.binned(*self.cuts).select(self._summed(histogram), bits)
        return replace(binned, branch=WEIGHTED)

    def _summed(self, histogram: Histogram) -> Histogram:
        """What the second branch reads."""
        return self.release.sums(histogram) if isinstance(self.weights, Clip) else histogram

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """Both branches' laws, weighted by the choice."""
        from topsecret.mechanisms.tested_or_weighted import TESTED, WEIGHTED

        tested, weighted, choice = self.release.branches.parts
        with precision(max(128, ctx.prec) + 64):
            picks, weights = choice.law(self.release.scores(histogram))
            law = {(TESTED, *o): picks * p for o, p in tested.probabilities(histogram).items()}
            by_weights = weighted.binned(*self.cuts).probabilities(self._summed(histogram))
            return law | {(WEIGHTED, *o): weights * p for o, p in by_weights.items()}

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The law as floats."""
        return as_floats(self.probabilities(histogram))
