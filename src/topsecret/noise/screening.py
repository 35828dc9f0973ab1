"""Who can be among the k largest: a float64 screen over all groups that never drops a winner.

Every group gets the first 64 bits of the uniform that decides its first arrival; floats enclose
its noisy score. A group whose upper bound lies below the k-th largest lower bound cannot be among
the k largest, whatever its further bits. Only the others go on to the exact race.

For very many groups most are dropped by their first 16 bits alone. Let L be a lower bound of the
k-th largest noisy score within some groups (the *head*), hence of the k-th largest over all. A
group outside whose score is at most b must have noise above (L − b)/scale, which has probability
at most T = size·tail((L − b)/scale). Its arrival is −ln(1 − V)/size for a uniform V, and that
noise means V ≤ T. So a V whose first 16 bits already put it above T is out: an integer
comparison with a bound that was computed in ball arithmetic and rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from topsecret.exact.rounding import up
from topsecret.noise.bits import BitSource
from topsecret.noise.distributions import Noise
from topsecret.noise.enclosures import Bounds, Floats, arrival_bounds

WORD = 64
"""How many bits of its uniform each contender has shown."""

_ALL_AT_ONCE = 16_384
_HEAD = 4_096
_ROUND = 2.0**-50  # eight units roundoff: more than the three operations it stands for
_FLOOR = -1e300
_LARGEST = float(np.finfo(np.float64).max)
_LEAST = np.iinfo(np.int64).min

Indices = NDArray[np.int64]
Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, repr=False)
class ScoreGroups:
    """Who runs: the score of each group and how many items share it. Secret."""

    scores: NDArray[Any]
    """int64, float64, or Python integers of any size as objects."""
    sizes: NDArray[Any] | None = None
    """How many items each group has; None when each is a single item."""

    def size(self, group: int) -> int:
        """How many items the group has."""
        return 1 if self.sizes is None else int(self.sizes[group])

    def score(self, group: int) -> Fraction:
        """The group's score, exactly."""
        value = self.scores[group]
        return Fraction(value.item() if isinstance(value, np.generic) else value)

    def head_start(self, group: int, reference: Fraction, scale: Fraction) -> fmpq:
        """(score − reference)/scale, exactly."""
        value = self.scores[group]
        if self.scores.dtype.kind == "f":
            exact = (Fraction(value.item()) - reference) / scale
            return fmpq(exact.numerator, exact.denominator)
        difference = int(value) - reference.numerator  # whole scores, so a whole reference
        return fmpq(difference * scale.denominator, scale.numerator)

    def mirrored(self) -> ScoreGroups:
        """The same groups with their scores negated: the smallest becomes the largest."""
        scores = self.scores
        if scores.dtype == np.int64 and scores.min(initial=0) == _LEAST:
            scores = scores.astype(np.object_)  # −(−2⁶³) is no int64
        return ScoreGroups(-scores, self.sizes)

    def highest(self) -> Fraction:
        """The largest score; 0 when nobody runs."""
        return self.score(int(np.argmax(self.scores))) if len(self.scores) else Fraction(0)


class Start(NamedTuple):
    """One group that may win: its uniform's first bits and its noisy score, enclosed. Secret."""

    group: int
    size: int
    word: int
    lower: float
    upper: float

    def __repr__(self) -> str:
        return "Start()"


@dataclass(frozen=True, slots=True, repr=False)
class Contenders:
    """The groups that may win, their uniforms' first bits and their noisy scores, enclosed."""

    groups: Indices
    sizes: NDArray[Any] | None
    words: Words
    lower: Floats
    upper: Floats

    def decided(self, count: int) -> list[int] | None:
        """The groups of the ``count`` largest where the enclosures tell their order; else None.

        They do when each of them lies above all that come later. A winner of several items has
        a next arrival that the enclosures do not know.
        """
        order = np.argsort(-self.lower)
        first = order[:count]
        # The largest upper bound of what comes later; −∞ where nothing does.
        later = np.maximum.accumulate(np.append(self.upper[order], -np.inf)[:0:-1])[::-1]
        if not (self.lower[first] > later[: len(first)]).all():
            return None
        if self.sizes is not None and (self.sizes[first] != 1).any():
            return None
        return [int(group) for group in self.groups[first]]

    def starts(self) -> list[Start]:
        """One by one, for the exact race."""
        sizes = [1] * len(self.words) if self.sizes is None else self.sizes.tolist()
        columns = self.groups, self.words, self.lower, self.upper
        groups, words, lower, upper = (column.tolist() for column in columns)
        return list(map(Start, groups, sizes, words, lower, upper))


