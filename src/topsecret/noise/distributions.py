"""The four noises as decreasing functions of an arrival time S ~ Exp(1).

docs/proofs/noise.md says why one picture serves for all four.

Each noise has a *ball* version for any precision, a *float64 array* version that encloses the
true value, and its *tail* P[noise > x]. All are of unit scale.

>>> float(GUMBEL.ball(arb(1)))
0.0
>>> float(EXPONENTIAL.tail(arb(0)))
1.0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Protocol

import numpy as np
from flint import arb

from topsecret.exact.rounding import down, precision, up
from topsecret.noise.enclosures import (
    Bounds,
    Floats,
    gumbels_around,
    log_bounds,
    survival_bounds,
)

_OPEN = (-math.inf, math.inf)


class Noise(Protocol):
    """A continuous noise, given as a decreasing function of an exponential arrival time."""

    def ball(self, arrival: arb) -> arb:
        """The noise of this arrival time, in balls."""
        ...

    def bounds(self, first: Floats, last: Floats) -> Bounds:
        """Floats around the noise of every arrival time in [first, last]."""
        ...

    def around(self, words: Sequence[int], sizes: Sequence[int]) -> list[tuple[float, float]]:
        """Floats around the noise of the first of each ``size`` items, from its first 64 bits.

        −∞ and ∞ where balls must say more.
        """
        ...

    def tail(self, level: arb) -> arb:
        """P[noise > level], in balls."""
        ...


class Gumbel:
    """−ln S: the noise of the exponential mechanism."""

    def ball(self, arrival: arb) -> arb:
        """−ln S."""
        return -arrival.log()

    def bounds(self, first: Floats, last: Floats) -> Bounds:
        """Floats around −ln S."""
        lower, upper = log_bounds(first, last)
        return -upper, -lower

    def around(self, words: Sequence[int], sizes: Sequence[int]) -> list[tuple[float, float]]:
        """Floats around −ln(S/size)."""
        return gumbels_around(words, sizes)

    def tail(self, level: arb) -> arb:
        """1 − e^(−e^(−x))."""
        return -(-(-level).exp()).expm1()

    def __repr__(self) -> str:
        return "GUMBEL"


class Exponential:
    """−ln(1 − e^(−S)): one-sided, the noise of permute-and-flip."""

    def ball(self, arrival: arb) -> arb:
        """−ln(1 − e^(−S))."""
        return -(-(-arrival).expm1()).log()

    def bounds(self, first: Floats, last: Floats) -> Bounds:
        """Floats around −ln(1 − e^(−S))."""
        lower, upper = log_bounds(*survival_bounds(first, last))
        return np.maximum(-upper, 0.0), -lower

    def around(self, words: Sequence[int], sizes: Sequence[int]) -> list[tuple[float, float]]:
        """Balls decide."""
        return [_OPEN] * len(words)

    def tail(self, level: arb) -> arb:
        """e^(−x) for x ≥ 0, else 1."""
        return (-level.nonnegative_part()).exp()

    def __repr__(self) -> str:
        return "EXPONENTIAL"


class Laplace:
    """−ln(2(1 − e^(−S))) for S ≤ ln 2, else ln 2 − S: two-sided."""

    def ball(self, arrival: arb) -> arb:
        """The piece that the arrival lies in; the union of both where that is open."""
        ln2 = arb(2).log()
        if arrival > ln2:
            return ln2 - arrival
        upper_piece = -(2 * -(-arrival).expm1()).log()
        if arrival < ln2:
            return upper_piece
        return upper_piece.union(ln2 - arrival)

    def bounds(self, first: Floats, last: Floats) -> Bounds:
        """Floats around the noise.

        The two pieces touch at S = ln 2 and the function is decreasing, so each end is bounded
        by the piece it surely lies in, and by both pieces within 2⁻⁴⁰ of ln 2.
        """
        return self._at(last)[0], self._at(first)[1]

    def _at(self, arrival: Floats) -> Bounds:
        lower, upper = survival_bounds(arrival, arrival)
        ln2 = 0.6931471805599453
        lower, upper = log_bounds(2.0 * lower, 2.0 * upper)
        near = (-upper, -lower)
        with np.errstate(invalid="ignore"):  # an arrival at ∞ is recognised below
            margin = 2.0**-50 * (1.0 + arrival)
            far = (ln2 - arrival - margin, np.where(arrival < np.inf, ln2 - arrival + margin, 0.0))
        before = arrival < ln2 - 2.0**-40
        after = arrival > ln2 + 2.0**-40
        bottom = np.where(before, near[0], np.where(after, far[0], np.minimum(near[0], far[0])))
        top = np.where(before, near[1], np.where(after, far[1], np.maximum(near[1], far[1])))
        return bottom, top

    def around(self, words: Sequence[int], sizes: Sequence[int]) -> list[tuple[float, float]]:
        """Balls decide."""
        return [_OPEN] * len(words)

    def tail(self, level: arb) -> arb:
        """½e^(−x) for x ≥ 0, else 1 − ½e^x."""
        if level >= 0:
            return (-level).exp() / 2
        if level <= 0:
            return 1 - level.exp() / 2
        return ((-level).exp() / 2).union(1 - level.exp() / 2)

    def __repr__(self) -> str:
        return "LAPLACE"


class Gaussian:
    """Φ⁻¹(e^(−S)): the standard normal."""

    def ball(self, arrival: arb) -> arb:
        """Φ⁻¹(U) from the smaller of U and 1 − U, where erfc⁻¹ is sharp."""
        root2 = arb(2).sqrt()
        uniform = (-arrival).exp()
        if uniform < arb(0.5):
            return -root2 * (2 * uniform).erfcinv()
        return root2 * (2 * -(-arrival).expm1()).erfcinv()

    def bounds(self, first: Floats, last: Floats) -> Bounds:
        """Floats around Φ⁻¹(e^(−S)): the table's values at the nodes on either side."""
        nodes, lower, upper = _gaussian_table()
        # upper[i] bounds the function at nodes[i] from above, hence on all of [nodes[i], ∞).
        before = np.searchsorted(nodes, first, side="right") - 1
        after = np.searchsorted(nodes, last, side="left")
        top = np.where(before >= 0, upper[np.maximum(before, 0)], np.inf)
        bottom = np.where(after < len(nodes), lower[np.minimum(after, len(nodes) - 1)], -np.inf)
        return bottom, top

    def around(self, words: Sequence[int], sizes: Sequence[int]) -> list[tuple[float, float]]:
        """Balls decide."""
        return [_OPEN] * len(words)

    def tail(self, level: arb) -> arb:
        """½·erfc(x/√2)."""
        return (level / arb(2).sqrt()).erfc() / 2

    def __repr__(self) -> str:
        return "GAUSSIAN"


GUMBEL = Gumbel()
EXPONENTIAL = Exponential()
LAPLACE = Laplace()
GAUSSIAN = Gaussian()

_NODES_PER_OCTAVE = 128


@cache
def _gaussian_table() -> tuple[Floats, Floats, Floats]:
    """Nodes s of arrival time from 2⁻⁶⁴ to 2⁶ with floats below and above Φ⁻¹(e^(−s)).

    A decreasing function lies between its values at the two nodes around its argument: that is
    the whole proof of :meth:`Gaussian.bounds`.
    """
    octaves = np.ldexp(1.0, np.arange(-64, 6))
    steps = 1.0 + np.arange(_NODES_PER_OCTAVE) / _NODES_PER_OCTAVE
    nodes = np.outer(octaves, steps).ravel()
    lower = np.empty_like(nodes)
    upper = np.empty_like(nodes)
    with precision(96):
        for i, node in enumerate(nodes):
            value = GAUSSIAN.ball(arb(float(node)))
            lower[i], upper[i] = down(value), up(value)
    return nodes, lower, upper
