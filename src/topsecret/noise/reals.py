"""Computable reals: numbers that are known as tightly as a question needs.

A real is anything with ``ball(bits)``: a ball around it that shrinks as ``bits`` grows. Two reals
are compared by sharpening both until their balls are apart. That ends with probability one when
one of them carries continuous noise that the other does not share; it is never asked otherwise.

>>> from fractions import Fraction
>>> is_less(Rational(Fraction(1, 3)), Log(Fraction(3, 2)))
True

A noisy value is one of them: drawn once, known as sharply as a comparison needs.

>>> from topsecret.noise.bits import SystemBits
>>> from topsecret.noise.distributions import LAPLACE
>>> low = Noisy(Rational(Fraction(0)), LAPLACE, Fraction(1), SystemBits())
>>> high = Noisy(Rational(Fraction(10**6)), LAPLACE, Fraction(1), SystemBits())
>>> is_less(low, high)
True
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from flint import arb

from topsecret.exact.rounding import ball, precision
from topsecret.noise.bits import FIRST_BITS, BitSource, Real, Uniform, bernoulli

if TYPE_CHECKING:
    from topsecret.noise.distributions import Noise

__all__ = ["FIRST_BITS", "Log", "Noisy", "Rational", "Real", "Shifted", "bernoulli", "is_less"]


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


class Noisy:
    """centre + scale·noise, for a noise that is drawn when it is made. Secret.

    Guarantee: the value has exactly the stated law over the reals; asking for more bits of it
    refines the same value and never draws another.
    """

    __slots__ = ("_centre", "_known", "_noise", "_scale", "_uniform")

    def __init__(self, centre: Real, noise: Noise, scale: Fraction, bits: BitSource) -> None:
        self._centre = centre
        self._noise = noise
        self._scale = scale
        self._uniform = Uniform(bits)
        self._known: tuple[int, arb] | None = None

    def ball(self, bits: int) -> arb:
        """A ball around the value from this many bits of its uniform."""
        if self._known is None or self._known[0] != bits:
            with precision(bits + 32):
                arrival = -self._uniform.complement(bits).log()
                noise = ball(self._scale) * self._noise.ball(arrival)
                self._known = bits, self._centre.ball(bits + 32) + noise
        return self._known[1]


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
