"""TestedTopK: exact law, exhaustive privacy, and wrong variants that must be caught."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import pytest
from flint import arb
from tests.mechanisms.tested_variants import (
    Variant,
    by_hand,
    cheap_index,
    common_index,
    independent_index,
    noiseless_index,
    off_by_one_index,
    unsplit_index,
)

from topsecret import NOTHING, Histogram
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import precision
from topsecret.mechanisms import LimitedDomain, PrunedTopK, TestedTopK
from topsecret.mechanisms.pick_prune_test import (
    Above,
    NestedTest,
    own_variances,
    spread_cost,
    spreads,
)
from topsecret.mechanisms.tested_schedule import UNIT, default_k_bar, list_sizes, sizes
from topsecret.noise import race
from topsecret.noise.bits import SystemBits
from topsecret.verify import check_privacy

GRID = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
TINY = Fraction(1, 40)
"""A price so small that nothing covers for what is wrong elsewhere."""


def excess(variant, first, second):
    """The largest divergence over the claim, in both directions."""
    laws = [
        {outcome: float(p) for outcome, p in variant.probabilities(_histogram(counts)).items()}
        for counts in (first, second)
    ]
    loss, found = variant.loss, []
    for x, (p, q) in product(GRID, (laws, laws[::-1])):
        divergence = sum(max(0.0, chance - math.exp(x) * q.get(o, 0.0)) for o, chance in p.items())
        found.append(divergence - loss.delta(x))
    return max(found)


def _histogram(counts):
    return Histogram.of({name: count for name, count in zip("abcd", counts, strict=False) if count})


def _priced(schedule, **prices):
    lengths = tuple(replace(length, **prices) for length in schedule.lengths)
    return replace(schedule, lengths=lengths)


LOUD_TEST = Variant(by_hand((2,), TINY, Fraction(3), Fraction(1, 10_000)), 3)
QUIET_TEST = Variant(by_hand((2,), TINY, Fraction(2), Fraction(1, 100)), 3)
CLEAR_PICKS = Variant(by_hand((2,), Fraction(1), Fraction(1, 2), Fraction(1, 1000)), 3)
FAILING_TEST = Variant(by_hand((2,), TINY, Fraction(1, 2), Fraction(1, 10)), 3)
LATER_PRUNES = Variant(
    _priced(by_hand((2,), TINY, Fraction(1, 20), Fraction(1, 1000)), later_price=Fraction(2)), 3
)
FIRST_PRUNES = Variant(
    _priced(by_hand((1,), TINY, Fraction(1, 20), Fraction(1, 1000)), price=Fraction(2)), 2
)
LENGTHS = Variant(
    by_hand(
        (3, 2, 1),
        TINY,
        Fraction(1, 50),
        Fraction(1, 40),
        choice=Fraction(1),
        offsets=(2 * UNIT, 11 * UNIT // 2, 0),
    ),
    4,
)

WRONG = {
    "common noise": (CLEAR_PICKS, {"index": common_index}, (7, 6), (6, 6), 0.07),
    "independent noises charged once": (
        QUIET_TEST,
        {"index": independent_index},
        (2, 2, 2),
        (3, 3, 3),
        0.1,
    ),
    "kappa = 1": (LOUD_TEST, {"index": cheap_index}, (2, 2, 2), (3, 3, 3), 0.03),
    "delta_t not split": (FAILING_TEST, {"index": unsplit_index}, (1, 1, 1), (), 0.06),
    "a for a - 1": (FAILING_TEST, {"index": off_by_one_index}, (1, 1, 1), (), 0.08),
    "no noise in the test": (FAILING_TEST, {"index": noiseless_index}, (5, 5), (4, 4), 0.5),
    "no null slots": (FAILING_TEST, {"null_slots": False}, (4,), (4, 1, 1), 0.2),
    "nulls skipped": (FAILING_TEST, {"skip_nulls": True}, (4,), (4, 1, 1), 0.03),
    "later prunes without noise": (
        CLEAR_PICKS,
        {"noisy_later_prunes": False},
        (7, 6),
        (6, 6),
        0.01,
    ),
    "later prunes uncharged": (
        LATER_PRUNES,
        {"charge_later_prunes": False},
        (80, 80),
        (81, 80),
        0.02,
    ),
    "first prunes uncharged": (FIRST_PRUNES, {"charge_prunes": False}, (80, 80), (81, 80), 0.2),
    "eps_u for eps_u / 2": (LENGTHS, {"choice_factor": 2}, (6, 6, 1), (7, 7, 2), 0.04),
}
"""Right numbers, what is wrong, two neighbours, and by how much at least the claim is exceeded."""


@pytest.mark.parametrize("name", WRONG)
def test_wrong_variants_are_caught_and_the_right_one_is_not(name):
    right, wrong, first, second, least = WRONG[name]
    assert excess(right, first, second) <= 0
    assert excess(replace(right, **wrong), first, second) > least


def test_the_law_is_that_of_an_enumeration_written_apart():
    """Ties, null slots, a list longer than the items, no item at all."""
    mechanism = TestedTopK(k=3, epsilon=2.0, delta=0.4, k_bar=5)
    apart = Variant(mechanism.schedule, 5)
    for counts in ((), (3,), (2, 2, 1), (5, 3, 3, 1)):
        histogram = _histogram(counts)
        with precision(128):
            expected, found = apart.probabilities(histogram), mechanism.probabilities(histogram)
        assert set(found) == {outcome for outcome, p in expected.items() if p > 0}
        assert all(p.overlaps(expected[outcome]) for outcome, p in found.items())


def test_the_joint_test_has_the_covariance_that_it_is_charged_for():
    """v'S⁻¹v by elimination over all corners, and over mixed signs, which would cost far more."""
    for lists, most, mixed in ((2, 1.2101, 2.0), (3, 1.4168, 2.5), (4, 1.5254, 2.8)):
        own, half = own_variances(lists), Fraction(1, 2)
        assert [half + variance for variance in own] == [s * s for s in spreads(lists)]
        covariance = [
            [half + (own[i] if i == j else 0) for j in range(lists)] for i in range(lists)
        ]
        corners = [_quadratic(covariance, v) for v in product((0, 1), repeat=lists)]
        assert max(corners) == spread_cost(lists)
        assert math.isclose(spread_cost(lists), most, abs_tol=1e-4)
        assert max(_quadratic(covariance, v) for v in product((-1, 1), repeat=lists)) > mixed


