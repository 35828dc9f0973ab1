"""CanonicalSet and OneshotPrivateLength: laws by brute force, claims, wrong variants, draws."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from flint import arb
from tests.verify.planted import Planted, Stated

from topsecret.accounting import Loss, picks, pure
from topsecret.counts.engine_table import GroupedTable
from topsecret.counts.histogram import Histogram
from topsecret.errors import DomainRequired, InvalidParameter
from topsecret.mechanisms import (
    CanonicalSet,
    OneshotExponential,
    OneshotPrivateLength,
    canonical_classes,
)
from topsecret.mechanisms.canonical_classes import Classes
from topsecret.mechanisms.private_length import lengths, whole_offsets
from topsecret.mechanisms.ranked_groups import RankedGroups
from topsecret.mechanisms.selection import Outcome
from topsecret.noise.bits import ReplayableBits
from topsecret.verify import check_privacy, check_sampler

COUNTS = {"a": 6, "b": 4, "c": 4, "d": 3}


def histogram() -> Histogram:
    return Histogram.of(COUNTS, domain=tuple(COUNTS))


# Laws by brute force, in floats and from the definition alone.


def chances_of_lengths(margins: list[float], unit: float) -> list[float]:
    """Report-noisy-max with exponential noise: Gauss's rule is exact for these polynomials."""
    later = [*margins[1:], 0.0]
    scores = [-max(0.0, -u, v) for u, v in zip(margins, later, strict=True)]
    passes = [math.exp((score - max(scores)) / unit) for score in scores]
    nodes, weights = np.polynomial.legendre.leggauss(16)
    product = [math.prod(1 - (x + 1) / 2 * p for p in passes) for x in nodes]
    return [
        sum(
            w / 2 * p * whole / (1 - (x + 1) / 2 * p)
            for x, w, whole in zip(nodes, weights, product, strict=True)
        )
        for p in passes
    ]


def canonical_law(mechanism: CanonicalSet, h: list[int]) -> dict[tuple[int, ...], float]:
    halves = 2 if mechanism.adjacency == "replace" else 1
    for_size, for_set = (share * float(mechanism.epsilon) / halves for share in (0.15, 0.85))
    ranked, d, k = sorted(h, reverse=True), len(h), mechanism.k
    ranks = [t for t in mechanism.ranks or (10 * k, 100 * k) if t < d]

    def needed(m, r, t):
        return math.ceil(math.log(math.comb(t - r, m - r)) / for_set)

    margins = [
        min(
            0.4 * ranked[m - 1] + 0.3 * ranked[r] - 0.7 * level - needed(m, r, t)
            for r in range(m)
            for t, level in [*((t, ranked[t - 1]) for t in ranks), (d, 0)]
        )
        for m in lengths(k)
    ]
    law = {}
    for m, chance in zip(lengths(k), chances_of_lengths(margins, 1.4 / for_size), strict=True):
        weights = {}
        for chosen in combinations(range(d), m):
            outside = [h[i] for i in range(d) if i not in chosen]
            score = 0.7 * min(h[i] for i in chosen) - 0.3 * max(outside, default=0)
            weights[chosen] = math.exp(for_set * score)
        total = sum(weights.values())
        law |= {(m, *chosen): chance * w / total for chosen, w in weights.items()}
    return law


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("ranks", [None, (3,), (3, 4)])
def test_the_classes_give_the_law_over_all_subsets(adjacency, ranks):
    rng = np.random.default_rng(25)
    for d in (3, 4, 5, 6):
        h = rng.integers(0, 7, d).tolist()
        for epsilon in (0.3, 3.0):
            mechanism = CanonicalSet(3, epsilon, adjacency, ranks=ranks)
            law = mechanism.distribution(Histogram.from_counts(h))
            assert law == pytest.approx(canonical_law(mechanism, h), abs=1e-14)


def test_filled_sets_are_completed_uniformly():
    plain = CanonicalSet(3, 2.0).distribution(histogram())
    filled = CanonicalSet(3, 2.0, fill=True).distribution(histogram())
    for (m, *items), chance in filled.items():
        assert chance == pytest.approx(plain[m, *items[:m]] / math.comb(4 - m, 3 - m), rel=1e-14)
        assert len(set(items)) == 3
    assert sum(filled.values()) == pytest.approx(1)


def test_the_law_of_a_list_of_private_length():
    mechanism = OneshotPrivateLength(3, 3.0, ranks=(3,))
    law = mechanism.distribution(histogram())
    ranked = sorted(COUNTS.values(), reverse=True)
    price = 0.85 * 3
    margins = [
        min(
            ranked[m - 1] - ranked[2] - math.ceil(m * math.log(3 / m) / price),
            ranked[m - 1] - math.ceil(m * math.log(4 / m) / price),
        )
        for m in (1, 2, 3)
    ]
    chances = chances_of_lengths(margins, 2 / 0.45)
    for m, chance in zip((1, 2, 3), chances, strict=True):
        lists = OneshotExponential(m, price).distribution(histogram())
        for items in permutations(COUNTS, m):
            assert law[m, *items] == pytest.approx(chance * lists[items], rel=1e-12)


