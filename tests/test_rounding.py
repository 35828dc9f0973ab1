"""Directed rounding, and one precision at a time."""

from __future__ import annotations

import math
import sys
import threading
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import ball, down, exact, precision, up


@given(st.fractions())
def test_fractions_round_to_the_neighbouring_floats(value):
    assert Fraction(down(value)) <= value <= Fraction(up(value))
    assert up(value) <= math.nextafter(down(value), math.inf)


@given(st.fractions(max_denominator=10**6), st.integers(30, 200))
def test_balls_round_outwards(value, bits):
    with precision(bits):
        enclosure = ball(value)
    assert down(enclosure) <= value <= up(enclosure)


def test_what_is_not_known_is_anything():
    """A NaN would be less than nothing: max(0.0, nan) is 0."""
    unknown = arb("nan")
    assert (up(unknown), down(unknown)) == (math.inf, -math.inf)


def test_ends_of_the_float_range():
    assert up(arb(2) ** 2000) == math.inf
    assert up(arb(2) ** -2000) == 5e-324
    assert down(arb(2) ** -2000) == 0.0
    assert up(Fraction(10**400)) == math.inf
    assert down(Fraction(10**400)) <= 1.7976931348623157e308


@pytest.mark.parametrize("value", [math.nan, math.inf, "1", None, object()])
def test_only_finite_numbers_are_exact(value):
    with pytest.raises(InvalidParameter, match=r"number|finite"):
        exact(value, "epsilon")


def test_threads_do_not_disturb_each_others_precision():
    seen = []

    def work(bits):
        for _ in range(300):
            with precision(bits):
                (arb(2).sqrt() * 3).exp()
                seen.append(ctx.prec == bits)

    threads = [threading.Thread(target=work, args=(bits,)) for bits in (64, 128, 256, 512)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 1200
    assert all(seen)


def test_numbers_beyond_the_floats_stay_on_their_side():
    huge = arb(10) ** 400
    most = sys.float_info.max
    assert (up(huge), down(huge)) == (math.inf, most)
    assert (up(-huge), down(-huge)) == (-most, -math.inf)
