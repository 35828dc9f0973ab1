"""The classes of a canonical set: a draw of the whole set from two numbers.

A set S of size m has the weight e^(b·min_in − a·max_out), min_in the smallest count in S, max_out
the largest outside. Let y₁ > y₂ > … > y_D be the distinct counts, n_i items having at least y_i,
n₀ = 0. With y₀ = ∞ and y_{D+1} = −∞ both exponentials are telescoping sums:

- e^(−a·max_out) = Σ A_i over the i such that S holds all n_{i−1} leading items, with
  A_i = e^(−a·y_i) − e^(−a·y_{i−1});
- e^(b·min_in) = Σ B_j over the j such that S lies in the n_j leading items, with
  B_j = e^(b·y_j) − e^(b·y_{j+1}).

So the law is a mixture over *classes* (i, j) with n_{i−1} ≤ m ≤ n_j and i ≤ D, of weight
A_i·B_j·C(n_j − n_{i−1}, m − n_{i−1}): the n_{i−1} leading items, and a uniform subset of the next
n_j − n_{i−1}. (For m = d nothing is outside; there is one set, and the law says so.) Every n_{i−1}
goes with every n_j, so the classes form a rectangle.

**The draw.** One uniform U against the cumulated weights in a fixed order of the classes. Most
classes are negligible. A block of rows i₁ … i₂ and columns j₁ … j₂ has at most the weight
(Σ A_i)·(Σ B_j)·C(n_{j₂} − n_{i₁−1}, m − n_{i₁−1}), because C(n − r, m − r) rises in n and falls in
r; the sums telescope. Blocks whose bound is negligible are left out, *and their bounds are added to
what is not known*; the others are split. If floats with their error bounds do not decide, fewer
classes are left out, balls are sharpened and more bits of U are drawn.

**The float error.** Let u = 2⁻⁵³. a·(y − y_ref) is an integer difference, exact before one
conversion, times a float: relative error at most 4u. ln(1 − e^(−s)): s has a relative error of at
most 4u, which moves it by at most 4u; the enclosures add 2⁻⁴⁶ and 2⁻⁵⁰(1 + |e|): below
2⁻⁴⁵(1 + |value|).
ln C as in ``binomials.py``. The four additions: 4u times the sum of the moduli. ``_values`` adds it
all up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from topsecret.exact.rounding import ball, down, precision, up
from topsecret.mechanisms.ranked_groups import RankedGroups
from topsecret.noise.binomials import log_binomial_ball, log_binomials
from topsecret.noise.bits import BitSource, Uniform
from topsecret.noise.enclosures import Bounds, Floats, decay_bounds, log_bounds, survival_bounds
from topsecret.noise.screening import WORD

Indices = NDArray[np.int64]

_FAR = 1e280
"""Differences beyond it are taken for it, which bounds the weight; nothing that far is kept."""
_SPLIT = (8, 32)
_ALL_AT_ONCE = 1_024
_FIRST_CUTOFF = 40.0
_SPARE = 16.0
"""Up to e^16 blocks may be left out before they add up to more than the cutoff speaks of."""


@dataclass(frozen=True, slots=True, repr=False)
class _Cells:
    """The classes that were kept, in the order of the draw, and a bound on all others. Secret."""

    rows: Indices
    columns: Indices
    value: Floats
    error: Floats
    rest: float
    """The logarithm of a bound on the sum of all weights that were left out."""


class Classes:
    """The classes of the sets of one size. Secret.

    Row i − 1 stands for i, and the columns begin at the first j with n_j ≥ m. Weights are relative
    to those of the last row and the first column, so that no exponent above is positive.
    """

    def __init__(self, ranked: RankedGroups, size: int, a: Fraction, b: Fraction) -> None:
        before = np.concatenate([np.zeros(1, dtype=np.int64), ranked.reach[:-1]])
        rows = int(np.searchsorted(before, size, side="right"))
        self._size = size
        self._a, self._b = a, b
        self._below = _below_the_best(ranked.values)
        self._leading = before[:rows]
        self._first = int(np.searchsorted(ranked.reach, size, side="left"))
        self._upto = ranked.reach[self._first :]

    def __len__(self) -> int:
        return len(self._leading) * len(self._upto)

    def law(self, bits: int) -> dict[tuple[int, int], arb]:
        """The probability of every class (n_{i−1}, n_j)."""
        weights = {
            self._counts(row, column): self._weight(row, column, bits)
            for row in range(len(self._leading))
            for column in range(len(self._upto))
        }
        with precision(bits):
            total = sum(weights.values(), arb(0))
            return {counts: weight / total for counts, weight in weights.items()}

    def likely(self) -> tuple[Indices, Indices, Floats]:
        """n_{i−1}, n_j and the probability of all classes but a part of about e^(−40), as floats.

        For planning and experiments; no draw rests on it.
        """
        cells = self._kept(_FIRST_CUTOFF)
        weights = np.exp(cells.value - cells.value.max())
        return self._leading[cells.rows], self._upto[cells.columns], weights / weights.sum()

    def draw(self, bits: BitSource) -> tuple[int, int]:
        """One class (n_{i−1}, n_j) with exactly its probability."""
        uniform = Uniform(bits)
        cells = self._kept(_FIRST_CUTOFF)
        place = _decided_by_floats(cells, uniform)
        length = WORD
        while place is None:
            length *= 2
            cells = self._kept(float(length))
            place = self._decided_by_balls(cells, uniform, length)
        return self._counts(int(cells.rows[place]), int(cells.columns[place]))

    def _counts(self, row: int, column: int) -> tuple[int, int]:
        return int(self._leading[row]), int(self._upto[column])

    def _weight(self, row: int, column: int, bits: int) -> arb:
        """A ball around A_i·B_j·C(…), relative to the last row and the first column."""
        below, place = self._below, self._first + column
        leading, upto = self._counts(row, column)
        with precision(bits + 32):
            a, b = ball(self._a), ball(self._b)
            top, bottom = int(below[row]), int(below[place])
            power = -a * (int(below[len(self._leading) - 1]) - top)
            power -= b * (bottom - int(below[self._first]))
            power += log_binomial_ball(upto - leading, self._size - leading, bits + 32)
            weight = power.exp()
            if row > 0:
                weight *= -(-a * (top - int(below[row - 1]))).expm1()
            if place + 1 < len(below):
                weight *= -(-b * (int(below[place + 1]) - bottom)).expm1()
            return weight

    def _kept(self, cutoff: float) -> _Cells:
        """All classes but those that together are at most about e^(−cutoff) of the best one.

        The cutoff decides how much work is done. What is left out is bounded, whatever it is.
        """
        nought = np.zeros(1, dtype=np.int64)
        blocks = _Blocks(
            nought, nought + len(self._leading) - 1, nought, nought + len(self._upto) - 1
        )
        parts = (_ALL_AT_ONCE, _ALL_AT_ONCE) if len(self) <= _ALL_AT_ONCE else _SPLIT
        left_out, rest, best = 0, -math.inf, -math.inf
        while True:
            blocks = blocks.split(*parts)
            number = len(blocks.first_row)
            value, error = self._values(blocks.with_corners())
            best = max(best, float(value[-2 * number :].max()))  # all of them if they are single
            value, error = value[:number], error[:number]
            keep = value + error >= best - cutoff - _SPARE
            if not keep.all():
                left_out += int(np.count_nonzero(~keep))
                rest = max(rest, float((value + error)[~keep].max()))
                blocks, value, error = blocks.where(keep), value[keep], error[keep]
            if blocks.single():
                break
        order = np.lexsort((blocks.first_column, blocks.first_row))
        return _Cells(
            blocks.first_row[order],
            blocks.first_column[order],
            value[order],
            error[order],
            rest + math.log(max(left_out, 1)) + 1e-9,
        )

    def _values(self, blocks: _Blocks) -> Bounds:
        """The logarithm of the bound on each block's weight (its weight, if it is one class), and
        how far that may be off."""
        below, first, last = self._below, blocks.first_row, blocks.last_row
        left, right = blocks.first_column + self._first, blocks.last_column + self._first
        a, b = float(self._a), float(self._b)
        row = -a * _difference(below[len(self._leading) - 1], below[last])
        column = -b * _difference(below[left], below[self._first])
        above = a * _difference(below[last], below[np.maximum(first, 1) - 1])
        above = np.where(first > 0, above, np.inf)
        under = b * _difference(below[np.minimum(right + 1, len(below) - 1)], below[left])
        under = np.where(right + 1 < len(below), under, np.inf)
        sums = _log_survival(np.concatenate([above, under]))
        row_sum, column_sum = sums[: len(above)], sums[len(above) :]
        leading = self._leading[first]
        choices, off = log_binomials(self._upto[blocks.last_column] - leading, self._size - leading)
        value = row + column + row_sum + column_sum + choices
        error = off + 2.0**-45 * (2.0 - row_sum - column_sum)
        error += 2.0**-50 * (choices - row - column)
        return value, error

    def _decided_by_balls(self, cells: _Cells, uniform: Uniform, length: int) -> int | None:
        """The place of the class that the uniform's first bits decide for, or None."""
        places = zip(cells.rows.tolist(), cells.columns.tolist(), strict=True)
        weights = [self._weight(row, column, length) for row, column in places]
        with precision(length + 64):
            rest = arb(cells.rest).exp() if cells.rest > -math.inf else arb(0)
            total = sum(weights, arb(0))
            target = uniform.ball(length) * total.union(total + rest)
            before = arb(0)
            for place, weight in enumerate(weights):
                after = before + weight
                if target < after:
                    return place if target > before + rest else None
                before = after
        return None


