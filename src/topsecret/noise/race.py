"""The race: the k largest noisy scores in order, exactly, from groups of equal scores.

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
>>> field = ScoreGroups(np.array([10**9, 0]), np.array([1, 10**18]))
>>> race(field, GUMBEL, Fraction(1, 1000), 3, SystemBits())
[0, 1, 1]
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from operator import attrgetter

import numpy as np
from flint import arb, fmpq

from topsecret.exact.rounding import down, precision, up
from topsecret.noise.bits import FIRST_BITS, BitSource, Real, Shifted, Uniform
from topsecret.noise.distributions import GUMBEL, Noise
from topsecret.noise.enclosures import WHOLE, gumbel_bounds
from topsecret.noise.screening import (
    WORD,
    ScoreGroups,
    Screen,
    Start,
    as_divisor,
    contenders,
    draw_words,
    few,
    head_start_bounds,
    kth_largest,
    one_around,
    sum_bounds,
)

__all__ = ["EXTRA", "Runner", "ScoreGroups", "race", "races_in_turn"]

_FEW = 24
"""Up to so many groups plain floats are faster than arrays,"""
_FEW_IN_BALLS = 12
"""and up to so many balls alone, for a noise that has no plain floats."""
_TOGETHER = range(12, 2_049)
"""How many groups are screened for several races at once."""
_LOWER = attrgetter("lower")

EXTRA = -1
"""The index by which the race names its extra runner."""


class Leg:
    """The time since a group's previous arrival: E/runners, and what came before it."""

    __slots__ = ("_known", "_previous", "_runners", "_uniform")

    def __init__(self, uniform: Uniform, runners: int, previous: Leg | None = None) -> None:
        self._uniform = uniform
        self._runners = runners
        self._previous = previous
        self._known: tuple[int, arb] | None = None

    def arrival(self, bits: int) -> arb:
        """The time since the start, from this many bits of each leg's uniform."""
        chain: list[Leg] = []
        leg: Leg | None = self
        time = arb(0)
        while leg is not None:
            if leg._known is not None and leg._known[0] == bits:
                time = leg._known[1]
                break
            chain.append(leg)
            leg = leg._previous
        for leg in reversed(chain):
            # The arrival −ln(1 − V): the digits of V near 0 are the early arrivals.
            time = time - leg._uniform.complement(bits).log() / leg._runners
            leg._known = (bits, time)
        return time


class HeadStart:
    """A group's score over the scale, relative to the best one; worked out when it is needed."""

    __slots__ = ("_field", "_group", "_reference", "_scale", "_value")

    def __init__(
        self, field: ScoreGroups, group: int, reference: Fraction, scale: Fraction
    ) -> None:
        self._field = field
        self._group = group
        self._reference = reference
        self._scale = scale
        self._value: fmpq | None = None

    def exactly(self) -> fmpq:
        """The head start itself."""
        if self._value is None:
            self._value = self._field.head_start(self._group, self._reference, self._scale)
        return self._value

    @staticmethod
    def of_all(starts: list[HeadStart]) -> list[fmpq]:
        """The head starts of several groups of one race."""
        one = starts[0]
        head_start = one._field.head_start
        values = [head_start(start._group, one._reference, one._scale) for start in starts]
        for start, value in zip(starts, values, strict=True):
            start._value = value
        return values

    def ball(self, bits: int) -> arb:
        """A ball around the head start."""
        with precision(bits):
            return arb(self.exactly())


