"""The public numbers of a `Series`: correlated noise and thresholds for a list every period.

>>> numbers = SeriesNumbers.calibrated("cumulative", 52, 1, 10, 1.0, 1e-6)
>>> numbers.deviation(1) < numbers.deviation(52) < 2.33 * 10**0.5 / float(numbers.mu_squared) ** 0.5
True

Noise that is drawn anew for each of T lists grows like √T. Here period t's noise is σ·(CZ)_t for a
lower triangular C with C·C = A, the matrix that adds a label's counts up (from the start, or over a
window): a sum that many lists share is paid for once, and the error grows like log T. C has the
coefficients of a(z) = (1 − z)^(−½), or ((1 − z^W)/(1 − z))^½, in its columns. The statement and its
proof, for a referee, are docs/proofs/series.md.

**Why each line matters.**
- *κ bounds the squared length that one count adds to C's rows*, all periods together; for windows
  also what a person's later counts of the same label add to it.
- *D counts per person for life.* Per period it would be paid for once and used T times.
- *The threshold covers a person's own count of 1, and all periods in which a label may be theirs
  alone*: D·T of them, or D·W.
- *σ never changes.* The same Z with another σ would show the sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
from flint import arb, arb_series, ctx

from topsecret.accounting import Loss, failure, gaussian
from topsecret.counts.weights import UNIT
from topsecret.exact.rounding import Number, ball, exact, precision, up
from topsecret.mechanisms import parameters
from topsecret.mechanisms.weighted_schedule import gaussian_alone
from topsecret.noise.coins import exact_fraction

Kind = Literal["cumulative", "window"]

NAMING = Fraction(1, 10)
"""The part of delta for labels of one person alone; the values get the rest."""
_BITS = 320
_PAST = 2_000
"""Rows after the last period that are counted in where a window's length is bounded."""


@dataclass(frozen=True, slots=True)
class SeriesNumbers:
    """Noise and thresholds of all periods. Public.

    Guarantee: docs/proofs/series.md, with ``loss`` as the charge of all periods together.
    """

    kind: Kind
    """Whether sums go back to the start or over the last periods."""
    periods: int
    """T, the number of periods."""
    window: int
    """W, over how many periods a window sums; 1 where sums are cumulative."""
    max_counts: int
    """D, how many counts one person has for life."""
    delta: Fraction
    """Of all periods together."""
    sigma: Fraction
    """The standard deviation of the noise behind all sums."""

    def __post_init__(self) -> None:
        parameters.one_of(self.kind, "kind", ("cumulative", "window"))
        for name in ("periods", "window", "max_counts"):
            parameters.whole(getattr(self, name), name)
        parameters.probability(self.delta, "delta")
        parameters.positive(self.sigma, "sigma")

    @classmethod
    def calibrated(
        cls,
        kind: Kind,
        periods: int,
        window: int,
        max_counts: int,
        epsilon: Number,
        delta: Number,
    ) -> SeriesNumbers:
        """The least noise, or nearly, with which all periods keep to (ε, δ) together."""
        parameters.positive(epsilon, "epsilon")
        parameters.probability(delta, "delta")
        exact_delta = exact(delta)
        cls(kind, periods, window, max_counts, exact_delta, Fraction(1))  # checks the rest
        squared = max_counts * squared_length(kind, periods, window)
        sigma = gaussian_alone(squared, exact(epsilon), (1 - NAMING) * exact_delta)
        return cls(kind, periods, window, max_counts, exact_delta, sigma)

    @property
    def mu_squared(self) -> Fraction:
        """What all values of all periods cost together, as one Gaussian."""
        return (
            self.max_counts * squared_length(self.kind, self.periods, self.window) / (self.sigma**2)
        )

    @property
    def failure(self) -> Fraction:
        """At least the probability that a label of one person alone is ever named."""
        return NAMING * self.delta

    @property
    def loss(self) -> Loss:
        """The charge of the whole series."""
        return gaussian(self.mu_squared) + failure(self.failure)

    @property
    def own_places(self) -> int:
        """In how many (label, period) a person may be the only one, for life."""
        return self.max_counts * (self.periods if self.kind == "cumulative" else self.window)

    def coefficients(self, bits: int = _BITS) -> tuple[arb, ...]:
        """a_0, …, a_(T−1), in balls."""
        return coefficients(self.kind, self.periods, self.window, bits)

    def deviation(self, period: int) -> float:
        """The standard deviation of a period's noise, in people, rounded up."""
        with precision(_BITS):
            return up(self._deviation(period))

    def growth_deviation(self, period: int, lag: int) -> float:
        """That of the difference between a value and the one ``lag`` periods before, rounded up."""
        a = self.coefficients()[:period]
        with precision(_BITS):
            steps = (a[j] - a[j - lag] if j >= lag else a[j] for j in range(period))
            return up(ball(self.sigma) * sum((one * one for one in steps), arb(0)).sqrt())

    def threshold(self, period: int) -> int:
        """τ_t in 1/1024: a label is named if its value, rounded to 1/1024, is larger.

        A rounded value above it comes from a value above 1 + sd·Φ⁻¹(1 − δ/10/n), or at it.
        """
        with precision(_BITS):
            quantile = arb(2).sqrt() * ball(2 * self.failure / self.own_places).erfcinv()
            level = UNIT * (1 + self._deviation(period) * quantile) - ball(Fraction(1, 2))
            return math.ceil(exact_fraction(level.upper()))

    def _deviation(self, period: int) -> arb:
        squares = (one * one for one in self.coefficients()[:period])
        return ball(self.sigma) * sum(squares, arb(0)).sqrt()


