"""Coins in bulk are exact: the words that do not decide are refined."""

import math
from fractions import Fraction

import numpy as np
import pytest

from topsecret.exact.rounding import ball, precision
from topsecret.noise.bits import Log, Rational, ReplayableBits, ScriptedBits, bernoulli
from topsecret.noise.coins import Coins, words_around

THIRD = 2**64 // 3


def third(_: int) -> Rational:
    return Rational(Fraction(1, 3))


def word(value: int) -> bytes:
    return np.array([value], dtype=np.uint64).tobytes()


@pytest.mark.parametrize(("further", "heads"), [(b"\x00", True), (b"\xff", False)])
def test_the_open_word_is_decided_by_further_bits(further: bytes, heads: bool) -> None:
    script = ScriptedBits(word(THIRD) + further * 64)
    assert Coins(third).flip(np.array([0]), script).tolist() == [heads]


@pytest.mark.parametrize(("value", "heads"), [(THIRD - 1, True), (THIRD + 1, False)])
def test_the_words_beside_it_decide_alone(value: int, heads: bool) -> None:
    assert Coins(third).flip(np.array([0]), ScriptedBits(word(value))).tolist() == [heads]


def test_certain_coins() -> None:
    coins = Coins(lambda kind: Rational(Fraction(kind)))
    kinds = np.array([0, 1] * 500).reshape(10, 100)
    assert np.array_equal(coins.flip(kinds, ReplayableBits(b"c")), kinds.astype(bool))


@pytest.mark.parametrize("chance", [Fraction(1, 2**70), Fraction(1, 7), 1 - Fraction(1, 2**70)])
def test_words_lie_around_the_chance(chance: Fraction) -> None:
    with precision(128):
        low, high = words_around(ball(chance))
    assert low <= chance * 2**64 <= high <= low + 2


def test_frequencies_follow_the_chances_and_no_others() -> None:
    """Alarm rate below 2e-9 for each of two kinds; a chance 2% off is rejected."""
    coins = Coins(lambda kind: Log(Fraction(3, 2 + kind)))  # ln 1.5 and ln 1.2… as probabilities
    size = 200_000
    chances = [math.log(1.5), math.log(1.0)]
    heads = coins.flip(np.zeros(size, dtype=np.int64), ReplayableBits(b"f")).sum()
    deviation = math.sqrt(size * chances[0] * (1 - chances[0]))
    assert abs(heads - size * chances[0]) < 6 * deviation
    assert abs(heads - size * chances[0] * 1.02) > 6 * deviation


def test_it_agrees_with_one_coin_at_a_time() -> None:
    """The same uniform, read as one word or byte by byte."""
    for seed in range(200):
        raw = ReplayableBits(bytes([seed])).take(8)
        alone = bernoulli(third(0), ScriptedBits(raw + bytes(64)))
        together = Coins(third).flip(np.array([0]), ScriptedBits(raw[::-1] + bytes(64)))
        assert together.tolist() == [alone]
