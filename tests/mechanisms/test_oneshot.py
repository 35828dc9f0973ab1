"""OneshotExponential and OneshotLaplace: laws, claims, the sets bound, the printed algorithm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations

import numpy as np
import pytest
from flint import arb
from scipy.integrate import trapezoid
from scipy.stats import binom
from tests.mechanisms.oneshot import KINDS, TIED, histogram, with_scale

from topsecret.accounting import pure
from topsecret.counts.histogram import Histogram
from topsecret.exact.rounding import exact, precision
from topsecret.mechanisms import GumbelTopK, OneshotExponential, OneshotLaplace, PermuteAndFlip
from topsecret.mechanisms.order_laws import at, laplace, score_list_law
from topsecret.mechanisms.piecewise import product
from topsecret.verify import check_privacy, check_sampler

# Exact laws.


def test_exponential_pairs_by_an_independent_formula():
    """P[a > b > c] for three items by integrating over the noise of b on a fine grid."""
    scores, scale = {"x": 1.0, "y": 0.5, "z": 0.0}, 2 / 3
    grid = np.linspace(0, 40, 2_000_001)
    law = OneshotExponential(k=2, epsilon=3.0).distribution(
        Histogram.from_counts(np.array(list(scores.values())))
    )
    names = dict(zip(scores, range(3), strict=True))
    for first, second in permutations(scores, 2):
        third = next(iter(set(scores) - {first, second}))
        value = scores[second] + scale * grid
        above = np.exp(-np.maximum(value - scores[first], 0) / scale)
        below = -np.expm1(-np.maximum(value - scores[third], 0) / scale)
        expected = trapezoid(np.exp(-grid) * above * below, grid)
        assert law[names[first], names[second]] == pytest.approx(expected, abs=1e-9)


def test_laplace_sets_by_an_independent_formula():
    """P[set] by integrating over the smallest noisy score of the set on a fine grid."""
    scale = 2 / 3
    grid = np.linspace(-30, 34, 2_000_001)

    def upper_tail(score):
        x = (grid - score) / scale
        return np.where(x < 0, 1 - np.exp(np.minimum(x, 0)) / 2, np.exp(-np.maximum(x, 0)) / 2)

    law = with_scale(OneshotLaplace, 2, Fraction(2, 3)).distribution(histogram())
    for chosen in combinations(sorted(TIED), 2):
        others = np.prod([1 - upper_tail(TIED[i]) for i in TIED if i not in chosen], axis=0)
        smallest = -np.gradient(np.prod([upper_tail(TIED[i]) for i in chosen], axis=0), grid)
        assert law[chosen] == pytest.approx(trapezoid(smallest * others, grid), abs=1e-7)


def test_a_set_is_published_in_an_order_that_carries_nothing():
    mechanism = OneshotLaplace(k=3, epsilon=50.0)
    assert not mechanism.ordered
    answer = mechanism.select(histogram())
    assert answer.items == ("b", "c", "d")
    assert not answer.ordered
    assert all(list(outcome) == sorted(outcome) for outcome in mechanism.distribution(histogram()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", ["2/3", "3/7"])
@pytest.mark.parametrize("k", [1, 3, 4])
def test_the_sampler_draws_the_law(kind, scale, k):
    """Ties included; a correct sampler is rejected with probability at most 10⁻⁹."""
    mechanism = with_scale(kind, k, scale)
    check_sampler(mechanism, histogram(), 2500, alarm_rate=1e-9).require()


# Claims.


@pytest.mark.parametrize(
    "case",
    [*OneshotExponential.verification_cases(), *OneshotLaplace.verification_cases()],
    ids=str,
)
def test_no_neighbour_breaks_the_claim(case):
    check_privacy(case, items=4, max_count=3).require()


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_the_sets_bound_holds_for_five_items(k, adjacency):
    """min(k, m − k) for all sizes m ≤ 5."""
    mechanism = OneshotLaplace(k=k, epsilon=2.0, adjacency=adjacency)
    check_privacy(mechanism, items=5, max_count=2).require()


@dataclass(frozen=True)
class LessNoise(OneshotLaplace):
    factor: Fraction = Fraction(9, 10)

    def scale(self, domain_size):
        return self.factor * super().scale(domain_size)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_sets_bound_has_no_room_for_a_tenth(k):
    """Scores that lie many scales apart nearly meet it: a tenth less noise breaks the claim."""
    assert not check_privacy(LessNoise(k=k, epsilon=6.0), items=4, max_count=4).passed


@dataclass(frozen=True)
class OrderPublished(OneshotLaplace):
    """The list in order, at the noise that suffices for the set."""

    def probabilities(self, histogram):
        scale = self.scale(histogram.require_domain("OrderPublished", self.k))
        if scale == 0:
            return super().probabilities(histogram)
        return score_list_law(laplace, histogram.scores(), scale, self.k)


def test_the_order_would_need_more_noise():
    assert not check_privacy(OrderPublished(k=3, epsilon=3.0), items=4, max_count=3).passed


def test_the_exponential_claim_is_met():
    law = OneshotExponential(k=1, epsilon=2.0).distribution(histogram({"a": 0, "b": 1}))
    more = OneshotExponential(k=1, epsilon=2.0).distribution(histogram({"a": 1, "b": 1}))
    assert math.log(more["a",] / law["a",]) == pytest.approx(2, rel=1e-12)


@dataclass(frozen=True)
class WithoutK(OneshotExponential):
    @property
    def scale(self):
        return super().scale / self.k


@dataclass(frozen=True)
class HalvedExponential(OneshotExponential):
    @property
    def scale(self):
        return super().scale / 2


@dataclass(frozen=True)
class HalvedLaplace(OneshotLaplace):
    def scale(self, domain_size):
        return super().scale(domain_size) / 2


@pytest.mark.parametrize(
    "defect",
    [
        WithoutK(k=2, epsilon=2.0),
        HalvedExponential(k=1, epsilon=1.0, adjacency="replace"),
        HalvedExponential(k=2, epsilon=2.0, adjacency="replace"),
        HalvedLaplace(k=1, epsilon=1.0, adjacency="replace"),
        HalvedLaplace(k=2, epsilon=2.0, adjacency="replace"),
    ],
    ids=str,
)
def test_too_little_noise_breaks_the_claim(defect):
    report = check_privacy(defect, items=3, max_count=3)
    assert report.broken is not None


@dataclass(frozen=True)
class Swapped(OneshotExponential):
    def select(self, histogram, bits=None):
        return GumbelTopK(self.k, float(self.scale)).select(histogram, bits)


@dataclass(frozen=True)
class Reversed(OneshotExponential):
    def select(self, histogram, bits=None):
        return OneshotExponential(self.k, self.epsilon, smallest=True).select(histogram, bits)


@dataclass(frozen=True)
class DividedWrongly(OneshotExponential):
    def select(self, histogram, bits=None):
        return with_scale(OneshotExponential, self.k, 1 / self.scale).select(histogram, bits)


@pytest.mark.parametrize("defect", [Swapped, Reversed, DividedWrongly])
def test_a_wrong_draw_is_rejected(defect):
    mechanism = defect(k=2, epsilon=3)  # of scale 2/3
    assert not check_sampler(mechanism, histogram(), 4000, alarm_rate=1e-9).passed


# Qiao, Su & Zhang, Algorithm 1: the set and the noisy values at one λ.


@dataclass(frozen=True)
class PrintedAlgorithm1:
    """The best item with its noisy value at λ = 2/ε (Thm 2.1 for k = 1), the value in cells.

    Telling only in which cell the value lies is post-processing: if this breaks the claim, so
    does the value itself. ``values=False`` is the control: the selection alone.
    """

    epsilon: float
    values: bool = True
    adjacency: str = "add-remove"
    ordered = True

    @property
    def loss(self):
        return pure(self.epsilon)

    def probabilities(self, histogram):
        histogram.require_domain("PrintedAlgorithm1", 1)
        rate = exact(self.epsilon) / 2
        with precision(512):
            scores = histogram.scores()
            runners = {item: laplace(at(score * rate)) for item, score in scores}
            law = {}
            for item, runner in runners.items():
                rest = product(other.cdf for name, other in runners.items() if name != item)
                wins = (runner.density * rest).integral()
                if not self.values:
                    law[item,] = wins.limit()
                    continue
                edges = [arb(0), *(wins(cell * rate) for cell in range(-1, 6)), wins.limit()]
                for cell in range(len(edges) - 1):
                    law[item, cell] = edges[cell + 1] - edges[cell]
            return law


def test_algorithm_1_as_printed_is_rejected():
    """With all m counts one higher, the whole of a low value's probability moves: m·ε/2."""
    report = check_privacy(PrintedAlgorithm1(epsilon=1.0), items=4, max_count=2)
    assert report.broken is not None
    assert check_privacy(PrintedAlgorithm1(1.0, values=False), items=4, max_count=2).passed