def _quadratic(matrix, v):
    """vᵀM⁻¹v by elimination in fractions."""
    rows = [[*map(Fraction, row), Fraction(value)] for row, value in zip(matrix, v, strict=True)]
    for place, row in enumerate(rows):
        pivot = row[place]
        row[:] = [cell / pivot for cell in row]
        for other in rows:
            if other is not row:
                other[:] = [a - other[place] * b for a, b in zip(other, row, strict=True)]
    return sum(value * row[-1] for value, row in zip(v, rows, strict=True))


def test_draws_of_the_joint_test_agree_with_its_law():
    """Each cell within 6.5 deviations: alarm rate below 10⁻⁸; twice the noise is rejected."""
    test = NestedTest(4, Fraction(3), Fraction(5, 4))
    strengths, samples = (3, 4, 6, 9), 4000
    with precision(128):
        law = [float(chance) for chance in test.law(strengths)]
        wider = [float(p) for p in replace(test, sigma=2 * test.sigma).law(strengths)]
    assert math.fsum(law) == pytest.approx(1, abs=1e-15)
    seen = Counter(test.draw(strengths, SystemBits()) for _ in range(samples))
    counts = [seen[place] for place in (0, 1, 2, 3, None)]

    def far(chances):
        return max(
            abs(n - samples * p) / math.sqrt(samples * p * (1 - p))
            for n, p in zip(counts, chances, strict=True)
        )

    assert far(law) < 6.5 < far(wider)


def long_or_short(case):
    """With sensitivity 2 the same lists are enumerated; a k̄ far above k is looked at in a soak."""
    long = case.lengths == "private" and case.sensitivity == 1 and (case.k == 3 or case.k_bar == 6)
    return pytest.param(case, marks=[pytest.mark.soak] if long else [], id=str(case))


