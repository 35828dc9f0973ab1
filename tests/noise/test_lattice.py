"""Integer noise: the samplers draw the stated masses, and the masses are right."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret.exact.rounding import precision
from topsecret.noise.bits import SystemBits
from topsecret.noise.lattice import DiscreteGaussian, DiscreteLaplace, bernoulli_exp

NOISES = [
    DiscreteLaplace(Fraction(2, 3)),
    DiscreteLaplace(Fraction(3, 7)),
    DiscreteLaplace(Fraction(5)),
    DiscreteGaussian(Fraction(2, 3)),
    DiscreteGaussian(Fraction(3, 7)),
    DiscreteGaussian(Fraction(25, 2)),
]


def agrees(noise, observed, samples):
    """Each value within 6.5 deviations of its binomial, or 12 at the least: alarm below 10⁻⁸."""
    values = range(min(observed), max(observed) + 1)
    chances = {value: float(noise.mass(value)) for value in values}
    return all(
        abs(observed[value] - samples * p) < 6.5 * math.sqrt(samples * p * (1 - p)) + 12
        for value, p in chances.items()
    )


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_the_sampler_draws_the_masses_and_not_others(noise):
    bits = SystemBits()
    seen = Counter(noise.draw(bits) for _ in range(12_000))
    assert agrees(noise, seen, 12_000)
    swapped = Fraction(1) / (noise.scale if isinstance(noise, DiscreteLaplace) else noise.variance)
    assert not agrees(type(noise)(swapped), seen, 12_000)
    assert not agrees(type(noise)(swapped**-1 * Fraction(8, 5)), seen, 12_000)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_the_masses_are_a_law(noise):
    with precision(128):
        total = sum((noise.mass(x) for x in range(-40, 41)), arb(0))
        both_tails = 2 * noise.at_least(41)
        assert (total + both_tails).overlaps(arb(1))
        for x in (-3, 0, 1, 2):
            assert noise.at_least(x).overlaps(noise.mass(x) + noise.at_least(x + 1))
            assert noise.mass(x).overlaps(noise.mass(-x))
        assert (noise.at_least(1) + noise.at_least(0)).overlaps(arb(1))


def test_the_shapes_are_exponential_and_gaussian():
    with precision(128):
        laplace = DiscreteLaplace(Fraction(2, 3))
        assert (laplace.mass(2) / laplace.mass(3)).overlaps((arb(3) / 2).exp())
        gaussian = DiscreteGaussian(Fraction(2, 3))
        assert (gaussian.mass(2) / gaussian.mass(3)).overlaps((arb(15) / 4).exp())


@pytest.mark.parametrize("variance", [Fraction(1, 50), Fraction(1, 6), Fraction(1), Fraction(400)])
def test_both_series_of_the_normaliser_agree_with_the_plain_sum(variance):
    noise = DiscreteGaussian(variance)
    with precision(200):
        plain = sum(
            (2 * (-arb(x * x) / 2 / arb(variance.numerator) * variance.denominator).exp()
             for x in range(1, 500)),
            arb(1),
        )  # fmt: skip
        assert (1 / noise.mass(0)).overlaps(plain + arb(0, 1e-60))
        assert noise.mass(0).rel_accuracy_bits() > 180


@pytest.mark.parametrize("gamma", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(7, 3)])
def test_bernoulli_of_an_exponential(gamma):
    """20 000 draws within 6.5 deviations: alarm below 10⁻⁹."""
    bits = SystemBits()
    heads = sum(bernoulli_exp(gamma, bits) for _ in range(20_000))
    p = math.exp(-gamma)
    assert abs(heads - 20_000 * p) <= 6.5 * math.sqrt(20_000 * p * (1 - p))


@settings(max_examples=60)
@given(
    st.fractions(Fraction(1, 20), 50, max_denominator=40),
    st.sampled_from([Fraction(1, 2), Fraction(19, 20), Fraction(999, 1000)]),
    st.sampled_from([DiscreteLaplace, DiscreteGaussian]),
)
def test_the_half_width_covers_and_hardly_more(parameter, confidence, kind):
    noise = kind(parameter)
    width = noise.half_width(confidence)
    assert 1 - 2 * float(noise.at_least(width + 1)) >= float(confidence) - 1e-12
    if width:
        assert 1 - 2 * float(noise.at_least(width)) < float(confidence) + 1e-12


def test_the_half_width_of_a_wide_gaussian_is_that_of_the_normal():
    assert DiscreteGaussian(Fraction(10**10)).half_width(Fraction(19, 20)) == 195_997
