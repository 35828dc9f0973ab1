"""The k best of score + noise: what every mechanism on a public domain draws."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction

from topsecret.counts.histogram import Histogram
from topsecret.mechanisms.noiseless import best_groups
from topsecret.noise.bits import BitSource, SystemBits
from topsecret.noise.distributions import Noise
from topsecret.noise.race import race
from topsecret.noise.screening import ScoreGroups

Ranking = Callable[[ScoreGroups, Noise, Fraction, int, BitSource], list[int]]
"""``race``, one draw of noise for the whole list, or ``peel``, fresh noise in every round."""


def best_items(
    histogram: Histogram,
    k: int,
    noise: Noise,
    scale: Fraction,
    bits: BitSource | None,
    *,
    smallest: bool = False,
    ranking: Ranking = race,
) -> tuple[Hashable, ...]:
    """The items of the k largest noisy scores, best first; at scale 0 those of the k largest."""
    bits = SystemBits() if bits is None else bits
    field = histogram.field().mirrored() if smallest else histogram.field()
    groups = best_groups(field, k) if scale == 0 else ranking(field, noise, scale, k, bits)
    return histogram.names(groups, bits)


def oriented_scores(histogram: Histogram, smallest: bool) -> list[tuple[Hashable, Fraction]]:
    """All scores of the domain, turned so that the largest is the best."""
    sign = -1 if smallest else 1
    return [(item, sign * score) for item, score in histogram.scores()]
