"""`OneshotPrivateLength`: an ordered list of a privately chosen length, by one draw of noise.

>>> from topsecret.counts.histogram import Histogram
>>> mechanism = OneshotPrivateLength(k=2, epsilon=100)
>>> answer = mechanism.select(Histogram.of({"b": 90, "a": 50}, domain=["a", "b", "c"]))
>>> answer.items, answer.chosen
(('b', 'a'), 2)

**Statement.** Public: k, the domain of d ≥ k items, ε; ε_u = .15ε, ε_c = .85ε. Choose a length
m ≤ k by report-noisy-max (``private_length``) at ε_u with the margins
u(m) = min over t ∈ {10k, 100k below d} ∪ {d} of h₍m₎ − [t < d]·h₍t₎ − ⌈m·ln(t/m)/ε_c⌉; then
publish the m largest of count + exponential noise of scale m/ε_c, in order. (m, list) is ε-DP.

**Preconditions.** The domain is public; a person moves each count by at most 1, under add-remove
all in the same direction. Under replace both steps run at half their ε and keep their claims.

**Why.** One person more moves h₍m₎ and h₍t₎ within [0, 1], so each term, hence u(m), within
[−1, 1]: the first step is ε_u-DP at noise of scale 2/ε_u (``private_length``). Given m, the second
is `OneshotExponential` with k = m at ε_c. The second step sees m alone of the first: sequential
composition. Under replace u(m) moves within [−2, 2], and the noise doubles in both steps.

A list of m items needs noise of scale m/ε_c, and the largest of t such noises is about m·ln(t)/ε_c:
the shorter the list, the fewer people must an item lead by. The margin is the lead of the m-th
item over what noise makes of the items down to rank t. Derived in docs/proofs/canonical-set.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from topsecret.accounting import Loss, pure
from topsecret.counts.histogram import Histogram
from topsecret.exact.rounding import Number, exact, precision
from topsecret.mechanisms import parameters
from topsecret.mechanisms.best_items import best_items
from topsecret.mechanisms.order_laws import exponential, score_list_law
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.private_length import (
    check_public,
    choice_law,
    choose,
    lengths,
    ranks_below,
    scores_of,
    summable,
    whole_offsets,
)
from topsecret.mechanisms.ranked_groups import RankedGroups
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.bits import BitSource, SystemBits
from topsecret.noise.distributions import EXPONENTIAL
from topsecret.noise.enclosures import log_bounds

_LENGTH_SHARE = Fraction(3, 20)


@dataclass(frozen=True)
class OneshotPrivateLength:
    """At most k items of a public domain, in order; how many is chosen privately.

    Guarantee: ε-DP for ``epsilon``: two pure steps of .15ε and .85ε. ``ranks`` are public ranks
    of at least k at which the first step looks at the counts; 10k and 100k unless told otherwise.
    """

    k: int
    epsilon: Number
    adjacency: parameters.Adjacency = "add-remove"
    ranks: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        parameters.adjacency(self.adjacency)
        check_public(self.k, self.epsilon, self.ranks)

    @property
    def ordered(self) -> bool:
        """The list is published best first."""
        return True

    @property
    def length_epsilon(self) -> Fraction:
        """ε_u, what the choice of the length costs."""
        return exact(self.epsilon) * _LENGTH_SHARE

    @property
    def list_epsilon(self) -> Fraction:
        """ε_c, what the list costs."""
        return exact(self.epsilon) - self.length_epsilon

    @property
    def loss(self) -> Loss:
        """Two pure steps."""
        return pure(self.length_epsilon) + pure(self.list_epsilon)

    @property
    def length_scale(self) -> Fraction:
        """2s/ε_u, the scale of the length's noise in people."""
        return 2 * parameters.directions(self.adjacency) / self.length_epsilon

    def list_scale(self, m: int) -> Fraction:
        """m·s/ε_c, the scale of the noise of a list of m items."""
        return m * parameters.directions(self.adjacency) / self.list_epsilon

    def margins(self, ranked: RankedGroups, size: int) -> NDArray[Any]:
        """u(m) for all lengths in rising order. Secret."""
        table = _margin_table(self.k, size, self.list_scale(1), self.ranks)
        high, level = (summable(ranked.at_rank(ranks)) for ranks in table[:2])
        offset, starts = table[2:]
        return np.asarray(np.minimum.reduceat(high - level * (table[1] < size) - offset, starts))

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the length, then the list."""
        size = histogram.require_domain("OneshotPrivateLength", self.k)
        bits = SystemBits() if bits is None else bits
        scores = scores_of(self.margins(RankedGroups.of(histogram), size))
        m = lengths(self.k)[choose(scores, self.length_scale, bits)]
        items = best_items(histogram, m, EXPONENTIAL, self.list_scale(m), bits)
        return Selection(items, complete=True, chosen=m)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The law of the length times that of the list."""
        size = histogram.require_domain("OneshotPrivateLength", self.k)
        margins = self.margins(RankedGroups.of(histogram), size)
        counts = histogram.scores()
        with precision(max(128, ctx.prec)):
            chances = choice_law(scores_of(margins), self.length_scale)
            return {
                (m, *items): chance * share
                for m, chance in zip(lengths(self.k), chances, strict=True)
                for items, share in score_list_law(
                    exponential, counts, self.list_scale(m), m
                ).items()
            }

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the length and the list on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[OneshotPrivateLength, ...]:
        """The parameters that ``topsecret verify`` checks; small ranks show the first step."""
        return (
            cls(k=1, epsilon=2.0),
            cls(k=2, epsilon=3.0, ranks=(2, 3)),
            cls(k=3, epsilon=20 / 3, ranks=(3,)),
            cls(k=2, epsilon=3.0, adjacency="replace", ranks=(3,)),
        )


@lru_cache(maxsize=32)
def _margin_table(
    k: int, size: int, unit: Fraction, ranks: tuple[int, ...] | None
) -> tuple[NDArray[Any], ...]:
    """For every (m, t): the ranks m and t, and ⌈m·unit·ln(t/m)⌉; where each m starts.

    The last is a public constant, so that its rounding is free.
    """
    levels = np.array(ranks_below(size, k, ranks), dtype=np.int64)
    sizes = np.array(lengths(k), dtype=np.int64)
    m, t = np.repeat(sizes, len(levels)), np.tile(levels, len(sizes))
    logarithm = sum(log_bounds(t / m, t / m)) / 2
    return m, t, whole_offsets(m * float(unit) * logarithm), np.arange(0, len(m), len(levels))
