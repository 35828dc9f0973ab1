"""The optimal recursion: bracketed from below, tight to the reference values, fast enough."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from topsecret.accounting import (
    gaussian,
    gaussian_profile,
    identity_profile,
    maximum,
    picks,
    picks_in_order,
    pure,
)
from topsecret.accounting.optimal import Steps, optimal_epsilon

REFERENCE = [(10, 0.6342, 0.629), (50, 1.5391, 1.534), (100, 2.2509, 2.246)]


def non_adaptive_epsilon(n, epsilon, delta):
    """The smallest epsilon that holds when every pick uses the same t: a lower bound."""
    i = np.arange(n + 1)

    def largest(x):
        best = 0.0
        for t in np.linspace(0, epsilon, 201)[1:-1]:
            share = math.expm1(t - epsilon) / math.expm1(-epsilon)
            loss = n * t - (n - i) * epsilon
            mass = stats.binom.pmf(i, n, share)
            best = max(best, float((mass * np.clip(-np.expm1(x - loss), 0, None)).sum()))
        return best

    low, high = 0.0, n * epsilon
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if largest(middle) > delta else (low, middle)
    return low


@pytest.mark.parametrize(("n", "optimum", "below"), REFERENCE)
def test_reference_values(n, optimum, below):
    """Within 0.2% above the true optimum, which the non-adaptive case bounds below."""
    claimed = picks(n, 0.1).epsilon(1e-6)
    assert optimum * (1 - 1e-4) <= claimed <= optimum * 1.002
    lower = non_adaptive_epsilon(n, 0.1, 1e-6)
    assert abs(lower - below) < 1e-3
    assert lower < claimed


def test_three_thousand_picks_beat_zcdp():
    explained = picks(3000, 0.15).explain(1e-6)
    by_name = {bound.name: bound.epsilon for bound in explained.bounds}
    steps = Steps(((3000, Fraction(0.15)),), (), Fraction(0))
    assert optimal_epsilon(steps, Fraction(1, 10**6)) < 0.96 * by_name["zCDP"]
    assert explained.winner.name == "absorbed"
    assert by_name["absorbed"] < 0.96 * by_name["zCDP"]


def test_a_second_question_is_answered_from_the_cache():
    assert picks(100, 0.0999).explain(1e-6) is picks(100, 0.0999).explain(1e-6)


def test_a_finer_grid_only_lowers_the_bound():
    steps = Steps(((20, Fraction(1, 10)),), (), Fraction(0))
    rough, fine = (optimal_epsilon(steps, Fraction(1, 10**6), tol) for tol in (5e-3, 1e-4))
    assert fine < rough < 1.01 * fine


def two_point_supremum(epsilons, x, points=60):
    """The recursion itself over a grid of t, from its definition: a lower bound."""
    if not epsilons:
        return max(0.0, -math.expm1(x))
    epsilon, later = epsilons[0], epsilons[1:]
    best = 0.0
    for t in np.linspace(0, epsilon, points):
        share = math.expm1(t - epsilon) / math.expm1(-epsilon)
        near = two_point_supremum(later, x - t, points)
        far = two_point_supremum(later, x - t + epsilon, points)
        best = max(best, share * near + (1 - share) * far)
    return best


@settings(max_examples=25)
@given(
    epsilons=st.lists(st.floats(min_value=0.02, max_value=3), min_size=1, max_size=2),
    part=st.floats(min_value=0, max_value=0.99),
)
def test_heterogeneous_picks_dominate_the_definition(epsilons, part):
    x = part * sum(epsilons)
    assert two_point_supremum(epsilons, x) <= picks_in_order(epsilons).delta(x) + 1e-15


def test_three_heterogeneous_picks_are_dominated_and_tight():
    epsilons, x = [0.5, 0.2, 0.9], 0.7
    lower = two_point_supremum(epsilons, x, points=40)
    claimed = picks_in_order(epsilons).delta(x)
    assert lower <= claimed <= 1.01 * lower


def test_picks_of_many_sizes_cost_little_more_than_their_grid():
    """Sizes with no common divisor move between grids; the extra chords stay small."""
    shared = picks_in_order([0.05, 0.1] * 20).epsilon(1e-6)
    moved = picks_in_order([0.05, 0.1 * (1 + 2**-20)] * 20).epsilon(1e-6)
    assert abs(moved / shared - 1) < 2e-3


def plackett_luce(weights, k):
    law = {}
    for order in itertools.permutations(range(len(weights)), k):
        left, probability = sum(weights), 1.0
        for item in order:
            probability *= weights[item] / left
            left -= weights[item]
        law[order] = probability
    return law


@pytest.mark.parametrize(("k", "epsilon"), [(1, 0.7), (2, 0.7), (3, 0.4)])
def test_exact_enumeration_never_exceeds_the_claim(k, epsilon):
    """All histograms of 4 items with counts up to 2, all neighbours, both directions."""
    xs = [0.0, 0.1, 0.3, 0.6, 0.9, 1.2]
    claims = [picks(k, epsilon).delta(x) for x in xs]
    worst = [0.0] * len(xs)
    laws = {
        counts: plackett_luce([math.exp(epsilon * count) for count in counts], k)
        for counts in itertools.product(range(4), repeat=4)
    }
    for counts in itertools.product(range(3), repeat=4):
        for change in itertools.product(range(2), repeat=4):
            p, q = laws[counts], laws[tuple(a + b for a, b in zip(counts, change, strict=True))]
            for first, second in ((p, q), (q, p)):
                for i, x in enumerate(xs):
                    divergence = sum(max(0.0, first[o] - math.exp(x) * second[o]) for o in first)
                    worst[i] = max(worst[i], divergence)
    assert all(true <= claim + 1e-15 for true, claim in zip(worst, claims, strict=True))
    assert worst[0] > 0.5 * claims[0]  # the check has teeth


def test_a_gaussian_after_picks_is_below_one_before():
    """Moving a fixed pair to the front only raises the bound: any interleaving is covered."""
    spacing, mu = Fraction(1, 200), 0.3
    last = gaussian_profile(mu, spacing, 4).after_picks([0.1] * 20)
    first = identity_profile(spacing, 4).after_picks([0.1] * 20).after_gaussian(Fraction(mu) ** 2)
    assert last.epsilon(1e-6) <= first.epsilon(1e-6) <= 1.02 * last.epsilon(1e-6)


def test_gaussian_in_front_equals_numeric_integration():
    mu_squared, x = 0.25, 1.0
    profile = identity_profile(Fraction(1, 400), 8).after_picks([0.5] * 3)
    losses = np.linspace(-6, 6, 4001) * 0.5 + mu_squared / 2
    mass = stats.norm.pdf(losses, mu_squared / 2, 0.5) * (losses[1] - losses[0])
    inner = np.array([profile.delta(float(x - loss)) for loss in losses])
    mixed = profile.after_gaussian(Fraction(mu_squared))
    assert mixed.delta(1) == pytest.approx(float((mass * inner).sum()), rel=1e-4)


def test_gaussian_steps_alone_agree_with_the_closed_form_on_the_grid():
    profile = identity_profile(Fraction(1, 200), 6).after_gaussian(Fraction(1, 4))
    assert gaussian(Fraction(1, 4)).epsilon(1e-6) <= profile.epsilon(1e-6)
    assert profile.epsilon(1e-6) < 1.001 * gaussian(Fraction(1, 4)).epsilon(1e-6)


@pytest.mark.parametrize("mu_squared", [1, 100, 400])
def test_a_large_gaussian_keeps_its_tails(mu_squared):
    """Masses of far cells are small relative to one another, not differences of numbers near 1."""
    alone = gaussian(mu_squared).epsilon(1e-6)
    assert alone < (gaussian(mu_squared) + picks(1, 0.01)).epsilon(1e-6) < alone * 1.005


def test_pure_steps_on_the_grid_agree_with_the_closed_form():
    profile = identity_profile(Fraction(1, 300), 3).after_pure(0.2, 10)
    exact = (10 * pure(0.2)).epsilon(1e-6)
    assert exact <= profile.epsilon(1e-6) < 1.001 * exact


def test_maximum_is_above_each_and_one_grid_serves_all():
    one = identity_profile(Fraction(1, 100), 2).after_picks([0.5, 0.5])
    two = identity_profile(Fraction(1, 130), 3).after_picks([0.3] * 4)
    both = maximum([one, two])
    for x in (0, 0.11, 0.5, 1.0, 1.9):
        assert both.delta(x) >= max(one.delta(x), two.delta(x))


def test_profiles_mirror_at_zero():
    """The two directions of one divergence: delta(-x) = 1 - e^-x (1 - delta(x))."""
    profile = identity_profile(Fraction(1, 100), 2).after_pick(1)
    assert profile.delta(-0.5) == pytest.approx(1 - math.exp(-0.5) * (1 - profile.delta(0.5)))


def test_beyond_the_reach_nothing_better_than_the_last_value_is_claimed():
    profile = gaussian_profile(1, spacing=Fraction(1, 100), reach=1)
    assert profile.delta(50) == profile.delta(1)
    assert profile.epsilon(1e-9) == math.inf