def few(
    field: ScoreGroups, reference: Fraction, noise: Noise, scale: Fraction, bits: BitSource
) -> list[Start]:
    """All groups of a field so small that arrays cost more than they save."""
    words = draw_words(len(field.scores), bits).tolist()
    sizes = [1] * len(words) if field.sizes is None else field.sizes.tolist()
    divisor, noises = as_divisor(scale), noise.around(words, sizes)
    highest = float(reference) if field.scores.dtype.kind == "f" else reference.numerator
    starts = []
    for group, score in enumerate(field.scores.tolist()):
        lower, upper = one_around(score - highest, divisor, noises[group])
        starts.append(Start(group, sizes[group], words[group], lower, upper))
    return starts


def one_around(
    difference: float, divisor: float, noise: tuple[float, float]
) -> tuple[float, float]:
    """What ``Screen.bounds`` says of one group, in plain floats."""
    try:
        start = difference / divisor
    except OverflowError:  # a whole number beyond the floats
        start = math.nan
    if not _FLOOR < start <= 0.0:
        return -math.inf, math.inf
    least, most = noise
    # The head start has an error of three roundings, the sum one more.
    slack = _ROUND * (1e-200 - 2.0 * start)
    return (
        start + least - slack - _ROUND * abs(least),
        start + most + slack + _ROUND * abs(most),
    )


def contenders(
    field: ScoreGroups,
    reference: Fraction,
    noise: Noise,
    scale: Fraction,
    count: int,
    bits: BitSource,
) -> Contenders:
    """All groups that may hold one of the ``count`` largest noisy scores.

    Bounds are on (score − reference)/scale + noise.
    """
    total = len(field.scores)
    screen = Screen(field, reference, noise, scale)
    if total <= _ALL_AT_ONCE or total <= 4 * count:  # below, somebody is outside the head
        groups = np.arange(total)
        words = draw_words(total, bits)
        lower, upper = screen.bounds(groups, words)
    else:
        head, highest_outside = screen.head(max(_HEAD, 4 * count))
        head_words = draw_words(len(head), bits)
        head_bounds = screen.bounds(head, head_words)
        level = kth_largest(head_bounds[0], count)
        rest, rest_words = screen.late_comers(head, level - highest_outside, bits)
        rest_bounds = screen.bounds(rest, rest_words)
        groups = np.concatenate([head, rest])
        words = np.concatenate([head_words, rest_words])
        lower = np.concatenate([head_bounds[0], rest_bounds[0]])
        upper = np.concatenate([head_bounds[1], rest_bounds[1]])
    keep = np.flatnonzero(upper >= kth_largest(lower, count))
    kept = groups[keep]
    sizes = None if field.sizes is None else field.sizes[kept]
    return Contenders(kept, sizes, words[keep], lower[keep], upper[keep])


def draw_words(size: int, bits: BitSource) -> Words:
    """The first 64 bits of this many uniforms."""
    return np.frombuffer(bits.take(8 * size), dtype=np.uint64)


def kth_largest(values: Floats, k: int) -> float:
    """The k-th largest of the values; −∞ where all are wanted."""
    if k >= len(values):
        return -math.inf
    return float(np.partition(values, len(values) - k)[len(values) - k])


