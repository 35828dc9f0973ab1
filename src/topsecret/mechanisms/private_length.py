"""How many items to name, chosen privately: what `CanonicalSet` and `OneshotPrivateLength` begin
with.

>>> lengths(10)
(1, 2, 3, 4, 5, 6, 7, 9, 10)

Each length m has a *margin* u(m) in people: how far the counts carry a selection of m items.
The score s(m) = −max(0, −u(m), u(m⁺)), m⁺ the next larger length, is 0 exactly where m carries and
m⁺ does not, and falls with the distance from there. Report-noisy-max with exponential noise
chooses the length, which is published.

**Privacy.** If one person moves every u(m) within [−w, w], they move every s(m) within [−w, w]
(minima, maxima and negation do not stretch). Given the noise of the others, m wins iff its noise
exceeds a number that moves by at most 2w, and for exponential noise E of scale 2w/ε,
P[E > t + 2w] ≥ e^(−ε)·P[E > t]. So the choice is ε-DP. It is not bounded-range.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb, arb_poly
from numpy.typing import NDArray

from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, ball
from topsecret.mechanisms import parameters
from topsecret.noise.bits import BitSource
from topsecret.noise.distributions import EXPONENTIAL
from topsecret.noise.race import race
from topsecret.noise.screening import ScoreGroups

_STEP = Fraction(17, 20)
_WHOLE = 2**58
"""Counts beyond it are added up as Python integers."""


@lru_cache(maxsize=256)
def lengths(k: int) -> tuple[int, ...]:
    """The rounded k·.85^j, j = 0, 1, 2, …, down to 1; a public rule."""
    found, exact = {k}, Fraction(k)
    while exact >= 1:
        found.add(int(exact + Fraction(1, 2)))
        # About 80 bits are kept: the rule stays cheap for large k.
        exact = Fraction(int(exact * _STEP * 2**64), 2**64)
    return tuple(sorted(found))


def check_public(k: int, epsilon: Number, ranks: tuple[int, ...] | None) -> None:
    """The public parameters of a mechanism that begins with a private length."""
    parameters.whole(k, "k")
    if not Fraction(1, 10**9) <= parameters.positive(epsilon, "epsilon") <= 10**9:
        raise InvalidParameter(
            f"epsilon={epsilon} must lie between 1e-9 and 1e9 for a private length"
        )
    for rank in ranks or ():
        parameters.whole(rank, "ranks", at_least=k)


def ranks_below(size: int, k: int, ranks: tuple[int, ...] | None) -> tuple[int, ...]:
    """The public ranks t at which the counts are looked at, and the size of the domain."""
    chosen = (10 * k, 100 * k) if ranks is None else ranks
    return (*sorted({rank for rank in chosen if rank < size}), size)


def summable(counts: NDArray[Any]) -> NDArray[Any]:
    """The counts in a type in which ten times their sums stay exact."""
    if counts.dtype == np.int64 and max(int(counts.max()), -int(counts.min())) < _WHOLE:
        return counts
    return np.array([int(count) for count in counts], dtype=object)


def whole_offsets(needed: NDArray[Any]) -> NDArray[Any]:
    """Public constants that margins are reduced by, rounded up: no difference wraps around."""
    rounded = np.ceil(needed)
    if float(rounded.max(initial=0)) >= 2.0**60:
        raise InvalidParameter("k is too large for so small an epsilon; lower k or raise epsilon")
    return np.asarray(rounded, dtype=np.int64)


def scores_of(margins: NDArray[Any]) -> NDArray[Any]:
    """s(m) from the margins u(m), in rising order of m."""
    worst = np.maximum(0, -margins)
    worst[:-1] = np.maximum(worst[:-1], margins[1:])
    return np.asarray(-worst)


def choose(scores: NDArray[Any], scale: Fraction, bits: BitSource) -> int:
    """The place of the largest score + scale·Exp(1)."""
    return race(ScoreGroups(scores), EXPONENTIAL, scale, 1, bits)[0]


def choice_law(scores: NDArray[Any], scale: Fraction) -> list[arb]:
    """P[i] = p_i·∫₀¹ Π_{j≠i}(1 − u·p_j) du with p_i = e^((s_i − max s)/scale)."""
    highest = max(int(score) for score in scores)
    passes = [ball((int(score) - highest) / scale).exp() for score in scores]
    law = []
    for place, chance in enumerate(passes):
        others = arb_poly([1])
        for rival in passes[:place] + passes[place + 1 :]:
            others *= arb_poly([arb(1), -rival])
        law.append(chance * others.integral()(arb(1)))
    return law
