"""`TestedTopK`: pick more than needed, prune the weakest, test nested lists at once.

>>> from topsecret import Histogram
>>> mechanism = TestedTopK(k=2, epsilon=1.0, delta=1e-6)
>>> mechanism.select(Histogram.of({"a": 900, "b": 500, "c": 2})).items
('a', 'b')

On an unknown domain the other mechanisms guard *every* pick by a threshold. Here nothing is shown
until the end: hidden picks, hidden prunes down to up to four nested lists, and one Gaussian test
of all of them, which releases the longest that passes in pick order, or answers ⊥. The length
m ≤ k of the longest list is chosen privately first, and published. The proof, for a referee, is
docs/proofs/tested-top-k.md; in short:

**Statement.** The answer (m, list or ⊥) is (x, δ_c(x) + δ_t)-DP under add-remove for every x, where
δ_c is the profile of: one ε_u-bounded-range step, then for the worst m the n picks (ε_i), the D
prunes (e_m each), the later prunes (e_m/2 each) and one Gaussian step of μ. ``loss`` is exactly
that, plus failure(δ_t).

**Preconditions.** Counts of distinct people; k̄, all prices, σ and z are fixed beforehand
(``tested_schedule.py`` computes them from k, ε and δ alone). Scores that one person moves by at
most c = ``sensitivity``, all in one direction, are taken in units of c: every lead is divided by c.

**Why each line matters.**
- *T = h₍k̄₊₁₎, named slots h > T, and null slots of count T up to k̄.* Items at the edge (count T
  or T + 1) may be named on one neighbour and not on the other. A null slot stands where such an
  item is missing: both neighbours have k̄ slots, and merging all slots that are not named on both
  sides into one symbol ∗ makes the two runs comparable, pick by pick. Without null slots, or when
  they are skipped, a single edge item is revealed.
- *a = max(1, h − T)*: every ∗ has a = 1 on both sides, so prunes and test see no difference there.
- *list j passes when A_j − 1 + N_j > σ·s_j·z*, A_j the smallest a of the list: a list with a ∗ in
  it has A_j = 1 and passes with probability Φ(−z) ≤ δ_t/J. That is all that distinguishes real
  outputs from merged ones. With A_j in place of A_j − 1, or δ_t for each list, it would be more.
- *the noises N_j have a common part and parts of their own* (``pick_prune_test.py``): all A_j
  move in the same direction, which makes the joint test cheaper than J tests; with one common
  noise alone it would not be private at all.
- *e^(ε_u·s/2)*: the score of a length moves by up to 1 in both directions, hence the half.
- *all prunes are charged.* They are hidden, but which items they remove shows in the list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import repeat
from typing import Any, Literal

import numpy as np
from flint import arb
from numpy.typing import NDArray

from topsecret.accounting import Loss, failure, rdp
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, exact
from topsecret.mechanisms import parameters
from topsecret.mechanisms.pick_prune_test import in_units, pick, prune, removed_in_order
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.mechanisms.tested_law import tested_law
from topsecret.mechanisms.tested_schedule import (
    CONSTANTS,
    UNIT,
    Length,
    Schedule,
    default_k_bar,
    schedule,
)
from topsecret.noise.bits import BitSource, SystemBits
from topsecret.noise.distributions import GUMBEL
from topsecret.noise.integers import distinct_below
from topsecret.noise.race import race
from topsecret.noise.screening import ScoreGroups


@dataclass(frozen=True, slots=True, repr=False)
class _Slots:
    """The k̄ slots: named items best first, in groups of equal leads, and null slots. Secret."""

    rows: list[tuple[Hashable, int]]
    """The leading rows, best first; the named items come first."""
    ranked: NDArray[Any]
    """The lead over T of each named item."""
    leads: NDArray[Any]
    """The distinct leads, best first; the last one is 0 and belongs to the null slots."""
    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]
    """Where each group begins among the items."""

    @classmethod
    def of(cls, rows: list[tuple[Hashable, int]], slots: int) -> _Slots:
        """From the leading k̄ + 1 rows, best first."""
        threshold = rows[slots][1] if len(rows) > slots else 0
        counts = _integers([count for _, count in rows])
        named = int((counts > threshold).sum())  # the rows fall, so these are the first
        leads = np.append(counts[:named] - threshold, 0)
        starts = np.flatnonzero(np.append(True, leads[1:] != leads[:-1]))
        sizes = np.empty_like(starts)
        np.subtract(starts[1:], starts[:-1], out=sizes[:-1])
        sizes[-1] = slots - named
        return cls(rows, leads[:-1], leads[starts], sizes, starts)

    @property
    def items(self) -> list[Hashable]:
        """The named items, best first."""
        return [item for item, _ in self.rows[: len(self.ranked)]]

    @property
    def nulls(self) -> int:
        return int(self.sizes[-1])

    def names(self, groups: list[int], bits: BitSource) -> tuple[Hashable, ...]:
        """An item for each group in turn: slots of one group are exchangeable."""
        ranks = {
            group: iter(distinct_below(int(self.sizes[group]), needed, bits))
            for group, needed in Counter(groups).items()
            if self.sizes[group] > 1
        }
        zero = repeat(0)
        return tuple(self.rows[self.starts[g] + next(ranks.get(g, zero))][0] for g in groups)


def _integers(values: list[int]) -> NDArray[Any]:
    try:
        found = np.fromiter(values, np.int64, len(values))
    except OverflowError:
        return np.array(values, dtype=np.object_)
    if -(2**62) < found.min(initial=0) <= found.max(initial=0) < 2**62:
        return found
    return np.array(values, dtype=np.object_)


def length_scores(
    schedule: Schedule, leads: Sequence[int] | NDArray[Any], sensitivity: int = 1
) -> list[int]:
    """s(m) for each length, in units of 1/1024; the m-th lead is 0 past the named items.

    One person moves each by at most ``sensitivity``.
    """
    comfort = [
        UNIT * (int(leads[length.size - 1]) if length.size <= len(leads) else 0)
        - sensitivity * length.offset
        for length in schedule.lengths
    ]
    return [-max(0, -comfort[i], comfort[i - 1] if i > 0 else 0) for i in range(len(comfort))]


@dataclass(frozen=True)
class TestedTopK:
    """At most k of the leading observed items, in order, after one test of nested lists.

    Guarantee: (epsilon, delta)-DP under add-remove. ``lengths="private"`` chooses the length of
    the longest list privately and tests up to four nested lists, so that a shorter list can be
    answered where k items are too many; ``"fixed"`` answers k items or ⊥ and spends that part of
    the budget on the test. ``sensitivity`` is the most that one person moves a score by. With
    ``behind`` the budget also covers Gaussian steps of that mu² that follow, such as noisy counts:
    ``loss.then_gaussian(behind)`` keeps to (epsilon, delta).
    """

    __test__ = False  # not a test case, whatever its name begins with

    k: int
    epsilon: Number
    delta: Number
    k_bar: int | None = None
    lengths: Literal["private", "fixed"] = "private"
    sensitivity: int = 1
    behind: Number = 0

    def __post_init__(self) -> None:
        parameters.whole(self.k, "k")
        parameters.positive(self.epsilon, "epsilon")
        parameters.probability(self.delta, "delta")
        parameters.sensitivity(self.sensitivity)
        if self.lengths not in ("private", "fixed"):
            raise InvalidParameter(f"lengths={self.lengths!r} must be 'private' or 'fixed'")
        if exact(self.behind, "behind") < 0:
            raise InvalidParameter(f"behind={self.behind} must not be negative")
        if self.k_bar is not None:
            parameters.whole(self.k_bar, "k_bar")
            needed = self.k + -(-self.k * CONSTANTS.prune.numerator // CONSTANTS.prune.denominator)
            if self.k_bar < needed:
                raise InvalidParameter(
                    f"k_bar={self.k_bar} must be at least {needed} for k={self.k}, which picks "
                    f"{needed} before it prunes; raise k_bar or lower k"
                )

    @property
    def ordered(self) -> bool:
        """The list is published in the order of the picks."""
        return True

    @cached_property
    def slots(self) -> int:
        """k̄: how many leading items it may look at."""
        return default_k_bar(self.k) if self.k_bar is None else self.k_bar

    @cached_property
    def schedule(self) -> Schedule:
        """All public numbers, from k, epsilon and delta alone."""
        budget = (self.k, exact(self.epsilon), exact(self.delta))
        return schedule(*budget, self.lengths == "private", behind=exact(self.behind))

    @property
    def loss(self) -> Loss:
        """The choice of the length, the worst branch with its test, and the test's failure."""
        return rdp("tested picks", self.schedule.steps) + failure(self.schedule.failure)

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the length, the hidden picks and prunes, and the verdict of the test."""
        bits = SystemBits() if bits is None else bits
        slots, unit = self._slots(histogram), self.sensitivity
        length = self._draw_length(slots.ranked, bits)
        field, levels = ScoreGroups(slots.leads, slots.sizes), in_units(length.levels, unit)
        picked = pick(field, levels, bits)
        lists = self._nested_lists(slots, picked, length, bits)
        chosen = length.size if self.lengths == "private" else None
        leads = [min(int(slots.leads[group]) for group in groups) for groups in lists]
        place = length.test.draw([Fraction(max(lead, unit), unit) for lead in leads], bits)
        # A null slot has lead 0 and no name: a list with one in it is never released.
        if place is None or leads[place] == 0:
            return Selection((), complete=False, chosen=chosen)
        return Selection(slots.names(lists[place], bits), complete=True, chosen=chosen)

    def _nested_lists(
        self, slots: _Slots, picked: list[int], length: Length, bits: BitSource
    ) -> list[list[int]]:
        """What is left of the picked groups after the prunes of each list, in pick order."""
        unit = self.sensitivity
        strengths = np.maximum(slots.leads[picked], unit)
        kept = prune(strengths, length.prunes, length.price / unit, bits)
        later, price = length.size - length.list_sizes[-1], length.later_price / unit
        order = removed_in_order(strengths[kept], later, price, bits) if later else []
        lists = []
        for size in length.list_sizes:
            removed = set(order[: length.size - size])
            left = [turn for place, turn in enumerate(kept) if place not in removed]
            lists.append([picked[turn] for turn in left])
        return lists

    def _slots(self, histogram: Histogram) -> _Slots:
        """The named items by their leads over T, and the null slots that fill up to k̄."""
        return _Slots.of(histogram.ranked(self.slots + 1), self.slots)

    def _draw_length(self, leads: Sequence[int] | NDArray[Any], bits: BitSource) -> Length:
        lengths = self.schedule.lengths
        if self.schedule.choice == 0:
            return lengths[0]
        scores = length_scores(self.schedule, leads, self.sensitivity)
        scale = 2 * UNIT * self.sensitivity / self.schedule.choice
        return lengths[race(ScoreGroups(_integers(scores)), GUMBEL, scale, 1, bits)[0]]

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The exact law: all lengths, all hidden picks and prunes, both verdicts."""
        slots = self._slots(histogram)
        return tested_law(
            self.schedule,
            length_scores(self.schedule, slots.ranked, self.sensitivity),
            slots.items,
            slots.ranked.tolist(),
            slots.nulls,
            publish_length=self.lengths == "private",
            sensitivity=self.sensitivity,
        )

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the answer on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[TestedTopK, ...]:
        """The parameters that ``topsecret verify`` checks: budgets so large that errors show."""
        return (
            cls(k=1, epsilon=1.0, delta=0.1, k_bar=2),
            cls(k=2, epsilon=2.0, delta=0.2, k_bar=3),
            cls(k=2, epsilon=3.0, delta=0.6, k_bar=6),
            cls(k=3, epsilon=2.0, delta=0.4, k_bar=4),
            cls(k=2, epsilon=2.0, delta=0.2, k_bar=4, lengths="fixed"),
            cls(k=2, epsilon=2.0, delta=0.2, k_bar=3, sensitivity=2),
            cls(k=1, epsilon=1.0, delta=0.1, k_bar=2, sensitivity=3),
            cls(k=2, epsilon=2.0, delta=0.2, k_bar=3, sensitivity=3),
            cls(k=3, epsilon=2.0, delta=0.4, k_bar=4, sensitivity=2),
            cls(k=2, epsilon=2.0, delta=0.2, k_bar=4, lengths="fixed", sensitivity=2),
            cls(k=2, epsilon=2.0, delta=0.2, k_bar=3, lengths="fixed", sensitivity=3),
        )
