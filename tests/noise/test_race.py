"""The race draws the law of sorting real noisy scores, and floats only speed it up."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret.exact.rounding import ball, precision
from topsecret.noise import race as race_module
from topsecret.noise import screening
from topsecret.noise.bits import Rational, ReplayableBits, SystemBits
from topsecret.noise.distributions import EXPONENTIAL, GAUSSIAN, GUMBEL, LAPLACE
from topsecret.noise.race import EXTRA, ScoreGroups, race, races_in_turn
from topsecret.noise.screening import few

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
    single = frequencies(ScoreGroups(np.array([3, 2, 2, 0, 0, 0])), noise, Fraction(2), 3, 3_000)
    members = [0, 1, 1, 2, 2, 2]
    summed = Counter()
    for cell, count in single.items():
        summed[tuple(members[i] for i in cell)] += count
    grouped = frequencies(
        ScoreGroups(np.array([3, 2, 0]), np.array([1, 2, 3])), noise, Fraction(2), 3, 3_000
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
    use_plain_floats(monkeypatch)
    assert screened == race(field, noise, Fraction(7, 2), k, ReplayableBits(b"same"))
    use_balls(monkeypatch)
    assert screened == race(field, noise, Fraction(7, 2), k, ReplayableBits(b"same"))


def use_plain_floats(monkeypatch):
    monkeypatch.setattr(race_module, "_FEW", 10**9)
    monkeypatch.setattr(race_module, "_FEW_IN_BALLS", 10**9)


def use_balls(monkeypatch):
    use_plain_floats(monkeypatch)
    monkeypatch.setattr(type(GUMBEL), "around", lambda _, w, s: [(-math.inf, math.inf)] * len(w))


@pytest.mark.parametrize("counts", [(1, 1, 1), (5, 2, 9), (40, 30, 20)])
@pytest.mark.parametrize("sizes", ["ones", "few", "with none"])
def test_races_in_turn_are_decided_by_their_bits_alone(counts, sizes, monkeypatch):
    """Screened together with groups that shrink, or every group's balls from the same words."""
    most = {"ones": (1, 2), "few": (1, 4), "with none": (0, 4)}[sizes]
    turns = list(zip(counts, [Fraction(9, 2), Fraction(3), Fraction(9, 4)], strict=True))
    for seed in range(6):
        rng = np.random.default_rng(seed)
        field = ScoreGroups(rng.integers(0, 30, 60), rng.integers(*most, 60))
        screened = races_in_turn(field, turns, ReplayableBits(b"same"))
        assert len(screened) == min(sum(counts), int(field.sizes.sum()))
        assert all(screened.count(group) <= field.sizes[group] for group in screened)
        with monkeypatch.context() as patch:
            patch.setattr(race_module, "decided", lambda *_: None)
            patch.setattr(race_module, "kth_largest", lambda *_: -math.inf)
            patch.setattr(
                race_module, "gumbel_bounds", lambda w, _: (w * -np.inf - np.inf, w * 0.0 + np.inf)
            )
            patch.setattr(type(GUMBEL), "around", lambda _, w, s: [(-math.inf, math.inf)] * len(w))
            assert races_in_turn(field, turns, ReplayableBits(b"same")) == screened


def test_races_in_turn_together_have_the_law_of_races_one_by_one(monkeypatch):
    field = ScoreGroups(np.arange(13) // 2, np.full(13, 2))
    turns = [(1, Fraction(2)), (1, Fraction(1))]

    def draws():
        return Counter(tuple(races_in_turn(field, turns, SystemBits())) for _ in range(3_000))

    together = draws()
    monkeypatch.setattr(race_module, "_TOGETHER", range(0))
    one_by_one = draws()
    for cell in set(together) | set(one_by_one):
        spread = math.sqrt(together[cell] + one_by_one[cell])
        assert abs(together[cell] - one_by_one[cell]) < 5 * spread + 6, cell


@pytest.mark.parametrize(
    ("scores", "scale"),
    [
        (np.array([0, -(10**6), 5]), Fraction(1, 3)),
        (np.array([0.5, -1e300, 1e-300]), Fraction(7, 3)),
        (np.array([10**400, 3, -(10**18)], dtype=object), Fraction(2)),
        (np.array([2**62, -(2**62), 1]), Fraction(1, 10**400)),
        (np.array([2**62, -(2**62), 1]), Fraction(10**250)),
    ],
)
def test_plain_floats_enclose_the_noisy_score(scores, scale):
    field = ScoreGroups(scores, np.array([1, 3, 2**40]))
    reference = field.highest()
    for seed in range(50):
        for start in few(field, reference, GUMBEL, scale, ReplayableBits(seed.to_bytes(2, "big"))):
            with precision(2000):
                uniform = ball(Fraction(start.word, 2**64)), ball(Fraction(start.word + 1, 2**64))
                times = [-(1 - v).log() / start.size for v in uniform]
                head_start = ball((field.score(start.group) - reference) / scale)
                lowest, highest = head_start - times[1].log(), head_start - times[0].log()
                assert start.lower == -math.inf or arb(start.lower) <= lowest
                assert start.upper == math.inf or highest <= arb(start.upper)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_the_head_and_the_late_comers_draw_one_law(noise, monkeypatch):
    """With a tiny head most winners come through the 16-bit screen; the law is the same."""
    monkeypatch.setattr(race_module, "_FEW", 0)
    monkeypatch.setattr(race_module, "_FEW_IN_BALLS", 0)
    monkeypatch.setattr(screening, "_ALL_AT_ONCE", 0)
    monkeypatch.setattr(screening, "_HEAD", 2)
    field = ScoreGroups(
        np.array([2, 2, 1, 1, 0, 0, 0, 0, 0, 0]), np.array([1, 1, 1, 1, 1, 1, 1, 2, 2, 2])
    )
    screened = frequencies(field, noise, Fraction(1), 1, 2500)
    use_balls(monkeypatch)
    exact = frequencies(field, noise, Fraction(1), 1, 2500)
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
    secret = 987_654_321_987_654_321  # longer than the address that a repr shows
    assert str(secret) not in repr(ScoreGroups(np.array([secret])))


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
