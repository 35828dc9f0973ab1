"""Losses: their algebra, their bounds, and agreement with an independent accountant."""

import math
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction

import dp_accounting
import pytest
from dp_accounting import pld
from dp_accounting import rdp as rdp_accounting
from dp_accounting.pld import privacy_loss_distribution
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret.accounting import (
    NO_LOSS,
    GaussianSelection,
    Loss,
    approximate,
    discrete_gaussian,
    failure,
    gaussian,
    picks,
    picks_in_order,
    pure,
    rdp,
    slack,
    zcdp,
)
from topsecret.accounting.renyi import pure_dp
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import ball, precision

prices = st.floats(min_value=0.001, max_value=2)
small = st.floats(min_value=0, max_value=1e-7)


@dataclass(frozen=True)
class Line:
    """A Rényi curve that is a line, as any step known only by such a curve would give."""

    rho: Fraction

    def __call__(self, alpha: arb) -> arb:
        return alpha * ball(self.rho)


kinds = st.one_of(
    st.builds(picks, st.integers(min_value=1, max_value=5), prices),
    st.builds(picks_in_order, st.lists(prices, min_size=1, max_size=3)),
    st.builds(pure, prices),
    st.builds(gaussian, prices),
    st.builds(zcdp, prices),
    st.builds(discrete_gaussian, prices, st.integers(min_value=0, max_value=4)),
    st.builds(lambda rho: rdp("line", Line(Fraction(rho))), prices),
    st.builds(approximate, prices, small),
    st.builds(failure, small),
    st.builds(slack, small),
)


@given(loss=kinds, n=st.integers(min_value=0, max_value=7))
def test_n_copies_are_n_separate_ones(loss, n):
    total = NO_LOSS
    for _ in range(n):
        total = total.then(loss)
    assert n * loss == total == loss * n
    assert hash(n * loss) == hash(total)


@given(a=kinds, b=kinds, c=kinds)
def test_addition_is_associative_and_nothing_is_neutral(a, b, c):
    assert (a + b) + c == a + (b + c)
    assert a + NO_LOSS == NO_LOSS + a == a


@settings(max_examples=25)
@given(
    loss=st.sampled_from(
        [picks(3, 0.5), pure(0.7), gaussian(0.2), zcdp(0.1), picks(2, 0.4) + gaussian(0.1)]
    ),
    n=st.integers(min_value=2, max_value=9),
)
def test_more_copies_cost_more(loss, n):
    assert (n * loss).epsilon(1e-6) > ((n - 1) * loss).epsilon(1e-6)
    assert (n * loss).delta(0.5) >= ((n - 1) * loss).delta(0.5)


def test_a_part_of_a_mixture_costs_less_than_the_whole():
    parts = [picks(5, 0.2), pure(0.3), gaussian(0.05), zcdp(0.02)]
    whole = sum(parts, NO_LOSS)
    assert all(part.epsilon(1e-6) < whole.epsilon(1e-6) for part in parts)


def test_the_order_of_picks_is_kept_and_of_the_rest_is_not():
    assert picks(1, 0.1).then(picks(1, 0.2)) != picks(1, 0.2).then(picks(1, 0.1))
    assert pure(0.1) + gaussian(1) + pure(0.2) == pure(0.2) + pure(0.1) + gaussian(1)


def test_failures_are_exact_and_come_out_of_delta():
    loss = 10 * (picks(2, 0.1) + failure(1e-8))
    assert loss.failures == 10 * Fraction(1e-8)
    assert loss.epsilon(0) == math.inf
    assert loss.epsilon(9e-8) == math.inf
    assert loss.epsilon(loss.failures) == pytest.approx(2.0)
    assert loss.epsilon(1e-6 + 1e-7) == pytest.approx((20 * picks(1, 0.1)).epsilon(1e-6), rel=1e-6)
    assert loss.delta(100) >= Fraction(loss.failures)


def test_slack_shifts_epsilon():
    loss, shifted = picks(10, 0.1), picks(10, 0.1) + slack(0.25)
    assert shifted.epsilon(1e-6) >= Fraction(loss.epsilon(1e-6)) + Fraction(1, 4)
    assert shifted.delta(0.75) == loss.delta(0.5)
    assert loss.delta(0) < shifted.delta(0.1) < 1  # slack beyond epsilon: still a true bound


def test_nothing_costs_nothing():
    assert NO_LOSS.epsilon(0) == 0
    assert NO_LOSS.delta(0) == 0
    assert NO_LOSS.rho() == 0
    assert picks(0, 1) == picks(3, 0) == pure(0) == gaussian(0) == NO_LOSS


def test_delta_never_exceeds_one():
    assert (3 * failure(0.9)).delta(1) == 1
    assert (picks(1, 1) + slack(50)).delta(0) <= 1