class Screen:
    """The float side of a race: head starts and enclosures of noisy scores."""

    def __init__(
        self, field: ScoreGroups, reference: Fraction, noise: Noise, scale: Fraction
    ) -> None:
        self._field = field
        self._reference = reference
        self._noise = noise
        self._scale = as_divisor(scale)

    def bounds(self, groups: Indices, words: Words) -> Bounds:
        """Floats around the noisy score of each group's first arrival."""
        sizes = None if self._field.sizes is None else self._field.sizes[groups]
        return sum_bounds(self._head_starts(groups), noise_bounds(words, sizes, self._noise))

    def _head_starts(self, groups: Indices) -> Bounds:
        """Floats around (score − reference)/scale, which is at most 0."""
        if math.isnan(self._scale):  # a scale that floats cannot hold: everything stays open
            return np.full(len(groups), -np.inf), np.zeros(len(groups))
        return head_start_bounds(self.differences(groups), self._scale)

    def differences(self, groups: Indices) -> Floats:
        """score − reference, each with a relative error of at most one unit roundoff."""
        scores = self._field.scores[groups]
        if scores.dtype == np.float64:
            return np.asarray(scores - float(self._reference), dtype=np.float64)
        highest = int(self._reference)
        if scores.dtype == np.int64 and highest - int(scores.min(initial=0)) < 2**63:
            return (scores - np.int64(highest)).astype(np.float64)
        return np.array([_to_float(int(score) - highest) for score in scores], dtype=np.float64)

    def head(self, size: int) -> tuple[Indices, float]:
        """Groups that are likely to win, and an upper bound of all other head starts.

        Which groups these are decides how fast the race is, never who wins it.
        """
        everyone = np.arange(len(self._field.scores))
        if self._field.sizes is None and self._field.scores.dtype != np.object_:
            order = np.argpartition(self._field.scores, len(everyone) - size)
            head = order[-size:]
            # argpartition puts nothing above the pivot, the first of the head, outside of it.
            return head, float(self._head_starts(head[:1])[1][0])
        starts = self._head_starts(everyone)[1]
        promise = starts
        if self._field.sizes is not None:
            promise = starts + np.log(self._field.sizes.astype(np.float64))
        order = np.argpartition(promise, len(everyone) - size)
        return order[-size:], float(starts[order[:-size]].max())

    def late_comers(self, head: Indices, lead: float, bits: BitSource) -> tuple[Indices, Words]:
        """The groups outside the head that the first 16 bits do not rule out, with 64 bits each.

        ``lead`` bounds the noise that any of them needs from below, up to one rounding.
        """
        prefixes = np.frombuffer(bits.take(2 * len(self._field.scores)), dtype=np.uint16)
        late = self.survivors(lead, prefixes)
        late[head] = False
        rest = np.flatnonzero(late)
        words = (prefixes[rest].astype(np.uint64) << np.uint64(48)) | (
            draw_words(len(rest), bits) >> np.uint64(16)
        )
        return rest, words

    def survivors(self, lead: float, prefixes: NDArray[np.uint16]) -> NDArray[np.bool_]:
        """Whose first 16 bits do not yet rule out noise of at least ``lead``."""
        # One float subtraction made ``lead``: step down by more than its rounding error.
        needed = lead - _ROUND * (abs(lead) + 1.0)
        chance = min(up(self._noise.tail(arb(needed))), 1.0) if math.isfinite(needed) else 1.0
        if self._field.sizes is None:
            limit = min(math.floor(Fraction(chance) * 2**16), 2**16 - 1)
            return prefixes <= np.uint16(limit)
        limits = self._field.sizes.astype(np.float64) * (chance * 2.0**16 * (1.0 + _ROUND))
        return prefixes <= limits


def head_start_bounds(differences: Floats, divisor: float | Floats) -> Bounds:
    """Floats around difference/divisor, which is at most 0."""
    with np.errstate(over="ignore"):
        lower = differences / divisor * (1.0 + _ROUND) - 1e-300
        # −∞ stands for a number that is too large for a float: from above it is the largest.
        start = np.maximum(np.maximum(differences, -_LARGEST) / divisor, _FLOOR)
        return lower, np.minimum(start * (1.0 - _ROUND) + 1e-300, 0.0)


def noise_bounds(words: Words, sizes: NDArray[Any] | None, noise: Noise) -> Bounds:
    """Floats around the noise of the first arrivals that these words tell."""
    first, last = arrival_bounds(*uniform_bounds(words))
    if sizes is not None:
        sizes = sizes.astype(np.float64)
        first = first / sizes * (1.0 - _ROUND)
        last = last / sizes * (1.0 + _ROUND)
    return noise.bounds(first, last)


def sum_bounds(starts: Bounds, noise: Bounds) -> Bounds:
    """Floats around head start plus noise."""
    with np.errstate(over="ignore"):
        lower = starts[0] + noise[0]
        lower -= _ROUND * (np.abs(starts[0]) + np.abs(noise[0]))
        upper = starts[1] + noise[1]
        upper += _ROUND * (np.abs(starts[1]) + np.abs(noise[1]))
    return lower, upper


def uniform_bounds(words: Words) -> Bounds:
    """Floats around the uniform whose first 64 bits are the word."""
    value = words.astype(np.float64)  # one rounding, relative error at most 2⁻⁵³
    lower = value * (2.0**-64 * (1.0 - 2.0**-52))
    upper = (value + 1.0) * (2.0**-64 * (1.0 + 2.0**-50))
    return lower, np.minimum(upper, 1.0)


def as_divisor(scale: Fraction) -> float:
    """The scale as a float; NaN for one that floats cannot hold with room to spare."""
    digits = scale.numerator.bit_length() - scale.denominator.bit_length()
    return float(scale) if abs(digits) < 960 else math.nan


def _to_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return -math.inf
