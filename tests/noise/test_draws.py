"""A noisy value is drawn once: more bits refine it, and its law is the noise's."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from topsecret.exact.rounding import exact, root_up
from topsecret.noise.bits import Log, Noisy, Rational, ReplayableBits, SystemBits, is_less
from topsecret.noise.distributions import EXPONENTIAL, GAUSSIAN, GUMBEL, LAPLACE

NOISES = [GUMBEL, EXPONENTIAL, LAPLACE, GAUSSIAN]


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_more_bits_refine_the_same_value(noise):
    bits = ReplayableBits(b"refine")
    for _ in range(50):
        value = Noisy(Log(Fraction(3)), noise, Fraction(7, 3), bits)
        rough, fine, again = value.ball(16), value.ball(512), value.ball(16)
        assert rough.overlaps(fine)
        assert again.overlaps(fine)
        assert fine.rad() < 2.0**-400


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_the_law_is_the_tail(noise):
    """P[5 + 2·noise > 6] within 6.5 deviations in 4000 draws: alarm below 10⁻¹⁰ for each."""
    level = Rational(Fraction(6))
    values = [Noisy(Rational(Fraction(5)), noise, Fraction(2), SystemBits()) for _ in range(4000)]
    above = sum(is_less(level, value) for value in values)
    p = float(noise.tail(Rational(Fraction(1, 2)).ball(64)))
    assert abs(above - 4000 * p) < 6.5 * math.sqrt(4000 * p * (1 - p))


@pytest.mark.parametrize("value", [2, 0.3, 1e-300, 1e300, Fraction(1, 3), Fraction(10**40)])
def test_the_root_is_rounded_up_and_close(value):
    value = exact(value)
    root = root_up(value)
    assert root**2 >= value
    assert (root * (1 - Fraction(1, 2**60))) ** 2 < value


def test_roots_of_squares_are_exact():
    assert root_up(Fraction(49, 64)) == Fraction(7, 8)
    assert root_up(Fraction(10**40)) == 10**20
