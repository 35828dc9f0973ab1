"""GumbelTopK: law, properties, extremes."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret import Histogram
from topsecret.errors import DomainRequired, InvalidParameter
from topsecret.mechanisms import GumbelTopK
from topsecret.noise.bits import ReplayableBits, SystemBits

COUNTS = st.lists(st.integers(0, 2**63), min_size=1, max_size=8)
SCALES = st.sampled_from([1e-9, 2 / 3, 3 / 7, 10.0, 1e9])


def public(counts):
    return Histogram.of(dict(enumerate(counts)), domain=range(len(counts)))


def test_law_of_one_pick_is_the_exponential_mechanism():
    law = GumbelTopK(k=1, scale=2 / 3).distribution(public([2, 1, 0]))
    weights = [math.exp(3.0), math.exp(1.5), 1.0]
    for item, weight in enumerate(weights):
        assert law[(item,)] == pytest.approx(weight / sum(weights), rel=1e-12)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=5), st.data())
def test_the_law_sums_to_one_and_the_first_picks_are_the_shorter_list(counts, data):
    k = data.draw(st.integers(1, len(counts)))
    j = data.draw(st.integers(1, k))
    longer = GumbelTopK(k=k, scale=3 / 7).distribution(public(counts))
    shorter = GumbelTopK(k=j, scale=3 / 7).distribution(public(counts))
    assert math.fsum(longer.values()) == pytest.approx(1, abs=1e-12)
    first = Counter()
    for outcome, chance in longer.items():
        first[outcome[:j]] += chance
    for outcome, chance in shorter.items():
        assert first[outcome] == pytest.approx(chance, rel=1e-9, abs=1e-15)


@settings(max_examples=50)
@given(COUNTS, SCALES, st.data())
def test_no_item_twice_and_always_k(counts, scale, data):
    k = data.draw(st.integers(1, len(counts)))
    answer = GumbelTopK(k=k, scale=scale).select(public(counts))
    assert answer.complete
    assert len(set(answer.items)) == len(answer.items) == k


@settings(max_examples=50)
@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=8), SCALES, st.integers(0, 2**62))
def test_a_common_shift_changes_nothing(counts, scale, shift):
    """Same bits, same answer: the law of the shifted scores is the same law."""
    mechanism = GumbelTopK(k=len(counts), scale=scale)
    plain = mechanism.select(Histogram.from_counts(counts), ReplayableBits(b"x"))
    moved = mechanism.select(
        Histogram.from_counts([count + shift for count in counts]), ReplayableBits(b"x")
    )
    assert plain == moved


@settings(max_examples=50)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.randoms())
def test_renaming_the_items_renames_the_answer(counts, random):
    names = list(range(len(counts)))
    random.shuffle(names)
    law = GumbelTopK(k=min(2, len(counts)), scale=2 / 3).distribution(public(counts))
    renamed = GumbelTopK(k=min(2, len(counts)), scale=2 / 3).distribution(
        Histogram.of(dict(zip(names, counts, strict=True)), domain=range(len(counts)))
    )
    for outcome, chance in law.items():
        assert renamed[tuple(names[i] for i in outcome)] == pytest.approx(chance, rel=1e-12)


def test_smallest_ranks_the_other_way():
    h = public([100, 50, 0])
    assert GumbelTopK(k=3, scale=1e-9).select(h).items == (0, 1, 2)
    assert GumbelTopK(k=3, scale=1e-9, smallest=True).select(h).items == (2, 1, 0)
    law = GumbelTopK(k=1, scale=10.0, smallest=True).distribution(h)
    assert law[(2,)] > law[(1,)] > law[(0,)]


def test_extremes_stay_exact():
    counts = [2**62, 2**62 - 1, 0]
    h = public(counts)
    assert GumbelTopK(k=3, scale=1e-9).select(h).items == (0, 1, 2)
    wins = sum(GumbelTopK(k=1, scale=1e9).select(h).items == (0,) for _ in range(2000))
    assert 800 < wins < 1200  # a fair coin: alarm rate below 10⁻¹⁷
    assert GumbelTopK(k=1, scale=1.0).select(public([7])).items == (0,)
    tiny = GumbelTopK(k=1, scale=5e-324).select(public([1, 0]))
    assert tiny.items == (0,)


def test_real_scores():
    scores = np.array([0.25, 0.75, -0.5])
    h = Histogram.from_counts(scores)
    assert GumbelTopK(k=2, scale=1e-9).select(h).items == (1, 0)
    law = GumbelTopK(k=1, scale=0.5).distribution(h)
    weights = np.exp(scores / 0.5)
    assert law[(1,)] == pytest.approx(weights[1] / weights.sum(), rel=1e-12)


def test_a_quintillion_of_items():
    h = Histogram.of({5: 3}, domain=range(10**18))
    items = GumbelTopK(k=50, scale=1.0).select(h).items
    assert len(set(items)) == 50
    assert all(0 <= item < 10**18 for item in items)
    loud = Histogram.of({5: 10**6}, domain=range(10**18))
    assert GumbelTopK(k=1, scale=1.0).select(loud).items == (5,)


def test_cost():
    assert GumbelTopK(k=10, scale=10.0).loss.epsilon(1e-6) == pytest.approx(0.6342, rel=2e-3)
    one, two = (
        GumbelTopK(k=1, scale=10.0, adjacency=a).loss.epsilon(1e-9)
        for a in ("add-remove", "replace")
    )
    assert two > 1.9 * one
    assert GumbelTopK(k=5, scale=0).loss.epsilon(0.5) == math.inf
    assert GumbelTopK(k=5, scale=1.0, sensitivity=0).loss.epsilon(1e-9) == 0


def test_without_noise_ties_are_broken_at_random():
    h = public([1, 1, 0])
    assert GumbelTopK(k=1, scale=0).distribution(h) == {(0,): 0.5, (1,): 0.5}
    assert GumbelTopK(k=3, scale=0).distribution(h) == {(0, 1, 2): 0.5, (1, 0, 2): 0.5}
    seen = {GumbelTopK(k=3, scale=0).select(h).items for _ in range(100)}
    assert seen == {(0, 1, 2), (1, 0, 2)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0, "scale": 1.0}, "k=0 must be at least 1; raise k"),
        ({"k": 1.5, "scale": 1.0}, "k=1.5 must be a whole number"),
        ({"k": True, "scale": 1.0}, "k=True must be a whole number"),
        ({"k": 1, "scale": -1.0}, "scale=-1.0 must be at least 0"),
        ({"k": 1, "scale": math.nan}, "scale=nan must be finite"),
        ({"k": 1, "scale": math.inf}, "scale=inf must be finite"),
        ({"k": 1, "scale": "much"}, "scale must be a number; found a str"),
        ({"k": 1, "scale": 1.0, "sensitivity": -1}, "sensitivity=-1 must be at least 0"),
        ({"k": 1, "scale": 1.0, "adjacency": "swap"}, "must be 'add-remove' or 'replace'"),
    ],
)
def test_bad_parameters_name_the_rule(arguments, message):
    with pytest.raises(InvalidParameter, match=message):
        GumbelTopK(**arguments)


def test_what_it_cannot_run_on():
    with pytest.raises(DomainRequired, match="GumbelTopK names any item of a public domain"):
        GumbelTopK(k=1, scale=1.0).select(Histogram.of({"a": 1}))
    with pytest.raises(InvalidParameter, match="k=3 must be at most the 2 items"):
        GumbelTopK(k=3, scale=1.0).select(public([1, 2]))
    with pytest.raises(InvalidParameter, match="k=1 must be at most the 0 items"):
        GumbelTopK(k=1, scale=1.0).select(public([]))


def test_system_randomness_is_the_default():
    h = public([0] * 50)
    lists = {GumbelTopK(k=10, scale=1.0).select(h).items for _ in range(20)}
    assert len(lists) == 20
    assert GumbelTopK(k=10, scale=1.0).select(h, SystemBits()).complete
