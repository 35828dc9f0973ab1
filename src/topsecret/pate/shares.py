"""`NoisyShares`: the noisy votes themselves, for students that learn from more than yes and no.

`NoisyMajority` draws a Gaussian for every label and tells only whether the count exceeds half of
the teachers. The noisy counts cost exactly as much: the labels are post-processing of them.

**Statement.** v_j = ⌊u·(Σ ballots' weights for j + N(0, σ²))⌉/u with a public unit 1/u is a
continuous Gaussian mechanism, rounded. One answer costs gaussian(S²/σ²), S the L2 sensitivity of
the weighted counts. One changed record replaces one ballot by any other (``replace``), or a ballot
comes or goes (``add-remove``); a ballot's weights lie in [0, 1]:

- *whole ballots*: all c labels may move by 1, S² = c;
- *cut to τ labels* (``max_votes``): at most τ move under add-remove, 2τ under replace (τ votes go,
  τ come): S² = min(c, τ) or min(c, 2τ);
- *weighted* (``weight_limit`` = D): a ballot of n labels gives each W(n)/u, W(n) = ⌊√⌊u²·min(n,
  D)/n⌋⌋, so that n·W(n)² ≤ D·u² in integers: L2 norm at most √D, no label is dropped. Under replace
  |a − b|² ≤ |a|² + |b|² ≤ 2D, since no weight is negative, and each of c labels moves by at most 1:
  S² = min(c, D) or min(c, 2D).

>>> rule = NoisyShares(labels=3, teachers=100, sigma=5, weight_limit=2)
>>> rule.moved, rule.loss == NoisyMajority(3, 100, 5).loss
(3, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topsecret.accounting import Loss, gaussian
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, exact
from topsecret.mechanisms import parameters
from topsecret.noise.bits import BitSource
from topsecret.noise.integer_table import IntegerTable
from topsecret.noise.rounded_gaussian import RoundedGaussian
from topsecret.pate.ballots import Ballots, Counts, count_votes, cut_ballots
from topsecret.pate.rules import Decision, NoisyMajority

UNIT = 1024
"""Weighted ballots are counted in units of 1/1024 of a vote."""


@dataclass(frozen=True)
class NoisyShares:
    """The votes for each label with Gaussian noise of standard deviation ``sigma``, in votes.

    Parameters: ``labels``: how many there are; ``teachers``: how many vote; ``sigma``: the standard
    deviation of the noise, in votes; ``max_votes``: cuts every ballot to so many labels;
    ``weight_limit``: weights ballots instead; the aggregator enforces both; ``adjacency``: whether
    a teacher is replaced, or added and removed; ``counts``: votes, queries × labels; ``bits``:
    where randomness comes from.

    Guarantee: one answer has the ``loss`` stated, under ``adjacency``.
    """

    labels: int
    teachers: int
    sigma: Number
    max_votes: int | None = None
    weight_limit: int | None = None
    adjacency: parameters.Adjacency = "replace"

    def __post_init__(self) -> None:
        NoisyMajority(self.labels, self.teachers, self.sigma, self.max_votes, self.adjacency)
        if self.weight_limit is not None:
            parameters.whole(self.weight_limit, "weight_limit")
            if self.max_votes is not None:
                raise InvalidParameter(
                    f"max_votes={self.max_votes} and weight_limit={self.weight_limit} both bound a "
                    "ballot; leave one out"
                )

    @property
    def moved(self) -> int:
        """S²: the square of how far one teacher can move the counts."""
        limit = self.max_votes if self.weight_limit is None else self.weight_limit
        if limit is None:
            return self.labels
        return min(self.labels, parameters.directions(self.adjacency) * limit)

    @cached_property
    def loss(self) -> Loss:
        """The Gaussian mechanism on all counts, as for `NoisyMajority`."""
        return gaussian(self.moved / exact(self.sigma) ** 2)

    @property
    def unit(self) -> int:
        """Into how many parts a vote is divided."""
        return 1 if self.weight_limit is None else UNIT

    @property
    def share_deviation(self) -> float:
        """The standard deviation of the noise of a share. Public."""
        return math.sqrt(self._table_noise.variance) / (self.unit * self.teachers)

    def count(self, ballots: Ballots) -> Counts:
        """The weighted counts of one query, in units. Secret."""
        if self.max_votes is not None:
            ballots = cut_ballots(ballots, self.max_votes)
        if self.weight_limit is None:
            return count_votes(ballots)
        sizes = ballots.sum(axis=1)
        total = np.zeros(self.labels, dtype=np.int64)
        for size in np.unique(sizes[sizes > 0]):
            total += weight(int(size), self.weight_limit) * count_votes(ballots[sizes == size])
        return total

    def shares(self, counts: Counts, bits: BitSource) -> NDArray[np.float64]:
        """Noisy shares of the teachers, query by query; they may lie below 0 or above 1."""
        noisy = counts + self._table.draw(counts.shape, bits)
        return np.asarray(noisy / (self.unit * self.teachers), dtype=np.float64)

    def decide(self, counts: Counts, bits: BitSource) -> Decision:
        """The labels of a noisy majority: post-processing of the shares."""
        return self.shares(counts, bits) > 0.5, np.ones(len(counts), dtype=np.bool_)

    @cached_property
    def _table_noise(self) -> RoundedGaussian:
        return RoundedGaussian(exact(self.sigma) * self.unit)

    @cached_property
    def _table(self) -> IntegerTable:
        return IntegerTable(self._table_noise)


def weight(size: int, limit: int) -> int:
    """W(n) in units, for a ballot of ``size`` labels: n·W(n)² ≤ D·u².

    >>> [weight(n, 2) for n in (1, 2, 3, 8)]
    [1024, 1024, 836, 512]
    """
    return math.isqrt(UNIT * UNIT * min(size, limit) // size)
