"""`OptimalThreshold`: `LimitedDomain` that first chooses its own k̄ privately.

>>> from topsecret import Histogram
>>> mechanism = OptimalThreshold(k=3, max_k_bar=5, epsilon_per_pick=1.0, delta=1e-6)
>>> answer = mechanism.select(Histogram.of({"a": 900, "b": 500, "c": 2}))
>>> answer.items, answer.chosen in range(3, 6)
(('a', 'b'), True)

**Statement** (Durfee & Rogers 2019, Alg. 6, corrected). Choose k̄ from k, …, d̄ (``max_k_bar``)
as the argmax of −h₍k̄₊₁₎ − ln(min(Δ, k̄)/δ)/ε₀ + Gumbel(1/ε₀), independent; then run
``LimitedDomain`` with k − 1 picks and that k̄. The ordered list *and* k̄ are released. The loss is
picks(k, ε₀) + slack((k − 1)·ln(1 + δ)) + failure(δ): one pick for k̄, k − 1 for the items.

**Preconditions.** Those of ``LimitedDomain``, add-remove; k ≥ 2; d̄ is fixed before seeing data.

**Why each line matters.**
- *The score* is minus the threshold that k̄ would give, so the lowest threshold is best. Ranked
  counts move by at most 1 and all in one direction, and the logarithm is public: the log-weights
  ε₀·score move within an interval of length ε₀. That is one bounded-range pick with Gumbel(1/ε₀).
- *Given k̄*, a public number by now, the second step is ``LimitedDomain`` and composes adaptively;
  the slack of the normaliser arises in its k − 1 picks only.
- *k̄ ≥ k* although only k − 1 items are picked: as printed, harmless.
- With Δ ≤ k the logarithm is constant and d̄ is always best: use ``LimitedDomain`` with k̄ = d̄.

**Printed wrongly.** argmin of h₍ᵢ₎ + ln(i/δ)/ε **+** Gumbel. The smallest of value + Gumbel is not
the exponential mechanism (the largest of value + Gumbel is), and not ε-DP: with three candidates
its log-ratio reaches 1.31 at ε = .7. Range and index are off by one as well.

**How it is drawn.** The weight of k̄ is e^(−ε₀·h₍k̄₊₁₎)/min(Δ, k̄). A weight that is c times larger
is a group of c equal runners in the exponential race, so k̄ runs as a group of
c = ⌈2⁴⁰/min(Δ, k̄)⌉; a winner is kept with probability (2⁴⁰/min(Δ, k̄))/c ≤ 1, a rational, and
otherwise everything is drawn again. That is the stated law exactly, and one round nearly always
does (for k̄ < 2²⁰ with probability above 1 − 2⁻²⁰).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, ctx

from topsecret.accounting import Loss, failure, picks, slack
from topsecret.counts.histogram import Histogram
from topsecret.exact.rounding import Number, ball, exact, precision, up
from topsecret.mechanisms import parameters
from topsecret.mechanisms.limited_domain import LimitedDomain
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.bits import BitSource, Rational, SystemBits, bernoulli
from topsecret.noise.distributions import GUMBEL
from topsecret.noise.race import race
from topsecret.noise.screening import ScoreGroups

_FINE = 2**40


@dataclass(frozen=True)
class OptimalThreshold:
    """At most k − 1 of the leading observed items, in order, and the k̄ that was chosen.

    ``chosen`` of the answer is k̄, and it comes first in its outcome.

    Guarantee: picks(k, ``epsilon_per_pick``) + (k − 1)·ln(1 + ``delta``) + a failure of ``delta``;
    ``max_items`` must have been enforced when the histogram was counted.

    Parameters: ``k``: at most k − 1 items are named, as one of the k picks chooses k̄; ``delta``:
    of the threshold: the loss has it as a failure, and (k − 1)·ln(1 + delta) as slack.
    """

    k: int
    max_k_bar: int
    epsilon_per_pick: Number
    delta: Number
    max_items: int | None = None

    def __post_init__(self) -> None:
        parameters.whole(self.k, "k", at_least=2)
        parameters.whole(self.max_k_bar, "max_k_bar")
        parameters.at_most(self.k, "k", self.max_k_bar, "max_k_bar")
        parameters.positive(self.epsilon_per_pick, "epsilon_per_pick")
        parameters.probability(self.delta, "delta")
        parameters.cap(self.max_items)

    @property
    def ordered(self) -> bool:
        """The list is published best first."""
        return True

    @property
    def loss(self) -> Loss:
        """One pick for k̄, k − 1 for the items, and what their threshold costs."""
        delta = exact(self.delta)
        with precision(128):
            excess = up((self.k - 1) * ball(1 + delta).log())
        return picks(self.k, self.epsilon_per_pick) + slack(excess) + failure(delta)

    def _reach(self, k_bar: int) -> int:
        return k_bar if self.max_items is None else min(self.max_items, k_bar)

    def _next_counts(self, histogram: Histogram) -> list[int]:
        """h₍k̄₊₁₎ for k̄ = k, …, d̄; 0 past the observed items."""
        counts = [count for _, count in histogram.ranked(self.max_k_bar + 1)]
        counts += [0] * (self.max_k_bar + 1 - len(counts))
        return counts[self.k :]

    def _limited(self, k_bar: int) -> LimitedDomain:
        return LimitedDomain(
            self.k - 1, k_bar, self.epsilon_per_pick, self.delta, max_items=self.max_items
        )

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw k̄, then the list."""
        bits = SystemBits() if bits is None else bits
        leading = Histogram.leading(histogram.ranked(self.max_k_bar + 1))
        k_bar = self._choose(self._next_counts(leading), bits)
        answer = self._limited(k_bar).select(leading, bits)
        return Selection(answer.items, answer.complete, chosen=k_bar)

    def _choose(self, next_counts: list[int], bits: BitSource) -> int:
        kind = np.int64 if next_counts[0] < 2**62 else np.object_
        reaches = [self._reach(self.k + place) for place in range(len(next_counts))]
        sizes = np.array([-(-_FINE // reach) for reach in reaches], dtype=np.int64)
        scores = np.array([-count for count in next_counts], dtype=kind)
        field = ScoreGroups(scores, sizes)
        scale = 1 / exact(self.epsilon_per_pick)
        while True:
            place = race(field, GUMBEL, scale, 1, bits)[0]
            kept = Fraction(_FINE, reaches[place] * int(sizes[place]))
            if kept == 1 or bernoulli(Rational(kept), bits):
                return self.k + place

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The exponential mechanism's law of k̄ times the law of the list given it."""
        next_counts = self._next_counts(histogram)
        least = min(next_counts)
        price = exact(self.epsilon_per_pick)
        law: dict[Outcome, arb] = {}
        with precision(max(128, ctx.prec)):
            weights = {
                self.k + place: ball(price * (least - count)).exp() / self._reach(self.k + place)
                for place, count in enumerate(next_counts)
            }
            total = sum(weights.values(), arb(0))
            for k_bar, weight in weights.items():
                for outcome, chance in self._limited(k_bar).probabilities(histogram).items():
                    law[(k_bar, *outcome)] = weight / total * chance
        return law

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of k̄ and the list on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[OptimalThreshold, ...]:
        """The parameters that ``topsecret verify`` checks."""
        price, delta = 0.7, 0.01
        return (
            cls(2, 2, price, delta),
            cls(2, 4, price, delta),
            cls(2, 6, price, delta, max_items=2),
            cls(3, 5, price, delta),
            cls(3, 4, 1.5, 0.1, max_items=1),
        )
