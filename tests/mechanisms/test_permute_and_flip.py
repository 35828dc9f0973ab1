"""PermuteAndFlip: law, rounds over groups, ordinary answers on odd inputs, planted defects."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret.accounting import failure, picks, pure
from topsecret.counts.histogram import Histogram
from topsecret.errors import DomainRequired, InvalidParameter, TooLarge
from topsecret.exact.rounding import exact
from topsecret.mechanisms import GumbelTopK, OneshotExponential, PermuteAndFlip
from topsecret.verify import check_privacy, check_sampler

TIED = {"a": 3, "b": 2, "c": 2, "d": 0}
COUNTS = st.lists(st.integers(0, 6), min_size=1, max_size=4)


def histogram(counts=TIED):
    return Histogram.of(counts, domain=tuple(counts))


def round_by_coins(scores, scale):
    """Every item flips heads with e^((h − max)/τ); one of the heads wins, each alike."""
    best = max(scores.values())
    law = dict.fromkeys(scores, 0.0)
    for coins in product([False, True], repeat=len(scores)):
        heads = [item for item, coin in zip(scores, coins, strict=True) if coin]
        chance = 1.0
        for item, coin in zip(scores, coins, strict=True):
            p = math.exp((scores[item] - best) / scale)
            chance *= p if coin else 1 - p
        for item in heads:
            law[item] += chance / len(heads)
    return law


def by_coins(counts, scale, k):
    law = {}
    for order in permutations(counts, k):
        left, chance = dict(counts), 1.0
        for item in order:
            chance *= round_by_coins(left, scale)[item]
            del left[item]
        law[order] = chance
    return law


@pytest.mark.parametrize("scale", [2 / 3, 3 / 7, 10 / 7])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_law_is_that_of_flipping_coins(scale, k):
    law = PermuteAndFlip(k=k, scale=scale).distribution(histogram())
    assert law == pytest.approx(by_coins(TIED, scale, k), rel=1e-12)


@pytest.mark.parametrize("scale", [2 / 3, 3 / 7])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_sampler_draws_the_law(scale, k):
    """A correct sampler is rejected with probability at most 10⁻⁹."""
    check_sampler(PermuteAndFlip(k=k, scale=scale), histogram(), 2000, alarm_rate=1e-9).require()


def test_groups_of_a_large_domain_are_items():
    """The unobserved items of a large domain run as one group of score 0."""
    mechanism = PermuteAndFlip(k=3, scale=0.01)
    answer = mechanism.select(Histogram.of({7: 9, 5: 4}, domain=range(10**18)))
    assert answer.items[:2] == (7, 5)
    assert answer.items[2] not in (5, 7)


@pytest.mark.parametrize("case", PermuteAndFlip.verification_cases(), ids=str)
def test_no_neighbour_breaks_the_claim(case):
    check_privacy(case, items=4, max_count=3).require()


def test_the_claim_is_met_at_one_pick():
    law = PermuteAndFlip(k=1, scale=0.5).distribution(histogram({"a": 0, "b": 1}))
    more = PermuteAndFlip(k=1, scale=0.5).distribution(histogram({"a": 1, "b": 1}))
    assert math.log(more["a",] / law["a",]) == pytest.approx(2, rel=1e-12)


def test_one_pick_is_the_oneshot_mechanism():
    """Two derivations of one law: a polynomial integral and a piecewise one."""
    polynomial = PermuteAndFlip(k=1, scale=0.5).probabilities(histogram())
    piecewise = OneshotExponential(k=1, epsilon=2.0).probabilities(histogram())
    assert all(polynomial[outcome].overlaps(piecewise[outcome]) for outcome in polynomial)


def test_the_loss_is_k_pure_steps():
    mechanism = PermuteAndFlip(k=3, scale=2, sensitivity=0.5, adjacency="replace")
    assert mechanism.loss == 3 * pure(0.5)
    assert PermuteAndFlip(k=3, scale=0).loss == failure(1)
    assert PermuteAndFlip(k=3, scale=0, sensitivity=0).loss.epsilon(0) == 0


# Planted defects: each is caught.


@dataclass(frozen=True)
class ChargedAsPicks(PermuteAndFlip):
    @property
    def loss(self):
        return picks(self.k, 1 / exact(self.scale))


@dataclass(frozen=True)
class ChargedOnce(PermuteAndFlip):
    @property
    def loss(self):
        return pure(1 / exact(self.scale))


@dataclass(frozen=True)
class HalvedUnderReplace(PermuteAndFlip):
    @property
    def loss(self):
        return self.k * pure(1 / exact(self.scale))


@dataclass(frozen=True)
class GumbelInstead(PermuteAndFlip):
    def select(self, histogram, bits=None):
        return GumbelTopK(self.k, self.scale).select(histogram, bits)


@dataclass(frozen=True)
class Reversed(PermuteAndFlip):
    def select(self, histogram, bits=None):
        return PermuteAndFlip(self.k, self.scale, smallest=True).select(histogram, bits)


@dataclass(frozen=True)
class DividedWrongly(PermuteAndFlip):
    def select(self, histogram, bits=None):
        return PermuteAndFlip(self.k, 1 / self.scale).select(histogram, bits)


@dataclass(frozen=True)
class OneNoiseForAllRounds(PermuteAndFlip):
    def select(self, histogram, bits=None):
        epsilon = self.k / self.scale
        return OneshotExponential(self.k, epsilon).select(histogram, bits)


@dataclass(frozen=True)
class LastGroupTwice(PermuteAndFlip):
    def select(self, histogram, bits=None):
        answer = super().select(histogram, bits)
        return replace(answer, items=(*answer.items[:-1], answer.items[0]))


@pytest.mark.parametrize(
    "defect",
    [
        ChargedAsPicks(k=1, scale=0.5),
        ChargedAsPicks(k=2, scale=2 / 3),
        ChargedOnce(k=2, scale=2 / 3),
        HalvedUnderReplace(k=1, scale=2 / 3, adjacency="replace"),
    ],
    ids=str,
)
def test_a_wrong_charge_breaks_its_claim(defect):
    report = check_privacy(defect, items=3, max_count=3)
    assert not report.passed
    assert report.broken is not None


@pytest.mark.parametrize(
    "defect",
    [
        GumbelInstead(k=1, scale=2 / 3),
        Reversed(k=1, scale=2 / 3),
        DividedWrongly(k=1, scale=2 / 3),
        OneNoiseForAllRounds(k=3, scale=2.0),
        LastGroupTwice(k=2, scale=2 / 3),
    ],
    ids=str,
)
def test_a_wrong_draw_is_rejected(defect):
    assert not check_sampler(defect, histogram(), 4000, alarm_rate=1e-9).passed


# Properties.


@settings(max_examples=50)
@given(COUNTS, st.integers(1, 4), st.sampled_from([1e-9, 2 / 3, 1e9]), st.booleans())
def test_no_item_comes_twice(counts, k, scale, smallest):
    k = min(k, len(counts))
    answer = PermuteAndFlip(k, scale, smallest=smallest).select(Histogram.from_counts(counts))
    assert len(set(answer.items)) == k
    assert answer.complete
    assert answer.ordered
    assert set(answer.items) <= set(range(len(counts)))


@settings(max_examples=25)
@given(COUNTS, st.permutations("wxyz"), st.integers(1, 2), st.integers(-5, 2**70))
def test_the_law_follows_names_and_ignores_shifts(counts, names, k, shift):
    k = min(k, len(counts))
    names = names[: len(counts)]
    plain = Histogram.from_counts(counts)
    moved = {name: count + shift for name, count in zip(names, counts, strict=True)}
    mechanism = PermuteAndFlip(k, 2 / 3)
    renamed = mechanism.probabilities(histogram(moved))
    for outcome, chance in mechanism.probabilities(plain).items():
        assert renamed[tuple(names[i] for i in outcome)].overlaps(chance)


def test_smallest_is_the_mirror_image():
    mirror = {item: -count for item, count in TIED.items()}
    lowest = PermuteAndFlip(2, 2 / 3, smallest=True).distribution(histogram())
    assert lowest == PermuteAndFlip(2, 2 / 3).distribution(histogram(mirror))


@pytest.mark.parametrize("counts", [{}, {"a": 0, "b": 0}, {"a": 5, "b": 5}, {"c": 2**70}])
@pytest.mark.parametrize("scale", [0, 2 / 3])
def test_ordinary_answers_on_all_inputs(counts, scale):
    h = Histogram.of(counts, domain=("a", "b", "c"))
    assert sorted(PermuteAndFlip(3, scale).select(h).items) == ["a", "b", "c"]
    assert math.fsum(PermuteAndFlip(3, scale).distribution(h).values()) == pytest.approx(1)


def test_without_noise_ties_are_broken_at_random():
    law = PermuteAndFlip(2, 0).distribution(histogram())
    assert law == {("a", "b"): 0.5, ("a", "c"): 0.5}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 0}, "k=0 must be at least 1; raise k"),
        ({"k": 1.5}, "k=1.5 must be a whole number, such as 1"),
        ({"scale": -1}, "scale=-1 must be at least 0; raise scale"),
        ({"scale": math.nan}, "scale=nan must be finite"),
        ({"sensitivity": -2}, "sensitivity=-2 must be at least 0; raise sensitivity"),
        ({"adjacency": "both"}, "adjacency='both' must be 'add-remove' or 'replace'"),
    ],
)
def test_bad_parameters(changes, message):
    with pytest.raises(InvalidParameter) as caught:
        PermuteAndFlip(**{"k": 1, "scale": 1.0, **changes})
    assert str(caught.value) == message


def test_the_domain_must_be_public_and_large_enough():
    with pytest.raises(DomainRequired, match="PermuteAndFlip names any item of a public domain"):
        PermuteAndFlip(1, 1.0).select(Histogram.of({"a": 1}))
    with pytest.raises(InvalidParameter, match="k=5 must be at most the 4 items"):
        PermuteAndFlip(5, 1.0).select(histogram())
    with pytest.raises(TooLarge, match="5 rounds among 40 items has more than 200000 outcomes"):
        PermuteAndFlip(5, 1.0).distribution(Histogram.from_counts(np.zeros(40, dtype=int)))


def test_the_scale_is_the_users_number_exactly():
    assert PermuteAndFlip(1, Fraction(2, 3)).loss == pure(Fraction(3, 2))
