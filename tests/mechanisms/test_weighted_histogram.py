"""Weighted people: the exact law against the claim, the draw against the law, wrong versions."""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret.accounting import Loss, gaussian
from topsecret.accounting.pairs import normal_below
from topsecret.accounting.thresholded_gaussian import ThresholdedGaussian
from topsecret.counts.histogram import Histogram
from topsecret.counts.weights import UNIT, Weights, kept_items, weighted_sums
from topsecret.errors import DomainRequired, InvalidParameter
from topsecret.exact.rounding import ball, precision
from topsecret.mechanisms import WeightedHistogram
from topsecret.mechanisms.weighted_bounds import persons_at_least
from topsecret.mechanisms.weighted_law import BinnedValues
from topsecret.mechanisms.weighted_schedule import joint
from topsecret.noise.bits import ReplayableBits
from topsecret.verify import check_privacy
from topsecret.verify.report import PrivacyReport
from topsecret.verify.sampler import check_sampler

SHARE = Weights("share", 3, 1)
RELEASE = WeightedHistogram(None, 2.0, 0.05, SHARE)
PLANTED = RELEASE.binned(3 * UNIT)


@pytest.mark.parametrize("case", WeightedHistogram.verification_cases()[2::3], ids=str)
def test_it_keeps_its_claim(case: BinnedValues) -> None:
    check_privacy(case, items=3, max_count=2, tall=4).require()


def test_the_claim_is_met_exactly() -> None:
    """A person alone with three items against nobody: the failure is the whole divergence."""
    tightest = check_privacy(PLANTED, items=3, max_count=2, tall=4).tightest
    assert tightest is not None
    assert tightest.divergence / tightest.claim > 0.999_999


# --- wrong versions ---------------------------------------------------------------------------


def caught(mechanism: BinnedValues) -> PrivacyReport:
    report = check_privacy(mechanism, items=3, max_count=4, tall=8)
    assert report.broken is not None
    return report


@dataclass(frozen=True)
class Claims:
    """The joint profile by brute force over some of the numbers of own labels and directions."""

    release: ThresholdedGaussian
    least_own: int = 0
    directions: tuple[str, ...] = ("adding", "removing")

    def delta(self, x: Fraction) -> float:
        found = [0.0]
        for n, weight in enumerate(self.release.table, 1):
            for own in range(self.least_own, n + 1):
                place = (float(self.release.threshold) - weight / UNIT) / float(self.release.sigma)
                rest = (0.5 * math.erfc(-place / math.sqrt(2))) ** own
                mu = weight / UNIT * math.sqrt(n - own) / float(self.release.sigma)
                if "adding" in self.directions:
                    found.append(1 - rest + rest * profile(mu, float(x) - math.log(rest)))
                if "removing" in self.directions:
                    found.append(profile(mu, float(x) + math.log(rest)))
        return min(1.0, max(found) * (1 + 1e-9))

    def epsilon(self, delta: Fraction) -> float:
        return math.inf


def profile(mu: float, x: float) -> float:
    def below(z: float) -> float:
        return 0.5 * math.erfc(-z / math.sqrt(2))

    if mu == 0:
        return max(0.0, -math.expm1(x))
    return below(mu / 2 - x / mu) - math.exp(x) * below(-mu / 2 - x / mu)


@dataclass(frozen=True)
class Claiming(BinnedValues):
    """The right law with another claim."""

    claim: Claims | None = None

    @property
    def loss(self) -> Loss:
        return Loss(failures=Fraction(1), joint=self.claim)


def release_of(mechanism: WeightedHistogram) -> ThresholdedGaussian:
    assert mechanism.release is not None
    return mechanism.release


def test_the_profile_written_again_is_the_claim() -> None:
    again = Claims(release_of(RELEASE))
    for x in (0.0, 0.3, 1.0, 2.0, 4.0):
        assert release_of(RELEASE).delta(x) == pytest.approx(again.delta(Fraction(x)), rel=1e-8)
    check_privacy(Claiming(RELEASE, (3 * UNIT,), again), items=3, max_count=2, tall=4).require()


