"""Several Gumbel races over one field, each among the items that the earlier ones left.

>>> import numpy as np
>>> from topsecret.noise.bits import SystemBits
>>> field = ScoreGroups(np.array([10**9, 0]), np.array([1, 10**18]))
>>> races_in_turn(field, [(2, Fraction(1)), (1, Fraction(2))], SystemBits())
[0, 1, 1]

Guarantee: each race has, given the earlier ones, exactly the law of ``race``.

**One screen for all races.** Every race has its own words, and floats enclose the first arrival of
every group as large as it is at the beginning. When a race begins, at most b items are gone, so at
most b groups have become smaller. Of the b + c groups with the largest lower bounds at least c are
unchanged, each with an item above its bound: the (b + c)-th largest lower bound is one of the c-th
largest noisy score. A smaller group arrives later with the same uniform, so its upper bound stays
valid; whoever lies below that level does not win.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from topsecret.noise.bits import BitSource
from topsecret.noise.distributions import GUMBEL
from topsecret.noise.enclosures import WHOLE, gumbel_bounds
from topsecret.noise.race import decided, race, run
from topsecret.noise.screening import (
    ScoreGroups,
    Screen,
    Start,
    as_divisor,
    draw_words,
    head_start_bounds,
    kth_largest,
    one_around,
    sum_bounds,
)

__all__ = ["races_in_turn"]

_TOGETHER = range(12, 2_049)
"""How many groups are screened for all races at once."""


def races_in_turn(
    field: ScoreGroups, turns: Sequence[tuple[int, Fraction]], bits: BitSource
) -> list[int]:
    """The groups that win, from how many each race names and its scale."""
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
