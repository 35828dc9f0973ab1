"""Absorption: the lemma in balls, whole sequences against the recursion, and what is not true."""

import math
from fractions import Fraction
from itertools import permutations, product

import pytest
from flint import arb

from topsecret.accounting import (
    absorbed,
    absorbed_after,
    calibrate,
    calibrate_absorbed,
    delta_after_pick,
    failure,
    gaussian,
    gaussian_profile,
    picks,
    picks_in_order,
    slack,
)
from topsecret.accounting.pairs import normal_below
from topsecret.accounting.profile import gaussian_delta
from topsecret.accounting.tested import Branch, TestedSteps
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import ball, precision

PICKS = [Fraction(1, 100), Fraction(1, 4), Fraction(7, 10), Fraction(1)]
RATIOS = [Fraction(1, 2), Fraction(2, 3), Fraction(1), Fraction(3), Fraction(20)]
"""mu over epsilon; the lemma holds from 1/2 on."""


def two_point(epsilon, t, mu_squared, x):
    """One two-point step in front of a Gaussian."""
    share = (1 - (ball(t) - ball(epsilon)).exp()) / (1 - (-ball(epsilon)).exp())
    near, far = gaussian_delta(mu_squared, x - t), gaussian_delta(mu_squared, x - t + epsilon)
    return share * near + (1 - share) * far


def grid():
    for epsilon, ratio in product(PICKS, RATIOS):
        mu = epsilon * ratio
        for i in range(9):
            for j in range(-6, 13):
                # from the middle into both tails, in units of the losses' deviation
                yield epsilon, mu, epsilon * i / 8, j * (mu + epsilon / 2) * Fraction(3, 4)


def violations(larger):
    """The places of the grid where a pick before a Gaussian costs more than the larger Gaussian."""
    with precision(600):
        return [
            (epsilon, mu, t, x)
            for epsilon, mu, t, x in grid()
            if not two_point(epsilon, t, mu**2, x) <= gaussian_delta(larger(epsilon, mu), x)
        ]


def test_the_lemma_holds_in_balls_on_a_dense_grid():
    assert violations(lambda epsilon, mu: absorbed(((1, epsilon),), mu**2)) == []


def test_added_variances_do_not_dominate():
    assert violations(lambda epsilon, mu: mu**2 + epsilon**2 / 4)


def test_below_half_of_epsilon_the_formula_alone_is_not_used():
    """mu = 0 would be a division by zero; every smaller mu is raised to epsilon / 2 first."""
    one = ((1, Fraction(1, 4)),)
    half = absorbed(one, Fraction(1, 64))
    assert absorbed(one, 0) == half
    assert absorbed(one, Fraction(1, 10**9)) == half


def test_one_pick_alone_is_not_dominated_by_half_its_epsilon():
    """T F⁰(0) = tanh(ε/4) is above G_{ε/2}(0): the imaginary Gaussian must be charged as well."""
    with precision(200):
        for epsilon in PICKS:
            one_pick = (ball(epsilon) / 4).tanh()
            assert one_pick > gaussian_delta(epsilon**2 / 4, Fraction(0))
            assert one_pick < gaussian_delta(absorbed(((1, epsilon),)), Fraction(0))


def gaussian_before_pick(epsilon, mu, x):
    """From below: C_mu T_epsilon F⁰ at x, the loss of the Gaussian rounded down to a grid."""

    def pick(y):  # T_epsilon F⁰ in closed form, from the best t = (y + epsilon) / 2
        if y >= epsilon:
            return arb(0)
        if y < 0:
            return 1 - ball(y).exp() * (1 - pick(-y))
        return (1 - (ball(y - epsilon) / 2).exp()) ** 2 / (1 - (-ball(epsilon)).exp())

    total, step, half = arb(0), mu / 100, mu * mu / 2
    for i in range(-900, 900):
        mass = normal_below(ball((i + 1) * step / mu)) - normal_below(ball(i * step / mu))
        total += mass * pick(x - (half + i * step))
    return total


