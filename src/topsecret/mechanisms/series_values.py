"""The noisy values of one period of a `Series`, exact, and which labels become known by them.

A label's value is its present sum + σ·Σ_j a_j·Z_(t − j), rounded to 1/1024, where Z_s is the
label's own normal of period s: drawn from that period's key, hence the same in every later period.
Rounding, naming and ranking are functions of the rounded values.

>>> numbers = SeriesNumbers.calibrated("cumulative", 4, 1, 1, 2.0, 1e-4)
>>> noise = SeriesNoise(numbers, [b"a" * 32, b"b" * 32])
>>> named = noise.values({b"tea": 900, b"jam": 1}, known={b"rum": 0})
>>> sorted(named), named[b"tea"] // 1024 > 800
([b'rum', b'tea'], True)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from topsecret.counts.weights import UNIT
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import ball, down, precision, up
from topsecret.mechanisms.series_numbers import SeriesNumbers
from topsecret.noise.bits import FIRST_BITS
from topsecret.noise.coins import exact_fraction
from topsecret.noise.enclosures import Bounds
from topsecret.noise.keyed_normals import KeyedNormals

_CHUNK = 2**14


class SeriesNoise:
    """The noise of the last of these periods; ``keys`` has one for each period until then."""

    def __init__(self, numbers: SeriesNumbers, keys: Sequence[bytes]) -> None:
        if not 0 < len(keys) <= numbers.periods:
            raise InvalidParameter(f"keys must be those of 1 to {numbers.periods} periods")
        self._numbers = numbers
        self._period = len(keys)
        # a_0 belongs to the last period. A window of one period has no other.
        used = numbers.coefficients()[: self._period]
        self._lags = [lag for lag, one in enumerate(used) if one != 0]
        self._normals = [KeyedNormals(keys[-1 - lag]) for lag in self._lags]

    def __repr__(self) -> str:
        return f"SeriesNoise(period {self._period})"

    def values(self, sums: Mapping[bytes, int], known: Mapping[bytes, int]) -> dict[bytes, int]:
        """Label to value in 1/1024: of the labels that are known, with their present sums, and
        of those in ``sums``, each at least 1, that become known in this period.
        """
        threshold = self._numbers.threshold(self._period)
        named = {label: self._value(label, total) for label, total in known.items()}
        fresh = [label for label, total in sums.items() if total >= 1 and label not in known]
        for start in range(0, len(fresh), _CHUNK):
            labels = fresh[start : start + _CHUNK]
            _, upper = self.bounds(labels)
            totals = np.array([sums[label] for label in labels], dtype=np.float64)
            # Sums are whole numbers far below 2^53; the slack of `bounds` covers this addition.
            for place in np.flatnonzero(totals + upper >= threshold / UNIT - 1.0):
                label = labels[int(place)]
                value = self._value(label, sums[label])
                if value > threshold:
                    named[label] = value
        return named

    def bounds(self, labels: Sequence[bytes]) -> Bounds:
        """Floats around the noise of many labels, in people."""
        total = np.zeros(len(labels)), np.zeros(len(labels))
        reach = 0.0
        coefficients, sigma = self._numbers.coefficients(), self._numbers.sigma
        for lag, normals in zip(self._lags, self._normals, strict=True):
            with precision(FIRST_BITS):
                factor = ball(sigma) * coefficients[lag]
                least, most = down(factor), up(factor)
            lower, upper = normals.bounds(labels)
            ends = [lower * least, lower * most, upper * least, upper * most]
            total[0][:] += np.minimum.reduce(ends)
            total[1][:] += np.maximum.reduce(ends)
            reach += max(abs(least), abs(most))
        # Each of at most 2n roundings is off by 2^-53 of a sum that stays below 10·reach, unless a
        # normal is not bounded at all, which no slack is needed for.
        slack = 2.0**-50 * (len(self._lags) + 2) * 10.0 * reach
        return total[0] - slack, total[1] + slack

    def _value(self, label: bytes, total: int) -> int:
        """The value in 1/1024, to the nearest, from as many bits as that takes."""
        bits = FIRST_BITS
        while True:
            coefficients = self._numbers.coefficients(max(320, bits + 128))
            with precision(bits + 64):
                noise = ball(Fraction(0))
                for lag, normals in zip(self._lags, self._normals, strict=True):
                    noise += coefficients[lag] * normals.ball(label, bits)
                value = UNIT * (total + ball(self._numbers.sigma) * noise)
                if value.is_finite():
                    low, high = exact_fraction(value.lower()), exact_fraction(value.upper())
                    if round(low) == round(high):
                        return round(low)
            bits *= 2