def test_no_share_of_the_threshold_is_caught() -> None:
    @dataclass(frozen=True)
    class WithoutFailure(BinnedValues):
        @property
        def loss(self) -> Loss:
            return gaussian(self.release.loss.mu_squared)

    caught(WithoutFailure(RELEASE, (3 * UNIT,)))


def lowered(by: Fraction) -> WeightedHistogram:
    """The same noise under a lower threshold."""
    mechanism = WeightedHistogram(None, 2.0, 0.05, SHARE)
    release = release_of(mechanism)
    mechanism.__dict__["release"] = replace(release, threshold=release.threshold - by)
    return mechanism


def test_a_threshold_without_the_weight_is_caught() -> None:
    caught(Claiming(lowered(Fraction(1)), (3 * UNIT,), Claims(release_of(RELEASE))))


@dataclass(frozen=True)
class OtherSums(BinnedValues):
    """Persons counted in a wrong way."""

    def sums(self, holdings: Mapping[str, Sequence[str]]) -> dict[str, int]:
        raise NotImplementedError

    def counted(
        self, holdings: Mapping[str, Sequence[str]], domain: Sequence[str] | None
    ) -> Histogram:
        sums = Histogram.of(self.sums(holdings), domain)
        return Histogram(sums._table, (self.weights, sums._table))


def test_weights_that_are_not_enforced_are_caught() -> None:
    class Believed(OtherSums):
        def sums(self, holdings: Mapping[str, Sequence[str]]) -> dict[str, int]:
            return Counter({i: UNIT * n for i, n in counted(holdings.values()).items()})

    caught(Believed(RELEASE, (3 * UNIT,)))


def counted(everybody: Sequence[Sequence[str]]) -> Counter[str]:
    return Counter(item for items in everybody for item in items)


def test_a_cap_by_input_order_is_caught() -> None:
    """Which items a person keeps depends on what others brought before."""

    class FirstSeen(OtherSums):
        def sums(self, holdings: Mapping[str, Sequence[str]]) -> dict[str, int]:
            order = list(dict.fromkeys(item for items in holdings.values() for item in items))
            kept = [sorted(items, key=order.index)[-1:] for items in holdings.values()]
            return {item: UNIT * n for item, n in counted(kept).items()}

    caught(FirstSeen(WeightedHistogram(None, 2.0, 0.05, Weights.cap(1)), (3 * UNIT,)))


