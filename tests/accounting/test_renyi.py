"""Rényi curves: tight where the supremum can be scanned, safe at the edges of floats."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from topsecret.accounting.renyi import bounded_range, pure_dp, renyi_delta, renyi_epsilon
from topsecret.exact.rounding import ball, precision, up


def scanned(epsilon, alpha):
    """The largest divergence of the two-point steps of range epsilon, by a scan over t."""
    t = np.linspace(0, epsilon, 20001)
    share = np.expm1(t - epsilon) / math.expm1(-epsilon)
    order = alpha - 1
    moments = share * np.exp(order * t) + (1 - share) * np.exp(order * (t - epsilon))
    return float(np.log(moments).max() / order)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0, 6.0])
@pytest.mark.parametrize("alpha", [1.01, 1.5, 2.0, 8.0, 40.0])
def test_the_curve_of_a_pick_is_its_supremum(epsilon, alpha):
    with precision(192):
        claimed = up(bounded_range(Fraction(epsilon), ball(alpha)))
    assert claimed == pytest.approx(scanned(epsilon, alpha), rel=1e-5)
    assert claimed <= alpha * epsilon**2 / 8 * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1.0, 500.0])
@pytest.mark.parametrize("alpha", [1 + 1e-9, 1.5, 1e6])
def test_curves_stay_finite_and_positive(epsilon, alpha):
    with precision(192):
        for curve in (bounded_range, pure_dp):
            value = up(curve(Fraction(epsilon), ball(alpha)))
            assert 0 <= value <= epsilon * (1 + 1e-12)


def test_a_pick_never_costs_more_than_a_pure_step():
    with precision(192):
        for alpha in (1.1, 2, 10, 100):
            pick = bounded_range(Fraction(1), ball(Fraction(alpha)))
            assert pick < pure_dp(Fraction(1), ball(Fraction(alpha)))


def test_the_two_conversions_are_inverse():
    def curve(alpha: arb) -> arb:
        return alpha / 8

    epsilon = renyi_epsilon(curve, Fraction(1, 10**6))
    assert renyi_delta(curve, Fraction(epsilon)) == pytest.approx(1e-6, rel=1e-4)


def test_no_delta_no_epsilon():
    assert renyi_epsilon(lambda alpha: alpha, Fraction(0)) == math.inf
