"""The public numbers of `WeightedHistogram`: noise and threshold, from (ε, δ) and the weights.

The noise alone may spend nearly all of delta, and so may the threshold: they are largest for
different people, those who share all their labels and those who share none
(docs/proofs/weighted-histogram.md). The search is in floats; what is returned was checked in balls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from topsecret.accounting.profile import gaussian_delta
from topsecret.accounting.thresholded_gaussian import ThresholdedGaussian
from topsecret.counts.weights import UNIT, Weights
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import ball, precision

ROOM = Fraction(1004, 1000)
"""The noise over the least: with less, no delta is left for labels of one person alone."""
REPLACE_FAILURE = Fraction(1, 10)
"""The part of delta for the threshold where a person may be replaced: there the two add up."""
SMALLEST_DELTA = Fraction(1, 10**200)
LARGEST_EPSILON = 50


@dataclass(frozen=True, slots=True)
class Noise:
    """How much noise, and from where on a label is named, in people."""

    sigma: Fraction
    """The standard deviation of the noise."""
    threshold: Fraction | None
    """None for a public domain, where every label may be named."""


@lru_cache(maxsize=256)
def joint(weights: Weights, epsilon: Fraction, delta: Fraction) -> ThresholdedGaussian:
    """The least threshold, in 1/1024, with which the release keeps to (ε, δ) under add-remove."""
    sigma = _rounded_up(ROOM * _sigma(weights.squared_norm, epsilon, delta))

    def release(steps: int) -> ThresholdedGaussian:
        return ThresholdedGaussian(weights.table, UNIT, sigma, Fraction(steps, UNIT))

    def keeps(steps: int) -> bool:
        return release(steps).keeps(epsilon, delta)

    # Below this a label of one person alone is named too often, whatever the noise does beside it:
    # the least threshold lies a few steps above.
    start = _by_failures(weights, sigma, delta)
    low, high, step = start - 1, start, 1
    while not keeps(high):
        low, high, step = high, high + step, 2 * step
    step = 1
    while low >= UNIT and keeps(low):
        low, high, step = max(UNIT - 1, low - step), low, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        if keeps(middle):
            high = middle
        else:
            low = middle
    return release(high)


def _by_failures(weights: Weights, sigma: Fraction, delta: Fraction) -> int:
    """About the least threshold, in 1/1024, that names a label of one person alone with delta."""
    table = [(n, w / UNIT) for n, w in enumerate(weights.table, 1)]
    sizes, adds = (np.array(column, dtype=float) for column in zip(*table, strict=True))
    low, high = 1.0, 2.0

    def chance(threshold: float) -> float:
        places = (threshold - adds) / float(sigma)
        tails = np.array([math.erfc(place / math.sqrt(2)) / 2 for place in places.tolist()])
        return float((sizes * tails).max())

    while chance(high) > float(delta) and high < 1e15:
        low, high = high, 2 * high
    while high - low > 0.5 / UNIT:
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle) > float(delta) else (low, middle)
    return max(UNIT, math.floor(high * UNIT))


@lru_cache(maxsize=256)
def gaussian_alone(squared_norm: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The least sigma, or nearly, of a Gaussian release of this squared sensitivity."""
    return _rounded_up(_sigma(squared_norm, epsilon, delta))


@lru_cache(maxsize=256)
def replaced(weights: Weights, epsilon: Fraction, delta: Fraction) -> ThresholdedGaussian:
    """Noise and threshold where a person may be replaced: √2 further apart, delta divided."""
    failure = REPLACE_FAILURE * delta
    sigma = gaussian_alone(2 * weights.squared_norm, epsilon, delta - failure)
    low, high = UNIT, 2 * UNIT

    def release(steps: int) -> ThresholdedGaussian:
        return ThresholdedGaussian(weights.table, UNIT, sigma, Fraction(steps, UNIT))

    while release(high).failure > failure:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if release(middle).failure > failure:
            low = middle
        else:
            high = middle
    return release(high)


def _sigma(squared_norm: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
    """At least the least sigma whose Gaussian profile is at most delta at epsilon."""
    if delta < SMALLEST_DELTA or epsilon > LARGEST_EPSILON:
        raise InvalidParameter(
            f"epsilon={float(epsilon)} must be at most {LARGEST_EPSILON} and delta={float(delta)} "
            f"at least {float(SMALLEST_DELTA):.0e}"
        )
    low, high = 0.0, 1.0
    while not _keeps(squared_norm, high, epsilon, delta):
        low, high = high, 2 * high
        if high > 1e12:
            raise InvalidParameter(
                f"epsilon={float(epsilon)} and delta={float(delta)} leave nothing; raise them"
            )
    while high - low > high * 2**-24:
        middle = (low + high) / 2
        if _keeps(squared_norm, middle, epsilon, delta):
            high = middle
        else:
            low = middle
    return Fraction(high)


def _keeps(squared_norm: Fraction, sigma: float, epsilon: Fraction, delta: Fraction) -> bool:
    with precision(160):
        return bool(gaussian_delta(squared_norm / Fraction(sigma) ** 2, epsilon) <= ball(delta))


def _rounded_up(sigma: Fraction) -> Fraction:
    """More noise never costs more; short numbers keep the draw's arithmetic fast."""
    return Fraction(math.ceil(sigma * 2**20), 2**20)
