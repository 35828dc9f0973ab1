"""Continuous Gaussian noise rounded to whole numbers, exactly.

For a whole number h, h + ⌊σZ⌉ = ⌊h + σZ⌉ (halves have probability 0), so releasing it is
post-processing of the continuous Gaussian mechanism and costs no more: its own loss distribution,
``accounting.gaussian``, stays valid. (A discrete Gaussian has another law and another price.)

>>> from topsecret.noise.bits import SystemBits
>>> isinstance(RoundedGaussian(Fraction(5, 2)).draw(SystemBits()), int)
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from topsecret.exact.rounding import ball, down, precision, up
from topsecret.noise.bits import FIRST_BITS, BitSource, Uniform
from topsecret.noise.distributions import GAUSSIAN


@dataclass(frozen=True, slots=True)
class RoundedGaussian:
    """⌊σZ⌉ for a standard normal Z, sigma above 0."""

    sigma: Fraction

    def draw(self, bits: BitSource) -> int:
        """The normal of an endless uniform, sharpened until its rounding is decided."""
        uniform = Uniform(bits)
        length = FIRST_BITS
        while True:
            with precision(length + 32):
                value = ball(self.sigma) * GAUSSIAN.ball(-uniform.complement(length).log())
                shifted = value + ball(Fraction(1, 2))
                if shifted.is_finite():
                    low = shifted.lower().floor().unique_fmpz()
                    if low is not None and low == shifted.upper().floor().unique_fmpz():
                        return int(low)
            length *= 2

    def mass(self, value: int) -> arb:
        """P[noise = value]."""
        return self.at_least(value) - self.at_least(value + 1)

    def at_least(self, value: int) -> arb:
        """P[σZ > value − ½]."""
        return GAUSSIAN.tail(ball((value - Fraction(1, 2)) / self.sigma))

    def half_width(self, confidence: Fraction) -> int:
        """The least w with 2·P[σZ > w + ½] ≤ 1 − confidence, or one more."""
        with precision(128):
            reach = ball(self.sigma) * arb(2).sqrt() * ball(1 - confidence).erfcinv()
            return max(0, math.ceil(up(reach - ball(Fraction(1, 2)))))

    @property
    def variance(self) -> float:
        """Of the rounded noise, to six digits or better: σ² + 1/12 where σ ≥ 1, else by summing."""
        if self.sigma >= 1:
            return float(self.sigma**2) + 1 / 12
        with precision(64):
            terms = (2 * x * x * self.mass(x) for x in range(1, 10))
            return down(sum(terms, arb(0)))
