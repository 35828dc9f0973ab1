"""Propose, test, release: one bit that says whether a gap is wide enough.

The unordered top j is the same on every neighbour when the gap q = h₍ⱼ₎ − h₍ⱼ₊₁₎ is above s, the
most that one person can change it: s = 1 under add-remove, 2 under replace. Both tests compare
max(s, q) + noise with a level that noise alone reaches with probability δ_t (``failure``).

**Why.** Let two neighbours have different top-j sets. Then q ≤ s on both, max(s, q) = s on both,
and each passes with probability at most δ_t: that is all that may go wrong. Otherwise both release
the same set or nothing, and the bit is a noisy comparison of a number that moves by at most s.

- *Gaussian* (Zhu & Wang 2022, Alg. 4): pass iff max(s, q) + N(0, σ²) − σ·z > s. The bit is
  post-processing of a Gaussian of signal-to-noise ratio μ = s/σ: gaussian(μ²) + failure(δ_t).
  z = Φ⁻¹(1 − δ_t) is the smallest z for which noise alone passes with probability δ_t; the
  paper's √(2·ln(1/δ_t)) comes from a tail bound and is larger. ``quantile="paper"`` keeps it for
  reproduction: it passes less often, with the same guarantee.
- *Laplace* (Alg. 5): pass iff max(s, q) + Lap(b) − b·ln(1/(2δ_t)) > s, an (s/b, δ_t)-DP bit.

The bit is a Bernoulli of a known probability: the bit is drawn, the noise never is.

>>> test = GaussianTest(scale=Fraction(1), failure=Fraction(1, 100))
>>> float(test.chance(0).ball(64)), round(float(test.chance(4).ball(64)), 4)
(0.01, 0.7497)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from flint import arb

from topsecret.accounting import Loss, approximate, failure, gaussian
from topsecret.exact.rounding import ball, precision
from topsecret.noise.bits import Real
from topsecret.noise.distributions import GAUSSIAN, LAPLACE

Quantile = Literal["exact", "paper"]


@dataclass(frozen=True, slots=True)
class GaussianTest:
    """Passes with probability Φ((max(s, q) − s)/σ − z)."""

    scale: Fraction
    failure: Fraction
    sensitivity: int = 1
    quantile: Quantile = "exact"

    @property
    def loss(self) -> Loss:
        """A Gaussian of signal-to-noise ratio sensitivity/scale, and the failure."""
        return gaussian((self.sensitivity / self.scale) ** 2) + failure(self.failure)

    def chance(self, gap: int) -> Real:
        """The probability of passing, as a computable real."""
        return _GaussianChance(self, _lead(gap, self.sensitivity, self.scale))

    def quantile_ball(self) -> arb:
        """z, at the current precision."""
        if self.quantile == "paper":
            return (-2 * ball(self.failure).log()).sqrt()
        return arb(2).sqrt() * (2 * ball(self.failure)).erfcinv()


@dataclass(frozen=True, slots=True)
class LaplaceTest:
    """Passes with probability P[Lap(1) > ln(1/(2δ_t)) − (max(s, q) − s)/b]."""

    scale: Fraction
    failure: Fraction
    sensitivity: int = 1

    @property
    def loss(self) -> Loss:
        """An (sensitivity/scale, failure)-DP step."""
        return approximate(self.sensitivity / self.scale, self.failure)

    def chance(self, gap: int) -> Real:
        """The probability of passing, as a computable real."""
        return LaplaceChance(1 / (2 * self.failure), _lead(gap, self.sensitivity, self.scale))


def _lead(gap: int, sensitivity: int, scale: Fraction) -> Fraction:
    """How far the gap is above what one person can do, over the scale."""
    return (max(sensitivity, gap) - sensitivity) / scale


@dataclass(frozen=True, slots=True, repr=False)
class _GaussianChance:
    test: GaussianTest
    lead: Fraction

    def ball(self, bits: int) -> arb:
        """A ball around Φ(lead − z)."""
        with precision(bits + 32):
            if self.lead == 0 and self.test.quantile == "exact":
                return ball(self.test.failure)
            return GAUSSIAN.tail(self.test.quantile_ball() - ball(self.lead))


@dataclass(frozen=True, slots=True, repr=False)
class LaplaceChance:
    """P[Lap(1) > ln(``odds``) − ``lead``] as a computable real. Secret."""

    odds: Fraction
    lead: Fraction

    def ball(self, bits: int) -> arb:
        """A ball around the tail."""
        with precision(bits + 32):
            return LAPLACE.tail(ball(self.odds).log() - ball(self.lead))