# Claims, and variants that break them.


@pytest.mark.parametrize(
    "mechanism",
    [
        *(case for case in CanonicalSet.verification_cases() if case.k > 1),
        *(case for case in OneshotPrivateLength.verification_cases() if case.k == 2),
    ],
    ids=str,
)
def test_the_claim_holds(mechanism):
    report = check_privacy(mechanism, items=4, max_count=3, tall=8).require()
    assert report.tightest is not None
    assert report.between == 0


# The steps one by one: each against its own claim.


def size_alone(mechanism: CanonicalSet | OneshotPrivateLength, claim: Loss) -> Stated:
    def law(histogram: Histogram) -> dict[Outcome, arb]:
        sizes: dict[Outcome, arb] = {}
        for outcome, chance in mechanism.probabilities(histogram).items():
            sizes[outcome[:1]] = sizes.get(outcome[:1], arb(0)) + chance
        return sizes

    return Stated(law, claim, mechanism.adjacency, meets_claim_exactly=True)


def set_alone(mechanism: CanonicalSet, m: int) -> Stated:
    def law(histogram: Histogram) -> dict[Outcome, arb]:
        histogram.require_domain("a set", m)
        counts = dict(histogram.scores())
        order = sorted(counts, key=lambda item: -counts[item])
        drawn = mechanism.set_law(RankedGroups.of(histogram), m, 160)
        return {
            tuple(sorted(str(order[place]) for place in places)): chance
            for places, chance in drawn.items()
        }

    return Stated(law, picks(1, mechanism.set_epsilon), mechanism.adjacency)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("m", [1, 2])
def test_the_set_alone_is_bounded_range(adjacency, m):
    stated = set_alone(CanonicalSet(2, 2.0, adjacency), m)
    report = check_privacy(stated, items=4, max_count=3, tall=6).require()
    assert report.tightest is not None
    assert report.tightest.divergence > 0.75 * report.tightest.claim


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("kind", [CanonicalSet, OneshotPrivateLength])
def test_the_size_alone_is_pure(kind, adjacency):
    mechanism = kind(2, 20.0, adjacency, ranks=(2, 3))
    report = check_privacy(size_alone(mechanism, pure(3.0)), items=4, max_count=3, tall=8)
    report.require()


@dataclass(frozen=True)
class HalfTheNoiseOfTheSize(CanonicalSet):
    @property
    def length_scale(self):
        return super().length_scale / 2


@dataclass(frozen=True)
class HalfTheNoiseOfTheLength(OneshotPrivateLength):
    @property
    def length_scale(self):
        return super().length_scale / 2


@pytest.mark.parametrize("kind", [HalfTheNoiseOfTheSize, HalfTheNoiseOfTheLength])
def test_half_the_noise_of_the_size_is_rejected(kind):
    """The scale ρ/ε_u, as if scores moved one way: u(m) moves both ways."""
    wrong = size_alone(kind(3, 20.0, ranks=(3,)), pure(3.0))
    assert check_privacy(wrong, items=4, max_count=4, tall=8).broken is not None


@dataclass(frozen=True)
class TwiceTheWeights(CanonicalSet):
    @property
    def exponents(self):
        a, b = super().exponents
        return 2 * a, 2 * b


@dataclass(frozen=True)
class NotHalved(TwiceTheWeights):
    """Runs at full price where persons are replaced."""

    @property
    def length_scale(self):
        return super().length_scale / 2


@dataclass(frozen=True)
class OneSetPerClass(CanonicalSet):
    """Forgets how many sets a class has: draws the class by its two factors alone."""

    def set_law(self, ranked, m, bits):
        law: dict[tuple[int, ...], arb] = {}
        classes = Classes(ranked, m, *self.exponents).law(bits)
        sets = {key: math.comb(key[1] - key[0], m - key[0]) for key in classes}
        total = sum((chance / sets[key] for key, chance in classes.items()), arb(0))
        for (leading, upto), chance in classes.items():
            share = chance / total / sets[leading, upto] ** 2
            for others in combinations(range(leading, upto), m - leading):
                places = (*range(leading), *others)
                law[places] = law.get(places, arb(0)) + share
        return law


