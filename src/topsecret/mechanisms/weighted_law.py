"""The exact law of `WeightedHistogram` on a small histogram, its values put into a few bins.

Labels are independent, so the law is a product; a bin is post-processing of a rounded value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from flint import arb, ctx

from topsecret.accounting import Loss
from topsecret.accounting.pairs import normal_below
from topsecret.counts.histogram import Histogram
from topsecret.counts.weights import UNIT, Weights
from topsecret.errors import InvalidParameter, TooLarge
from topsecret.exact.ordering import canonical_key
from topsecret.exact.rounding import ball, precision
from topsecret.mechanisms.parameters import Adjacency
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.bits import BitSource

if TYPE_CHECKING:
    from topsecret.mechanisms.weighted_histogram import WeightedHistogram

_MOST = 100_000


@dataclass(frozen=True)
class BinnedValues:
    """All of a weighted release, its values told as the number of ``cuts`` that they reach.

    The best k of it are post-processing, and so are bins: its loss is at most that of the release.
    An answer is the named labels in canonical order, each with its bin.
    """

    release: WeightedHistogram
    cuts: tuple[int, ...]
    """Whole numbers of 1/1024, rising; a rounded value is compared with them."""

    def __post_init__(self) -> None:
        if list(self.cuts) != sorted(set(self.cuts)):
            raise InvalidParameter(f"cuts={self.cuts} must rise")

    @property
    def weights(self) -> Weights:
        """The table with which the people must be counted."""
        return self.release.weights

    @property
    def adjacency(self) -> Adjacency:
        """Which datasets are neighbours: "add-remove" or "replace"."""
        return self.release.adjacency

    @property
    def public_domain(self) -> bool:
        """Whether every label of a public domain may be named."""
        return self.release.domain == "public"

    @property
    def ordered(self) -> bool:
        """Labels stand in canonical order: the order tells nothing."""
        return False

    @property
    def loss(self) -> Loss:
        """That of the release."""
        return self.release.loss

    def counted(
        self, holdings: Mapping[str, Sequence[str]], domain: Sequence[str] | None
    ) -> Histogram:
        """The histogram of people with these items: how verification has them counted."""
        return Histogram.of_holdings(holdings, self.weights, domain)

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the release and bin its values."""
        size = histogram.weighted(self.weights).domain_size if self.public_domain else None
        everything = (self.release.k, self.release.at_least) == (size, None)
        release = self.release if everything else replace(self.release, k=size, at_least=None)
        drawn = release.select(histogram, bits)
        assert drawn.values is not None
        named = sorted(
            (
                (item, self._bin(value))
                for item, value in zip(drawn.items, drawn.values, strict=True)
            ),
            key=lambda pair: canonical_key(pair[0]),
        )
        return Selection(tuple(named), complete=True, ordered=False)

    def _bin(self, value: int) -> int:
        return sum(value >= cut for cut in self.cuts)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The product of the labels' laws."""
        sums = self._sums(histogram)
        if (len(self.cuts) + 2) ** len(sums) > _MOST:
            raise TooLarge(f"{len(sums)} labels have too many answers; use a smaller histogram")
        law: dict[Outcome, arb] = {(): arb(1)}
        with precision(max(128, ctx.prec) + 64):
            for label in sorted(sums, key=canonical_key):
                one = self._label_law(label, sums[label])
                law = {(*o, *part): p * q for o, p in law.items() for part, q in one.items()}
        return law

    def _sums(self, histogram: Histogram) -> dict[object, int]:
        sums = histogram.weighted(self.weights)
        if self.public_domain:
            sums.require_domain("WeightedHistogram", 1)
            return {item: int(score) for item, score in sums.scores()}
        return {item: count for item, count in sums.ranked(_MOST) if count > 0}

    def _label_law(self, label: object, total: int) -> Mapping[Outcome, arb]:
        """Not named, or named with a value in each bin. P[V > x] is Φ((S − x)/σ)."""
        scale = self.release.sigma * UNIT
        threshold = self.release.threshold
        # A value is rounded to the nearest: it reaches a cut from half a unit below on.
        edges = [Fraction(2 * cut - 1, 2) for cut in self.cuts]
        if threshold is not None:
            edges = [max(edge, threshold * UNIT) for edge in edges]
            start = normal_below(ball((total - threshold * UNIT) / scale))
        else:
            start = arb(1)
        reached = [start, *(normal_below(ball((total - edge) / scale)) for edge in edges), arb(0)]
        law: dict[Outcome, arb] = {
            ((label, place),): reached[place] - reached[place + 1]
            for place in range(len(self.cuts) + 1)
        }
        if threshold is not None:
            law[()] = 1 - start
        return law

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law on a small histogram."""
        return as_floats(self.probabilities(histogram))