@lru_cache(maxsize=32)
def coefficients(kind: Kind, periods: int, window: int, bits: int = _BITS) -> tuple[arb, ...]:
    """The coefficients of the root of the summing matrix, as many as there are periods."""
    with precision(bits):
        before = ctx.cap
        ctx.cap = periods
        try:
            if kind == "cumulative":
                series = arb_series([1, -1], periods).rsqrt()
            else:
                series = arb_series([1] * min(window, periods), periods).sqrt()
        finally:
            ctx.cap = before
        found = list(series.coeffs())
    return (*found, *[arb(0)] * (periods - len(found)))[:periods]


@lru_cache(maxsize=256)
def squared_length(kind: Kind, periods: int, window: int) -> Fraction:
    """κ: at least the squared length that each of a person's counts adds, rounded up."""
    balls = coefficients(kind, periods, window)
    with precision(_BITS):
        own = sum((one * one for one in balls), arb(0))
    if kind == "cumulative":
        return Fraction(up(own))
    # For windows a person may count again in a label, W periods later or more. Rows past the last
    # period only lengthen what is bounded: with _PAST of them, columns s < t of C have a product
    # Σ_j a_j·a_(j + t − s) of at least _PAST terms, near to that of endless columns.
    longer = coefficients(kind, periods + _PAST, window)
    with precision(_BITS):
        own = sum((one * one for one in longer), arb(0))
    floats = np.array([float(one.mid()) for one in longer])
    # A sum of n products of floats that are off by u of themselves: less than (n + 4)·u of
    # Σ|a_j·a_(j+s)| ≤ Σ a_j², and twice that is allowed for.
    error = Fraction((periods + _PAST + 8) * 2.0**-52 * up(own))
    peaks = np.zeros(periods + 1)
    for gap in range(window, periods):
        sums = np.cumsum(floats[: len(floats) - gap] * floats[gap:])
        peaks[gap] = max(0.0, float(sums[_PAST - 1 :].max()))
    later = np.maximum.accumulate(peaks[::-1])[::-1]
    again = [Fraction(float(later[gap])) + error for gap in range(window, periods, window)]
    total = Fraction(up(own)) + 2 * sum(again, Fraction(0))
    return Fraction(math.ceil(total * 2**40), 2**40)