@dataclass(frozen=True)
class TiesByOrder(CanonicalSet):
    """Names the first of the items with equal counts instead of drawing among them."""

    def set_law(self, ranked, m, bits):
        law: dict[tuple[int, ...], arb] = {}
        for places, chance in super().set_law(ranked, m, bits).items():
            group = np.searchsorted(ranked.reach, places, side="right")
            starts = np.concatenate([[0], ranked.reach])[group]
            first = tuple(
                int(start) + int(np.count_nonzero(group[:i] == group[i]))
                for i, start in enumerate(starts)
            )
            law[first] = law.get(first, arb(0)) + chance
        return law


@pytest.mark.parametrize(
    "wrong",
    [
        TwiceTheWeights(2, 1.0, ranks=(3,)),
        OneSetPerClass(2, 1.0, ranks=(3,)),
        TiesByOrder(2, 1.0, ranks=(3,)),
        NotHalved(2, 1.0, "replace", ranks=(3,)),
    ],
    ids=lambda wrong: type(wrong).__name__,
)
def test_a_wrong_set_is_rejected(wrong):
    assert check_privacy(wrong, items=4, max_count=4, tall=8).broken is not None


def test_the_loss_is_a_pure_step_and_a_bounded_range_step():
    mechanism = CanonicalSet(10, 0.1)
    assert mechanism.loss == pure(mechanism.size_epsilon) + picks(1, mechanism.set_epsilon)
    assert mechanism.loss.epsilon(0) == 0.1
    assert mechanism.loss.delta(0.1) == 0
    rho = mechanism.loss.rho()
    assert rho is not None
    assert rho <= 0.015**2 / 2 + 0.085**2 / 8 + 1e-12
    assert (50 * mechanism.loss).epsilon(1e-6) < 0.6 * (50 * pure(0.1)).epsilon(1e-6)
    assert OneshotPrivateLength(10, 0.1).loss.epsilon(0) == 0.1


# Draws.


@pytest.mark.parametrize(
    "mechanism",
    [
        CanonicalSet(2, 3.0, ranks=(3,)),
        CanonicalSet(3, 1.0, "replace", fill=True),
        OneshotPrivateLength(3, 5.0, ranks=(3,)),
    ],
    ids=str,
)
def test_the_sampler_draws_the_law(mechanism):
    """A correct sampler is rejected with probability at most 10⁻⁹."""
    bits = ReplayableBits(b"the law")
    check_sampler(mechanism, histogram(), 1000, alarm_rate=1e-9, bits=bits).require()


def test_a_sharper_draw_is_rejected():
    law, draws = CanonicalSet(2, 2.0), CanonicalSet(2, 3.0)
    planted = Planted(law, law, draws)
    bits = ReplayableBits(b"sharper")
    assert not check_sampler(planted, histogram(), 1000, alarm_rate=1e-9, bits=bits).passed


@pytest.fixture
def many() -> Histogram:
    rng = np.random.default_rng(7)
    return Histogram.from_counts((rng.pareto(1.2, 3000) * 20).astype(np.int64))


def test_what_is_left_out_is_bounded(many):
    """The kept classes and the bound on the others, against the exact weights of all."""
    classes = Classes(RankedGroups.of(many), 20, Fraction(3, 100), Fraction(7, 100))
    assert len(classes) > 1024  # otherwise no block is split
    weights = {
        (row, column): classes._weight(row, column, 64)
        for row in range(len(classes._leading))
        for column in range(len(classes._upto))
    }
    for cutoff in (-10.0, 2.0, 40.0):
        kept = classes._kept(cutoff)
        places = list(zip(kept.rows.tolist(), kept.columns.tolist(), strict=True))
        assert len(places) < len(weights)
        assert places == sorted(set(places))
        for place, value, error in zip(places, kept.value, kept.error, strict=True):
            assert abs(weights[place].log() - float(value)) <= float(error)
        others = sum((w for place, w in weights.items() if place not in set(places)), arb(0))
        assert others.log() <= kept.rest


def test_balls_decide_as_floats_do(many, monkeypatch):
    classes = Classes(RankedGroups.of(many), 5, Fraction(3, 1000), Fraction(7, 1000))
    seeds = [bytes([i]) for i in range(6)]
    by_floats = [classes.draw(ReplayableBits(seed)) for seed in seeds]
    monkeypatch.setattr(canonical_classes, "_decided_by_floats", lambda cells, uniform: None)
    assert [classes.draw(ReplayableBits(seed)) for seed in seeds] == by_floats
    assert len(set(by_floats)) > 1


