"""Peeling: rounds of report-noisy-max, each with fresh noise, over groups of equal scores.

A round costs one pass over the groups, not over the items: the first arrival of a group of c
items is the smallest of c times, and a group that has won goes on with c − 1. What does not change
from round to round, the *head* of groups that are likely to win, is found once.

Guarantee: each round, given the earlier ones, names a group with exactly the probability that one
of its items left has the largest score + scale·noise among all items left, with independent
real-valued noise that no other round shares. Floats only enclose values, as in ``race.py``.

>>> import numpy as np
>>> from topsecret.noise.bits import SystemBits
>>> from topsecret.noise.distributions import EXPONENTIAL
>>> field = ScoreGroups(np.array([10**9, 0]), np.array([1, 10**18]))
>>> peel(field, EXPONENTIAL, Fraction(1, 1000), 3, SystemBits())
[0, 1, 1]

**Why the head stays valid.** A round removes at most one group. The head has at least four times
as many groups as there are rounds, so some are always left, and the largest of their lower bounds
is a lower bound of this round's largest noisy score. The groups outside are bounded by the best
of their scores: that stays true, and only becomes less tight, as they are used up.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from topsecret.noise.bits import BitSource, Rational, Uniform
from topsecret.noise.distributions import Noise
from topsecret.noise.race import Leg, Runner
from topsecret.noise.screening import WORD, ScoreGroups, Screen, draw_words

__all__ = ["peel"]

_BY_HAND = 6
_ALL_AT_ONCE = 1_536
_HEAD = 512


def peel(
    field: ScoreGroups, noise: Noise, scale: Fraction, count: int, bits: BitSource
) -> list[int]:
    """The groups that win ``count`` rounds without replacement; fewer when nobody is left."""
    rounds = _Rounds(field, noise, scale, count)
    finish: list[int] = []
    while len(finish) < count and rounds.left:
        finish.append(rounds.winner(bits))
    return finish


class _Rounds:
    """Who is left, and the float side of all rounds."""

    def __init__(self, field: ScoreGroups, noise: Noise, scale: Fraction, count: int) -> None:
        total = len(field.scores)
        sizes = np.ones(total, dtype=np.int64) if field.sizes is None else field.sizes.copy()
        self._sizes = sizes
        self._field = ScoreGroups(field.scores, sizes)
        self._noise = noise
        self._scale = scale
        self._reference = field.highest()
        self._screen = Screen(self._field, self._reference, noise, scale)
        self._everyone = np.arange(total)
        self._split = total > _ALL_AT_ONCE and total > 8 * count
        if self._split:
            self._head, self._highest_outside = self._screen.head(max(_HEAD, 4 * count))
        self.left = total
        """How many groups still have items."""

    def winner(self, bits: BitSource) -> int:
        """One round: the group of the largest noisy score, with one item less afterwards."""
        group = self._draw(bits)
        self._sizes[group] -= 1
        if self._sizes[group] == 0:
            self.left -= 1
            if self._split:
                self._head = self._head[self._head != group]
            else:
                self._everyone = self._everyone[self._everyone != group]
        return group

    def _draw(self, bits: BitSource) -> int:
        if not self._split:
            groups = self._everyone
            words = draw_words(len(groups), bits)
            if len(groups) <= _BY_HAND:  # arrays cost more than they save
                open_ended = [math.inf] * len(groups)
                starts = zip(groups.tolist(), words.tolist(), open_ended, strict=True)
                return self._first([self._runner(g, w, -top, top, bits) for g, w, top in starts])
            lower, upper = self._screen.bounds(groups, words)
        else:
            head_words = draw_words(len(self._head), bits)
            head_bounds = self._screen.bounds(self._head, head_words)
            lead = float(head_bounds[0].max()) - self._highest_outside
            rest, rest_words = self._screen.late_comers(self._head, lead, bits)
            present = self._sizes[rest] > 0
            rest, rest_words = rest[present], rest_words[present]
            rest_bounds = self._screen.bounds(rest, rest_words)
            groups = np.concatenate([self._head, rest])
            words = np.concatenate([head_words, rest_words])
            lower = np.concatenate([head_bounds[0], rest_bounds[0]])
            upper = np.concatenate([head_bounds[1], rest_bounds[1]])
        keep = np.flatnonzero(upper >= lower.max())
        if len(keep) == 1:
            return int(groups[keep[0]])
        return self._first(
            [
                self._runner(int(groups[i]), int(words[i]), float(lower[i]), float(upper[i]), bits)
                for i in keep
            ]
        )

    def _runner(self, group: int, word: int, lower: float, upper: float, bits: BitSource) -> Runner:
        head_start = Rational((self._field.score(group) - self._reference) / self._scale)
        size = self._field.size(group)
        runner = Runner(group, head_start, self._noise, size, Leg(Uniform(bits, word, WORD), size))
        runner.lower, runner.upper = lower, upper
        return runner

    def _first(self, runners: list[Runner]) -> int:
        first = runners[0]
        for runner in runners[1:]:
            if runner < first:
                first = runner
        return first.group
