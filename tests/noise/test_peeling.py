"""Rounds with fresh noise: the law of permute-and-flip, on every path through the code."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret.noise import peeling
from topsecret.noise.bits import ReplayableBits, SystemBits
from topsecret.noise.distributions import EXPONENTIAL, GUMBEL, LAPLACE
from topsecret.noise.peeling import peel
from topsecret.noise.race import race
from topsecret.noise.screening import ScoreGroups


def flip_law(scores, sizes, scale):
    """One round: an item flips heads with e^((h − max)/τ); one of the heads wins, each alike."""
    items = [group for group, size in enumerate(sizes) for _ in range(size)]
    best = max(scores[group] for group in items)
    heads = [math.exp((scores[group] - best) / scale) for group in items]
    law = Counter()
    for coins in product([0, 1], repeat=len(items)):
        chance = math.prod(p if coin else 1 - p for p, coin in zip(heads, coins, strict=True))
        for group, coin in zip(items, coins, strict=True):
            if coin:
                law[group] += chance / sum(coins)
    return law


def two_rounds(scores, sizes, scale):
    law = {}
    for first, chance in flip_law(scores, sizes, scale).items():
        left = [size - (group == first) for group, size in enumerate(sizes)]
        for second, more in flip_law(scores, left, scale).items():
            law[first, second] = chance * more
    return law


def agrees(observed, law, samples):
    """Each cell within 5 deviations of its binomial, and 6 more: alarm below 10⁻⁶ for a cell."""
    assert set(observed) <= set(law)
    return all(
        abs(observed[cell] - samples * p) < 5 * math.sqrt(samples * p * (1 - p)) + 6
        for cell, p in law.items()
    )


def drawn(scores, sizes, scale, samples):
    field = ScoreGroups(np.array(scores), np.array(sizes))
    return Counter(tuple(peel(field, EXPONENTIAL, scale, 2, SystemBits())) for _ in range(samples))


PATHS = {
    "by hand": {"_BY_HAND": 10**9},
    "in floats": {"_BY_HAND": 0},
    "head and late comers": {"_BY_HAND": 0, "_ALL_AT_ONCE": 0, "_HEAD": 3},
}


@pytest.mark.parametrize("path", PATHS)
def test_two_rounds_are_permute_and_flip(path, monkeypatch):
    for name, value in PATHS[path].items():
        monkeypatch.setattr(peeling, name, value)
    scale = Fraction(2, 3)
    scores, sizes = [2, 1, 1, 0], [1, 2, 1, 2]
    # More than 8·count groups, so that the last path splits; the others win once in 10⁴⁰ rounds.
    seen = drawn(scores + [-60] * 14, sizes + [1] * 14, scale, 3000)
    assert agrees(seen, two_rounds(scores, sizes, 2 / 3), 3000)
    assert not agrees(seen, two_rounds(scores, sizes, 3 / 2), 3000)


def test_late_comers_win_as_often_as_they_should(monkeypatch):
    """A head of the best groups and a tail that wins every third round."""
    monkeypatch.setattr(peeling, "_ALL_AT_ONCE", 0)
    monkeypatch.setattr(peeling, "_HEAD", 1)
    scores, sizes = [1] * 4 + [0] * 6, [1] * 10
    field = ScoreGroups(np.array(scores), np.array(sizes))
    seen = Counter(
        (peel(field, EXPONENTIAL, Fraction(1), 1, SystemBits())[0] >= 4,) for _ in range(4000)
    )
    law = flip_law(scores, sizes, 1.0)
    tail = math.fsum(law[group] for group in range(4, 10))
    assert 0.2 < tail < 0.5
    assert agrees(seen, {(True,): tail, (False,): 1 - tail}, 4000)


@pytest.mark.parametrize("noise", [GUMBEL, EXPONENTIAL, LAPLACE], ids=repr)
def test_the_bits_alone_decide(noise, monkeypatch):
    scores = np.random.default_rng(5).integers(0, 30, 60)
    field = ScoreGroups(scores, np.full(60, 3))
    screened = peel(field, noise, Fraction(7, 2), 20, ReplayableBits(b"same"))
    monkeypatch.setattr(peeling, "_BY_HAND", 10**9)
    assert peel(field, noise, Fraction(7, 2), 20, ReplayableBits(b"same")) == screened


def test_gumbel_rounds_have_the_law_of_one_race():
    """For Gumbel noise, and for it alone, fresh noise and one noise are the same (D&R, L. 4.2)."""
    field = ScoreGroups(np.array([2, 1, 0]), np.array([1, 1, 2]))
    fresh = Counter(tuple(peel(field, GUMBEL, Fraction(1), 2, SystemBits())) for _ in range(3000))
    once = Counter(tuple(race(field, GUMBEL, Fraction(1), 2, SystemBits())) for _ in range(3000))
    for cell in set(fresh) | set(once):
        assert abs(fresh[cell] - once[cell]) < 5 * math.sqrt(fresh[cell] + once[cell]) + 6


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(-(2**63), 2**63), st.integers(1, 3)), max_size=20),
    st.integers(1, 30),
    st.sampled_from([Fraction(1, 10**9), Fraction(2, 3), Fraction(10**9)]),
)
def test_no_group_wins_more_often_than_it_has_items(groups, count, scale):
    scores = np.array([score for score, _ in groups], dtype=object)
    sizes = np.array([size for _, size in groups], dtype=np.int64)
    wins = peel(ScoreGroups(scores, sizes), EXPONENTIAL, scale, count, SystemBits())
    assert len(wins) == min(count, sum(size for _, size in groups))
    assert all(won <= groups[group][1] for group, won in Counter(wins).items())
    assert sizes.tolist() == [size for _, size in groups]  # the caller's field is left as it was


def test_many_groups_of_single_items():
    scores = np.random.default_rng(1).normal(size=5_000)
    wins = peel(ScoreGroups(scores), EXPONENTIAL, Fraction(1, 10**9), 5, SystemBits())
    assert wins == np.argsort(-scores)[:5].tolist()


def test_mirrored_scores_at_the_end_of_the_range():
    low = np.iinfo(np.int64).min
    mirrored = ScoreGroups(np.array([low, 5])).mirrored()
    assert mirrored.score(0) == 2**63
    assert mirrored.score(1) == -5
