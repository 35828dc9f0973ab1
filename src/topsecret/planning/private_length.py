"""What mechanisms with a private length name on known counts: their laws as floats.

For planning and experiments; no guarantee rests on these numbers.

>>> from topsecret.mechanisms import CanonicalSet
>>> histogram = Histogram.of({0: 90, 1: 80}, domain=range(1000))
>>> round(found(CanonicalSet(k=2, epsilon=1.0), histogram, top=2).named, 3)
1.995
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topsecret.counts.histogram import Histogram
from topsecret.mechanisms import CanonicalSet, OneshotPrivateLength
from topsecret.mechanisms.canonical_classes import Classes
from topsecret.mechanisms.private_length import lengths, scores_of
from topsecret.mechanisms.ranked_groups import RankedGroups
from topsecret.noise.binomials import log_binomials
from topsecret.planning import races

_NEVER = 1e-7
_FAR = 10**9
"""How far ahead "far ahead" is, in units of the noise."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a set names, on average."""

    named: float
    """How many items it names."""
    right: float
    """How many of them are among the leading ones."""
    filled: float
    """How many would be with the rest filled in at random."""
    whole: float
    """The probability that it is the set of the leading items."""
    last: float
    """The probability that it holds the last of them."""


def length_chances(
    mechanism: CanonicalSet | OneshotPrivateLength, ranked: RankedGroups, size: int
) -> list[tuple[int, float]]:
    """The lengths that are not negligible, and their probabilities."""
    scores = scores_of(mechanism.margins(ranked, size))
    scale = mechanism.length_scale
    if isinstance(mechanism, CanonicalSet):
        scale = 10 * scale  # its margins are in tenths of a person
    pairs = zip(lengths(mechanism.k), _choices(scores, float(scale)), strict=True)
    return [(m, float(chance)) for m, chance in pairs if chance > _NEVER]


def _choices(scores: NDArray[Any], scale: float) -> NDArray[np.float64]:
    """``choice_law`` in floats, by Gauss's rule, which is exact for these polynomials."""
    highest = max(scores)
    passes = np.exp([float(score - highest) / scale for score in scores])
    nodes, weights = np.polynomial.legendre.leggauss(len(passes) // 2 + 1)
    fails = 1 - np.outer((nodes + 1) / 2, passes)
    return np.array(
        [p * weights @ np.delete(fails, i, axis=1).prod(axis=1) / 2 for i, p in enumerate(passes)]
    )


def found(mechanism: CanonicalSet, histogram: Histogram, top: int) -> Found:
    """What the mechanism finds of the ``top`` leading items, by its exact law."""
    size = histogram.require_domain("CanonicalSet", mechanism.k)
    ranked = RankedGroups.of(histogram)
    total = np.zeros(5)
    for m, chance in length_chances(mechanism, ranked, size):
        leading, upto, share = Classes(ranked, m, *mechanism.exponents).likely()
        rate = (m - leading) / np.maximum(upto - leading, 1)
        right = np.minimum(leading, top) + rate * np.maximum(np.minimum(upto, top) - leading, 0)
        filled = right + (mechanism.k - m) * (top - right) / max(size - m, 1)
        whole = _whole(leading, upto, m, top)
        last = np.where(leading >= top, 1.0, np.where(upto >= top, rate, 0.0))
        values = (m * share, share * right, share * filled, share * whole, share * last)
        total += chance * np.array([value.sum() for value in values])
    return Found(*total.tolist())


def _whole(
    leading: NDArray[np.int64], upto: NDArray[np.int64], m: int, top: int
) -> NDArray[np.float64]:
    """The probability of the set of the leading items in each class: one of all its sets."""
    if m != top:
        return np.zeros(len(leading))
    return np.asarray(np.exp(-log_binomials(upto - leading, m - leading)[0]))


def set_chances(mechanism: CanonicalSet, lead: int, k: int, others: int) -> tuple[float, float]:
    """That the last of k items is named, the others far ahead; and that k level ones all are."""
    far = lead + _FAR * (1 + int(1 / mechanism.exponents[0]))
    one = Histogram.of({**dict.fromkeys(range(k - 1), far), k - 1: lead}, domain=range(k + others))
    every = Histogram.of(dict.fromkeys(range(k), lead), domain=range(k + others))
    return found(mechanism, one, k).last, found(mechanism, every, k).whole


def list_chances(
    mechanism: OneshotPrivateLength, lead: int, k: int, others: int
) -> tuple[float, float]:
    """The same for an ordered list: only the full length names all of them."""
    scale = float(mechanism.list_scale(k))
    far = lead + _FAR * (1 + int(scale))
    size, chances = k + others, []
    for number, above in ((1, far), (k, lead)):
        counts = {**dict.fromkeys(range(k - 1), above), k - 1: lead}
        ranked = RankedGroups.of(Histogram.of(counts, domain=range(size)))
        full = dict(length_chances(mechanism, ranked, size)).get(k, 0.0)
        chances.append(full * races.exponential(lead / scale, others, number))
    return chances[0], chances[1]
