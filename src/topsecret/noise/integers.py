"""Exact random integers.

>>> from topsecret.noise.bits import SystemBits
>>> 0 <= below(10**30, SystemBits()) < 10**30
True
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topsecret.noise.bits import BitSource


def below(limit: int, bits: BitSource) -> int:
    """A uniform integer of 0 … limit − 1: draw enough bits, draw again when it is too large."""
    width = (limit - 1).bit_length()
    size = (width + 7) // 8
    excess = 8 * size - width
    while True:
        candidate = int.from_bytes(bits.take(size), "big") >> excess
        if candidate < limit:
            return candidate


def below_many(limit: int, size: int, bits: BitSource) -> NDArray[np.int64]:
    """About ``size`` independent uniform integers of 0 … limit − 1 (limit at most 2⁶²).

    The rejected draws are left out, so that the result may be shorter, by at most about half.
    """
    width = (limit - 1).bit_length()
    words = np.frombuffer(bits.take(8 * size), dtype=np.uint64) >> np.uint64(64 - max(width, 1))
    return words[words < limit].astype(np.int64)


def distinct_below(limit: int, size: int, bits: BitSource) -> list[int]:
    """``size`` different integers of 0 … limit − 1 in uniformly random order.

    The first steps of a Fisher–Yates shuffle; only the places it has touched are kept, so that
    the limit may be as large as a public domain.

    >>> from topsecret.noise.bits import SystemBits
    >>> sorted(distinct_below(3, 3, SystemBits()))
    [0, 1, 2]
    """
    moved: dict[int, int] = {}
    drawn = []
    for taken in range(size):
        place = taken + below(limit - taken, bits)
        drawn.append(moved.get(place, place))
        moved[place] = moved.get(taken, taken)
    return drawn
