"""Very many exact coins at once: Bernoulli draws whose chance is one of a few computable reals.

A coin of chance p shows heads when an endless uniform U falls below p. The first 64 bits w of U
confine it to [w, w + 1]/2⁶⁴. With integers low ≤ p·2⁶⁴ ≤ high, rounded outward from a ball around
p, w < low means U < p and w ≥ high means U ≥ p (up to an event of probability 0): two integer
comparisons, no float. The open words low ≤ w < high, of which there are at most two or three, are
decided by further bits of the same U against sharper balls.

Guarantee: each flip is an independent Bernoulli of exactly its chance.

>>> from fractions import Fraction
>>> from topsecret.noise.bits import ScriptedBits
>>> from topsecret.noise.bits import Rational
>>> coins = Coins(lambda kind: Rational(Fraction(kind, 4)))
>>> words = np.array([2**62 - 1, 2**62 + 1], dtype=np.uint64)
>>> coins.flip(np.array([1, 1]), ScriptedBits(words.tobytes())).tolist()
[True, False]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from topsecret.exact.rounding import precision
from topsecret.noise.bits import BitSource, Real, Uniform, is_less
from topsecret.noise.screening import WORD, draw_words

_LAST_WORD = 2**WORD - 1
_TABLE_BITS = 128


class Coins:
    """Coins of several kinds, numbered 0, 1, 2, …; ``chance(kind)`` is a computable real.

    What is known of a kind is kept, so that a million flips of a thousand kinds evaluate a
    thousand chances.
    """

    def __init__(self, chance: Callable[[int], Real]) -> None:
        self._chance = chance
        self._known = np.zeros(0, dtype=np.bool_)
        self._heads_below = np.zeros(0, dtype=np.uint64)
        self._open_up_to = np.zeros(0, dtype=np.uint64)

    def flip(self, kinds: NDArray[np.int64], bits: BitSource) -> NDArray[np.bool_]:
        """One independent flip for each entry of ``kinds``, in an array of the same shape."""
        self._prepare(kinds)
        words = draw_words(kinds.size, bits).reshape(kinds.shape)
        heads = words < self._heads_below[kinds]
        undecided = np.flatnonzero((~heads & (words <= self._open_up_to[kinds])).ravel())
        flat = heads.ravel()
        for place in undecided:
            uniform = Uniform(bits, int(words.flat[place]), WORD)
            flat[place] = is_less(uniform, self._chance(int(kinds.flat[place])))
        return flat.reshape(kinds.shape)

    def _prepare(self, kinds: NDArray[np.int64]) -> None:
        if kinds.size == 0:
            return
        size = int(kinds.max()) + 1
        if size > len(self._known):
            more = size - len(self._known)
            self._known = np.append(self._known, np.zeros(more, dtype=np.bool_))
            self._heads_below = np.append(self._heads_below, np.zeros(more, dtype=np.uint64))
            self._open_up_to = np.append(self._open_up_to, np.zeros(more, dtype=np.uint64))
        present: NDArray[Any] = np.zeros(len(self._known), dtype=np.bool_)
        present[kinds.ravel()] = True
        for kind in np.flatnonzero(present & ~self._known):
            low, high = words_around(self._chance(int(kind)).ball(_TABLE_BITS))
            self._heads_below[kind] = min(low, _LAST_WORD)
            self._open_up_to[kind] = min(high - 1, _LAST_WORD) if high > 0 else 0
            self._known[kind] = True


def words_around(chance: arb) -> tuple[int, int]:
    """Integers around the ball times 2⁶⁴, within 0 and 2⁶⁴.

    >>> words_around(arb(0.5)) == (2**63, 2**63)
    True
    """
    with precision(2 * _TABLE_BITS):  # the ends of a ball are rounded to the working precision
        lower, upper = exact_fraction(chance.lower()), exact_fraction(chance.upper())
    low = math.floor(max(lower, Fraction(0)) * 2**WORD)
    high = math.ceil(min(upper, Fraction(1)) * 2**WORD)
    return min(low, 2**WORD), max(high, 0)


def exact_fraction(exact: arb) -> Fraction:
    """The number that a ball of radius 0 is."""
    mantissa, exponent = exact.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