@pytest.mark.parametrize("case", [long_or_short(case) for case in TestedTopK.verification_cases()])
def test_the_law_keeps_to_the_claim(case):
    """``topsecret verify`` looks at taller histograms."""
    report = check_privacy(case, items=4 if case.k > 2 else 5, max_count=2, tall=6)
    assert report.passed
    assert report.pairs > 1000


@pytest.mark.parametrize("lengths", ["private", "fixed"])
@pytest.mark.parametrize(
    "counts", [{}, {"a": 3}, {"a": 2, "b": 2, "c": 2}, {"a": 9, "b": 5, "c": 5, "d": 1}]
)
def test_draws_agree_with_the_law(counts, lengths, monkeypatch):
    """Each cell within 6.5 deviations of its binomial, or 12: alarm rate below 10⁻⁸."""
    # As for long lists: arrays screen first, for all prices at once.
    monkeypatch.setattr(race, "_FEW", 1)
    monkeypatch.setattr(race, "_TOGETHER", range(1, 2_049))
    mechanism = TestedTopK(k=2, epsilon=3.0, delta=0.6, k_bar=4, lengths=lengths)
    law = mechanism.distribution(Histogram.of(counts))
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)
    samples = 1500
    seen = Counter(mechanism.select(Histogram.of(counts)).outcome for _ in range(samples))
    assert set(seen) <= set(law)
    for outcome, chance in law.items():
        spread = math.sqrt(samples * chance * (1 - chance))
        assert abs(seen[outcome] - samples * chance) < 6.5 * spread + 12, outcome


def test_the_loss_keeps_to_the_budget_and_to_its_parts():
    mechanism = TestedTopK(k=5, epsilon=1.0, delta=1e-6)
    assert mechanism.loss.epsilon(1e-6) <= 1.0
    assert mechanism.loss.epsilon(1e-6) > 0.99
    assert mechanism.loss.failures == mechanism.schedule.failure <= Fraction(2, 10**7)
    assert mechanism.loss.rho() is not None
    assert (2 * mechanism.loss).epsilon(2e-6) > 1.0


def test_a_schedule_depends_on_public_numbers_only():
    """σ, z, prices: all from k, ε and δ; the test's failure is what is charged."""
    numbers = TestedTopK(k=10, epsilon=1.0, delta=1e-6).schedule
    assert [length.size for length in numbers.lengths] == list(sizes(10))
    assert all(a.price <= b.price for a, b in pairwise(numbers.lengths))
    for length in numbers.lengths:
        edge = Above(length.test.quantile).ball(128) * length.test.lists
        assert edge <= arb(float(numbers.failure))
        assert length.test.sigma**2 * numbers.mu_squared >= spread_cost(length.test.lists)
        assert length.list_sizes == list_sizes(length.size)


def test_a_price_depends_on_its_length_and_the_budget_alone():
    """So every set of lengths keeps to the budget, and asking for more changes no price."""
    prices = [
        {length.size: length.price for length in TestedTopK(k, 0.7, 1e-7).schedule.lengths}
        for k in (12, 30, 900)
    ]
    for one, other in product(prices, repeat=2):
        shared = one.keys() & other.keys()
        assert shared
        assert all(one[size] == other[size] for size in shared)


@pytest.mark.parametrize(
    ("k", "epsilon", "delta"),
    [(1, 1.0, 1e-6), (2, 10.0, 1e-6), (7, 0.1, 1e-9), (40, 1e-4, 1e-6), (1500, 2.0, 1e-5)],
)
def test_the_loss_keeps_to_the_budget(k, epsilon, delta):
    mechanism = TestedTopK(k, epsilon, delta)
    assert 0.985 * epsilon < mechanism.loss.epsilon(delta) <= epsilon


def test_room_for_counts_behind_it_is_kept_and_needed():
    """Gaussian steps behind it are within the budget when it knows of them, and only then."""
    after = Fraction(1, 120)
    knowing, plain = TestedTopK(6, 1.0, 1e-6, behind=after), TestedTopK(6, 1.0, 1e-6)
    assert 0.99 < knowing.loss.then_gaussian(after).epsilon(1e-6) <= 1
    assert plain.loss.then_gaussian(after).epsilon(1e-6) > 1.05
    assert knowing.loss.epsilon(1e-6) < 0.95


