"""The exact law of `ClippedSums` on small sets of people, its noisy sums put into a few bins.

Labels are independent, so the law is a product; bins and the best k are post-processing of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from flint import arb, ctx

from topsecret.accounting import Loss
from topsecret.accounting.pairs import normal_below
from topsecret.counts.histogram import Histogram
from topsecret.exact.ordering import canonical_key
from topsecret.exact.rounding import ball, precision
from topsecret.mechanisms.chosen_bound_law import amounts_of_rows, items_of_rows
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.above_threshold import above
from topsecret.noise.bits import BitSource, SystemBits
from topsecret.noise.distributions import GAUSSIAN

if TYPE_CHECKING:
    from topsecret.mechanisms.clipped_sums import ClippedSums

_MOST = 1000


def scaled(amounts: Mapping[str, int], most: int, total: int, items: int) -> dict[str, int]:
    """One person's amounts, cut to the clip and the number of items, and scaled to the length."""
    kept = {item: min(amounts[item], most) for item in sorted(amounts)[:items]}
    squares = sum(amount**2 for amount in kept.values())
    if squares <= total**2:
        return kept
    # ⌊x·C/‖x‖⌋: the root of x²·C²/‖x‖², rounded down.
    return {item: math.isqrt(amount**2 * total**2 // squares) for item, amount in kept.items()}


@dataclass(frozen=True)
class BinnedSums:
    """All labels above the threshold, each with the number of ``cuts`` that its sum reaches."""

    release: ClippedSums
    cuts: tuple[int, ...]

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
        """The sums of people with these rows, each person cut and scaled."""
        limits = (self.release.most, self.release.total, self.release.items)
        sums: dict[str, int] = {}
        for amounts in amounts_of_rows(holdings).values():
            for item, amount in scaled(amounts, *limits).items():
                if amount > 0:
                    sums[item] = sums.get(item, 0) + amount
        return Histogram.of(sums, None if domain is None else items_of_rows(domain))

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw everything, and bin it."""
        bits = SystemBits() if bits is None else bits
        release = self.release
        if release.domain == "public":
            release = replace(release, k=histogram.require_domain("ClippedSums", 1))
        field, groups = release._field(histogram)
        drawn = above(field, GAUSSIAN, release.sigma, release.threshold, None, bits)
        names = histogram.names([int(groups[one.group]) for one in drawn], bits)
        bins = [sum(one.value >= cut for cut in self.cuts) for one in drawn]
        named = sorted(zip(names, bins, strict=True), key=lambda pair: canonical_key(pair[0]))
        return Selection(tuple(named), complete=True, ordered=False)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The product of the labels' laws. P[V > x] is Φ((S − x)/σ)."""
        if self.release.domain == "public":
            histogram.require_domain("ClippedSums", 1)
            sums = [(item, int(score)) for item, score in histogram.scores()]
        else:
            sums = histogram.ranked(_MOST)
        law: dict[Outcome, arb] = {(): arb(1)}
        with precision(max(128, ctx.prec) + 64):
            for label, total in sorted(sums, key=lambda pair: canonical_key(pair[0])):
                one = self._label_law(label, total)
                law = {(*o, *part): p * q for o, p in law.items() for part, q in one.items()}
        return law

    def _label_law(self, label: object, total: int) -> dict[Outcome, arb]:
        """Not named, or named with a sum in each bin."""
        sigma, threshold = self.release.sigma, self.release.threshold
        # A sum is rounded to the nearest: it reaches a cut from half a unit below on.
        edges = [Fraction(2 * cut - 1, 2) for cut in self.cuts]
        start = arb(1)
        if threshold is not None:
            edges = [max(edge, threshold) for edge in edges]
            start = normal_below(ball((total - threshold) / sigma))
        reached = [start, *(normal_below(ball((total - edge) / sigma)) for edge in edges), arb(0)]
        law: dict[Outcome, arb] = {
            ((label, place),): reached[place] - reached[place + 1]
            for place in range(len(self.cuts) + 1)
        }
        return law if threshold is None else law | {(): 1 - start}

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The law as floats."""
        return as_floats(self.probabilities(histogram))
