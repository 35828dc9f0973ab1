"""What papers printed and what other code does wrongly is rejected by exhaustion."""

from __future__ import annotations

import math

import pytest
from tests.mechanisms import printed

from topsecret.counts.histogram import Histogram
from topsecret.mechanisms import (
    FixedThreshold,
    LimitedDomainLaplace,
    OptimalThreshold,
    StableFixedK,
    StableTopK,
    TopStable,
)
from topsecret.verify import Neighbourhood, check_privacy


def pairs():
    """A wrong mechanism, the right one with the same parameters, and where to look."""
    small = {"items": 3, "max_count": 4}
    return {
        "D&R Alg. 4, ln(Δ/ε)": (
            printed.PrintedAlgorithm4(1, 2, 0.7, 0.01, 1),
            LimitedDomainLaplace(1, 2, 0.7, 0.01, 1),
            small,
        ),
        "D&R Alg. 6, argmin of + Gumbel": (
            printed.PrintedAlgorithm6(1, 3, 0.7, 0.01),
            printed.CorrectAlgorithm6(1, 3, 0.7, 0.01),
            {"items": 3, "max_count": 6, "tall": 8},
        ),
        "D&R Alg. 8, only above the threshold": (
            printed.PrintedAlgorithm8(1, 0.7, 0.2),
            FixedThreshold(1, 0.7, 0.2),
            small,
        ),
        "fixed threshold without + 1": (
            printed.FixedWithoutOne(2, 0.7, 0.01),
            FixedThreshold(2, 0.7, 0.01),
            small,
        ),
        "TS code, off-by-one gap": (
            printed.OffByOneTopStable(2, 2, 2.0, 0.1, 0.5),
            TopStable(2, 2, 2.0, 0.1, 0.5),
            small,
        ),
        "TS without − 1": (
            printed.TopStableWithoutOne(1, 1, 2.0, 0.1, 0.5),
            TopStable(1, 1, 2.0, 0.1, 0.5),
            small,
        ),
        "TS, δ for each set": (
            printed.TopStableForOneSet(3, 3, 1.0, 0.1, 0.5),
            TopStable(3, 3, 1.0, 0.1, 0.5),
            {"items": 4, "max_count": 3},
        ),
        "the next place's gap is tested": (
            printed.NextGapStableTopK(2, 1.0, 0.05),
            StableTopK(2, 1.0, 0.05),
            small,
        ),
        "the set's order is released": (
            printed.OrderedStableTopK(2, 1.0, 0.05),
            StableTopK(2, 1.0, 0.05),
            small,
        ),
        "noise halved under replace": (
            printed.HalvedUnderReplace(2, 1.0, 0.05, adjacency="replace"),
            StableTopK(2, 1.0, 0.05, adjacency="replace"),
            small,
        ),
        "test without + 1": (
            printed.TestWithoutOne(2, 1.0, 0.05),
            StableTopK(2, 1.0, 0.05),
            small,
        ),
        "Z&W Alg. 3, ε_EM for each pick": (
            printed.PrintedAlgorithm3(3, 3, 2.0, 1e-9, 0),
            StableFixedK(3, 3, 2.0, 1e-9, 0),
            {"items": 5, "max_count": 2},
        ),
    }


@pytest.mark.parametrize("case", pairs())
def test_the_wrong_one_is_rejected_and_the_right_one_is_not(case):
    wrong, right, where = pairs()[case]
    broken = check_privacy(wrong, **where)
    assert broken.broken is not None, broken.tightest
    assert broken.broken.divergence > broken.broken.claim
    check_privacy(right, **where).require()


def test_alg_6_exceeds_its_epsilon():
    """The log-ratio reaches 1.31 at ε = .7 with three candidates."""
    law = printed.PrintedAlgorithm6(1, 3, 0.7, 0.01)
    worst = 0.0
    for a in range(12):
        for b in range(a + 1):
            for c in range(b + 1):
                before = Histogram.of({"a": a, "b": b, "c": c})
                after = Histogram.of({"a": a + 1, "b": b, "c": c})
                p, q = law.probabilities(before), law.probabilities(after)
                worst = max(worst, *(abs(float((p[o] / q[o]).log())) for o in p))
    assert 1.2 < worst < 1.4


def test_alg_8_has_a_divergence_of_about_one_half_where_a_hundredth_is_claimed():
    report = check_privacy(printed.PrintedAlgorithm8(1, 2.0, 0.01), items=2, max_count=4)
    assert report.broken is not None
    assert report.broken.divergence > 0.5
    assert report.broken.claim <= 0.02


