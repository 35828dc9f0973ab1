"""What noisy counts tell: intervals of counts, shares, differences, of the whole list.

>>> intervals = Intervals(10, 0.5, 15.0, 16.0)
>>> intervals.half_width(), intervals.persons_half_width(), intervals.difference_half_width()
(33, 31, 42)

Each is a statement about noise of a known law, so it costs nothing. Rounding to integers is part of
that law. The numbers are floats: nothing private rests on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

CONFIDENCE = 0.95
_NORMAL = NormalDist()
_ROUNDING = 1 / 12
"""The variance of rounding to an integer."""
_NEARBY = 8
"""From how many gaps around two items it is judged how close counts are there."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """The noise of counts: Z_i + weight·W for each of ``released`` items, W for all people."""

    released: int
    """How many items have a count."""
    weight: float
    """How much of the common noise W is in each count."""
    item_sigma: float
    """The deviation of Z_i."""
    common_sigma: float | None
    """The deviation of W; None where there is no W."""

    @property
    def sigma(self) -> float:
        """The deviation of one count's noise."""
        return math.hypot(self.item_sigma, self.weight * (self.common_sigma or 0.0))

    def half_width(self, confidence: float = CONFIDENCE) -> int:
        """w such that one count lies within ± w of its noisy one with this probability."""
        return _rounded_width(self.sigma, confidence)

    def persons_half_width(self, confidence: float = CONFIDENCE) -> int | None:
        """The same for the number of people; None where it cannot be published."""
        return None if self.common_sigma is None else _rounded_width(self.common_sigma, confidence)

    def difference_half_width(self, confidence: float = CONFIDENCE) -> int:
        """The same for the difference of two counts, in which W cancels."""
        return _difference_width(math.sqrt(2) * self.item_sigma, confidence)

    def list_half_width(self, confidence: float = CONFIDENCE) -> int:
        """w such that *all* counts lie within ± w of theirs with this probability."""
        return _list_width(self, confidence)

    def share(
        self, count: int, persons: int, confidence: float = CONFIDENCE
    ) -> tuple[float, float]:
        """The shares count/people, between 0 and 1, that the noisy numbers do not contradict.

        Fieller's set: all p for which |count − p·people| is within the deviation of its noise,
        √(a + (λ − p)²b). Where the number of people itself may be 0 it is [0, 1].
        """
        z2 = _NORMAL.inv_cdf((1 + confidence) / 2) ** 2
        weight, a, b = self.weight, self.item_sigma**2, (self.common_sigma or 0.0) ** 2
        square = persons**2 - z2 * (b + _ROUNDING)
        middle = count * persons - z2 * weight * b
        rest = count**2 - z2 * (a + weight**2 * b + _ROUNDING)
        under = middle**2 - square * rest
        if square <= 0 or persons <= 0 or under < 0:
            return 0.0, 1.0
        root = math.sqrt(under)
        low, high = (middle - root) / square, (middle + root) / square
        return min(1.0, max(0.0, low)), max(0.0, min(1.0, high))

    @property
    def together(self) -> str:
        """What holds of several counts, going on after what holds of each."""
        if self.released < 2:
            return ""
        return (
            f", all {self.released} of them within {self.list_half_width()}, and the difference "
            f"of two within {self.difference_half_width()}"
        )

    def to_dict(self, counts: Sequence[int], persons: int | None) -> dict[str, object]:
        """The half-widths at 95%, and the shares where the people were counted."""
        return {
            "confidence": CONFIDENCE,
            "each": self.half_width(),
            "all": self.list_half_width(),
            "difference": self.difference_half_width(),
            "persons": None if persons is None else self.persons_half_width(),
            "shares": None if persons is None else [list(self.share(n, persons)) for n in counts],
        }

    def order(self, counts: Sequence[int], place: int) -> float:
        """How sure it is that the item at ``place`` has more people than the next one.

        The posterior of the difference of their counts, given its noisy value, with a Laplace
        prior whose width is that of the eight noisy gaps around it. It does not use that one is
        listed first: the list and its counts would then count the same evidence twice.
        """
        gaps = [counts[i] - counts[i + 1] for i in range(len(counts) - 1)]
        low = max(0, min(place - _NEARBY // 2, len(gaps) - _NEARBY))
        noise = 2 * self.item_sigma**2
        around = gaps[low : low + _NEARBY]
        spread = max(sum(gap * gap for gap in around) / len(around) - noise, noise / 16)
        return _positive(float(gaps[place]), math.sqrt(spread / 2), math.sqrt(noise))

    def orders(self, counts: Sequence[int]) -> tuple[float, ...]:
        """``order`` of each two neighbours of the list."""
        return tuple(self.order(counts, place) for place in range(len(counts) - 1))

    def order_in_words(self, counts: Sequence[int]) -> str:
        """How sure the order of neighbours is, as a sentence; empty for fewer than two items."""
        sure = self.orders(counts)
        if not sure:
            return ""
        place = min(range(len(sure)), key=sure.__getitem__)
        low, high = _percent(min(sure)), _percent(max(sure))
        said = f"{low} (ranks {place + 1} and {place + 2})"
        if len(sure) > 1:
            said = f"{low}, whichever two" if low == high else f"{said} to {high}"
            said += ", each two by themselves; the whole order is less sure"
        return (
            "by the counts alone, an item has more people than the next one with a probability "
            f"of {said}. Smoothed counts (in JSON and plots) are estimates that use the order; "
            "they have no interval."
        )


def _percent(chance: float) -> str:
    """A probability in words that never says that something is certain.

    >>> _percent(0.999), _percent(0.874), _percent(0.001)
    ('over 99%', '87%', 'under 1%')
    """
    return "over 99%" if chance > 0.99 else "under 1%" if chance < 0.01 else f"{chance:.0%}"


def smoothed(counts: Sequence[int]) -> tuple[float, ...]:
    """Better guesses of the counts of a list in order: halfway to the nearest falling sequence.

    Estimates without an interval of their own. Never below 0.

    >>> smoothed((50, 20, 30))
    (50.0, 22.5, 27.5)
    """
    blocks: list[list[float]] = []
    for count in counts:
        blocks.append([float(count), 1])
        while len(blocks) > 1 and blocks[-2][0] < blocks[-1][0]:
            mean, size = blocks.pop()
            total = blocks[-1][1] + size
            blocks[-1] = [(blocks[-1][0] * blocks[-1][1] + mean * size) / total, total]
    falling = [mean for mean, size in blocks for _ in range(int(size))]
    return tuple(max(0.0, (raw + level) / 2) for raw, level in zip(counts, falling, strict=True))


def _rounded_width(sigma: float, confidence: float) -> int:
    """|rounded noise| ≤ w says that the noise is within ± (w + ½)."""
    return max(0, math.ceil(_NORMAL.inv_cdf((1 + confidence) / 2) * sigma - 0.5))


@lru_cache(maxsize=256)
def _difference_width(sigma: float, confidence: float) -> int:
    """Two rounded numbers differ by at most w with the mean over u in [0, 1] of P[|noise| ≤ w + u].

    (n − the real difference has the triangular law of two roundings.)
    """

    def inside(w: int) -> float:
        steps = [(i + 0.5) / 16 for i in range(16)]
        return sum(1 - 2 * _NORMAL.cdf(-(w + u) / sigma) for u in steps) / 16

    w = max(0, math.floor(_NORMAL.inv_cdf((1 + confidence) / 2) * sigma) - 2)
    while inside(w) < confidence:
        w += 1
    return w


@lru_cache(maxsize=256)
def _list_width(noise: Intervals, confidence: float) -> int:
    """t with E_W[(Φ((t − λW)/√a) − Φ((−t − λW)/√a))^m] = confidence, less the rounding."""
    a, m = noise.item_sigma, noise.released
    common = noise.weight * (noise.common_sigma or 0.0)
    places = [i / 16 for i in range(-128, 129)]
    masses = [math.exp(-(place**2) / 2) for place in places]
    total = sum(masses)

    def inside(t: float) -> float:
        each = [
            _NORMAL.cdf((t - common * w) / a) - _NORMAL.cdf((-t - common * w) / a) for w in places
        ]
        return sum(mass * chance**m for mass, chance in zip(masses, each, strict=True)) / total

    low, high = 0.0, 10 * noise.sigma
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) < confidence else (low, middle)
    return max(0, math.ceil(high - 0.5))


def _positive(seen: float, scale: float, sigma: float) -> float:
    """P[d > 0] given d + N(0, sigma²) = seen, d ~ Laplace(scale) beforehand."""

    def log_weight(x: float) -> float:  # of the half-line on whose side x is positive
        return -x / scale + _log_tail((sigma / scale) - x / sigma)

    difference = log_weight(-seen) - log_weight(seen)
    return 1 / (1 + math.exp(difference)) if difference < 700 else 0.0


def _log_tail(z: float) -> float:
    """ln Φ(−z)."""
    if z < 25:
        return math.log(math.erfc(z / math.sqrt(2)) / 2)
    return -z * z / 2 - math.log(z * math.sqrt(2 * math.pi)) - 1 / z**2