class Runner:
    """One group's next arrival: an enclosure in floats, and the means to sharpen it."""

    __slots__ = ("_ball", "_leg", "_noise", "group", "head_start", "left", "lower", "upper")

    def __init__(self, group: int, head_start: Real, noise: Noise, left: int, leg: Leg) -> None:
        self.group = group
        self.head_start = head_start
        self.left = left
        self._noise = noise
        self._leg = leg
        self._ball: tuple[int, arb] | None = None
        self.lower = -math.inf
        self.upper = math.inf

    def ball(self, bits: int) -> arb:
        """The noisy score over the scale, from this many bits of each leg's uniform."""
        if self._ball is None or self._ball[0] != bits:
            with precision(bits + 32):
                noise = self._noise.ball(self._leg.arrival(bits))
                self._ball = (bits, self.head_start.ball(bits + 32) + noise)
        return self._ball[1]

    def enclose(self) -> None:
        """Set the floats around the noisy score from the first bits."""
        value = self.ball(FIRST_BITS)
        if not value.is_nan():
            self.lower, self.upper = down(value), up(value)

    def next(self, bits: BitSource) -> Runner:
        """The same group's next arrival, with one item fewer left."""
        left = self.left - 1
        leg = Leg(Uniform(bits), left, self._leg)
        runner = Runner(self.group, self.head_start, self._noise, left, leg)
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


def _first_balls(runners: list[Runner], starts: list[HeadStart], uniforms: list[Uniform]) -> None:
    """What ``Runner.ball`` would work out from the first bits, for all runners at once."""
    ball = runners[0]._noise.ball
    values = HeadStart.of_all(starts)
    with precision(FIRST_BITS + 32):
        drawn = [uniform.complement(FIRST_BITS) for uniform in uniforms]
        times = [-part.log() / run.left for part, run in zip(drawn, runners, strict=True)]
        noisy = [ball(time) for time in times]
        for run, time, value, noise in zip(runners, times, values, noisy, strict=True):
            run._leg._known = (FIRST_BITS, time)
            run._ball = (FIRST_BITS, arb(value) + noise)


