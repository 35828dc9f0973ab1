"""Very many exact draws of one integer noise at once, by inversion of 64-bit words.

Let p(x) = P[noise ≥ x]. For an endless uniform U the largest x with U < p(x) has exactly the
noise's law. The first 64 bits w of U confine it to [w, w + 1]/2⁶⁴; integers low ≤ p(x)·2⁶⁴ ≤ high,
rounded outward from balls, decide U < p(x) by w < low and U ≥ p(x) by w ≥ high, so a binary search
in a table of integers finds x without a float. What the table leaves open, its two ends included,
is decided by further bits of the same U against sharper balls.

Guarantee: each draw is independent and has exactly the law of ``noise``.

>>> from fractions import Fraction
>>> from topsecret.noise.bits import SystemBits
>>> from topsecret.noise.lattice import DiscreteLaplace
>>> IntegerTable(DiscreteLaplace(Fraction(2))).draw((3, 2), SystemBits()).shape
(3, 2)
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb
from numpy.typing import NDArray

from topsecret.exact.rounding import precision
from topsecret.noise.bits import BitSource, Uniform, is_less
from topsecret.noise.lattice import IntegerNoise
from topsecret.noise.screening import WORD, draw_words

MOST_ENTRIES = 2**18
"""At most so many entries on one side of the table; a wider noise is drawn one by one."""
_TABLE_BITS = 128


@dataclass(frozen=True)
class IntegerTable:
    """Draws of a symmetric integer noise. Public: it depends on the noise's parameters only."""

    noise: IntegerNoise

    def draw(self, shape: tuple[int, ...], bits: BitSource) -> NDArray[np.int64]:
        """Independent draws in an array of this shape."""
        size = math.prod(shape)
        if self._reach > MOST_ENTRIES:
            drawn = [self.noise.draw(bits) for _ in range(size)]
            return np.array(drawn, dtype=np.int64).reshape(shape)
        low, open_up_to = self._table
        words = draw_words(size, bits)
        # Entries stand for x = reach, reach − 1, …: the first ``surely`` of them are above U.
        surely = np.searchsorted(open_up_to, words, side="left")
        perhaps = np.searchsorted(low, words, side="right")
        values = self._reach - surely
        for place in np.flatnonzero(surely != perhaps):
            values[place] = self._sharpened(
                Uniform(bits, int(words[place]), WORD), int(values[place])
            )
        return values.reshape(shape)

    @cached_property
    def _reach(self) -> int:
        """The least x with P[noise ≥ x] < 2⁻⁶⁵, as far as the table goes."""
        with precision(_TABLE_BITS):
            return 1 + bisect_left(
                range(1, MOST_ENTRIES + 1),
                True,
                key=lambda x: bool(self.noise.at_least(x) < arb(2) ** -65),
            )

    @cached_property
    def _table(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """⌊p·2⁶⁴⌋ and ⌈p·2⁶⁴⌉ − 1 for p = P[noise ≥ x], x from reach down to 1 − reach."""
        with precision(_TABLE_BITS):
            upper = [_words_around(self.noise.at_least(x)) for x in range(self._reach, 0, -1)]
        whole = 2**WORD
        # By symmetry P[noise ≥ 1 − x] = 1 − P[noise ≥ x].
        lower = [(whole - high, whole - low) for low, high in reversed(upper)]
        entries = [*upper, *lower]
        return (
            np.array([min(low, whole - 1) for low, _ in entries], dtype=np.uint64),
            np.array([high - 1 for _, high in entries], dtype=np.uint64),
        )

    def _sharpened(self, uniform: Uniform, value: int) -> int:
        """The largest x with U < p(x), searched from ``value``."""
        while is_less(uniform, _AtLeast(self.noise, value + 1)):
            value += 1
        while not is_less(uniform, _AtLeast(self.noise, value)):
            value -= 1
        return value


def _words_around(chance: arb) -> tuple[int, int]:
    """Integers around the ball times 2⁶⁴; the ball lies within 0 and 1, neither included."""
    scaled = chance * arb(2) ** WORD
    low, high = scaled.lower().floor().unique_fmpz(), scaled.upper().ceil().unique_fmpz()
    assert low is not None
    assert high is not None
    return max(0, int(low)), min(2**WORD, max(1, int(high)))


@dataclass(frozen=True, slots=True)
class _AtLeast:
    """P[noise ≥ value] as a computable real."""

    noise: IntegerNoise
    value: int

    def ball(self, bits: int) -> arb:
        """A ball around the probability."""
        with precision(bits + 32):
            return self.noise.at_least(self.value)