def test_how_deep_it_looks():
    assert [default_k_bar(k) for k in (1, 80, 100, 150, 600, 1000)] == [
        1600,
        1600,
        2000,
        3000,
        3000,
        5000,
    ]
    assert TestedTopK(10, 1.0, 1e-6).slots == 1600
    assert TestedTopK(10, 1.0, 1e-6, k_bar=40).slots == 40


def test_a_long_list_falls_back_to_a_shorter_one_instead_of_nothing():
    """Thirty items far ahead of the rest, a hundred asked for: never empty, and all right."""
    counts = {f"i{i:03d}": 600 - i if i < 30 else 3 for i in range(2500)}
    answers = [TestedTopK(100, 1.0, 1e-6).select(Histogram.of(counts)) for _ in range(20)]
    assert all(len(answer.items) >= 5 for answer in answers)
    assert all(int(item[1:]) < 30 for answer in answers for item in answer.items)


def test_the_selection_publishes_the_length_and_a_shorter_list():
    """What is released is one of the nested lists of the published length, or nothing."""
    mechanism = TestedTopK(k=4, epsilon=3.0, delta=0.5, k_bar=6)
    histogram = Histogram.of({"a": 9, "b": 7, "c": 6, "d": 5, "e": 2})
    for _ in range(200):
        answer = mechanism.select(histogram)
        assert answer.chosen in sizes(4)
        expected = list_sizes(answer.chosen) if answer.complete else (0,)
        assert len(answer.items) in expected
        assert answer.outcome[-1] is not NOTHING or not answer.complete


def test_a_clear_list_is_named_and_a_flat_one_is_not():
    mechanism = TestedTopK(k=3, epsilon=1.0, delta=1e-6)
    clear = Histogram.of({"a": 900, "b": 700, "c": 500, "d": 3})
    assert mechanism.select(clear).items == ("a", "b", "c")
    flat = Histogram.of({str(i): 100 for i in range(2000)})
    answer = mechanism.select(flat)
    assert (answer.items, answer.complete) == ((), False)


def test_it_outdoes_the_limited_domain_on_long_lists():
    """Forty items in forty persons' steps over a tail: the threshold of 3.1 grows with √k."""
    counts = Histogram.of({f"i{i:02d}": 40 * (40 - i) if i < 40 else 1 for i in range(41)})
    tested = TestedTopK(k=10, epsilon=0.4, delta=1e-6)
    assert len(tested.select(counts).items) >= 8
    assert isinstance(LimitedDomain(10, 200, 0.05, 1e-8).select(counts).items, tuple)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k=0 must be at least 1"),
        ({"epsilon": 0}, "epsilon=0 must be above 0"),
        ({"delta": 1}, "delta=1 must lie between 0 and 1"),
        ({"k_bar": 5}, "k_bar=5 must be at least 6 for k=5, which picks 6 before it prunes"),
        ({"lengths": "any"}, "lengths='any' must be 'private' or 'fixed'"),
        ({"behind": -1}, "behind=-1 must not be negative"),
    ],
)
def test_bad_parameters_name_the_rule(arguments, message):
    with pytest.raises(InvalidParameter, match=message):
        TestedTopK(**{"k": 5, "epsilon": 1.0, "delta": 1e-6, **arguments})


def test_pruned_draws_agree_with_the_law():
    """Within 5 deviations, and 6: ties, and a domain smaller than the picks."""
    for counts, k in (([3, 3, 1, 0], 2), ([2, 0], 2), ([1], 1)):
        histogram = Histogram.from_counts(counts)
        mechanism = PrunedTopK(k, 2 / 3)
        law = mechanism.distribution(histogram)
        assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)
        samples = 2500
        seen = Counter(mechanism.select(histogram).outcome for _ in range(samples))
        assert set(seen) <= set(law)
        for outcome, chance in law.items():
            spread = math.sqrt(samples * chance * (1 - chance))
            assert abs(seen[outcome] - samples * chance) < 5 * spread + 6, outcome


def test_pruned_charges_rising_picks_and_prunes():
    loss = PrunedTopK(10, 0.8).loss
    assert sum(count for count, _ in loss.pick_runs) == 12
    assert loss.pick_runs[-1][1] == Fraction(0.8)
    assert PrunedTopK(10, 0.8).select(Histogram.from_counts(range(100))).complete
