"""The exact laws of sorting agree with quadrature and with what is known in closed form."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret.errors import InvalidParameter, TooLarge
from topsecret.exact.rounding import ball, precision
from topsecret.mechanisms.order_laws import exponential, laplace, list_law, set_law
from topsecret.mechanisms.piecewise import (
    at,
    constant,
    exponential_density,
    guard_bits,
    laplace_cdf,
    laplace_density,
)
from topsecret.mechanisms.selection import NOTHING
from topsecret.noise.bits import Log

SCORES = {"a": Fraction(3, 2), "b": Fraction(1), "c": Fraction(1), "d": Fraction(0)}
GRID = np.linspace(-40, 42, 820_001)


def by_quadrature(kind, scales, k):
    """P[ordered list of k] by nested trapezoids on a fine grid: a wholly different computation."""
    step = GRID[1] - GRID[0]
    densities, tails = {}, {}
    for item, score in SCORES.items():
        x = (GRID - float(score)) / scales[item]
        if kind is laplace:
            densities[item] = np.exp(-np.abs(x)) / 2 / scales[item]
            tails[item] = np.where(
                x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2
            )
        else:
            positive = np.exp(-np.maximum(x, 0))
            at_start = np.abs(x) < step / scales[item] / 4
            weight = np.where(at_start, 0.5, (x > 0) * 1.0)
            densities[item] = weight * positive / scales[item]
            tails[item] = np.where(x > 0, 1 - positive, 0.0)
    law = {}
    for order in permutations(SCORES, k):
        inner = np.prod([tails[item] for item in SCORES if item not in order], axis=0)
        for item in reversed(order):
            product = densities[item] * inner
            inner = np.concatenate([[0], np.cumsum((product[1:] + product[:-1]) / 2) * step])
        law[order] = float(inner[-1])
    return law


@pytest.mark.parametrize("kind", [exponential, laplace])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_lists_agree_with_quadrature(kind, k):
    runners = {item: kind(at(score)) for item, score in SCORES.items()}
    expected = by_quadrature(kind, dict.fromkeys(SCORES, 1.0), k)
    with precision(256):
        law = list_law(runners, k)
    assert law.keys() == expected.keys()
    for outcome, chance in law.items():
        assert float(chance) == pytest.approx(expected[outcome], abs=3e-4)


def test_two_scales_agree_with_quadrature():
    scales = {"a": Fraction(1), "b": Fraction(2, 3), "c": Fraction(1), "d": Fraction(2, 3)}
    runners = {item: laplace(at(score), scales[item]) for item, score in SCORES.items()}
    expected = by_quadrature(laplace, {item: float(scale) for item, scale in scales.items()}, 2)
    with precision(256):
        law = list_law(runners, 2)
    for outcome, chance in law.items():
        assert float(chance) == pytest.approx(expected[outcome], abs=3e-4)


@pytest.mark.parametrize("kind", [exponential, laplace])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_sets_are_sums_of_lists(kind, k):
    with precision(256):
        runners = {item: kind(at(score)) for item, score in SCORES.items()}
        sums = {}
        for outcome, chance in list_law(runners, k).items():
            key = tuple(sorted(outcome))
            sums[key] = sums.get(key, arb(0)) + chance
        law = set_law(runners, k)
        assert law.keys() == sums.keys()
        assert all(law[key].overlaps(sums[key]) for key in law)
        assert all(law[key].rel_accuracy_bits() > 180 for key in law)


def test_nothing_ends_the_list_at_an_irrational_place():
    """Two runners, one at ln 5: P[a before ⊥] in closed form, and the law adds up to one."""
    runners = {
        "a": exponential(at(1)),
        "b": exponential(at(0)),
        NOTHING: exponential(Log(Fraction(5))),
    }
    with precision(256):
        law = list_law(runners, 2)
        assert sum(law.values(), arb(0)).contains(1)
        assert set(law) == {
            (NOTHING,),
            ("a", NOTHING),
            ("b", NOTHING),
            ("a", "b"),
            ("b", "a"),
        }
        alone = list_law({"a": exponential(at(1)), NOTHING: exponential(Log(Fraction(5)))}, 1)
        # a starts at 1 < ln 5: it passes ln 5 with probability e/5, and then wins half the time.
        assert alone["a",].overlaps(arb(1).exp() / 10)


@settings(max_examples=40)
@given(
    st.lists(st.fractions(0, 6, max_denominator=7), min_size=1, max_size=4),
    st.integers(1, 5),
    st.sampled_from([exponential, laplace]),
)
def test_laws_add_up_to_one_sharply(scores, k, kind):
    places = [at(score) for score in scores]
    with precision(64 + guard_bits(places, len(places))):
        law = list_law({i: kind(place) for i, place in enumerate(places)}, k)
        total = sum(law.values(), arb(0))
        assert total.contains(1)
        assert total.rel_accuracy_bits() > 64
        assert all(chance > 0 for chance in law.values())


def test_the_integral_of_a_density_is_the_distribution_function():
    with precision(128):
        for centre in (at(2), Log(Fraction(7, 3), plus=Fraction(-1, 2))):
            integral = laplace_density(centre, Fraction(2, 3)).integral()
            function = laplace_cdf(centre, Fraction(2, 3))
            for x in (Fraction(-1), Fraction(1, 3), Fraction(2), Fraction(9, 2)):
                assert integral(x).overlaps(function(x))
                assert function.derivative()(x).overlaps(laplace_density(centre, Fraction(2, 3))(x))
            assert integral.limit().overlaps(arb(1))


def test_repeated_integration_makes_and_removes_powers():
    """∫₀^x y·e^(−y)·… : the n-fold convolution value P[Gamma(3) ≤ 2] by three integrals."""
    with precision(128):
        start = exponential_density(at(0))
        inner = start * (start * start.integral()).integral()  # order statistics of three
        assert inner.integral().limit().overlaps(arb(1) / 6)
        assert (start - start).integral().limit().overlaps(arb(0))
        ramp = (constant(1) - exponential_density(at(0)).integral()) * exponential_density(at(0))
        assert ramp.integral().limit().overlaps(ball(Fraction(1, 2)))


def test_a_diverging_integral_is_an_error():
    with pytest.raises(InvalidParameter, match="must converge"):
        constant(1).integral()
    with pytest.raises(InvalidParameter, match="must be finite"):
        (
            laplace_cdf(at(0)) * laplace_cdf(at(0)).derivative() + laplace_cdf(at(0))
        ).integral().limit()


def test_a_large_case_is_refused_before_it_starts():
    with pytest.raises(TooLarge, match="the law of the 20 largest of 40 has more than 20000"):
        list_law({i: laplace(at(i)) for i in range(40)}, 20)
    with pytest.raises(TooLarge, match="smaller histogram"):
        set_law({i: laplace(at(i)) for i in range(40)}, 20)
