"""The exact delta of Gaussian sums of which only those above a threshold are named.

One person adds a weight to each of n labels, b of which nobody else has. A label that nobody has
cannot be named, so that naming one of the b gives the person away: that has probability
p = 1 − Φ((T − w)/σ)^b. The n − b shared labels are one Gaussian release at distance
μ = w√(n − b)/σ. The two are independent, which gives delta exactly, in both directions
(docs/proofs/weighted-histogram.md):

- adding the person: p + (1 − p)·G_μ(x − ln(1 − p));
- removing them: G_μ(x + ln(1 − p)).

>>> release = ThresholdedGaussian((1024, 1024), 1024, Fraction(6), Fraction(36))
>>> release.failure < 1e-8 < release.delta(1) < 1e-6
True
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb

from topsecret.accounting.pairs import normal_below
from topsecret.exact.rounding import ball, precision, up

_BITS = 128
_Cell = tuple[int, int, int, int]
"""Numbers of items from … to, and numbers of own labels from … to."""
Pair = tuple[int, int]
"""A number of items, and how many of them are nobody else's."""


@dataclass(frozen=True, slots=True)
class ThresholdedGaussian:
    """One release: the public table of weights, the noise and the threshold.

    Guarantee: ``delta(x)`` bounds the divergence of every pair of neighbours under adding or
    removing one person whose n labels have the table's weight for n; rounded up.
    """

    table: tuple[int, ...]
    """The weight of each label of a person with 1, 2, … labels; must not rise."""
    unit: int
    """What a weight of 1 person is in the table."""
    sigma: Fraction
    """The standard deviation of the noise."""
    threshold: Fraction
    """In people, as sigma."""

    @property
    def mu_squared(self) -> Fraction:
        """The largest n·w²/σ²: the Gaussian part alone."""
        return (
            Fraction(max(n * w * w for n, w in enumerate(self.table, 1)))
            / (self.unit * self.sigma) ** 2
        )

    @property
    def failure(self) -> Fraction:
        """δ_t: the largest chance that a label of one person alone is named, rounded up."""
        return _failure(self)

    def delta(self, x: Fraction | float) -> float:
        """The exact profile at x, rounded up: the largest over all n and b, both directions."""
        return _delta(self, Fraction(x))

    def nearly(self, x: Fraction) -> float:
        """At least delta(x), and at most a thousandth more: much faster."""
        return _largest(self, x, Fraction(1001, 1000), (1, 2, 3, len(self.table)))

    def epsilon(self, delta: Fraction) -> float:
        """The smallest x ≥ 0, or nearly, with delta(x) ≤ ``delta``; inf if failures exceed it."""
        return _epsilon(self, delta)

    def keeps(self, x: Fraction, delta: Fraction) -> bool:
        """Whether delta(x) ≤ ``delta``, without tolerance; faster than computing delta(x)."""
        return self.exceeding(x, delta) is None

    def exceeding(self, x: Fraction, delta: Fraction) -> Pair | None:
        """An n and b whose divergence is above ``delta``, or cannot be told from it, if any."""
        with precision(_BITS):
            return self._above(self._start(), x, ball(delta))

    def divergence(self, items: int, own: int, x: Fraction) -> arb:
        """The larger direction for a person with so many labels, ``own`` of them theirs alone."""
        weight = self.table[items - 1]
        return self._bound(weight, own, weight * weight * (items - own), x)

    def _start(self) -> list[_Cell]:
        return [(1, len(self.table), 0, len(self.table))]

    def _above(self, cells: list[_Cell], x: Fraction, limit: arb) -> Pair | None:
        """An n and b of the cells above the limit: cells are bounded as a whole, or split."""
        while cells:
            fewest, most, low, high = cells.pop()
            high = min(high, most)
            low_most = max(fewest, low, 1)  # b ≤ n
            if low > high or low_most > most:
                continue
            if self._cell_bound((low_most, most, low, high), x) <= limit:
                continue
            if low_most == most and low == high:
                return most, low
            cells += _halves((low_most, most, low, high))
        return None

    def _cell_bound(self, cell: _Cell, x: Fraction) -> arb:
        """At least every divergence of the cell: both directions rise with p and with μ."""
        fewest, most, low, high = cell
        squared = max(self.table[n - 1] ** 2 * (n - low) for n in range(fewest, most + 1))
        return self._bound(self.table[fewest - 1], high, squared, x)

    def _bound(self, weight: int, own: int, squared: int, x: Fraction) -> arb:
        """The larger of both directions for this p and this μ² in the table's unit."""
        log_rest = own * _log_unnamed(self, weight) if own else arb(0)
        sigma = self.unit * ball(self.sigma)
        return _directions(log_rest, squared / (sigma * sigma), ball(x))


def _directions(log_rest: arb, mu_squared: arb, x: arb) -> arb:
    """max of p + (1 − p)·G(x − ln(1 − p)) and G(x + ln(1 − p)), given ln(1 − p)."""
    rest, p = log_rest.exp(), -log_rest.expm1()
    adding = p + rest * _gaussian(mu_squared, x - log_rest)
    removing = _gaussian(mu_squared, x + log_rest)
    return adding.max(removing)


def _gaussian(mu_squared: arb, x: arb) -> arb:
    if mu_squared == 0:
        return (-x.expm1()).nonnegative_part()
    mu = mu_squared.sqrt()
    value = normal_below(mu / 2 - x / mu) - x.exp() * normal_below(-mu / 2 - x / mu)
    return value.nonnegative_part()


