"""One step of the optimal recursion on a grid: array loops with a proven error.

A profile is a function delta(x) that no pair of neighbours exceeds, in either direction. It is
kept as floats at x = 0, h, 2h, ..., and between two grid points it is at most the chord in
y = e^x, because every profile is convex in y. The functions here apply one mechanism in front of
a profile. They use only IEEE + - * / sqrt and comparisons; every exponential is a constant that
the caller rounds from a ball. docs/proofs/accounting.md derives each number below.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from topsecret.exact.rounding import ball, down, precision, up

Floats = NDArray[np.float64]

UNIT = 2.0**-53  # the relative error of one IEEE operation, rounded to nearest
TINY = 1e-290  # covers every underflow: 2**-1074 times constants that stay below 1e30
WIDEST_SPACING = Fraction(1, 2)  # the error bounds below use e^h - 1 <= 0.65
TOGETHER = 8192  # how many numbers fit into a turn of the loop over cells: those of a fast cache


@dataclass(frozen=True, slots=True, eq=False)
class StepConstants:
    """Exponentials of one pick on one grid, each within a relative 2^-52 of the truth."""

    cells: int
    growth: float  # E = e^epsilon
    growth_minus_one: float  # e^epsilon - 1
    width: float  # r = e^h - 1
    powers: Floats  # e^(c h) for c = 1 .. cells, as a column
    roots: Floats  # e^(c h / 2) for c = 1 .. cells, as a column


def step_constants(spacing: Fraction, cells: int) -> StepConstants:
    """The constants for a pick of ``cells * spacing``."""
    powers, roots = _powers(spacing, -(-cells // 16) * 16)
    with precision(96):
        return StepConstants(
            cells=cells,
            growth=powers[cells - 1],
            growth_minus_one=_close((ball(spacing) * cells).expm1()),
            width=_close(ball(spacing).expm1()),
            powers=np.array(powers[:cells])[:, None],
            roots=np.array(roots[:cells])[:, None],
        )


@lru_cache(maxsize=64)
def _powers(spacing: Fraction, count: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """e^(c h) and e^(c h / 2) for c = 1 .. count; picks of one grid share them."""
    with precision(96):
        half = (ball(spacing) / 2).exp()
        roots, power = [], arb(1)
        for _ in range(count):
            power *= half
            roots.append(power)
        return tuple(_close(root * root) for root in roots), tuple(map(_close, roots))


def _close(value: arb) -> float:
    """A float within a relative 2^-52: the ball must be narrow, which is checked, not assumed."""
    if value.rel_accuracy_bits() < 60:
        raise ArithmeticError(
            "a constant lost its precision; was flint.ctx.prec changed meanwhile?"
        )
    return float(value.mid())


def mirror_factors(spacing: Fraction, count: int) -> Floats:
    """Lower bounds of e^(-i h) for i = 1 .. count."""
    with precision(96):
        ratio, power, factors = (-ball(spacing)).exp(), arb(1), []
        for _ in range(count):
            power *= ratio
            factors.append(max(0.0, down(power)))
    return np.array(factors)


def extended(values: Floats, mirror: Floats, right: int) -> Floats:
    """The profile on x = -len(mirror) h .. (n + right) h, still an upper bound, never rising.

    To the left delta(-x) = 1 - e^(-x) (1 - delta(x)), the hockey-stick identity between the two
    directions; to the right the last value, because a profile falls.
    """
    count = len(mirror)
    inner = values[1 : count + 1]
    if len(inner) < count:
        inner = np.concatenate([inner, np.full(count - len(inner), values[-1])])
    # Four roundings, each at most UNIT of a number at most 1.
    left = np.minimum(1.0, 1.0 - mirror * (1.0 - inner) + 8 * UNIT)
    whole = np.concatenate([left[::-1], values, np.full(right, values[-1])])
    return falling(whole)


def falling(values: Floats) -> Floats:
    """The smallest sequence that never rises and is nowhere below ``values``."""
    return np.ascontiguousarray(np.maximum.accumulate(values[::-1])[::-1])


def pick_step(values: Floats, constants: StepConstants, mirror: Floats) -> Floats:
    """The profile after a pick of epsilon = cells * h is put in front.

    For y = y_j and s = e^t in cell c the two shifted points lie in the cells l = j - c - 1 and
    l + cells, at the same fraction theta of each. There the objective is, up to a constant,
    -(A s + B kappa / s) / (E - 1) with A, B >= 0: concave, largest at s^2 = B kappa / A. That
    quotient may overflow; theta is cut to [0, 1] afterwards.
    """
    cells, r = constants.cells, constants.width
    growth, spread = constants.growth, constants.growth / constants.growth_minus_one
    g = extended(values, mirror[:cells], cells)
    drops = g[:-1] - g[1:]
    near, near_drop = g[: -cells - 1], drops[: len(g) - cells - 1]
    far, far_drop = g[cells:-1], drops[cells:]
    slope_a = (near - far) + (near_drop - far_drop) / r
    slope_b = (growth * near_drop - far_drop) / r
    lack_a = np.maximum(0.0, -slope_a)
    lack_b = np.maximum(0.0, TINY - slope_b)
    # The excess of the true supremum over the value computed at theta, in three parts: rounding
    # of A and B moves the tangent point (64), rounding of the value itself (32), and a sequence
    # that lost its convexity to earlier roundings (lack_a, lack_b).
    excess = spread * (
        (64 * UNIT) * (r * near + growth * near_drop + far_drop)
        + (32 * UNIT) * near
        + r * (2 * lack_a + 4 * lack_b)
    )
    excess *= 1.0 + 64 * UNIT * spread  # the roundings above apply to the raised values too
    near_up, far_up = near + excess, far + excess
    root = np.sqrt(np.maximum(slope_a, 0.0) / np.maximum(slope_b, TINY)) / r
    size = len(values)
    best = np.zeros(size)
    inverse = 1.0 / r
    roots, shares = constants.roots, constants.powers / constants.growth_minus_one
    # Several cells at a time where the grid is short: a call costs more than its arithmetic there.
    together = max(1, TOGETHER // size)
    for first in range(0, cells, together):
        turn = slice(first, min(cells, first + together))
        shape, start = (turn.stop - first, size), 8 * (cells - first - 1)

        def shifted(line: Floats, shape: tuple[int, int] = shape, start: int = start) -> Floats:
            """Row by row the line from cells − c − 1 on, for the cells c of this turn."""
            return np.ndarray(shape, np.float64, line, start, (-8, 8))

        theta = shifted(root) * roots[turn]
        theta -= inverse
        np.maximum(theta, 0.0, out=theta)
        np.minimum(theta, 1.0, out=theta)
        close = shifted(near_up) - theta * shifted(near_drop)
        value = shifted(far_up) - theta * shifted(far_drop)
        theta *= r
        theta += 1.0
        share = spread - shares[turn] / theta
        close -= value
        close *= share
        value += close
        np.maximum(best, value.max(axis=0), out=best)
    return np.minimum(1.0, falling(best + TINY))


def average_step(
    values: Floats, weights: Floats, reach: int, mirror: Floats, rest: float
) -> Floats:
    """The profile after a mechanism with a fixed worst pair is put in front.

    ``weights[k + reach]`` bounds from above the weight of x_j - k h for k = -reach .. reach;
    ``rest`` is the weight of everything further left, where the profile is at most 1.
    """
    g = extended(values, mirror[:reach], reach)
    # Sums of at most 2 reach + 1 products of numbers >= 0, in any order (Higham 2002, §3.1).
    inflation = 1.0 + 4 * (2 * reach + 4) * UNIT
    return np.minimum(
        1.0, falling((np.convolve(g, weights, mode="valid") + rest) * inflation + TINY)
    )


def resampled(values: Floats, spacing: Fraction, target: Fraction, size: int) -> Floats:
    """Chord values at 0, target, ..., (size - 1) target of a profile kept at ``spacing``."""
    last = len(values) - 1
    # Places rounded down, where a falling profile is larger; the fractional part is exact.
    places = np.minimum(np.arange(size) * down(target / spacing) * (1.0 - 4 * UNIT), last)
    whole = np.floor(places)
    part, cell = places - whole, whole.astype(np.intp)
    upper, lower = values[cell], values[np.minimum(cell + 1, last)]
    with precision(96):
        h, width = down(ball(spacing)), up(ball(spacing).expm1())
    # Truncated Taylor series of e^z - 1, all terms >= 0: theta from below, the chord from above.
    z = part * h
    theta = z * (1 + z / 2 * (1 + z / 3 * (1 + z / 4 * (1 + z / 5)))) / width
    theta = np.minimum(1.0, theta * (1.0 - 64 * UNIT))
    chord = upper - theta * (upper - lower) + 8 * UNIT * upper + TINY
    return np.minimum(1.0, falling(chord))