def test_epsilon_and_delta_are_inverse_up_to_the_grid():
    for loss in (picks(20, 0.1), gaussian(0.3), 5 * pure(0.4), picks(3, 0.2) + pure(0.1)):
        epsilon = loss.epsilon(1e-6)
        assert 0.98e-6 < loss.delta(epsilon) <= 1.02e-6


def test_rho_of_every_kind():
    assert picks(8, 1).rho() == 1
    assert gaussian(2).rho() == 1
    assert zcdp(0.5).rho() == discrete_gaussian(4, 4).rho() == 0.5
    assert 1 * math.tanh(0.5) <= pure(1).rho() < 0.4622
    assert rdp("line", Line(Fraction(1))).rho() is None
    assert (picks(8, 1) + slack(1) + failure(0.1)).rho() == 1


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 12.0])
def test_rho_of_a_pure_step_holds_at_every_order(epsilon):
    """tanh is tight: no order is above it, and orders near one reach it."""
    rho = Fraction(pure(epsilon).rho())
    largest = arb(0)
    with precision(192):
        for order in (1.0001, 1.01, 1.5, 2.0, 5.0, 50.0):
            divergence = pure_dp(Fraction(epsilon), ball(order))
            assert divergence <= ball(order) * ball(rho)
            largest = largest.max(divergence / ball(order))
    assert largest > 0.99 * ball(rho)


@pytest.mark.parametrize("mu_squared", [0.01, 0.25, 4.0])
def test_gaussian_agrees_with_dp_accounting(mu_squared):
    ours = gaussian(mu_squared)
    sigma = 1 / math.sqrt(mu_squared)
    theirs = dp_accounting.get_epsilon_gaussian(sigma, 1e-6)
    assert ours.epsilon(1e-6) == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "n"), [(0.1, 50), (1.0, 4), (0.5, 12)])
def test_pure_steps_agree_with_dp_accounting(epsilon, n):
    """Randomized response by privacy loss distributions, pessimistic: not below ours by much."""
    accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    event = dp_accounting.RandomizedResponseDpEvent(2 / (1 + math.exp(epsilon)), 2)
    for _ in range(n):  # version 0.6 drops the count of a repeated event of this kind
        accountant.compose(event)
    theirs = accountant.get_epsilon(1e-6)
    ours = (n * pure(epsilon)).epsilon(1e-6)
    assert ours <= theirs * (1 + 1e-9)
    assert ours == pytest.approx(theirs, rel=2e-3)


def test_a_mixture_of_pure_and_gaussian_steps_agrees_with_dp_accounting():
    """Under replace-one that accountant doubles a Gaussian's sensitivity: hence 2 / mu."""
    mu = 0.4
    accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    for _ in range(6):
        accountant.compose(dp_accounting.RandomizedResponseDpEvent(2 / (1 + math.exp(0.3)), 2))
    accountant.compose(dp_accounting.GaussianDpEvent(2 / mu))
    ours = (6 * pure(0.3) + gaussian(Fraction(mu) ** 2)).epsilon(1e-6)
    assert ours == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-3)


def test_a_pure_step_costs_at_least_a_laplace_step():
    accountant = pld.PLDAccountant()
    accountant.compose(dp_accounting.LaplaceDpEvent(1 / 0.3), 20)
    assert accountant.get_epsilon(1e-6) < (20 * pure(0.3)).epsilon(1e-6)


@pytest.mark.parametrize(("variance", "count"), [(100, 1), (50, 7), (100, 10)])
def test_discrete_gaussians_agree_with_dp_accounting(variance, count):
    law = privacy_loss_distribution.from_discrete_gaussian_mechanism(math.sqrt(variance))
    theirs = law.self_compose(count).get_epsilon_for_delta(1e-6)
    ours = discrete_gaussian(variance, count).epsilon(1e-6)
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert ours < zcdp(Fraction(count, 2 * variance)).epsilon(1e-6)


def test_a_discrete_gaussian_is_not_a_continuous_one():
    """At sigma = 1, epsilon = 5.3 its delta is 2.1 times as large (docs/proofs/accounting.md)."""
    ratio = discrete_gaussian(1).delta(5.3) / gaussian(1).delta(5.3)
    assert ratio == pytest.approx(2.12, abs=0.01)


def test_counts_after_a_selection_cost_less_than_by_their_rho():
    selection = picks(50, 0.1)
    by_lattice = selection + discrete_gaussian(2000, 50)
    by_rho = selection + zcdp(Fraction(50, 4000))
    assert by_lattice.rho() == by_rho.rho()
    assert by_lattice.epsilon(1e-6) < 0.95 * by_rho.epsilon(1e-6)


@pytest.mark.parametrize("rho", [0.001, 0.1, 3.0])
def test_renyi_conversion_agrees_with_dp_accounting(rho):
    orders = [1 + 10 ** (i / 200) for i in range(-400, 800)]
    theirs, _ = rdp_accounting.compute_epsilon(orders, [rho * order for order in orders], 1e-6)
    assert zcdp(rho).epsilon(1e-6) == pytest.approx(theirs, rel=1e-4)


