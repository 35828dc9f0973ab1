"""Bits, uniforms and exact integers."""

from __future__ import annotations

import os
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topsecret.errors import InvalidParameter
from topsecret.noise.bits import (
    Log,
    Rational,
    ReplayableBits,
    ScriptedBits,
    Shifted,
    SystemBits,
    Uniform,
    bernoulli,
    is_less,
)
from topsecret.noise.integers import below, below_many, distinct_below


@pytest.mark.system_randomness
def test_system_bits_come_from_the_system(monkeypatch):
    asked = []
    monkeypatch.setattr(os, "urandom", lambda size: asked.append(size) or bytes(size))
    bits = SystemBits()
    assert bits.take(8) == bytes(8)
    assert bits.take(5000) == bytes(5000)
    assert asked == [512, 5000]


def test_in_tests_they_are_the_same_on_every_run():
    assert SystemBits().take(4).hex() == "2019c7fa"


@pytest.mark.system_randomness
def test_system_bits_do_not_repeat():
    bits = SystemBits()
    seen = {bits.take(16) for _ in range(1000)}
    assert len(seen) == 1000
    assert len(bits.take(5000)) == 5000


def test_a_script_that_runs_out_says_so():
    bits = ScriptedBits(b"ab")
    assert bits.take(2) == b"ab"
    with pytest.raises(InvalidParameter, match="script of 2 bytes has run out"):
        bits.take(1)


def test_replayable_bits_do_not_depend_on_how_they_are_taken():
    whole = ReplayableBits(b"s").take(9000)
    bits = ReplayableBits(b"s")
    assert whole[:4000] == bits.take(1000) + bits.take(3000)
    assert ReplayableBits(b"t").take(8) != whole[:8]


@given(st.binary(min_size=16, max_size=16), st.integers(1, 128))
def test_a_uniform_refines_within_its_bounds(script, length):
    number = int.from_bytes(script, "big")
    uniform = Uniform(ScriptedBits(script))
    lower, upper = uniform.lower(length), uniform.upper(length)
    assert lower <= Fraction(number, 2**128) < upper
    assert upper - lower <= Fraction(1, 2**length)
    assert uniform.ball(length).contains(uniform.ball(128))
    assert (uniform.ball(128) + uniform.complement(128)).contains(1)


@given(st.integers(1, 10**40))
def test_below_stays_below(limit):
    assert 0 <= below(limit, SystemBits()) < limit


def test_below_rejects_what_is_too_large():
    # Three of four two-bit values are allowed; 0b11 is drawn first and must be thrown away.
    assert below(3, ScriptedBits(bytes([0b11000000, 0b10000000]))) == 2


def test_integers_are_uniform():
    """Alarm rate below 10⁻⁹: each of six cells is a binomial(60000, 1/6), ten deviations wide."""
    draws = Counter(below(6, SystemBits()) for _ in range(60_000))
    assert all(abs(draws[face] - 10_000) < 920 for face in range(6))
    many = Counter(below_many(6, 80_000, SystemBits()).tolist())
    total = sum(many.values())
    assert total > 50_000
    assert all(abs(many[face] - total / 6) < 1000 for face in range(6))


def test_distinct_draws_are_uniform_orders():
    """Alarm rate below 10⁻⁹: 12 ordered pairs of 4, ten deviations wide."""
    draws = Counter(tuple(distinct_below(4, 2, SystemBits())) for _ in range(24_000))
    assert len(draws) == 12
    assert all(abs(count - 2000) < 450 for count in draws.values())
    assert len(set(distinct_below(10**18, 1000, SystemBits()))) == 1000


def test_reals_compare_exactly():
    third = Rational(Fraction(1, 3))
    nearly = Rational(Fraction(1, 3) + Fraction(1, 10**300))
    assert is_less(third, nearly)
    assert not is_less(nearly, third)
    assert is_less(Log(Fraction(2), plus=Fraction(-1)), third)
    assert is_less(Shifted(Log(Fraction(2)), Fraction(-1)), third)


def test_bernoulli_compares_an_endless_uniform():
    third = Rational(Fraction(1, 3))
    below_third = bytes([0x55, 0x55, 0x54]) + bytes(40)
    above_third = bytes([0x55, 0x55, 0x56]) + bytes(40)
    assert bernoulli(third, ScriptedBits(below_third))
    assert not bernoulli(third, ScriptedBits(above_third))
    assert not any(bernoulli(Rational(Fraction(0)), SystemBits()) for _ in range(100))
    assert all(bernoulli(Rational(Fraction(1)), SystemBits()) for _ in range(100))
