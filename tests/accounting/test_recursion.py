"""One step on a grid: never below the supremum it stands for, whatever the floats do."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret.accounting import recursion
from topsecret.accounting.pairs import (
    discrete_gaussian_weights,
    gaussian_weights,
    response_weights,
)
from topsecret.exact.rounding import ball, precision


def chord(values, spacing, x):
    """The chord bound at x as a ball: the definition, with no thought for speed."""
    if x < 0:
        return 1 - ball(x).exp() * (1 - chord(values, spacing, -x))
    last = len(values) - 1
    place = x / spacing
    cell = int(place)
    if cell >= last:
        return arb(float(values[-1]))
    h = ball(spacing)
    theta = (ball(place - cell) * h).expm1() / h.expm1()
    upper, lower = arb(float(values[cell])), arb(float(values[cell + 1]))
    return upper - theta * (upper - lower)


def stepped(values, spacing, cells):
    constants = recursion.step_constants(spacing, cells)
    mirror = recursion.mirror_factors(spacing, cells)
    return recursion.pick_step(np.array(values), constants, mirror)


falling_values = st.lists(
    st.floats(min_value=0, max_value=1, allow_subnormal=True), min_size=2, max_size=12
).map(lambda values: sorted(values, reverse=True))

steep_values = st.tuples(
    st.floats(min_value=0.01, max_value=1), st.floats(min_value=0.001, max_value=40)
).map(lambda pair: [pair[0] * float(np.exp(-pair[1] * i)) for i in range(10)])


@settings(max_examples=60)
@given(
    values=st.one_of(falling_values, steep_values),
    spacing=st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(1, 2)),
    cells=st.integers(min_value=1, max_value=6),
    place=st.integers(min_value=0, max_value=11),
    shift=st.fractions(min_value=0, max_value=1, max_denominator=997),
)
def test_a_pick_is_never_below_any_two_point_step(values, spacing, cells, place, shift):
    """Also for sequences that are not convex: the bound is on the chords, not on the curve."""
    after = stepped(values, spacing, cells)
    j = place % len(values)
    epsilon = cells * spacing
    t = shift * epsilon
    with precision(200):
        share = (ball(t - epsilon)).expm1() / (-ball(epsilon)).expm1()
        x = j * spacing
        near = chord(values, spacing, x - t)
        far = chord(values, spacing, x - t + epsilon)
        true = share * near + (1 - share) * far
        assert true.lower() <= arb(float(after[j]))


def test_a_pick_is_tight_on_its_own_chords():
    """The closed form finds the supremum over t, not merely a bound of it."""
    spacing, cells = Fraction(1, 50), 4
    values = [float(np.exp(-30 * (i / 50) ** 2)) * 0.3 for i in range(30)]
    after = stepped(values, spacing, cells)
    epsilon = cells * spacing
    with precision(128):
        best = 0.0
        for i in range(2001):
            t = epsilon * Fraction(i, 2000)
            share = (ball(t - epsilon)).expm1() / (-ball(epsilon)).expm1()
            x = 10 * spacing
            value = share * chord(values, spacing, x - t) + (1 - share) * chord(
                values, spacing, x - t + epsilon
            )
            best = max(best, float(value.mid()))
    assert best <= after[10] <= best * (1 + 1e-6)


def test_leaving_out_the_interior_of_cells_would_be_caught():
    """A wrong variant that looks at grid points alone is below the supremum somewhere."""
    spacing, cells = Fraction(1, 10), 1
    values = [0.4, 0.1, 0.02, 0.004, 0.0]
    epsilon = float(cells * spacing)
    wrong = max(
        share * values[2 - t] + (1 - share) * values[2 - t + cells]
        for t in range(cells + 1)
        for share in [np.expm1(t * 0.1 - epsilon) / np.expm1(-epsilon)]
    )
    assert stepped(values, spacing, cells)[2] > wrong


@settings(max_examples=40)
@given(
    values=falling_values,
    spacing=st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(1, 2)),
    target=st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(1, 2)),
    index=st.integers(min_value=0, max_value=9),
)
def test_another_grid_never_lowers_the_bound(values, spacing, target, index):
    moved = recursion.resampled(np.array(values), spacing, target, 10)
    with precision(200):
        assert chord(values, spacing, index * target).lower() <= arb(float(moved[index]))


@pytest.mark.parametrize("count", [1, 3])
def test_weights_of_randomized_response_are_a_law(count):
    weights = response_weights(Fraction(3, 10), count, Fraction(1, 7), 20)
    assert 1 <= weights.values.sum() + weights.rest <= 1 + 1e-12


def test_a_constant_that_lost_its_precision_is_refused():
    with pytest.raises(ArithmeticError, match="lost its precision"):
        recursion._close(arb(1, 1e-12))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_weights_of_discrete_gaussians_are_a_law(count):
    weights = discrete_gaussian_weights(Fraction(9, 4), count, Fraction(1, 20), 900)
    assert 1 <= weights.values.sum() + weights.rest <= 1 + 1e-12
    places = np.arange(-900, 901)
    assert abs((weights.values * np.exp(-places / 20)).sum() - 1) < 1e-9


def test_weights_of_a_gaussian_are_a_law_and_balance():
    """Masses sum to one, and e^-loss has mean one, up to what the chords add."""
    h = Fraction(1, 100)
    weights = gaussian_weights(Fraction(1, 4), h, 600)
    assert 1 <= weights.values.sum() + weights.rest <= 1 + 1e-12
    places = np.arange(-600, 601)
    assert abs((weights.values * np.exp(-places * float(h))).sum() - 1) < 1e-9
