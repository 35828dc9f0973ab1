"""From finitely many epsilons to all of them.

At each *point* x every divergence D(x) is proved to be at most the claim c(x). What follows for
the x between two neighbouring points x₀ < x₁? Write t = e^x. D falls in x and is convex in t, and
so are the claims of the accountant: they fall, and they are largest divergences (or convex
bounds on those), up to the rounding of their floats.

- *falling*: D(x) ≤ D(x₀) and c(x) ≥ c(x₁), so D(x₀) ≤ c(x₁) settles the whole cell.
- *convex*: let m be a third point inside. On [x₀, m] the line through (m, c(m)) and (x₁, c(x₁))
  lies below c, and D minus that line is convex in t, hence largest at an end. At m it is at
  most 0, so the cell is settled if D(x₀) is at most the line at x₀. [m, x₁] is the mirror.

Both tests err by less the smaller the cell is (the second quadratically), so cells are halved,
the worst first, and for each cell only the pairs of histograms that it does not settle are
looked at again. Every midpoint becomes a point: a divergence above its claim there is a
counterexample. What is left when the allowance of midpoints is spent is reported as a bound on
any excess between points, and never dropped.

Both tests use the claim lowered by its relative rounding error, at most ``CLAIM_ROUNDING``.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from topsecret.verify.laws import Floats
from topsecret.verify.neighbours import Indices

CLAIM_ROUNDING = 2.0**-40
_RESOLUTION = 2.0**-30


@dataclass(order=True, slots=True)
class _Cell:
    priority: float
    left: float = field(compare=False)
    right: float = field(compare=False)
    claim_left: float = field(compare=False)
    claim_right: float = field(compare=False)
    pairs: Indices = field(compare=False)
    """The pairs that this cell does not settle."""
    upper_left: Floats = field(compare=False)
    upper_right: Floats = field(compare=False)


def settle(
    points: list[float],
    claims: list[float],
    uppers: Floats,
    claim: Callable[[float], float],
    evaluate: Callable[[Indices, float, float], Floats],
    allowance: int,
) -> tuple[int, float]:
    """Settle all cells between the points; how many midpoints it took, and the excess left.

    ``uppers`` has a row for each pair and a column for each point; ``evaluate(pairs, x, claim)``
    bounds the divergences of some pairs at a new point, having compared them with its claim.
    """
    queue = list(_first_cells(points, claims, uppers))
    heapq.heapify(queue)
    left_over = 0.0
    midpoints = 0
    while queue and -queue[0].priority > _RESOLUTION and midpoints < allowance:
        cell = heapq.heappop(queue)
        middle = cell.left + (cell.right - cell.left) / 2
        if not cell.left < middle < cell.right:
            left_over = max(left_over, -cell.priority)
            continue
        midpoints += 1
        claim_middle = claim(middle)
        upper_middle = evaluate(cell.pairs, middle, claim_middle)
        for half in _halves(cell, middle, claim_middle, upper_middle):
            heapq.heappush(queue, half)
    return midpoints, max([left_over, *(-cell.priority for cell in queue)])


def _first_cells(points: list[float], claims: list[float], uppers: Floats) -> Iterator[_Cell]:
    for column, (left, right) in enumerate(pairwise(points)):
        excess = uppers[:, column] - _lowered(claims[column + 1])
        pairs = np.flatnonzero(excess > 0)
        if len(pairs):
            yield _Cell(
                -float(excess.max()),
                left,
                right,
                claims[column],
                claims[column + 1],
                pairs,
                uppers[pairs, column],
                uppers[pairs, column + 1],
            )


def _halves(cell: _Cell, middle: float, claim: float, upper: Floats) -> Iterator[_Cell]:
    below = -math.expm1(cell.left - middle)  # (t_m − t_0)/t_m
    above = math.expm1(cell.right - middle)  # (t_1 − t_m)/t_m
    # The claim's line through m and the right end, continued to the left end; and its mirror.
    at_left = _lowered(claim) + (_lowered(claim) - cell.claim_right) * (below / above)
    at_right = _lowered(claim) - (cell.claim_left - _lowered(claim)) * (above / below)
    left_excess = cell.upper_left - max(_lowered(claim), at_left)
    right_excess = np.minimum(upper - _lowered(cell.claim_right), cell.upper_right - at_right)
    halves = (
        (left_excess, cell.left, middle, cell.claim_left, claim, cell.upper_left, upper),
        (right_excess, middle, cell.right, claim, cell.claim_right, upper, cell.upper_right),
    )
    for excess, start, end, claim_start, claim_end, upper_start, upper_end in halves:
        alive = np.flatnonzero(excess > 0)
        if len(alive):
            yield _Cell(
                -float(excess.max()),
                start,
                end,
                claim_start,
                claim_end,
                cell.pairs[alive],
                upper_start[alive],
                upper_end[alive],
            )


def _lowered(claim: float) -> float:
    return claim * (1 - CLAIM_ROUNDING)
