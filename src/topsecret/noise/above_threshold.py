"""All noisy scores above a threshold, best first, exactly, from groups of equal scores.

The race of ``race.py`` with two differences: it ends at a fixed level instead of a noisy one, and
it tells each noisy score, rounded to a whole number. A group of c items whose noise would have to
be far out is dropped by floats that enclose its first arrival, so that millions of low scores cost
one pass over arrays.

Guarantee: the groups and whole numbers have exactly the law of adding independent real-valued noise
to every item's score, keeping those above the level, sorting them, and rounding each to the
nearest whole number.

>>> import numpy as np
>>> from topsecret.noise.bits import SystemBits
>>> from topsecret.noise.distributions import GAUSSIAN
>>> field = ScoreGroups(np.array([10**6, 0]), np.array([2, 10**12]))
>>> drawn = above(field, GAUSSIAN, Fraction(10), Fraction(500), None, SystemBits())
>>> [one.group for one in drawn]
[0, 0]
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from topsecret.exact.rounding import ball, down, precision, up
from topsecret.noise.bits import FIRST_BITS, BitSource, Rational, Uniform
from topsecret.noise.distributions import Noise
from topsecret.noise.race import HeadStart, Leg, Runner
from topsecret.noise.screening import WORD, ScoreGroups, Screen, draw_words

_CHUNK = 2**18


@dataclass(frozen=True, slots=True)
class NoisyScore:
    """One item that passed: its group and its noisy score, rounded to a whole number."""

    group: int
    value: int


def above(
    field: ScoreGroups,
    noise: Noise,
    scale: Fraction,
    level: Fraction | None,
    count: int | None,
    bits: BitSource,
) -> list[NoisyScore]:
    """The ``count`` largest noisy scores above ``level``; None stands for no such limit."""
    reference = field.highest()
    place = None if level is None else Rational((level - reference) / scale)
    runners = _starters(field, noise, scale, reference, place, count, bits)
    heapq.heapify(runners)
    nearest = _Nearest(reference, scale)
    passed: list[NoisyScore] = []
    while runners and (count is None or len(passed) < count):
        best = runners[0]
        if place is not None and not _exceeds(best, place):
            break
        passed.append(NoisyScore(best.group, nearest.of(best)))
        if best.left > 1:
            heapq.heapreplace(runners, best.next(bits))
        else:
            heapq.heappop(runners)
    return passed


def _starters(
    field: ScoreGroups,
    noise: Noise,
    scale: Fraction,
    reference: Fraction,
    place: Rational | None,
    count: int | None,
    bits: BitSource,
) -> list[Runner]:
    """The first arrival of every group that may pass."""
    screen = Screen(field, reference, noise, scale)
    least = -math.inf if place is None else down(place.ball(FIRST_BITS))
    words, lower, upper = [], [], []
    for start in range(0, len(field.scores), _CHUNK):
        groups = np.arange(start, min(start + _CHUNK, len(field.scores)))
        drawn = draw_words(len(groups), bits)
        bounds = screen.bounds(groups, drawn)
        words.append(drawn)
        lower.append(bounds[0])
        upper.append(bounds[1])
    if not words:
        return []
    all_words, lowers, uppers = (
        np.concatenate(words),
        np.concatenate(lower),
        np.concatenate(upper),
    )
    if count is not None and count < len(lowers):
        # Whoever lies below the count-th largest lower bound is not among the first.
        least = max(least, float(np.partition(lowers, -count)[-count]))
    runners = []
    for group in np.flatnonzero(uppers >= least).tolist():
        size = field.size(group)
        leg = Leg(Uniform(bits, int(all_words[group]), WORD), size)
        runner = Runner(group, HeadStart(field, group, reference, scale), noise, size, leg)
        runner.lower, runner.upper = float(lowers[group]), float(uppers[group])
        runners.append(runner)
    return runners


def _exceeds(runner: Runner, place: Rational) -> bool:
    """Whether the noisy score lies above the level: equality has probability 0."""
    bits = FIRST_BITS
    while True:
        level = place.ball(bits)
        if runner.lower > up(level):
            return True
        if runner.upper < down(level):
            return False
        value = runner.ball(bits)
        if value > level:
            return True
        if value < level:
            return False
        bits *= 2


class _Nearest:
    """Noisy scores as the nearest whole numbers, each from as many bits as that takes."""

    def __init__(self, reference: Fraction, scale: Fraction) -> None:
        self._reference = reference
        self._scale = scale
        self._balls: dict[int, tuple[arb, arb]] = {}

    def of(self, runner: Runner) -> int:
        bits = FIRST_BITS
        while True:
            with precision(bits + 64):
                if bits not in self._balls:
                    half_more = ball(self._reference + Fraction(1, 2))
                    self._balls[bits] = half_more, ball(self._scale)
                start, factor = self._balls[bits]
                # The floor of half more; a score that lies in the middle has probability 0.
                found = (start + factor * runner.ball(bits)).floor().unique_fmpz()
            if found is not None:
                return int(found)
            bits *= 2
