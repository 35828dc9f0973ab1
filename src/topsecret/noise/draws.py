"""One noisy value as a computable real: drawn once, known as sharply as a comparison needs.

>>> from topsecret.noise.bits import SystemBits
>>> from topsecret.noise.distributions import LAPLACE
>>> from topsecret.noise.reals import Rational, is_less
>>> low = Noisy(Rational(Fraction(0)), LAPLACE, Fraction(1), SystemBits())
>>> high = Noisy(Rational(Fraction(10**6)), LAPLACE, Fraction(1), SystemBits())
>>> is_less(low, high)
True
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from topsecret.exact.rounding import ball, precision
from topsecret.noise.bits import BitSource, Uniform
from topsecret.noise.distributions import Noise
from topsecret.noise.reals import Real


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
