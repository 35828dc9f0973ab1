"""Computable reals: numbers that are known as tightly as a question needs.

A real is anything with ``ball(bits)``: a ball around it that shrinks as ``bits`` grows. Two reals
are compared by sharpening both until their balls are apart. That ends with probability one when
one of them carries continuous noise that the other does not share; it is never asked otherwise.

>>> from fractions import Fraction
>>> is_less(Rational(Fraction(1, 3)), Log(Fraction(3, 2)))
True
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from flint import arb

from topsecret.exact.rounding import ball, precision
from topsecret.noise.bits import BitSource, Uniform

FIRST_BITS = 64


class Real(Protocol):
    """A number that can be enclosed as tightly as wanted."""

    def ball(self, bits: int) -> arb:
        """A ball around the number; it shrinks to a point as ``bits`` grows."""
        ...


@dataclass(frozen=True, slots=True)
class Rational:
    """A rational number as a computable real."""

    value: Fraction

    def ball(self, bits: int) -> arb:
        """A ball around the fraction."""
        with precision(bits):
            return ball(self.value)


@dataclass(frozen=True, slots=True)
class Log:
    """``plus`` + ln(``argument``): what thresholds are made of."""

    argument: Fraction
    plus: Fraction = Fraction(0)

    def ball(self, bits: int) -> arb:
        """A ball around the logarithm."""
        with precision(bits):
            return ball(self.plus) + ball(self.argument).log()


@dataclass(frozen=True, slots=True)
class Shifted:
    """A real and a rational added up."""

    real: Real
    by: Fraction

    def ball(self, bits: int) -> arb:
        """A ball around the sum."""
        with precision(bits):
            return self.real.ball(bits) + ball(self.by)


def is_less(left: Real, right: Real) -> bool:
    """Whether left < right, decided exactly."""
    bits = FIRST_BITS
    while True:
        a, b = left.ball(bits), right.ball(bits)
        if a < b:
            return True
        if a > b:
            return False
        bits *= 2


def bernoulli(probability: Real, bits: BitSource) -> bool:
    """True with exactly this probability: an endless uniform falls below it.

    Guarantee: for any computable p (0 and 1 included) the answer is a Bernoulli(p) draw; no
    rounding of p or of the uniform enters.
    """
    uniform = Uniform(bits)
    length = 8
    while True:
        chance = probability.ball(length + 16)
        place = uniform.ball(length)
        if place < chance:
            return True
        if place > chance:
            return False
        length *= 2
