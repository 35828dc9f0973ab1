"""One of a few public options, chosen privately by how well each would do on the data.

>>> choice = PrivateChoice(Fraction(1, 2), spread_of([Fraction(1, 100), Fraction(1, 50)]))
>>> choice.draw([whole_score(Fraction(9, 10)), whole_score(Fraction(1, 10))], SystemBits())
0

Which mechanism, which bound on one person, which threshold: where public numbers do not tell what
is best, a small part of the budget may find out. Every option has a *score*, a number that one
person moves by little, and an option is drawn ∝ e^(λ·score). The option is published: what follows
may depend on it, and the whole is charged as the pick and then the costliest of the options
(docs/proofs/weighted-histogram.md).

**Statement.** With λ = ε/``spread`` the draw is one ε-bounded-range step.

**Precondition.** Between neighbours the difference of two scores moves by at most ``spread``.

**Why.** Let the scores move by d_1, d_2, …. The ratio of the two laws at option i is e^(λ·d_i) over
a factor that all options share, so that all ratios lie within a factor
e^(λ·(max d − min d)) ≤ e^ε of each other.

**Scores are whole numbers.** A score that moves by at most d, in a known direction or not, moves by
at most ⌈d·2²⁰⌉ after :func:`whole_score`, in the same direction: ⌊x + y⌋ − ⌊x⌋ ≤ ⌈y⌉. So no score
is rounded in a way that its price does not cover.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from topsecret.accounting import Loss, picks
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, ball, exact
from topsecret.mechanisms import parameters
from topsecret.noise.bits import BitSource, SystemBits
from topsecret.noise.distributions import GUMBEL
from topsecret.noise.race import race
from topsecret.noise.screening import ScoreGroups

__all__ = ["PrivateChoice", "SystemBits", "spread_of", "whole_score"]

STEPS = 2**20
"""Scores are whole multiples of one over this."""


@dataclass(frozen=True)
class PrivateChoice:
    """A pick among a few options at ``epsilon``; both numbers are public.

    Guarantee: an epsilon-bounded-range step if the difference of two scores moves by at most
    ``spread`` between neighbours.
    """

    epsilon: Number
    spread: int

    def __post_init__(self) -> None:
        parameters.positive(self.epsilon, "epsilon")
        parameters.whole(self.spread, "spread")

    @property
    def loss(self) -> Loss:
        """One pick; what follows is charged behind it."""
        return picks(1, self.epsilon)

    @cached_property
    def scale(self) -> Fraction:
        """1/λ, in steps of a score."""
        return self.spread / exact(self.epsilon)

    def draw(self, scores: Sequence[int], bits: BitSource | None = None) -> int:
        """The place of the option that is drawn, exactly ∝ e^(score/scale)."""
        # Scores grow with 1/epsilon without a bound: whether they fit must not show.
        kind = np.int64 if all(abs(score) < 2**62 for score in _checked(scores)) else np.object_
        field = ScoreGroups(np.array(scores, dtype=kind))
        return race(field, GUMBEL, self.scale, 1, SystemBits() if bits is None else bits)[0]

    def law(self, scores: Sequence[int]) -> list[arb]:
        """The probability of each option, at the current precision."""
        highest = max(_checked(scores))
        weights = [ball((score - highest) / self.scale).exp() for score in scores]
        total = sum(weights, arb(0))
        return [weight / total for weight in weights]


def whole_score(score: Fraction) -> int:
    """A score as a whole number of steps, rounded down."""
    return math.floor(score * STEPS)


def spread_of(moves: Sequence[Fraction], adjacency: parameters.Adjacency = "add-remove") -> int:
    """The spread of scores that a further person raises, each by at most its move.

    Under add-remove all of them move the same way, and the difference of two by at most the larger
    move. Under replace one may fall and another rise: the two largest moves add up.
    """
    whole = sorted((math.ceil(move * STEPS) for move in moves), reverse=True)
    if len(whole) < 2 or whole[-1] < 0:
        raise InvalidParameter("a choice needs two options or more, with moves of at least 0")
    both = parameters.adjacency(adjacency) == "replace"
    return max(1, whole[0] + whole[1] if both else whole[0])


def _checked(scores: Sequence[int]) -> Sequence[int]:
    # How many options there are is public; what their scores are is not, and is not looked at.
    if len(scores) < 2:
        raise InvalidParameter("a choice needs two options or more")
    return scores
