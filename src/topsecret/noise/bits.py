"""Random bits, and the reals that are known by as many of them as a comparison needs.

The bits come from the operating system's cryptographic source, or from a script in tests. A
:class:`Uniform` is a number of [0, 1) known by its first bits; more are drawn when a comparison
needs them. It is a sample of the *real* uniform distribution, never a rounded one.

>>> script = ScriptedBits(bytes([0b10000000]))
>>> u = Uniform(script)
>>> u.lower(8), u.upper(8)
(Fraction(1, 2), Fraction(129, 256))

A computable real is anything with ``ball(bits)``: a ball around it that shrinks as ``bits`` grows.
Two reals are compared by sharpening both until their balls are apart. That ends with probability
one when one of them carries continuous noise that the other does not share; it is never asked
otherwise.

>>> is_less(Rational(Fraction(1, 3)), Log(Fraction(3, 2)))
True

A noisy value is one of them: drawn once, known as sharply as a comparison needs.

>>> from topsecret.noise.distributions import LAPLACE
>>> low = Noisy(Rational(Fraction(0)), LAPLACE, Fraction(1), SystemBits())
>>> high = Noisy(Rational(Fraction(10**6)), LAPLACE, Fraction(1), SystemBits())
>>> is_less(low, high)
True
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from flint import arb, fmpz

from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import ball, precision

if TYPE_CHECKING:
    from topsecret.noise.distributions import Noise

FIRST_BITS = 64
"""How many bits of a number are looked at first."""


class BitSource(Protocol):
    """Anything that hands out independent uniform random bytes."""

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes of the stream."""
        ...


class SystemBits:
    """The operating system's cryptographic source, read in small batches.

    Make one per selection and drop it: a buffer that outlived a ``fork`` would be used twice.
    """

    __slots__ = ("_buffer", "_used")
    _BATCH = 512

    def __init__(self) -> None:
        self._buffer = b""
        self._used = 0

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        if size >= self._BATCH:
            return os.urandom(size)
        if self._used + size > len(self._buffer):
            self._buffer = os.urandom(self._BATCH)
            self._used = 0
        start = self._used
        self._used += size
        return self._buffer[start : self._used]

    def __repr__(self) -> str:
        return "SystemBits()"


class ScriptedBits:
    """Bytes written down beforehand, for tests of what a stream leads to."""

    def __init__(self, script: bytes) -> None:
        self._script = script
        self._used = 0

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes of the script; an error when it has run out."""
        end = self._used + size
        if end > len(self._script):
            raise InvalidParameter(
                f"the script of {len(self._script)} bytes has run out; write a longer one"
            )
        chunk = self._script[self._used : end]
        self._used = end
        return chunk


class ReplayableBits:
    """A stream that repeats for the same seed: for experiments and tests, never for a release.

    >>> ReplayableBits(b"a").take(3) == ReplayableBits(b"a").take(3)
    True
    """

    _BLOCK = 4096

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._block = 0
        self._buffer = b""
        self._used = 0

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes of the stream that the seed names."""
        if self._used + size > len(self._buffer):
            left = self._buffer[self._used :]
            block = max(self._BLOCK, size)
            counter = self._block.to_bytes(16, "big")
            self._buffer = left + hashlib.shake_256(self._seed + counter).digest(block)
            self._block += 1
            self._used = 0
        start = self._used
        self._used += size
        return self._buffer[start : self._used]


class Uniform:
    """A uniform number of [0, 1), known by a prefix of its binary digits and refined on demand."""

    __slots__ = ("_bits", "_length", "_prefix")

    def __init__(self, bits: BitSource, prefix: int = 0, length: int = 0) -> None:
        self._bits = bits
        self._prefix = prefix
        self._length = length

    def _extend(self, length: int) -> None:
        missing = (length - self._length + 7) // 8
        if missing > 0:
            more = int.from_bytes(self._bits.take(missing), "big")
            self._prefix = (self._prefix << (8 * missing)) | more
            self._length += 8 * missing

    def lower(self, length: int) -> Fraction:
        """The number's lower bound after at least ``length`` bits."""
        self._extend(length)
        return Fraction(self._prefix, 1 << self._length)

    def upper(self, length: int) -> Fraction:
        """The number's upper bound after at least ``length`` bits."""
        self._extend(length)
        return Fraction(self._prefix + 1, 1 << self._length)

    def ball(self, length: int) -> arb:
        """A ball around the number after at least ``length`` bits.

        It keeps all the bits drawn, so its midpoint is exact whatever the working precision.
        """
        self._extend(length)
        exponent = fmpz(-self._length - 1)
        return arb((fmpz(2 * self._prefix + 1), exponent), (fmpz(1), exponent))

    def complement(self, length: int) -> arb:
        """A ball around one minus the number: the same digits, each turned round."""
        if self._length < length:
            self._extend(length)
        mirrored = (1 << self._length) - 1 - self._prefix
        exponent = fmpz(-self._length - 1)
        return arb((fmpz(2 * mirrored + 1), exponent), (fmpz(1), exponent))


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