def _halves(cell: _Cell) -> Iterator[_Cell]:
    fewest, most, low, high = cell
    if most - fewest > high - low:
        middle = (fewest + most) // 2
        yield fewest, middle, low, high
        yield middle + 1, most, low, high
    else:
        middle = (low + high) // 2
        yield fewest, most, low, middle
        yield fewest, most, middle + 1, high


@lru_cache(maxsize=256)
def _failure(release: ThresholdedGaussian) -> Fraction:
    """The largest over all n: that of a block is at most its most labels at its largest weight."""
    worst, blocks = arb(0), [(1, len(release.table))]
    with precision(_BITS):
        while blocks:
            fewest, most = blocks.pop()
            chance = -(most * _log_unnamed(release, release.table[fewest - 1])).expm1()
            if fewest == most:
                worst = worst.max(chance)
            elif not chance <= worst:
                middle = (fewest + most) // 2
                blocks += [(fewest, middle), (middle + 1, most)]
        return Fraction(min(1.0, up(worst)))


@lru_cache(maxsize=1024)
def _log_unnamed(release: ThresholdedGaussian, weight: int) -> arb:
    """ln Φ((T − w)/σ): that a label of one person alone, of this weight, is not named."""
    with precision(_BITS):
        place = (release.threshold - Fraction(weight, release.unit)) / release.sigma
        return (-normal_below(-ball(place))).log1p()


@lru_cache(maxsize=4096)
def _delta(release: ThresholdedGaussian, x: Fraction) -> float:
    return _largest(release, x, Fraction(1), range(1, len(release.table) + 1))


def _largest(
    release: ThresholdedGaussian, x: Fraction, slack: Fraction, likely: Iterable[int]
) -> float:
    """A bound that all cells keep to: the largest of some single pairs, raised where needed."""
    with precision(_BITS):
        # b = 0, b = 1 and b = n, for some n: one of them is nearly always the largest.
        best = arb(0)
        for n in {min(n, len(release.table)) for n in likely}:
            for b in {0, 1, n}:
                best = best.max(release.divergence(n, b, x))
        best *= ball(slack)
        cells = release._start()
        while cells:
            cell = cells.pop()
            fewest, most, low, high = cell
            high, fewest = min(high, most), max(fewest, low, 1)
            if low > high or fewest > most:
                continue
            bound = release._cell_bound((fewest, most, low, high), x)
            if bound <= best:
                continue
            if fewest == most and low == high:
                best = best.max(bound * ball(slack))
            else:
                cells += _halves((fewest, most, low, high))
        return min(1.0, max(0.0, up(best)))


@lru_cache(maxsize=1024)
def _epsilon(release: ThresholdedGaussian, delta: Fraction) -> float:
    if delta >= 1:
        return 0.0
    if release.failure > delta:
        return math.inf
    if release.keeps(Fraction(0), delta):
        return 0.0
    keeps = _Crossing(release, delta)
    low, high = 0.0, 1.0
    while not keeps(high):
        low, high = high, 2 * high
        if high > 1e6:
            return math.inf
    while high - low > high * 2**-40:
        middle = (low + high) / 2
        if keeps(middle):
            high = middle
        else:
            low = middle
    return high


class _Crossing:
    """Whether ``release.keeps`` at many x: the profile falls, so one x decides for others.

    All pairs together cross ``delta`` where the last of them does. That one is found by following
    whichever pair is above it, and single pairs are quick to follow.
    """

    def __init__(self, release: ThresholdedGaussian, delta: Fraction) -> None:
        self._release, self._delta = release, delta
        self._kept_from, self._not_below, self._pair = math.inf, 0.0, (0, 0)

    def __call__(self, x: float) -> bool:
        if not self._not_below < x < self._kept_from:
            return x >= self._kept_from
        pair = self._release.exceeding(Fraction(x), self._delta)
        if pair is None:
            self._kept_from = x
            return True
        self._not_below = x
        while pair is not None and pair != self._pair:
            self._pair = pair
            below, above = self._crossing_of(self._higher(pair, self._not_below))
            self._not_below = max(self._not_below, below)
            if above >= self._kept_from:
                break
            pair = self._release.exceeding(Fraction(above), self._delta)
            if pair is None:
                self._kept_from = above
            else:
                self._not_below = max(self._not_below, above)
        return False

    def _crossing_of(self, pair: Pair) -> tuple[float, float]:
        """Between which neighbouring places a pair that is above ``delta`` crosses it."""
        with precision(_BITS):
            limit = ball(self._delta)
            low, high = self._not_below, min(self._kept_from, 2 * self._not_below + 1)
            while high < self._kept_from and not self._of(pair, high) <= limit:
                low, high = high, min(self._kept_from, 2 * high)
                if high > 2e6:
                    return low, math.inf
            while high - low > high * 2**-45:
                middle = (low + high) / 2
                if self._of(pair, middle) <= limit:
                    high = middle
                else:
                    low = middle
        return low, high

    def _higher(self, pair: Pair, x: float) -> Pair:
        """A pair that is at least as high at x, by steps that get smaller: a guess to begin at."""
        most = step = len(self._release.table)
        with precision(_BITS):
            best = self._of(pair, x)
            while step := step // 2:
                moved = True
                while moved:
                    moved = False
                    for items, own in ((step, 0), (-step, 0), (0, step), (0, -step)):
                        n = min(max(pair[0] + items, 1), most)
                        other = n, min(max(pair[1] + own, 0), n)
                        if other != pair and (found := self._of(other, x)) > best:
                            pair, best, moved = other, found, True
        return pair

    def _of(self, pair: Pair, x: float) -> arb:
        return self._release.divergence(*pair, Fraction(x))
