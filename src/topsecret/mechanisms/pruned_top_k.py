"""`PrunedTopK`: more picks than needed at rising prices, the weakest pruned again.

>>> from topsecret import Histogram
>>> mechanism = PrunedTopK(k=2, epsilon_per_pick=5.0)
>>> mechanism.select(Histogram.of({"a": 9, "b": 5}, domain=["a", "b", "c"])).items
('a', 'b')

The sister of `TestedTopK` on a public domain, and of `GumbelTopK` at the same guarantee: without
null slots and test, since every item may be named.

**Statement.** n = k + ⌈k/10⌉ hidden picks, the i-th ∝ e^(ε_i·h) without replacement with
ε_i = e·⌈8·(i/n)^½⌉/8, then ⌈k/10⌉ hidden prunes, each removing one picked item ∝ e^(−e·h); the
others are published in pick order. The loss is picks_in_order(ε_1, …, ε_n) + picks(⌈k/10⌉, e).

**Preconditions.** The domain is public; counts of people move by at most 1, all in the same
direction (add-remove). Scores that a person moves by at most c = ``sensitivity``, all in the same
direction, are counts in units of c: e^(ε_i·h/c) and e^(−e·h/c).

**Why.** Given the earlier picks, a pick is the exponential mechanism on monotone counts, hence
ε_i-bounded-range (see `GumbelTopK`). Given all picks, a prune is the exponential mechanism on the
negated counts of the picked items, monotone too, hence e-bounded-range. Publishing less than all
picks and prunes is post-processing. On a domain of fewer than n items there are fewer picks and
prunes, and the charge covers them.

The early picks are the clear leaders, which a low price finds too; what is saved there buys a
higher price for the late picks, where the list is decided. Pruning uses all counts once more.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, ctx

from topsecret.accounting import Loss, picks
from topsecret.counts.histogram import Histogram
from topsecret.exact.rounding import Number, exact, precision
from topsecret.mechanisms import parameters
from topsecret.mechanisms.pick_prune_test import (
    Levels,
    in_units,
    pick,
    prune,
    rising,
    survivor_law,
)
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.bits import BitSource, SystemBits
from topsecret.noise.screening import ScoreGroups

_LEVELS = 8
_EXPONENT = 2
_ONE_IN = 10


@dataclass(frozen=True)
class PrunedTopK:
    """The k best items of a public domain, in order, by rising picks and prunes.

    Guarantee: the picks and prunes that ``loss`` lists, under add-remove.

    Parameters: ``epsilon_per_pick``: the epsilon of each prune and of the last picks; earlier
    picks cost less.
    """

    k: int
    epsilon_per_pick: Number
    sensitivity: int = 1

    def __post_init__(self) -> None:
        parameters.whole(self.k, "k")
        parameters.positive(self.epsilon_per_pick, "epsilon_per_pick")
        parameters.sensitivity(self.sensitivity)

    @property
    def ordered(self) -> bool:
        """The list is published in the order of the picks."""
        return True

    @property
    def prunes(self) -> int:
        """How many picked items are removed again, on a domain that is large enough."""
        return -(-self.k // _ONE_IN)

    @property
    def _price(self) -> Fraction:
        return exact(self.epsilon_per_pick)

    @property
    def levels(self) -> Levels:
        """The rising prices of the picks."""
        return rising(self.k + self.prunes, self._price, _LEVELS, _EXPONENT)

    @property
    def loss(self) -> Loss:
        """The rising picks in order, then the prunes."""
        total = picks(0, 0)
        for count, price in self.levels:
            total = total.then(picks(count, price))
        return total.then(picks(self.prunes, self._price))

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the hidden picks and prunes, and name what is left."""
        size = histogram.require_domain("PrunedTopK", self.k)
        bits = SystemBits() if bits is None else bits
        field = histogram.field()
        if field.sizes is None:
            field = ScoreGroups(field.scores, np.ones(len(field.scores), dtype=np.int64))
        unit = self.sensitivity
        picked = pick(field, in_units(self.levels, unit), bits)
        removals = min(self.prunes, size - self.k)
        kept = prune(field.scores[picked], removals, self._price / unit, bits)
        return Selection(histogram.names([picked[turn] for turn in kept], bits), complete=True)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """All pick sequences and all prunes of them, summed up."""
        size = histogram.require_domain("PrunedTopK", self.k)
        scores = histogram.scores()
        best = max(score for _, score in scores)
        removals = min(self.prunes, size - self.k)
        with precision(max(128, ctx.prec)):
            leads = [(score - best) / self.sensitivity for _, score in scores]
            hidden = survivor_law(leads, 0, self.levels, removals, self._price)
        return {tuple(scores[place][0] for place in kept): p for kept, p in hidden.items()}

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the list on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[PrunedTopK, ...]:
        """The parameters that ``topsecret verify`` checks."""
        in_units = cls(2, 1.5, 2), cls(3, 1.0, 3)
        return (cls(1, 0.7), cls(2, 0.7), cls(3, 7 / 3), cls(4, 0.7), *in_units)
