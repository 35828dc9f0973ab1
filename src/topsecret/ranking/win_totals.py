"""`NoisyTotals`: the wins of every item with exact noise, the one private release of `strength`.

On a public schedule the win totals are all that the Bradley–Terry model asks of the outcomes (they
are its sufficient statistics), so strengths, ranks, error bars and win probabilities follow from
this one release as post-processing.

**Statement.** h_i is twice the wins of item i, a tie counting once for each side, so that all
totals are whole. Somebody decided at most c = ``comparisons_per_person`` of the comparisons. If all
outcomes of that person change, and the schedule does not:

- one comparison moves at most two half wins from one item to another, so c of them move h by at
  most 4c in the L1 norm: independent discrete Laplace noise of scale 4c/ε on every total is ε-DP;
- in the L2 norm they move it by at most c·√8 (the triangle inequality; reached when one item meets
  one other throughout): ⌊h_i + N(0, σ²)⌉ is post-processing of a Gaussian mechanism of
  μ² = 8c²/σ², and costs ``gaussian(8c²/σ²)``.

**Preconditions.** The items and who met whom how often are public and the same for all neighbours;
c is enforced where the rows are read (``sources/matches.py``).

>>> totals = NoisyTotals(epsilon=1)
>>> float(totals.noise.scale), totals.loss.epsilon(0)
(4.0, 1.0)
>>> 11 < NoisyTotals(epsilon=1, delta=1e-6).noise.sigma < 13
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topsecret.accounting import Loss, calibrate, gaussian, pure
from topsecret.exact.rounding import Number, exact, root_up
from topsecret.mechanisms import parameters
from topsecret.noise.bits import BitSource, SystemBits
from topsecret.noise.integer_table import IntegerTable
from topsecret.noise.lattice import DiscreteLaplace
from topsecret.noise.rounded_gaussian import RoundedGaussian


@dataclass(frozen=True)
class NoisyTotals:
    """All win totals in half wins, each with independent exact noise.

    Guarantee: ε-DP, or with ``delta`` (ε, δ)-DP, for neighbours that differ in the outcomes of at
    most ``comparisons_per_person`` comparisons.
    """

    epsilon: Number
    """Of all totals together."""
    delta: Number | None = None
    """None for discrete Laplace noise; else the noise is a continuous Gaussian, rounded."""
    comparisons_per_person: int = 1
    """How many outcomes neighbours differ in, at most."""

    def __post_init__(self) -> None:
        parameters.positive(self.epsilon, "epsilon")
        if self.delta is not None:
            parameters.probability(self.delta, "delta")
        parameters.whole(self.comparisons_per_person, "comparisons_per_person")

    @cached_property
    def noise(self) -> DiscreteLaplace | RoundedGaussian:
        """Of one total, in half wins."""
        c = self.comparisons_per_person
        if self.delta is None:
            return DiscreteLaplace(4 * c / exact(self.epsilon))
        mu_squared = calibrate(gaussian, self.epsilon, self.delta)
        return RoundedGaussian(root_up(8 * c * c / exact(mu_squared)))

    @cached_property
    def loss(self) -> Loss:
        """What the totals cost, however many items there are."""
        if isinstance(self.noise, DiscreteLaplace):
            return pure(self.epsilon)
        return gaussian(8 * Fraction(self.comparisons_per_person) ** 2 / self.noise.sigma**2)

    @cached_property
    def variance(self) -> float:
        """Of the noise of one total, in wins squared. Public."""
        if isinstance(self.noise, RoundedGaussian):
            return self.noise.variance / 4
        # 2q/(1 − q)² with q = e^(−1/scale).
        return 0.5 / math.sinh(min(350.0, float(1 / (2 * self.noise.scale)))) ** 2 / 4

    def release(
        self, half_wins: NDArray[np.int64], bits: BitSource | None = None
    ) -> NDArray[np.int64]:
        """The totals with noise, in half wins."""
        drawn = IntegerTable(self.noise).draw(
            half_wins.shape, SystemBits() if bits is None else bits
        )
        return np.asarray(half_wins + drawn, dtype=np.int64)