def test_every_bound_holds_and_the_smallest_wins():
    explained = picks(50, 0.1).explain(1e-6)
    by_name = {bound.name: bound.epsilon for bound in explained.bounds}
    others = {"basic", "Durfee-Rogers", "KOV", "zCDP", "Rényi", "absorbed"}
    assert set(by_name) == {*others, "optimal"}
    assert by_name["optimal"] < by_name["Rényi"] < by_name["zCDP"] < by_name["Durfee-Rogers"]
    assert by_name["Durfee-Rogers"] == pytest.approx(2.108, abs=1e-3)
    assert by_name["zCDP"] == pytest.approx(1.66, abs=5e-3)
    assert explained.epsilon == by_name["optimal"]
    assert picks(50, 0.1).bound_used(1e-6) == "optimal"


def test_an_explanation_is_a_table_with_the_winner_marked():
    lines = str(picks(2, 1).explain(0)).splitlines()
    assert lines == [
        "delta = 0",
        "  bound  epsilon  source",
        "* basic        2  the sum of the epsilons",
    ]


def test_a_curve_leaves_only_the_renyi_route():
    loss = rdp("selection", GaussianSelection(39, Fraction(2500))) + picks(1, 0.1)
    assert [bound.name for bound in loss.explain(1e-6).bounds] == ["Rényi"]
    assert loss.epsilon(0) == math.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pure(-1), "epsilon=-1 must not be negative"),
        (lambda: failure(1.5), "delta=1.5 must be at most 1"),
        (lambda: picks(-1, 0.1), "n=-1 must be a whole number, 0 or more"),
        (lambda: picks(1.5, 0.1), "n=1.5 must be a whole number, 0 or more"),
        (lambda: discrete_gaussian(0), "sigma_squared=0 must be above 0"),
        (lambda: discrete_gaussian(1, -2), "count=-2 must be a whole number, 0 or more"),
        (lambda: gaussian(math.nan), "mu_squared=nan must be finite"),
        (lambda: -1 * pure(1), "copies=-1 of a loss must not be negative"),
        (lambda: pure(1).epsilon(-0.1), "delta=-0.1 must not be negative"),
    ],
)
def test_wrong_parameters_say_the_rule(make, message):
    with pytest.raises(InvalidParameter) as caught:
        make()
    assert str(caught.value) == message


@given(
    epsilon=st.floats(min_value=1e-6, max_value=20),
    n=st.integers(min_value=1, max_value=10**7),
    delta=st.floats(min_value=1e-12, max_value=0.5),
)
@settings(max_examples=15)
def test_any_size_has_a_finite_answer_between_zero_and_the_sum(epsilon, n, delta):
    loss = Loss(zcdp_rho=Fraction(n) * Fraction(epsilon) ** 2 / 8)
    assert 0 <= loss.epsilon(delta) < math.inf
    many = picks(n if n > 60_000 else min(n, 40), epsilon)
    assert 0 <= many.epsilon(delta) <= many.epsilon(0)


def test_importing_the_accountant_is_light():
    code = (
        "import sys, topsecret.accounting\n"
        "assert not {'scipy', 'dp_accounting', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_sum_charges_the_worst_order_of_unequal_picks():
    """Small picks before large ones cost more than the other way round."""
    small, large = picks(5, 0.25), picks(5, 0.5)
    rising, falling = small.then(large), large.then(small)
    assert rising.epsilon(1e-5) == pytest.approx(2.466, abs=1e-3)
    assert falling.epsilon(1e-5) == pytest.approx(2.434, abs=1e-3)
    for unknown in (small + large, large + small):
        assert not unknown.in_order
        assert unknown.epsilon(1e-5) >= rising.epsilon(1e-5)
        assert unknown.bound_used(1e-5) == "optimal"
    assert small + large == large + small
    assert picks_in_order([0.25] * 5 + [0.5] * 5) == rising
    # Gaussians that come last cannot absorb picks in an order that is not known.
    assert (small + large).then_gaussian(1) == small + large + gaussian(1)


def test_the_order_is_known_where_it_cannot_matter():
    assert (picks(3, 0.5) + picks(2, 0.5)).in_order
    assert (picks_in_order([0.5, 0.25]) + gaussian(1) + failure(1e-9)).in_order
    assert not (picks_in_order([0.5, 0.25]) + picks(1, 0.5)).in_order
    assert (3 * picks_in_order([0.5, 0.25])).in_order


def test_too_many_orders_leave_the_bounds_that_need_none():
    many = picks(200, 0.01) + picks(200, 0.02)
    assert many.bound_used(1e-6) != "optimal"
    for known in (picks(200, 0.01).then(picks(200, 0.02)), picks(200, 0.02).then(picks(200, 0.01))):
        assert many.epsilon(1e-6) >= known.epsilon(1e-6) * (1 - 1e-9)