def race(
    field: ScoreGroups,
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
    if count < 1:
        return []
    reference = field.highest()
    if len(field.scores) <= (_FEW if noise is GUMBEL else _FEW_IN_BALLS):
        starts = few(field, reference, noise, scale, bits)
        order = decided(starts, count) if extra is None else None
    else:
        found = contenders(field, reference, noise, scale, count, bits)
        order = found.decided(count) if extra is None else None
        starts = found.starts() if order is None else []
    if order is not None:
        return order
    return run(starts, field, reference, noise, scale, count, bits, extra)


def decided(starts: list[Start], count: int) -> list[int] | None:
    """What ``Contenders.decided`` says, for few of them."""
    order = sorted(starts, key=_LOWER, reverse=True)
    later = -math.inf
    for place in range(len(order) - 1, -1, -1):
        _, size, _, lower, upper = order[place]
        if place < count and not (lower > later and size == 1):
            return None
        if upper > later:
            later = upper
    return [start.group for start in order[:count]]


def run(
    starts: list[Start],
    field: ScoreGroups,
    reference: Fraction,
    noise: Noise,
    scale: Fraction,
    count: int,
    bits: BitSource,
    extra: Real | None = None,
) -> list[int]:
    """The race among those who may win, decided by balls where floats leave it open."""
    uniforms = [Uniform(bits, start.word, WORD) for start in starts]
    heads = [HeadStart(field, start.group, reference, scale) for start in starts]
    runners: list[Runner] = []
    for start, uniform, head_start in zip(starts, uniforms, heads, strict=True):
        runner = Runner(start.group, head_start, noise, start.size, Leg(uniform, start.size))
        runner.lower, runner.upper = start.lower, start.upper
        runners.append(runner)
    if starts and all(start.upper == math.inf for start in starts):  # all need their balls
        _first_balls(runners, heads, uniforms)
    if extra is not None:
        shifted = Shifted(extra, -reference / scale)
        last = Runner(EXTRA, shifted, noise, 1, Leg(Uniform(bits), 1))
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


def races_in_turn(
    field: ScoreGroups, turns: Sequence[tuple[int, Fraction]], bits: BitSource
) -> list[int]:
    """The groups that win several Gumbel races, from how many each names and its scale.

    Guarantee: each race has, given the earlier ones, exactly the law of ``race`` among the items
    that these left.

    >>> import numpy as np
    >>> from topsecret.noise.bits import SystemBits
    >>> field = ScoreGroups(np.array([10**9, 0]), np.array([1, 10**18]))
    >>> races_in_turn(field, [(2, Fraction(1)), (1, Fraction(2))], SystemBits())
    [0, 1, 1]
    """
    assert field.sizes is not None
    present = np.flatnonzero(field.sizes)
    sizes = field.sizes[present]
    here = ScoreGroups(field.scores[present], sizes)
    floats = not any(math.isnan(as_divisor(scale)) for _, scale in turns)
    if len(present) in _TOGETHER and floats and sizes.max() < WHOLE:
        won = _together(here, turns, bits)
    else:
        won = _one_by_one(here, turns, bits)
    return present[won].tolist()  # type: ignore[no-any-return]


def _one_by_one(
    field: ScoreGroups, turns: Sequence[tuple[int, Fraction]], bits: BitSource
) -> list[int]:
    assert field.sizes is not None
    left = field.sizes.copy()
    finish: list[int] = []
    for count, scale in turns:
        running = np.flatnonzero(left)
        here = ScoreGroups(field.scores[running], left[running])
        won = running[race(here, GUMBEL, scale, count, bits)]
        left -= np.bincount(won, minlength=len(left))
        finish += won.tolist()
    return finish


def _together(
    field: ScoreGroups, turns: Sequence[tuple[int, Fraction]], bits: BitSource
) -> list[int]:
    """One screen for all races.

    Every race has its own words, and floats enclose the first arrival of every group as large as
    it is at the beginning. When a race begins, at most b items are gone, so at most b groups have
    become smaller. Of the b + c groups with the largest lower bounds at least c are unchanged, each
    with an item above its bound: the (b + c)-th largest lower bound is one of the c-th largest
    noisy score. A smaller group arrives later with the same uniform, so its upper bound stays
    valid; whoever lies below that level does not win.
    """
    assert field.sizes is not None
    races, total = len(turns), len(field.scores)
    reference = field.highest()
    differences = Screen(field, reference, GUMBEL, turns[0][1]).differences(np.arange(total))
    divisors = [as_divisor(scale) for _, scale in turns]
    words = draw_words(races * total, bits)
    drawn = gumbel_bounds(words, np.tile(field.sizes.astype(np.float64), races))
    starts = head_start_bounds(differences, np.array(divisors)[:, None])
    shape = races, total
    lower, upper = sum_bounds(starts, (drawn[0].reshape(shape), drawn[1].reshape(shape)))
    named = accumulate(count for count, _ in turns)
    levels = [kth_largest(row, most) for row, most in zip(lower, named, strict=True)]
    keep = upper >= np.array(levels)[:, None]
    in_race, group = keep.nonzero()
    columns = group, field.sizes[group], words.reshape(shape)[keep], lower[keep], upper[keep]
    kept = list(map(Start, *(column.tolist() for column in columns)))
    ends = np.cumsum(np.bincount(in_race, minlength=races)).tolist()
    taken: Counter[int] = Counter()
    finish: list[int] = []
    for turn, (count, scale) in enumerate(turns):
        contenders = []
        for start in kept[ends[turn - 1] if turn else 0 : ends[turn]]:
            gone = taken.get(start.group, 0)
            if gone == 0:
                contenders.append(start)
            elif gone < start.size:
                left = start.size - gone
                around = GUMBEL.around([start.word], [left])[0]
                low, high = one_around(float(differences[start.group]), divisors[turn], around)
                contenders.append(Start(start.group, left, start.word, low, high))
        won = decided(contenders, count)
        if won is None:
            won = run(contenders, field, reference, GUMBEL, scale, count, bits)
        taken.update(won)
        finish += won
    return finish