def test_sums_that_are_rounded_up_are_caught() -> None:
    class RoundedUp(OtherSums):
        def sums(self, holdings: Mapping[str, Sequence[str]]) -> dict[str, int]:
            exact = weighted_sums(holdings, self.weights)
            return {str(item): -(-total // UNIT) * UNIT for item, total in exact.items()}

    caught(RoundedUp(RELEASE, (3 * UNIT,)))


def test_one_noise_for_all_labels_is_caught() -> None:
    class Shared(BinnedValues):
        def probabilities(self, histogram: Histogram) -> dict[tuple[object, ...], arb]:
            scale, threshold = self.release.sigma * UNIT, self.release.threshold
            assert threshold is not None
            sums = sorted(histogram.weighted(self.weights).ranked(10))
            levels = [threshold * UNIT, *(Fraction(2 * cut - 1, 2) for cut in self.cuts)]
            places = sorted({level - total for _, total in sums for level in levels})
            law: dict[tuple[object, ...], arb] = {}
            ends = [None, *places, None]
            for low, high in itertools.pairwise(ends):
                noise = (low if low is not None else places[0] - 2 if places else Fraction(0)) + 1
                values = [(item, total + noise) for item, total in sums]
                answer = tuple(
                    (item, sum(value > level for level in levels[1:]))
                    for item, value in values
                    if value > levels[0]
                )
                upper = arb(1) if high is None else normal_below(ball(high / scale))
                lower = arb(0) if low is None else normal_below(ball(low / scale))
                law[answer] = law.get(answer, arb(0)) + upper - lower
            return law

    caught(Shared(RELEASE, (3 * UNIT,)))


def test_forgetting_who_shares_all_labels_is_caught() -> None:
    """Without b = 0 hardly any noise seems enough for persons with one item."""
    mechanism = WeightedHistogram(None, 2.0, 0.05, Weights.cap(1))
    release = release_of(mechanism)
    mechanism.__dict__["release"] = replace(release, sigma=release.sigma / 2)
    caught(Claiming(mechanism, (3 * UNIT,), Claims(release_of(mechanism), least_own=1)))


def test_one_direction_alone_is_caught() -> None:
    mechanism = WeightedHistogram(None, 0.3, 0.6, SHARE)
    claim = Claims(release_of(mechanism), directions=("removing",))
    caught(Claiming(mechanism, (3 * UNIT,), claim))


# --- calibration ------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [Weights.share(), Weights.cap(5), Weights.share(20)], ids=str)
def test_the_threshold_is_the_least(weights: Weights) -> None:
    release = joint(weights, Fraction(1), Fraction(1, 10**6))
    assert release.keeps(Fraction(1), Fraction(1, 10**6))
    lower = replace(release, threshold=release.threshold - Fraction(1, UNIT))
    assert not lower.keeps(Fraction(1), Fraction(1, 10**6))


def test_noise_and_threshold_each_get_nearly_all_of_delta() -> None:
    release = joint(Weights.share(), Fraction(1), Fraction(1, 10**6))
    assert float(release.sigma) == pytest.approx(7.35, abs=0.01)
    assert float(release.threshold) == pytest.approx(41.4, abs=0.01)
    assert float(release.failure) > 0.999e-6
    assert gaussian(release.mu_squared).delta(1) > 0.9e-6


@pytest.mark.parametrize("x", [0.0, 0.5, 1.0, 1.7])
def test_the_bound_over_cells_is_the_largest_pair(x: float) -> None:
    release = joint(Weights.share(12), Fraction(1), Fraction(1, 1000))
    with precision(128):
        pairs = [
            release.divergence(n, own, Fraction(x)) for n in range(1, 13) for own in range(n + 1)
        ]
    assert release.delta(x) == pytest.approx(max(map(float, pairs)), rel=1e-12)
    assert release.delta(release.epsilon(Fraction(1, 1000))) <= 0.001


def test_a_release_keeps_to_its_budget_and_adds_up_by_parts() -> None:
    loss = WeightedHistogram(None, 1.0, 1e-6).loss
    assert loss.epsilon(1e-6) <= 1 < loss.epsilon(0.9e-6)
    twice = 2 * loss
    assert twice == loss + loss == gaussian(2 * loss.mu_squared) + Loss(failures=2 * loss.failures)
    assert twice.epsilon(1e-6) == math.inf
    assert twice.epsilon(1e-5) > 1.25
    assert (loss + Loss()).joint == loss.joint


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_a_public_domain_needs_no_threshold(adjacency: str) -> None:
    mechanism = WeightedHistogram(3, 1.0, 1e-6, domain="public", adjacency=adjacency)  # type: ignore[arg-type]
    assert mechanism.threshold is None
    assert not mechanism.loss.failures
    assert 0.9999 < mechanism.loss.epsilon(1e-6) <= 1


def test_replace_adds_noise_and_divides_delta() -> None:
    mechanism = WeightedHistogram(None, 1.0, 1e-6, adjacency="replace")
    assert mechanism.sigma / WeightedHistogram(None, 1.0, 1e-6).sigma == pytest.approx(1.41, 0.01)
    assert mechanism.loss.joint is None
    assert 0.99 < mechanism.loss.epsilon(1e-6) <= 1


# --- weights ----------------------------------------------------------------------------------


@given(st.integers(1, 300), st.integers(1, 40))
def test_weights_never_exceed_the_norm(most: int, full: int) -> None:
    weights = Weights("share", max(most, full), full)
    for n, weight in enumerate(weights.table, 1):
        assert n * weight**2 <= full * UNIT**2
    assert list(weights.table) == sorted(weights.table, reverse=True)
    assert weights.squared_norm == full


@settings(max_examples=30)
@given(st.dictionaries(st.integers(0, 9), st.sets(st.sampled_from("abcdefgh")), max_size=6))
def test_one_person_more_moves_their_own_items_only(holdings: dict[int, set[str]]) -> None:
    weights = Weights.share(3)
    before = weighted_sums(holdings, weights, b"salt")
    after = weighted_sums({**holdings, 99: set("abcde")}, weights, b"salt")
    moved = {i: after[i] - before.get(i, 0) for i in after if after[i] != before.get(i, 0)}
    assert set(moved) == set(kept_items(99, set("abcde"), 3, b"salt"))
    assert sum(step**2 for step in moved.values()) <= 3 * UNIT**2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Weights("half", 3, 3), "weighting='half' must be 'share' or 'cap'"),  # type: ignore[arg-type]
        (lambda: Weights.cap(0), "must rise from 1"),
        (lambda: Weights("cap", 5, 3), "a cap counts all kept items in full"),
    ],
)
def test_wrong_weights_are_refused(wrong: object, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        wrong()  # type: ignore[operator]


# --- drawing ----------------------------------------------------------------------------------


def crowd() -> dict[str, list[str]]:
    few = {f"a{n}": ["tea", "jam"] if n < 60 else ["tea"] for n in range(140)}
    return {**few, **{f"b{n}": ["tea", "jam", "oil", "rye", "nut"] for n in range(30)}}


def test_values_are_the_sums_with_noise() -> None:
    bits = ReplayableBits(b"values")
    histogram = Histogram.of_holdings(crowd(), Weights.share())
    mechanism = WeightedHistogram(1, 2.0, 1e-5)
    values = [mechanism.select(histogram, bits).values for _ in range(200)]
    drawn = np.array([value[0] / UNIT for value in values if value])
    total = weighted_sums(crowd(), Weights.share())["tea"] / UNIT
    sigma = float(mechanism.sigma)
    assert len(drawn) == 200
    assert abs(drawn.mean() - total) < 5 * sigma / math.sqrt(200)
    assert 0.75 * sigma < drawn.std() < 1.25 * sigma


@pytest.mark.parametrize("case", WeightedHistogram.verification_cases()[1:6:4], ids=str)
def test_the_draw_follows_the_law(case: BinnedValues) -> None:
    holdings = {"p": "ab", "q": "a", "r": "ac", "s": "bc", "t": "a"}
    persons = {person: list(items) for person, items in holdings.items()}
    histogram = case.counted(persons, "abcd" if case.public_domain else None)
    check_sampler(case, histogram, 1_000, bits=ReplayableBits(b"law")).require()


def test_a_lower_threshold_in_the_draw_is_caught() -> None:
    class Wrong(BinnedValues):
        def select(self, histogram: Histogram, bits: object = None) -> object:  # type: ignore[override]
            return BinnedValues(lowered(Fraction(1, 2)), self.cuts).select(histogram, bits)  # type: ignore[arg-type]

    persons = {"p": ["a", "b"], "q": ["a"], "r": ["a", "c"], "s": ["b", "c"], "t": ["a"]}
    histogram = PLANTED.counted(persons, None)
    wrong: Any = Wrong(RELEASE, (3 * UNIT,))
    report = check_sampler(wrong, histogram, 1_000, bits=ReplayableBits(b"no"))
    assert not report.passed


def test_everything_safe_is_named_best_first() -> None:
    histogram = Histogram.of_holdings(crowd(), Weights.share())
    answer = WeightedHistogram(None, 2.0, 1e-5).select(histogram, ReplayableBits(b"all"))
    assert answer.items[:2] == ("tea", "jam")
    assert answer.complete
    assert list(answer.values or ()) == sorted(answer.values or (), reverse=True)
    assert answer.at_least is not None
    assert answer.at_least[0] > 100


def test_at_least_keeps_what_surely_has_so_many() -> None:
    histogram = Histogram.of_holdings(crowd(), Weights.share())
    named = WeightedHistogram(None, 2.0, 1e-5, at_least=100).select(histogram, ReplayableBits(b"n"))
    assert named.items == ("tea",)
    assert min(named.at_least or ()) >= 100
    none = WeightedHistogram(None, 2.0, 1e-5, at_least=10**6).select(
        histogram, ReplayableBits(b"n")
    )
    assert none.items == ()


def test_an_empty_histogram_is_an_ordinary_one() -> None:
    histogram = Histogram.of_holdings({}, Weights.share())
    assert WeightedHistogram(None, 1.0, 1e-6).select(histogram).items == ()
    assert not WeightedHistogram(3, 1.0, 1e-6).select(histogram).complete


def test_counts_of_persons_are_not_sums_of_weights() -> None:
    with pytest.raises(InvalidParameter, match="must have been counted with Weights"):
        WeightedHistogram(3, 1.0, 1e-6).select(Histogram.of({"a": 5}))
    other = Histogram.of_holdings({"p": ["a"]}, Weights.cap(2))
    with pytest.raises(InvalidParameter, match="must have been counted with Weights"):
        WeightedHistogram(3, 1.0, 1e-6).select(other)


def test_a_public_domain_must_be_given() -> None:
    histogram = Histogram.of_holdings({"p": ["a"]}, Weights.share())
    with pytest.raises(DomainRequired):
        WeightedHistogram(1, 1.0, 1e-6, domain="public").select(histogram)
    with pytest.raises(InvalidParameter, match="a public domain has none"):
        WeightedHistogram(None, 1.0, 1e-6, domain="public")


# --- bounds -----------------------------------------------------------------------------------


def test_bounds_hold_for_whole_lists() -> None:
    """1,000 labels at the threshold, where the head of the list is pure luck."""
    rng = np.random.default_rng(3)
    sigma, threshold, truth = Fraction(7), Fraction(41), 41
    missed = single = 0
    for _ in range(25):
        values = truth + 7 * rng.standard_normal(1000)
        named = np.sort(values[values > 41])[::-1][:15]
        units = [round(v * UNIT) for v in named]
        total = int((values > 41).sum())
        missed += max(persons_at_least(units, total, sigma, threshold)) > truth
        single += max(persons_at_least(units, 1, sigma, threshold)) > truth
    assert missed <= 6  # 5% of 25 is 1.25
    assert single == 25  # a bound for one label fails for the head of the list


@pytest.mark.parametrize("truth", [20, 41, 60, 100])
def test_a_single_bound_covers_nineteen_times_in_twenty(truth: int) -> None:
    rng = np.random.default_rng(4)
    values = truth + 7 * rng.standard_normal(40_000)
    named = values[values > 41][:200]
    bounds = [persons_at_least([round(v * UNIT)], 1, Fraction(7), Fraction(41))[0] for v in named]
    assert np.mean(np.array(bounds) > truth) < 0.05 + 5 * math.sqrt(0.05 / max(1, len(named)))


def test_bounds_fall_along_the_list() -> None:
    values = [200_000, 100_000, 60_000, 42_500]
    bounds = persons_at_least(values, 4, Fraction(7), Fraction(41))
    assert list(bounds) == sorted(bounds, reverse=True)
    assert bounds[-1] == 1
    alone = [persons_at_least([v], 4, Fraction(7), Fraction(41))[0] for v in values]
    assert list(bounds) == alone