@dataclass(frozen=True, slots=True, repr=False)
class _Blocks:
    """Rectangles of classes, their ends included. Secret."""

    first_row: Indices
    last_row: Indices
    first_column: Indices
    last_column: Indices

    def single(self) -> bool:
        """Whether every block is one class."""
        rows = self.first_row == self.last_row
        return bool((rows & (self.first_column == self.last_column)).all())

    def where(self, keep: NDArray[np.bool_]) -> _Blocks:
        """Some of the blocks."""
        return _Blocks(
            self.first_row[keep],
            self.last_row[keep],
            self.first_column[keep],
            self.last_column[keep],
        )

    def with_corners(self) -> _Blocks:
        """And two classes of each block: the largest sums, and the most sets."""
        if self.single():
            return self
        low, left, high, right = self.last_row, self.first_column, self.first_row, self.last_column
        return _Blocks(
            np.concatenate([high, low, high]),
            np.concatenate([low, low, high]),
            np.concatenate([left, left, right]),
            np.concatenate([right, left, right]),
        )

    def split(self, most_rows: int, most_columns: int) -> _Blocks:
        """Each block cut into at most so many rows of so many blocks."""
        rows = self.last_row - self.first_row + 1
        columns = self.last_column - self.first_column + 1
        across, down = np.minimum(columns, most_columns), np.minimum(rows, most_rows)
        pieces = across * down
        block = np.repeat(np.arange(len(pieces)), pieces)
        piece = np.arange(len(block)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        row, column = piece // across[block], piece % across[block]
        top, left = self.first_row[block], self.first_column[block]
        rows, columns, across, down = rows[block], columns[block], across[block], down[block]
        return _Blocks(
            top + rows * row // down,
            top + rows * (row + 1) // down - 1,
            left + columns * column // across,
            left + columns * (column + 1) // across - 1,
        )


def _decided_by_floats(cells: _Cells, uniform: Uniform) -> int | None:
    """The place of the class that the first 64 bits decide for, or None."""
    highest = float((cells.value + cells.error).max()) + 1.0
    if not cells.rest < highest:
        return None
    value, error = np.append(cells.value, cells.rest), np.append(cells.error, 0.0)
    # Four roundings of numbers that are at most |value| + |highest|; −∞ where nothing is left out.
    error = error + 2.0**-50 * (np.abs(np.maximum(value, -_FAR)) + abs(highest))
    lower, upper = decay_bounds(highest - value - error, highest - value + error)
    rest = float(upper[-1]) if cells.rest > -math.inf else 0.0
    widen = (len(value) + 4) * 2.0**-52
    after = np.cumsum(lower[:-1]) * (1.0 - widen)
    until = np.cumsum(upper[:-1]) * (1.0 + widen)
    lowest = down(uniform.lower(WORD)) * float(after[-1]) * (1.0 - 2.0**-50)
    largest = up(uniform.upper(WORD)) * (float(until[-1]) + rest) * (1.0 + 2.0**-50)
    place = int(np.searchsorted(after, largest, side="right"))
    if place == len(after):
        return None
    before = (float(until[place - 1]) if place else 0.0) + rest
    return place if before * (1.0 + 2.0**-50) < lowest else None


def _below_the_best(values: NDArray[Any]) -> NDArray[Any]:
    """How far each count lies below the largest, exactly."""
    highest = int(values[0])
    if highest - int(values[-1]) < 2**62 and values.dtype == np.int64:
        # The difference is right modulo 2⁶⁴, hence right.
        return np.asarray(np.int64(highest) - values)
    return np.array([highest - int(value) for value in values], dtype=object)


def _difference(larger: Any, smaller: Any) -> Floats:
    """An exact difference of at least 0, with one rounding; at most ``_FAR``."""
    difference = np.asarray(larger - smaller)
    if difference.dtype == np.int64:
        return difference.astype(np.float64)
    return np.array([float(min(value, _FAR)) for value in difference.ravel()], dtype=np.float64)


def _log_survival(s: Floats) -> Floats:
    """ln(1 − e^(−s)); 0 at ∞."""
    lower, upper = log_bounds(*survival_bounds(s, s))
    return np.where(s == np.inf, 0.0, lower + (upper - lower) * 0.5)
