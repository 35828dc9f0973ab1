"""Exact integer noise: the discrete Laplace and the discrete Gaussian, from integers alone.

Samplers of Canonne, Kamath & Steinke (2020), Algorithms 1 to 3: rejection with Bernoulli(e^(−γ))
for rational γ, which needs uniform integers and nothing else. No float, no truncation.

>>> from topsecret.noise.bits import SystemBits
>>> isinstance(DiscreteLaplace(Fraction(2, 3)).draw(SystemBits()), int)
True
>>> float(DiscreteGaussian(Fraction(1, 4)).at_least(1)) < 0.11
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from flint import arb, ctx

from topsecret.exact.rounding import ball, precision, up
from topsecret.noise.bits import BitSource
from topsecret.noise.integers import below


class IntegerNoise(Protocol):
    """A symmetric distribution on the integers."""

    def draw(self, bits: BitSource) -> int:
        """One exact draw."""
        ...

    def mass(self, value: int) -> arb:
        """P[noise = value], as a ball."""
        ...

    def at_least(self, value: int) -> arb:
        """P[noise ≥ value], as a ball."""
        ...

    def half_width(self, confidence: Fraction) -> int:
        """A w with P[|noise| ≤ w] ≥ confidence, the smallest or nearly."""
        ...


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """P[x] = (1 − q)/(1 + q)·q^|x| with q = e^(−1/scale), scale above 0."""

    scale: Fraction

    def draw(self, bits: BitSource) -> int:
        """Algorithm 2 with scale t/s: a geometric of rate 1/t from two parts, divided by s, a sign.

        Guarantee: P[U + t·V = x] ∝ e^(−x/t) for x ≥ 0, so that ⌊x/s⌋ = y has weight ∝ e^(−y·s/t);
        a second zero (the negative one) is thrown away.
        """
        t, s = self.scale.numerator, self.scale.denominator
        while True:
            remainder = below(t, bits)
            if not bernoulli_exp(Fraction(remainder, t), bits):
                continue
            quotient = 0
            while bernoulli_exp(Fraction(1), bits):
                quotient += 1
            value = (remainder + t * quotient) // s
            negative = below(2, bits) == 1
            if negative and value == 0:
                continue
            return -value if negative else value

    def mass(self, value: int) -> arb:
        """(1 − q)/(1 + q)·q^|x|."""
        rate = ball(1 / self.scale)
        return (rate / 2).tanh() * (-abs(value) * rate).exp()

    def at_least(self, value: int) -> arb:
        """q^x/(1 + q) for x ≥ 1, by symmetry for the others."""
        if value < 1:
            return 1 - self.at_least(1 - value)
        rate = ball(1 / self.scale)
        return (-value * rate).exp() / (1 + (-rate).exp())

    def half_width(self, confidence: Fraction) -> int:
        """From 2·q^(w+1)/(1 + q) ≤ 1 − confidence."""
        with precision(128):
            rate = ball(1 / self.scale)
            least = (2 / ((1 + (-rate).exp()) * ball(1 - confidence))).log() / rate
            return max(0, math.ceil(up(least)) - 1)


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """P[x] ∝ e^(−x²/(2·variance)) on the integers, variance above 0."""

    variance: Fraction

    def draw(self, bits: BitSource) -> int:
        """Algorithm 3: a discrete Laplace of scale t = ⌊σ⌋ + 1, kept with the right probability.

        Guarantee: e^(−|y|/t)·e^(−(|y| − σ²/t)²/(2σ²)) ∝ e^(−y²/(2σ²)).
        """
        t = math.isqrt(math.floor(self.variance)) + 1
        proposal = DiscreteLaplace(Fraction(t))
        while True:
            value = proposal.draw(bits)
            excess = abs(value) - self.variance / t
            if bernoulli_exp(excess * excess / (2 * self.variance), bits):
                return value

    def mass(self, value: int) -> arb:
        """e^(−x²/(2σ²)) over the sum of all."""
        return ball(-value * value / (2 * self.variance)).exp() / self._total()

    def at_least(self, value: int) -> arb:
        """½·(1 − P[|noise| < x]) for x ≥ 1, by symmetry for the others."""
        if value < 1:
            return 1 - self.at_least(1 - value)
        within = sum((2 * self.mass(x) for x in range(1, value)), self.mass(0))
        return (1 - within) / 2

    def half_width(self, confidence: Fraction) -> int:
        """By adding up for small σ; else from P[noise ≥ w + 1] ≤ P[N(0, σ²) ≥ w] (Prop. 25)."""
        with precision(128):
            deviations = (ball(1 - confidence)).erfcinv() * arb(2).sqrt()
            bound = math.ceil(up(ball(self.variance).sqrt() * deviations))
            if bound > 1000:
                return bound
            within, width = self.mass(0), 0
            while width < bound and not within >= ball(confidence):
                width += 1
                within += 2 * self.mass(width)
            return width

    def _total(self) -> arb:
        """Σ e^(−x²/(2σ²)), by Poisson summation where that has the faster series."""
        direct = ball(1 / (2 * self.variance))
        dual = 2 * arb.pi() ** 2 * ball(self.variance)
        if direct >= dual:
            return _theta(direct)
        return (2 * arb.pi() * ball(self.variance)).sqrt() * _theta(dual)


def bernoulli_exp(gamma: Fraction, bits: BitSource) -> bool:
    """True with probability e^(−gamma), gamma ≥ 0 (Algorithm 1).

    Guarantee: for gamma ≤ 1 the first K with a Bernoulli(gamma/K) of 0 is odd with probability
    1 − gamma + gamma²/2 − … = e^(−gamma); e^(−gamma) for larger ones is a product.
    """
    while gamma > 1:
        if not bernoulli_exp(Fraction(1), bits):
            return False
        gamma -= 1
    k = 1
    while below(gamma.denominator * k, bits) < gamma.numerator:
        k += 1
    return k % 2 == 1


def _theta(rate: arb) -> arb:
    """Σ_{k∈ℤ} e^(−rate·k²) for a rate of at least π: the terms left out are added as a ball.

    Each term is less than half of the one before, so what follows a term is less than the term
    itself; on both sides of 0 the terms from k on add up to less than four times the k-th.
    """
    total, k = arb(1), 1
    while True:
        term = (-rate * k * k).exp()
        if term < arb(2) ** -(ctx.prec + 8):
            return total + (4 * term).union(arb(0))
        total += 2 * term
        k += 1