def test_a_gaussian_before_the_pick_does_not_absorb_it():
    """A tenth more delta than the larger Gaussian has: the order matters."""
    epsilon, mu, x = Fraction(1, 10), Fraction(3, 20), Fraction(1, 2)
    with precision(120):
        first = gaussian_before_pick(epsilon, mu, x)
        larger = gaussian_delta(absorbed(((1, epsilon),), mu**2), x)
        assert delta_after_pick(epsilon, mu**2, x) <= larger
        assert first > larger * arb("1.08")


def test_a_loss_does_not_absorb_picks_by_gaussians_that_may_have_come_first():
    apart = (picks(5, 0.2) + gaussian(0.25)).explain(1e-6)
    [closed] = [bound for bound in apart.bounds if bound.name == "absorbed"]
    imaginary = absorbed(((5, Fraction(0.2)),)) + Fraction(1, 4)
    assert closed.epsilon == gaussian(imaginary).epsilon(1e-6)
    assert closed.epsilon > gaussian(absorbed(((5, Fraction(0.2)),), 0.25)).epsilon(1e-6)


SEQUENCES = [
    (((5, Fraction(1, 5)),), Fraction(1, 10)),
    (((20, Fraction(1, 20)), (10, Fraction(1, 10))), Fraction(1, 8)),
    (((3, Fraction(1)),), Fraction(3, 4)),
    (((40, Fraction(1, 16)),), Fraction(1, 20)),
]


@pytest.mark.parametrize(("runs", "mu"), SEQUENCES)
def test_whole_sequences_are_above_the_recursion(runs, mu):
    """The recursion's chords lie above the truth, and absorption above the chords."""
    closed = absorbed(runs, mu**2)
    profile = gaussian_profile(mu, runs[0][1] / 40, 6)
    for n, epsilon in reversed(runs):
        profile = profile.after_picks([epsilon] * n)
    with precision(160):
        for j in range(-8, 33):
            x = Fraction(j, 8) * Fraction(math.sqrt(closed))
            assert profile.delta(x) <= gaussian_delta(closed, x) * (1 + arb(2) ** -30)


def test_the_smaller_bound_wins_and_is_named():
    many, few = picks(2000, 0.005), picks(5, 0.2)
    assert many.bound_used(1e-6) == "absorbed"
    assert few.bound_used(1e-6) == "optimal"
    names = [bound.name for bound in many.explain(1e-6).bounds]
    assert "optimal" not in names  # a fifth of a percent at most, for seconds
    whole = picks(2000, 0.005) + slack(0.01) + failure(1e-7)
    mu_squared = absorbed(((2000, Fraction(0.005)),))
    assert whole.epsilon(1e-6) == pytest.approx(gaussian(mu_squared).epsilon(9e-7) + 0.01)
    assert whole.keeps_to(whole.epsilon(1e-6), 1e-6)
    assert not whole.keeps_to(whole.epsilon(1e-6) * 0.999, 1e-6)


def test_public_branches_cost_the_largest():
    branches = (Branch(((5, Fraction(1, 5)),)), Branch(((10, Fraction(1, 5)),)))
    steps = TestedSteps(Fraction(1, 10), branches, Fraction(1, 10))
    inner = absorbed(((10, Fraction(1, 5)),), Fraction(1, 10))
    assert steps.absorbed() == absorbed(((1, Fraction(1, 10)),), inner)
    assert TestedSteps(Fraction(2), branches, Fraction(1, 10)).absorbed() is None


def test_the_choice_has_an_exact_supremum():
    """Chords from above, and nearer than absorption."""
    pick, mu_squared, x = Fraction(1, 7), Fraction(1, 25), Fraction(1)
    sharp = delta_after_pick(pick, mu_squared, x)
    with precision(160):
        exact = max(float(two_point(pick, pick * i / 500, mu_squared, x).mid()) for i in range(501))
        assert exact <= sharp <= exact * 1.001
        assert sharp < gaussian_delta(absorbed(((1, pick),), mu_squared), x)