def test_the_pure_budget_of_alg_3_is_private_and_only_wasteful():
    """ε_EM/n for each of n picks costs ρ/(2n): more noise than 2√(ρ/n) needs."""
    wasteful = printed.PureBudgetAlgorithm3(2, 3, 1.0, 0.01, 0.5)
    check_privacy(wasteful, items=4, max_count=3).require()
    assert wasteful.scale_of(2) > StableFixedK(2, 3, 1.0, 0.01, 0.5).scale_of(2)


def test_picks_on_all_items_are_private_and_give_fewer_than_k():
    loose = printed.PicksOnAllItems(2, 3, 1.0, 0.2, 0)
    check_privacy(loose, items=4, max_count=3).require()
    histogram = Histogram.of({"a": 9, "b": 3, "c": 3}, domain=["a", "b", "c", "d"])
    assert sum(p for o, p in loose.distribution(histogram).items() if len(set(o)) < 3) > 0.1
    right = StableFixedK(2, 3, 1.0, 0.2, 0).distribution(histogram)
    assert all(len(outcome) == 2 for outcome in right)


def test_a_declared_max_items_that_is_not_enforced_is_not_private():
    mechanism = OptimalThreshold(2, 3, 0.7, 0.01, max_items=1)
    check_privacy(mechanism, items=3, max_count=4).require()
    unrestricted = check_privacy(
        mechanism, items=3, max_count=4, neighbourhood=Neighbourhood(max_items=None)
    )
    assert unrestricted.broken is not None


def divergence(mechanism, first, second, epsilon):
    """Σ (P − e^x·Q)₊ between two large histograms, which exhaustion does not reach."""
    p, q = (mechanism.distribution(Histogram.of(counts)) for counts in (first, second))
    return sum(max(0.0, chance - math.exp(epsilon) * q.get(o, 0.0)) for o, chance in p.items())


FOUR_AND_TWO_MORE = (
    {"a": 100, "b": 100, "c": 100, "d": 100},
    {"a": 101, "b": 101, "c": 100, "d": 100},
)
LARGE = [
    (
        "TS, ε_EM for each pick",
        printed.RefiningEachPick(2, 4, 0.5, 0.01, 3.0),
        TopStable(2, 4, 0.5, 0.01, 3.0),
        FOUR_AND_TWO_MORE,
        3.6,
    ),
    (
        "the price of one pick for all",
        printed.OptimalForOnePick(3, 4, 2.0, 1e-6),
        OptimalThreshold(3, 4, 2.0, 1e-6),
        FOUR_AND_TWO_MORE,
        2.1,
    ),
    (
        "gaps taken for monotone",
        printed.MonotoneGaps(3, 4.0, 0.05, test="laplace"),
        StableTopK(3, 4.0, 0.05, test="laplace"),
        ({"a": 300, "b": 200, "c": 100}, {"a": 300, "b": 201, "c": 100}),
        6.01,
    ),
    (
        "persons with two items where one is declared",
        LimitedDomainLaplace(2, 5, 2.0, 1e-6, 1),
        LimitedDomainLaplace(2, 5, 2.0, 1e-6, 2),
        FOUR_AND_TWO_MORE,
        2.01,
    ),
]


@pytest.mark.parametrize(
    ("wrong", "right", "counts", "epsilon"),
    [pytest.param(*case[1:], id=case[0]) for case in LARGE],
)
def test_defects_that_show_on_large_counts_only(wrong, right, counts, epsilon):
    first, second = counts
    assert divergence(wrong, first, second, epsilon) > 1.1 * wrong.loss.delta(epsilon)
    for one, other in ((first, second), (second, first)):
        assert divergence(right, one, other, epsilon) <= right.loss.delta(epsilon)


def test_the_laplace_threshold_without_one_stays_within_its_loose_claim():
    """The claim has room for the factor e^(ε₀): only the exact tail tells the two apart."""
    wrong = printed.LaplaceWithoutOne(1, 1, 0.7, 0.01, 1)
    check_privacy(wrong, items=3, max_count=3).require()
    edge = Histogram.of({"a": 1})
    tail = 0.01 / 4 * (2 + math.log(100))
    right = LimitedDomainLaplace(1, 1, 0.7, 0.01, 1)
    assert right.distribution(edge)[("a",)] == pytest.approx(tail, rel=1e-12)
    assert wrong.distribution(edge)[("a",)] > 1.5 * tail
