"""The race draws the law of sorting real noisy scores, and floats only speed it up."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret.noise import screening
from topsecret.noise.bits import ReplayableBits, SystemBits
from topsecret.noise.distributions import EXPONENTIAL, GAUSSIAN, GUMBEL, LAPLACE
from topsecret.noise.race import EXTRA, ScoreGroups, race
from topsecret.noise.reals import Rational
from topsecret.noise.screening import Opening, openings

NOISES = [GUMBEL, EXPONENTIAL, LAPLACE, GAUSSIAN]


def frequencies(field, noise, scale, k, samples, extra=None):
    return Counter(tuple(race(field, noise, scale, k, SystemBits(), extra)) for _ in range(samples))


def agrees(observed, law, samples):
    """Each cell within 5 deviations of its binomial, and 6 more: alarm below 10⁻⁶ for a cell."""
    assert set(observed) <= set(law)
    return all(
        abs(observed[cell] - samples * p) < 5 * math.sqrt(samples * p * (1 - p)) + 6
        for cell, p in law.items()
    )


def pair_law(scores, scale):
    """P[first, second] by Plackett–Luce."""
    weights = [math.exp(s / scale) for s in scores]
    total = sum(weights)
    return {
        (i, j): weights[i] / total * weights[j] / (total - weights[i])
        for i in range(len(scores))
        for j in range(len(scores))
        if i != j
    }


@pytest.mark.parametrize("scale", [Fraction(2, 3), Fraction(3, 7), Fraction(7, 5)])
def test_gumbel_is_plackett_luce_and_a_wrong_scale_is_not(scale):
    scores = np.array([3, 3, 2, 0])
    seen = frequencies(ScoreGroups(scores), GUMBEL, scale, 2, 8_000)
    assert agrees(seen, pair_law(scores, float(scale)), 8_000)
    assert not agrees(seen, pair_law(scores, float(scale) * 1.25), 8_000)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_two_runners_differ_by_the_noise_difference(noise):
    """P[a before b] for scores 1 and 0 at scale 1, by numerical integration of the tail."""
    grid = np.linspace(-12, 30, 42_001)
    tail = np.array([float(noise.tail(_ball(x))) for x in grid[::20]])
    cdf = 1 - np.interp(grid, grid[::20], tail)
    wins = float(np.sum(np.diff(cdf) * np.interp((grid[1:] + grid[:-1]) / 2 + 1, grid, cdf)))
    seen = frequencies(ScoreGroups(np.array([1, 0])), noise, Fraction(1), 1, 6_000)
    assert agrees(seen, {(0,): wins, (1,): 1 - wins}, 6_000)
    assert not agrees(seen, {(0,): 0.5, (1,): 0.5}, 6_000)


def _ball(x):
    from flint import arb

    return arb(float(x))


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_a_group_is_its_items(noise):
    """The law of groups equals the law of the same items as single runners, summed up."""
    single = frequencies(ScoreGroups(np.array([3, 2, 2, 0, 0, 0])), noise, Fraction(2), 3, 6_000)
    members = [0, 1, 1, 2, 2, 2]
    summed = Counter()
    for cell, count in single.items():
        summed[tuple(members[i] for i in cell)] += count
    grouped = frequencies(
        ScoreGroups(np.array([3, 2, 0]), np.array([1, 2, 3])), noise, Fraction(2), 3, 6_000
    )
    for cell in set(summed) | set(grouped):
        spread = math.sqrt(summed[cell] + grouped[cell])
        assert abs(summed[cell] - grouped[cell]) < 5 * spread + 6, cell


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("k", [1, 7, 40])
def test_every_path_gives_the_same_answer_for_the_same_bits(noise, k, monkeypatch):
    """By hand in balls, or screened in floats: the outcome is decided by the bits alone."""
    scores = np.random.default_rng(5).integers(0, 30, 60)
    field = ScoreGroups(scores, np.full(60, 3))
    screened = race(field, noise, Fraction(7, 2), k, ReplayableBits(b"same"))
    monkeypatch.setattr(screening, "_BY_HAND", 10**9)
    by_hand = race(field, noise, Fraction(7, 2), k, ReplayableBits(b"same"))
    assert screened == by_hand


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("k", [1, 7, 40])
def test_an_opening_drawn_before_decides_nothing_that_its_bits_do_not(noise, k):
    """Groups shrink between the draw and the race; balls from the same words agree."""
    scores = np.random.default_rng(6).integers(0, 30, 60)
    sizes = np.random.default_rng(7).integers(1, 4, 60)
    left = np.maximum(sizes - np.random.default_rng(8).integers(0, 3, 60), 0)
    for opening in openings(3, ScoreGroups(scores, sizes), noise, SystemBits()):
        running = np.flatnonzero(left)
        drawn = opening.after(running, left[running] != sizes[running])
        nothing = np.full(len(running), np.inf)
        unknown = Opening(drawn.words, -nothing, nothing)
        field = ScoreGroups(scores[running], left[running])
        here, there = (
            race(field, noise, Fraction(7, 2), k, ReplayableBits(b"same"), opening=either)
            for either in (drawn, unknown)
        )
        assert here == there


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_the_head_and_the_late_comers_draw_one_law(noise, monkeypatch):
    """With a tiny head most winners come through the 16-bit screen; the law is the same."""
    monkeypatch.setattr(screening, "_BY_HAND", 0)
    monkeypatch.setattr(screening, "_ALL_AT_ONCE", 0)
    monkeypatch.setattr(screening, "_HEAD", 2)
    field = ScoreGroups(
        np.array([2, 2, 1, 1, 0, 0, 0, 0, 0, 0]), np.array([1, 1, 1, 1, 1, 1, 1, 2, 2, 2])
    )
    screened = frequencies(field, noise, Fraction(1), 1, 4000)
    monkeypatch.setattr(screening, "_BY_HAND", 10**9)
    exact = frequencies(field, noise, Fraction(1), 1, 4000)
    for cell in set(screened) | set(exact):
        spread = math.sqrt(screened[cell] + exact[cell])
        assert abs(screened[cell] - exact[cell]) < 5 * spread + 6, cell


def test_many_distinct_scores_use_the_screen():
    scores = np.random.default_rng(1).normal(size=50_000)
    chosen = race(ScoreGroups(scores), GUMBEL, Fraction(1, 10**9), 5, SystemBits())
    assert chosen == np.argsort(-scores)[:5].tolist()


def test_values_closer_than_floats_can_tell_are_told_apart(monkeypatch):
    """Scores of 2⁶² at scale 10⁹ leave nothing to float64; equal scores are decided by noise."""
    field = ScoreGroups(np.array([2**62, 2**62 - 1], dtype=np.int64))
    seen = frequencies(field, GUMBEL, Fraction(1, 10**9), 1, 50)
    assert seen == {(0,): 50}
    seen = frequencies(field, GUMBEL, Fraction(10**9), 1, 4000)
    assert agrees(seen, {(0,): 0.5, (1,): 0.5}, 4000)


def test_the_extra_runner_ends_the_race():
    field = ScoreGroups(np.array([1, 0]))
    law = {}
    weights = {0: math.e, 1: 1.0, EXTRA: math.exp(0.5)}
    total = sum(weights.values())
    for a in (0, 1, EXTRA):
        if a == EXTRA:
            law[(EXTRA,)] = weights[a] / total
            continue
        for b in {0, 1, EXTRA} - {a}:
            law[(a, b)] = weights[a] / total * weights[b] / (total - weights[a])
    seen = frequencies(field, GUMBEL, Fraction(1), 2, 8_000, extra=Rational(Fraction(1, 2)))
    assert agrees(seen, law, 8_000)


@settings(max_examples=60)
@given(
    st.lists(st.integers(-(2**63), 2**63), max_size=30),
    st.integers(1, 35),
    st.sampled_from([Fraction(1, 10**9), Fraction(2, 3), Fraction(10**9)]),
    st.sampled_from(NOISES),
)
def test_nobody_arrives_twice(scores, k, scale, noise):
    field = ScoreGroups(np.array(scores, dtype=object))
    finish = race(field, noise, scale, k, SystemBits())
    assert len(finish) == len(set(finish)) == min(k, len(scores))


def test_secret_objects_show_nothing():
    assert "987" not in repr(ScoreGroups(np.array([987])))


def test_a_long_list_of_many_groups_is_drawn_on_both_sides_of_every_threshold(monkeypatch):
    """Neighbours may lie on two sides of a limit on the number of groups: both must answer."""
    monkeypatch.setattr(screening, "_ALL_AT_ONCE", 40)
    monkeypatch.setattr(screening, "_HEAD", 8)
    for groups in (40, 41, 42, 80):
        for k in (9, 10, 11, 19, 20, 21, 39, 40):
            field = ScoreGroups(np.arange(groups) * 3, np.ones(groups, dtype=np.int64))
            assert len(race(field, GUMBEL, Fraction(5), k, SystemBits())) == min(k, groups)
            plain = ScoreGroups(np.arange(groups) * 3)
            assert len(race(plain, GUMBEL, Fraction(5), k, SystemBits())) == min(k, groups)


@pytest.mark.parametrize("kind", [np.float64, np.object_])
def test_a_difference_beyond_the_floats_drops_no_winner(kind):
    """Items 1 and 2 are level to the noise, and so far below item 0 that floats overflow."""
    most = np.finfo(np.float64).max
    far = [most, -(2.0**970), -(2.0**970), *[-most] * 12]
    scores = np.array([int(x) for x in far] if kind is np.object_ else far, dtype=kind)
    seen = frequencies(ScoreGroups(scores), GUMBEL, Fraction(2**958), 2, 400)
    assert set(seen) == {(0, 1), (0, 2)}
    assert min(seen.values()) > 100