def test_classes_come_as_often_as_their_law_says(many):
    """Chernoff at 10⁻⁹ for every class that is expected at least once."""
    ranked = RankedGroups.of(many)
    classes = Classes(ranked, 5, Fraction(3, 1000), Fraction(7, 1000))
    draws, bits = 600, ReplayableBits(b"classes")
    drawn = Counter(classes.draw(bits) for _ in range(draws))
    law = {key: float(chance) for key, chance in classes.law(64).items()}
    assert sum(law.values()) == pytest.approx(1)
    for key, chance in law.items():
        if chance * draws > 1:
            seen = drawn[key] / draws
            divergence = sum(
                x * math.log(x / y) for x, y in ((seen, chance), (1 - seen, 1 - chance)) if x
            )
            assert draws * divergence < math.log(2 * len(law) / 1e-9)


# Any counts, any domain.


@pytest.mark.parametrize("kind", [CanonicalSet, OneshotPrivateLength])
@pytest.mark.parametrize(
    "histogram",
    [
        Histogram.of({3: 10**6, 5: 10**6}, domain=range(10**18)),
        Histogram.of({}, domain=range(10**18)),
        Histogram.of({3: 0, 5: 0, 7: 1}, domain=range(100)),
        Histogram.from_counts([5] * 20),
        Histogram.from_counts([10**30, 10**30 - 1, -(10**25), *range(30)]),
        Histogram.from_counts([2**62, -(2**62), *range(30)]),
        Histogram.from_counts(list(range(10))),
    ],
    ids=[
        "huge",
        "empty",
        "zeros twice",
        "all equal",
        "large",
        "wide",
        "whole domain",
    ],
)
def test_any_counts_are_ordinary(kind, histogram):
    for epsilon in (1e-9, 0.5, 1e9):
        answer = kind(10, epsilon).select(histogram)
        assert len(answer.items) == len(set(answer.items)) == answer.chosen
        assert answer.chosen in lengths(10)
        assert answer.complete


def test_clear_counts_are_named():
    histogram = Histogram.of({3: 10**6, 5: 10**6, 7: 9 * 10**5}, domain=range(10**18))
    assert CanonicalSet(3, 1.0).select(histogram).items == (3, 5, 7)
    assert set(OneshotPrivateLength(3, 1.0).select(histogram).items) == {3, 5, 7}


def test_a_filled_answer_has_k_items_and_says_which_were_drawn():
    histogram = Histogram.of({3: 10**6, 5: 10**6}, domain=range(10**18))
    answer = CanonicalSet(50, 1.0, fill=True).select(histogram)
    assert answer.chosen is not None
    assert len(set(answer.items)) == 50
    assert list(answer.items[: answer.chosen]) == sorted(answer.items[: answer.chosen])
    assert list(answer.items[answer.chosen :]) == sorted(answer.items[answer.chosen :])


def test_an_engine_may_keep_the_domain():
    class Engine:
        size = 10**18

        def counts(self):
            return [(0, 10**18 - 2), (10**6, 2)]

        def items_at(self, wanted):
            return [f"{count} at {place}" for count, place in wanted]

        def leading(self, rows):
            return []

    answer = CanonicalSet(2, 1.0, fill=True).select(Histogram(GroupedTable(Engine())))
    assert answer.items[: answer.chosen] == ("1000000 at 0", "1000000 at 1")


@pytest.mark.parametrize("kind", [CanonicalSet, OneshotPrivateLength])
def test_wrong_parameters_name_the_fix(kind):
    with pytest.raises(InvalidParameter, match="k=0 must be at least 1; raise k"):
        kind(0, 1.0)
    with pytest.raises(InvalidParameter, match="epsilon=1e-10 must lie between 1e-9 and 1e9"):
        kind(1, 1e-10)
    with pytest.raises(InvalidParameter, match="ranks=3 must be at least 5; raise ranks"):
        kind(5, 1.0, ranks=(3,))
    with pytest.raises(InvalidParameter, match="adjacency='sideways' must be"):
        kind(5, 1.0, "sideways")
    with pytest.raises(InvalidParameter, match="k=5 must be at most the 4 items"):
        kind(5, 1.0).select(histogram())
    with pytest.raises(DomainRequired, match="names any item of a public domain"):
        kind(5, 1.0).select(Histogram.of(COUNTS))
    with pytest.raises(InvalidParameter, match="needs integer counts"):
        kind(1, 1.0).select(Histogram.from_counts([0.5, 1.5]))


def test_offsets_that_would_wrap_around_are_refused() -> None:
    """By the public numbers alone. Wrapped, the worst margin would become the best."""
    with pytest.raises(InvalidParameter, match="k is too large for so small an epsilon"):
        whole_offsets(np.array([1.0, 2.0**60]))
    nobody = RankedGroups(*(np.array([value]) for value in (0, 10**18, 0, 10**18)))
    with pytest.raises(InvalidParameter, match="k is too large for so small an epsilon"):
        OneshotPrivateLength(k=10**9, epsilon=1e-9).margins(nobody, 10**18)
