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

from flint import arb

from topsecret.exact.rounding import ball, precision
from topsecret.noise.bits import FIRST_BITS, Real, bernoulli

__all__ = ["FIRST_BITS", "Log", "Rational", "Real", "Shifted", "bernoulli", "is_less"]


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
