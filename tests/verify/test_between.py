"""What is said about the epsilons between the compared ones is true, and found when false."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from topsecret.verify.between import settle
from topsecret.verify.laws import Floats
from topsecret.verify.neighbours import Indices

Curve = Callable[[float], float]


def settled(
    claim: Curve, divergence: Curve, points: list[float], allowance: int = 1000
) -> tuple[list[float], float]:
    """Where one pair was looked at, and the excess left over."""
    looked: list[float] = []

    def evaluate(pairs: Indices, epsilon: float, _: float) -> Floats:
        looked.append(epsilon)
        return np.array([divergence(epsilon)] * len(pairs))

    uppers = np.array([[divergence(point) for point in points]])
    claims = [claim(point) for point in points]
    _, left = settle(points, claims, uppers, claim, evaluate, allowance)
    return looked, left


def gaussian_like(epsilon: float) -> float:
    return 0.5 * math.exp(-2 * math.exp(epsilon))


def test_a_clear_margin_needs_no_midpoint() -> None:
    looked, left = settled(lambda x: 0.5, lambda x: 0.1, [-1.0, 0.0, 1.0])
    assert (looked, left) == ([], 0.0)


def test_a_narrow_margin_is_settled_everywhere() -> None:
    looked, left = settled(gaussian_like, lambda x: 0.99 * gaussian_like(x), [-1.0, 0.0, 1.0])
    assert left == 0.0
    assert len(looked) < 300


def test_a_tangent_is_settled_up_to_the_rounding_of_the_claim() -> None:
    touch, slope = gaussian_like(0.3), -gaussian_like(0.3) * 2  # the derivative in e^x

    def tangent(x: float) -> float:
        return max(0.0, touch + slope * (math.exp(x) - math.exp(0.3)))

    looked, left = settled(gaussian_like, tangent, [-1.0, 0.0, 1.0])
    assert left <= 1e-9
    assert len(looked) < 300


def test_an_excess_between_two_points_is_looked_at() -> None:
    """The divergence holds at -1, 0 and 1 and exceeds the claim near 0.3."""

    def claim(x: float) -> float:
        return max(0.0, 0.2 - 0.1 * math.exp(x), 0.05 - 0.01 * math.exp(x))

    def divergence(x: float) -> float:
        line = 0.1 + (math.exp(x) - 1) * (claim(1.0) - 0.1) / (math.e - 1)
        return line + 1e-4 if 0.25 < x < 0.4 else line - 1e-6

    looked, _ = settled(claim, divergence, [-1.0, 0.0, 1.0])
    assert any(divergence(x) > claim(x) for x in looked)


@pytest.mark.parametrize("allowance", [0, 3, 30])
def test_what_the_allowance_does_not_settle_is_reported(allowance: int) -> None:
    """Whatever is left over bounds every excess between the points."""

    def divergence(x: float) -> float:
        return gaussian_like(x) * (1 + 1e-12)

    _, left = settled(gaussian_like, divergence, [-1.0, 0.0, 1.0], allowance)
    grid = np.linspace(-1, 1, 1001)
    assert left >= max(divergence(x) - gaussian_like(x) for x in grid) > 0


def test_more_midpoints_leave_less_open() -> None:
    left = [
        settled(gaussian_like, gaussian_like, [-1.0, 1.0], allowance)[1]
        for allowance in (0, 10, 100)
    ]
    assert left[0] > left[1] > left[2] > 0