def test_theorem_2_2_has_room_on_an_exchangeable_family():
    """Too large to enumerate. Here for k = 700 of 1400, one person with half of the items.

    The counts of that person's items rise from 0 to 1. By symmetry the number of them in the set
    decides the likelihood ratio; its laws are one-dimensional integrals. δ(ε) is far below.
    """
    m, k, epsilon, delta = 1400, 700, 0.2, 0.05
    scale = float(OneshotLaplace(k=k, epsilon=epsilon, delta=delta).scale(m))
    assert scale < k / epsilon
    before, after = count_law(m, k, 0.0), count_law(m, k, 1 / scale)
    assert before.sum() == pytest.approx(1, abs=1e-6)
    assert after.sum() == pytest.approx(1, abs=1e-6)
    for p, q in ((before, after), (after, before)):
        assert np.maximum(p - math.exp(epsilon) * q, 0).sum() < delta / 100


def count_law(m, k, lift):
    """P[j of the lifted half are among the k largest], j = 0 … k, unit Laplace noise.

    By the level of the (k + 1)-th largest: j lifted and k − j others lie above it, one at it.
    """
    half = m // 2
    grid = np.linspace(-1.2, 1.2, 4001)

    def law(x):
        tail = np.where(x < 0, 1 - np.exp(np.minimum(x, 0)) / 2, np.exp(-np.maximum(x, 0)) / 2)
        return tail, np.exp(-np.abs(x)) / 2

    (top, dense), (other, other_dense) = law(grid - lift), law(grid)
    j = np.arange(k + 1)[:, None]
    at_lifted = half * dense * binom.pmf(j, half - 1, top) * binom.pmf(k - j, half, other)
    at_other = half * other_dense * binom.pmf(j, half, top) * binom.pmf(k - j, half - 1, other)
    return trapezoid(at_lifted + at_other, grid, axis=1)


@pytest.mark.parametrize("epsilon", [1, 3])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_one_draw_names_no_rarer_items_than_rounds_of_draws(size, epsilon):
    """The expected number of persons behind the list, against ``PermuteAndFlip`` at one ε."""
    for counts in combinations_with_replacement(range(4), size):
        persons = dict(zip("abcd", counts, strict=False))
        candidates = Histogram.of(persons, domain=list(persons))
        for k in range(1, min(3, size) + 1):
            once = OneshotExponential(k=k, epsilon=epsilon).probabilities(candidates)
            rounds = PermuteAndFlip(k=k, scale=Fraction(k, epsilon)).probabilities(candidates)
            gain = arb(0)
            for law, sign in ((once, 1), (rounds, -1)):
                for named, chance in law.items():
                    gain += sign * chance * sum(persons[item] for item in named)
            assert not gain < 0
