"""The race: the k largest noisy scores in order, exactly, from groups of equal scores (SPEC §1).

Items with equal scores are exchangeable, so a group of c of them takes part as one runner. Its
first arrival is the smallest of c independent Exp(1) times, E/c; after a win the next one comes
E′/(c − 1) later, and so on (Rényi). Which item of the group wins is uniform among those left: the
race names groups, and the histogram draws the names.

Guarantee: the sequence of groups has exactly the law of sorting score + scale·noise over all
items with independent real-valued noise. Floats only *enclose* values; where two enclosures
overlap, more random bits and more precision decide (see ``enclosures.py`` for the float bounds).

>>> import numpy as np
>>> from topsecret.noise.bits import SystemBits
>>> from topsecret.noise.distributions import GUMBEL
>>> field = Field(np.array([10**9, 0]), np.array([1, 10**18]))
>>> race(field, GUMBEL, Fraction(1, 1000), 3, SystemBits())
[0, 1, 1]
"""

from __future__ import annotations

import heapq
import math
from fractions import Fraction

from flint import arb

from topsecret.noise.bits import BitSource, Uniform
from topsecret.noise.distributions import Noise
from topsecret.noise.reals import FIRST_BITS, Rational, Real, Shifted
from topsecret.noise.screening import WORD, Field, contenders
from topsecret.rounding import down, precision, up

__all__ = ["EXTRA", "Field", "Runner", "race"]

EXTRA = -1
"""The index by which the race names its extra runner."""


class Runner:
    """One group's next arrival: an enclosure in floats, and the means to sharpen it."""

    __slots__ = ("_balls", "_legs", "_noise", "group", "head_start", "left", "lower", "upper")

    def __init__(
        self, group: int, head_start: Real, noise: Noise, left: int, legs: list[tuple[Uniform, int]]
    ) -> None:
        self.group = group
        self.head_start = head_start
        self.left = left
        self._noise = noise
        self._legs = legs
        self._balls: dict[int, arb] = {}
        self.lower = -math.inf
        self.upper = math.inf

    def ball(self, bits: int) -> arb:
        """The noisy score over the scale, from this many bits of each leg's uniform."""
        known = self._balls.get(bits)
        if known is None:
            with precision(bits + 32):
                arrival = arb(0)
                for uniform, runners in self._legs:
                    # The arrival −ln(1 − V): the digits of V near 0 are the early arrivals.
                    arrival -= uniform.complement(bits).log() / runners
                known = self.head_start.ball(bits + 32) + self._noise.ball(arrival)
            self._balls = {bits: known}
        return known

    def enclose(self) -> None:
        """Set the floats around the noisy score from the first bits."""
        value = self.ball(FIRST_BITS)
        if not value.is_nan():
            self.lower, self.upper = down(value), up(value)

    def next(self, bits: BitSource) -> Runner:
        """The same group's next arrival, with one item fewer left."""
        left = self.left - 1
        legs = [*self._legs, (Uniform(bits), left)]
        runner = Runner(self.group, self.head_start, self._noise, left, legs)
        runner.enclose()
        return runner

    def __lt__(self, other: Runner) -> bool:
        """Whether this one comes first, that is, has the larger noisy score."""
        if self.lower > other.upper:
            return True
        if self.upper < other.lower:
            return False
        bits = FIRST_BITS
        while True:
            mine, theirs = self.ball(bits), other.ball(bits)
            if mine > theirs:
                return True
            if mine < theirs:
                return False
            bits *= 2


def race(
    field: Field,
    noise: Noise,
    scale: Fraction,
    count: int,
    bits: BitSource,
    extra: Real | None = None,
) -> list[int]:
    """The groups of the ``count`` largest noisy scores, best first; fewer when all have come in.

    ``extra`` is one more runner of size one whose score *over the scale* is a computable real; it
    is named ``EXTRA``, and the race ends when it comes in.
    """
    reference = field.highest()
    runners: list[Runner] = []
    for start in contenders(field, reference, noise, scale, count, bits):
        head_start = Rational((field.score(start.group) - reference) / scale)
        size = field.size(start.group)
        leg = (Uniform(bits, start.word, WORD), size)
        runner = Runner(start.group, head_start, noise, size, [leg])
        runner.lower, runner.upper = start.lower, start.upper
        runners.append(runner)
    if extra is not None:
        last = Runner(EXTRA, Shifted(extra, -reference / scale), noise, 1, [(Uniform(bits), 1)])
        last.enclose()
        runners.append(last)
    heapq.heapify(runners)
    finish: list[int] = []
    while runners and len(finish) < count:
        winner = runners[0]
        finish.append(winner.group)
        if winner.group == EXTRA:
            break
        if winner.left > 1:
            heapq.heapreplace(runners, winner.next(bits))
        else:
            heapq.heappop(runners)
    return finish
