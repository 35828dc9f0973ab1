"""Where the counts drop most: choosing k privately (Zhu & Wang 2022, Alg. 1 and Prop. 7).

**Statement.** The argmax over j of q_j + r(j) + noise, where q_j = h₍ⱼ₎ − h₍ⱼ₊₁₎ and r is a public
regulariser. A gap moves by at most s between neighbours (1 under add-remove, 2 under replace),
and two gaps may move in opposite directions even under add-remove.

- *Gumbel(τ)*: the log-weights q_j/τ move within [−s/τ, s/τ], so one choice is ε-bounded-range with
  ε = 2s/τ. (Not s/τ: gaps are not monotone.)
- *Gaussian(σ)*: RDP(α) = min{2s²α/σ² + ln(k̄)/(α − 1), k̄·s²·α/(2σ²)} (Cor. 9; the argmax is also
  post-processing of a Gaussian vector of k̄ coordinates). It costs more than Gumbel noise of the
  same standard deviation: prefer Gumbel.

With one candidate there is nothing to choose and nothing is paid.

>>> from topsecret.noise.bits import SystemBits
>>> chooser = LargestGap(k_bar=3, scale=Fraction(1, 10), noise=GUMBEL)
>>> chooser.choose([0, 40, 1], SystemBits())
2
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import acb, arb, ctx

from topsecret.accounting import NO_LOSS, GaussianSelection, Loss, picks, rdp
from topsecret.exact.rounding import ball, precision
from topsecret.noise.bits import BitSource
from topsecret.noise.distributions import GAUSSIAN, GUMBEL, Noise
from topsecret.noise.race import race
from topsecret.noise.screening import ScoreGroups


@dataclass(frozen=True)
class LargestGap:
    """The place of the largest noisy gap among the first ``k_bar``."""

    k_bar: int
    """How many gaps are looked at."""
    scale: Fraction
    """The scale of the noise on each gap."""
    noise: Noise
    """Which noise it is."""
    bonus: tuple[Fraction, ...] | None = None
    """r(1), …, r(k̄); None for no regulariser."""
    sensitivity: int = 1
    """The most that one person moves a gap by."""

    @property
    def loss(self) -> Loss:
        """One bounded-range pick, or the Gaussian's Rényi curve."""
        if self.k_bar == 1:
            return NO_LOSS
        if self.noise is GUMBEL:
            return picks(1, 2 * self.sensitivity / self.scale)
        curve = GaussianSelection(self.k_bar, self.scale**2, self.sensitivity)
        return rdp("Gaussian selection", curve)

    def choose(self, gaps: Sequence[int], bits: BitSource) -> int:
        """Draw the place, counted from 1."""
        unit, whole = 1, list(gaps)
        if self.bonus is not None:
            # Over a common denominator scores are integers, which is what the race takes.
            scores = self._scores(gaps)
            unit = math.lcm(*(score.denominator for score in scores))
            whole = [int(score * unit) for score in scores]
        kind = np.int64 if all(abs(score) < 2**62 for score in whole) else np.object_
        field = ScoreGroups(np.array(whole, dtype=kind))
        return race(field, self.noise, self.scale * unit, 1, bits)[0] + 1

    def probabilities(self, gaps: Sequence[int]) -> list[arb]:
        """The law of the place, at the current precision."""
        scores = self._scores(gaps)
        best = max(scores)
        starts = [(score - best) / self.scale for score in scores]
        if self.noise is GUMBEL:
            weights = [ball(start).exp() for start in starts]
            total = sum(weights, arb(0))
            return [weight / total for weight in weights]
        return [
            _gaussian_chance(start, tuple(sorted(starts[:place] + starts[place + 1 :])), ctx.prec)
            for place, start in enumerate(starts)
        ]

    def _scores(self, gaps: Sequence[int]) -> list[Fraction]:
        bonus = self.bonus or (Fraction(0),) * len(gaps)
        return [gap + extra for gap, extra in zip(gaps, bonus, strict=False)]


@lru_cache(maxsize=4096)
def _gaussian_chance(start: Fraction, others: tuple[Fraction, ...], bits: int) -> arb:
    """P[start + N(0, 1) exceeds all other + N(0, 1)]: ∫ φ(x)·Π Φ(x + start − other) dx.

    The integral is rigorous (python-flint). Outside ±limit the density has less mass than its
    tail there, and the other factor lies in [0, 1].
    """
    if not others:
        return arb(1)
    with precision(bits):
        # Φ(−limit) < e^(−limit²/2) = 2^(−bits): what is cut off is below the working precision.
        limit = math.ceil(math.sqrt(2 * math.log(2) * bits)) + 1
        leads = [ball(start - other) for other in others]
        root2 = arb(2).sqrt()

        def integrand(x: acb, _: bool) -> acb:
            value = (-x * x / 2).exp()
            for lead in leads:
                value *= (-(x + lead) / root2).erfc() / 2
            return value

        inside = acb.integral(integrand, acb(-limit), acb(limit)).real / (2 * arb.pi()).sqrt()
        return inside + arb(0).union(2 * GAUSSIAN.tail(arb(limit)))
