"""Calibration: the target is met without tolerance, and little of it is left."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret.accounting import (
    calibrate,
    calibrate_limited_domain,
    calibrate_picks,
    calibrate_zcdp,
    gaussian,
    limited_domain_loss,
    picks,
    zcdp,
)
from topsecret.accounting.calibration import _largest
from topsecret.errors import InvalidParameter


@pytest.mark.parametrize(("n", "largest"), [(10, 0.1533), (50, 0.0671), (100, 0.0473)])
def test_reference_values(n, largest):
    found = calibrate_picks(n, 1, 1e-6)
    assert found == pytest.approx(largest, rel=2e-3)
    assert picks(n, found).epsilon(1e-6) <= 1


@settings(max_examples=12)
@given(
    n=st.integers(min_value=1, max_value=30),
    epsilon=st.floats(min_value=0.05, max_value=8),
    delta=st.sampled_from([0.0, 1e-12, 1e-9, 1e-6, 1e-3, 0.1]),
)
def test_the_target_is_met_and_nearly_spent(n, epsilon, delta):
    price = calibrate_picks(n, epsilon, delta)
    assert picks(n, price).epsilon(delta) <= epsilon
    assert picks(n, price * 1.005).epsilon(delta) > epsilon


@settings(max_examples=12)
@given(
    epsilon=st.floats(min_value=0.01, max_value=20),
    delta=st.floats(min_value=1e-12, max_value=0.1),
)
def test_zcdp_meets_its_target(epsilon, delta):
    rho = calibrate_zcdp(epsilon, delta)
    assert zcdp(rho).epsilon(delta) <= epsilon
    assert rho == 0 or zcdp(rho * 1.001).epsilon(delta) > epsilon


def test_zcdp_needs_a_delta():
    assert calibrate_zcdp(1, 0) == 0


def test_without_delta_the_sum_is_spent():
    assert calibrate_picks(4, 1, 0) == 0.25
    assert 10 * Fraction(calibrate_picks(10, 1, 0)) <= 1


@pytest.mark.parametrize("k", [1, 2, 10, 50])
@pytest.mark.parametrize("max_items", [None, 1])
def test_the_split_of_delta_gives_the_lowest_threshold(k, max_items):
    """No other split is lower by more than 1%."""
    delta = Fraction(1e-6)
    price, share = calibrate_limited_domain(k, 20 * k, 1, delta, max_items=max_items)
    assert limited_domain_loss(k, price, share).epsilon(delta) <= 1
    affected = 20 * k if max_items is None else 1

    def height(price, share):
        return math.log(affected / share) / price

    for part in (0.1, 0.3, 0.5, 0.7, 0.9, 0.99):
        other = calibrate_picks(k, 1, delta * (1 - Fraction(part)))
        assert height(price, share) <= height(other, part * float(delta)) * 1.01


def test_strict_and_replace_reach_more_items():
    plain = calibrate_limited_domain(10, 200, 1, 1e-6, max_items=3)
    strict = calibrate_limited_domain(10, 200, 1, 1e-6, max_items=3, strict=True)
    replace = calibrate_limited_domain(10, 200, 1, 1e-6, max_items=3, adjacency="replace")
    unrestricted = calibrate_limited_domain(10, 200, 1, 1e-6)
    assert strict == unrestricted
    assert plain != replace != unrestricted


def test_any_family_of_losses_can_be_calibrated():
    mu_squared = calibrate(lambda value: gaussian(value) + picks(5, 0.05), 1, 1e-6)
    loss = gaussian(mu_squared) + picks(5, 0.05)
    assert 0.999 < loss.epsilon(1e-6) <= 1


def test_an_unreachable_target_gives_zero():
    assert calibrate(lambda value: gaussian(value) + picks(5, 1), 1e-3, 1e-9) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: calibrate_picks(0, 1, 0), "n=0 must be a whole number, 1 or more"),
        (lambda: calibrate_picks(1, 0, 0), "epsilon=0.0 must be above 0"),
        (lambda: calibrate_picks(1, 1, 1), "delta=1.0 must be at least 0 and below 1"),
        (lambda: calibrate_limited_domain(5, 4, 1, 1e-6), "k=5 must lie between 1 and k_bar=4"),
        (
            lambda: calibrate_limited_domain(1, 4, 1, 0),
            "delta=0 leaves no threshold; choose a delta above 0",
        ),
        (
            lambda: calibrate_limited_domain(1, 4, 1, 1e-6, max_items=0),
            "max_items=0 must be at least 1, or None",
        ),
        (
            lambda: calibrate_limited_domain(1, 4, 1, 1e-6, adjacency="swap"),
            "adjacency='swap' must be 'add-remove' or 'replace'",
        ),
    ],
)
def test_wrong_parameters_say_the_rule(make, message):
    with pytest.raises(InvalidParameter) as caught:
        make()
    assert str(caught.value) == message


def test_a_search_does_not_creep_where_most_of_the_cost_is_another_s():
    tries = []

    def spent(value: float) -> float:
        tries.append(value)
        return 0.97 + 300 * value

    found = _largest(spent, Fraction(1), 1e-3, 1e-3)
    assert 0.999 <= spent(found) <= 1
    assert len(tries) < 40
