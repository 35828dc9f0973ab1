"""erfc on a grid by Taylor series encloses what flint says, also where the series is cut short."""

from fractions import Fraction

import pytest
from flint import arb

from topsecret.accounting import erfc_grid
from topsecret.accounting.classical import gaussian_epsilon
from topsecret.accounting.erfc_grid import erfc_on_grid
from topsecret.accounting.profile import gaussian_delta
from topsecret.exact.rounding import ball, precision

GRIDS = [(-0.6, 0.014, 60), (0.0, 1e-9, 20), (3.1, 0.02, 40), (19.5, 0.005, 35), (0.2, 0.4, 9)]


def enclosed(start, step, size):
    found = erfc_on_grid(arb(start), arb(step), size)
    assert len(found) == size
    with precision(256):
        return all(
            value.contains((arb(start) + i * arb(step)).erfc()) for i, value in enumerate(found)
        )


@pytest.mark.parametrize(("start", "step", "size"), GRIDS)
def test_every_point_is_enclosed_and_sharp(start, step, size):
    with precision(96):
        assert enclosed(start, step, size)
        assert all(v.rel_accuracy_bits() > 70 for v in erfc_on_grid(arb(start), arb(step), size))


@pytest.mark.parametrize("terms", [1, 3, 8])
@pytest.mark.parametrize(("start", "step"), [(-0.6, 0.03), (2.0, 0.06), (6.0, 0.01)])
def test_the_remainder_covers_a_series_that_is_cut_short(monkeypatch, start, step, terms):
    """Left out it would not: the bound is not idle."""
    monkeypatch.setattr(erfc_grid, "_terms", lambda *_: terms)
    with precision(96):
        assert enclosed(start, step, 40)
        monkeypatch.setattr(erfc_grid, "_rest", lambda *_: arb(0))
        assert not enclosed(start, step, 40)


@pytest.mark.parametrize("mu_squared", [Fraction(1, 10**9), Fraction(1, 18), Fraction(40)])
@pytest.mark.parametrize("delta", [Fraction(1, 3), Fraction(1, 10**6), Fraction(1, 10**150)])
def test_the_epsilon_of_a_gaussian_is_the_smallest_but_for_rounding(mu_squared, delta):
    found = gaussian_epsilon(mu_squared, delta)
    with precision(256):
        assert gaussian_delta(mu_squared, Fraction(found)) <= ball(delta)
        if found > 0:
            assert gaussian_delta(mu_squared, Fraction(found * (1 - 2**-48))) > ball(delta)