# Lists that end early: four items, k = 5, so that the list always ends before its fifth item.

FEWER, MORE = (100, 100, 100, 103), (101, 101, 101, 103)


def list_law(counts, threshold, price):
    """Picks without replacement until NOTHING (index 4) comes."""
    weights = [math.exp(price * (count - 100)) for count in (*counts, threshold)]
    law = {}
    for length in range(5):
        for items in permutations(range(4), length):
            left, chance = sum(weights), 1.0
            for symbol in (*items, 4):
                chance *= weights[symbol] / left
                left -= weights[symbol]
            law[items] = chance
    return law


def joint_delta(price, given, x):
    """The list and Gaussian counts of the items named, which the person moves: exact sums.

    ``given[j]`` is the counts' mu after j symbols. The threshold is the worst of several.
    """

    def one_way(p, q):
        total = 0.0
        for items, chance in p.items():
            at = Fraction(x - math.log(chance / q[items]))
            mu = given[len(items) + 1] if items else Fraction(0)
            total += chance * float(gaussian_delta(mu * mu, at).mid())
        return total

    with precision(96):
        worst = 0.0
        for threshold in (97, 98, 100):
            p, q = list_law(FEWER, threshold, price), list_law(MORE, threshold, price)
            worst = max(worst, one_way(p, q), one_way(q, p))
        return worst


def test_an_early_end_keeps_to_the_closed_form():
    mu_squared = Fraction(calibrate(gaussian, 1, 1e-6))
    after = Fraction(math.sqrt(mu_squared / 5))
    price = calibrate_absorbed(lambda e: ((5, e),), after**2, mu_squared)
    given = absorbed_after(5, price, after)
    assert given[0] ** 2 <= mu_squared
    assert given[5] == after
    assert joint_delta(float(price), given, 1.0) <= 1e-6


def test_an_early_end_with_a_sharpened_price_is_rejected():
    """The recursion's price fits five picks and the last mu, not what an early end hands on."""
    mu_squared = Fraction(calibrate(gaussian, 1, 1e-6))
    after = Fraction(math.sqrt(mu_squared / 5))
    price = Fraction(0.2043)
    profile = gaussian_profile(after, price / 40, 3).after_picks([price] * 5)
    assert profile.delta(1) <= 1e-6  # so the sharpened price claims
    given = absorbed_after(5, price, after)
    assert joint_delta(float(price), given, 1.0) > 1.4e-6


def test_calibration_spends_the_total_and_not_more():
    for n, after, total in ((1, 0.01, 0.05), (100, 0.006, 0.04), (5000, 0.006, 0.04)):
        price = calibrate_absorbed(lambda e, n=n: ((n, e),), after, total)
        spent = absorbed(((n, price),), after)
        assert Fraction(total) * (1 - Fraction(1, 10**6)) < spent <= Fraction(total)
    assert calibrate_absorbed(lambda e: ((5, e),), 0.05, 0.05) == 0
    large = calibrate_absorbed(lambda e: ((1, e / 2), (1, e)), 1.0, 40.0)
    assert large == 1  # no further than the lemma


def test_what_the_lemma_does_not_cover_has_no_closed_form():
    assert absorbed(((1, Fraction(101, 100)),), 1) is None
    names = [bound.name for bound in picks_in_order([0.5, 1.5]).explain(1e-6).bounds]
    assert "absorbed" not in names
    with pytest.raises(InvalidParameter, match=r"epsilon=2 must be above 0 and at most 1"):
        absorbed_after(3, 2, 1)
    with pytest.raises(InvalidParameter, match=r"mu_squared=-1 must not be negative"):
        absorbed(((1, Fraction(1, 2)),), -1)
