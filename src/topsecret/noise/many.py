"""Many races at once: in every row of a table, which entry has the largest noisy score.

All entries of all rows get the first 64 bits of their uniform and floats around their noisy score,
as in ``screening.py``, in one pass over arrays. A row is decided when one entry's lower bound
exceeds all other upper bounds. In the few other rows the entries that may win go on to the exact
comparison, with the bits that they already have.

Guarantee: the rows are independent, and each winner has exactly the law of the largest
score + scale·noise with independent real-valued noise.

>>> import numpy as np
>>> from topsecret.noise.bits import SystemBits
>>> from topsecret.noise.distributions import GUMBEL
>>> winners(np.array([[0, 900, 1], [700, 0, 2]]), GUMBEL, Fraction(1), SystemBits()).tolist()
[1, 0]
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from topsecret.noise.bits import BitSource, Uniform
from topsecret.noise.distributions import Noise
from topsecret.noise.race import HeadStart, Leg, Runner
from topsecret.noise.screening import WORD, ScoreGroups, Screen, draw_words


def winners(
    scores: NDArray[np.int64], noise: Noise, scale: Fraction, bits: BitSource
) -> NDArray[np.int64]:
    """For every row the place of its largest noisy score; rows must not be empty."""
    rows, places = scores.shape
    if rows == 0 or places == 1:
        return np.zeros(rows, dtype=np.int64)
    field = ScoreGroups(scores.ravel())
    # One reference for all rows: bounds are compared within a row only, so any would do.
    reference = field.highest()
    words = draw_words(scores.size, bits)
    screen = Screen(field, reference, noise, scale)
    lower, upper = screen.bounds(np.arange(scores.size), words)
    lower, upper = lower.reshape(scores.shape), upper.reshape(scores.shape)
    best = np.argmax(lower, axis=1)
    may_win = upper >= lower[np.arange(rows), best][:, None]
    open_rows = np.flatnonzero(may_win.sum(axis=1) > 1)
    for row in open_rows:
        runners = []
        for place in np.flatnonzero(may_win[row]):
            entry = int(row) * places + int(place)
            leg = Leg(Uniform(bits, int(words[entry]), WORD), 1)
            head_start = HeadStart(field, entry, reference, scale)
            runner = Runner(int(place), head_start, noise, 1, leg)
            runner.lower, runner.upper = float(lower[row, place]), float(upper[row, place])
            runners.append(runner)
        best[row] = min(runners).group
    return np.asarray(best, dtype=np.int64)
