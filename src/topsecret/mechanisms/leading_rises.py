"""`LeadingRises`: the largest rises in people from one period to another, of items that lead.

>>> from topsecret import Histogram
>>> from topsecret.mechanisms import TestedTopK
>>> naming = TestedTopK(k=4, epsilon=1.0, delta=1e-6)
>>> mechanism = LeadingRises(k=1, naming=naming, epsilon_per_pick=0.2)
>>> later, earlier = {"tea": 900, "jam": 800}, {"tea": 880, "jam": 300}
>>> mechanism.select(Histogram.of_periods(later, earlier)).items
('jam',)

Where items were only seen in the data, a rise may be that of one person alone: such an item's name
must not be a candidate. So three releases share a budget. The first two are lists of the later and
of the earlier period, by a mechanism for an unknown domain; what they name is public from then on.
The third picks the largest rises among these names.

**Statement.** Let N be what ``naming`` names of the later and of the earlier counts, drawn apart,
and d_j how many people have item j in the later period, less how many in the earlier one. The k
items of N with the largest d_j + Gumbel(2/ε₀), in order, or all of N where it has fewer, cost
2·naming.loss and then k picks of ε₀, under add-remove. So do N and they together.

**Preconditions.** Both counts are of distinct people, each person's rows of one period apart from
those of the other. One person moves every count by at most 1, all of them in one direction.

**Proof.** The two lists are two releases about counts of distinct people, of the same person more
or less: their losses add. N is a function of them, and so is its size. Given N, which is now a
public domain, one person more moves every d_j, j ∈ N, by −1, 0 or 1, some up and some down; with 1
added to all of them, which changes no pick, by 0, 1 or 2. So each pick with Gumbel(2/ε₀) is
ε₀-bounded-range (`GumbelTopK`), and there are at most k of them. Composition is adaptive: the third
release may depend on what the first two answered. ∎

**Why each line matters.**
- *Both lists are charged.* The person who is there in one period is there in the other.
- *2/ε₀, not 1/ε₀*: one person may raise a rise and lower its rival's.
- *N comes from releases*, not from the counts: what one person alone has might be named.
- *Items of N that nobody has in one of the periods stay candidates*: leaving them out would tell.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from flint import arb

from topsecret.accounting import Loss, picks
from topsecret.counts.histogram import Histogram
from topsecret.counts.two_periods import TwoPeriods
from topsecret.exact.ordering import canonical_key
from topsecret.exact.rounding import Number, exact
from topsecret.mechanisms import parameters
from topsecret.mechanisms.gumbel import GumbelTopK
from topsecret.mechanisms.limited_domain import LimitedDomain
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.selection import NOTHING, Outcome, Selection
from topsecret.mechanisms.tested_top_k import TestedTopK
from topsecret.noise.bits import BitSource, SystemBits

if TYPE_CHECKING:
    from topsecret.mechanisms.leading_rises_law import PeriodsOfCounts

MOVES = 2
"""By how much one person moves a rise, from the lowest to the highest."""
_SHIFT = 1 << 40
"""More people than there will be: no score is negative."""


@dataclass(frozen=True)
class LeadingRises:
    """At most k items in order, by their rise, of those that are named in one of two periods.

    Guarantee: that of ``naming`` twice, and k picks of ``epsilon_per_pick``, under add-remove.

    Parameters: ``smallest``: whether the largest falls are named, in place of the largest rises;
    ``epsilon_per_pick``: the epsilon of each pick among the named items.
    """

    precondition: ClassVar[str] = "the people of two periods are counted apart"
    """What the source must see to, beside adjacency, a cap and a sensitivity."""

    k: int
    naming: TestedTopK | LimitedDomain
    epsilon_per_pick: Number
    smallest: bool = False

    def __post_init__(self) -> None:
        parameters.whole(self.k, "k")
        parameters.positive(self.epsilon_per_pick, "epsilon_per_pick")

    @property
    def ordered(self) -> bool:
        """The list is published best first."""
        return True

    @property
    def loss(self) -> Loss:
        """Two lists, and the picks among what they name."""
        return (2 * self.naming.loss).then(picks(self.k, exact(self.epsilon_per_pick)))

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on a rise, in people."""
        return MOVES / exact(self.epsilon_per_pick)

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw both lists of names, and the rises among them."""
        return self.drawn(histogram, bits)[1]

    def drawn(
        self, histogram: Histogram, bits: BitSource | None = None
    ) -> tuple[list[tuple[Hashable, ...]], Selection]:
        """What is named of the later and of the earlier period, and the answer."""
        bits = SystemBits() if bits is None else bits
        periods = histogram.periods()
        lists = [self.naming.select(Histogram(one), bits).items for one in periods.leading]
        names = _together(lists)
        if not names:
            return lists, Selection((), complete=False)
        items = self._picks(names).select(_rises(periods, names), bits).items
        return lists, Selection(items, complete=len(items) == self.k)

    def _picks(self, names: tuple[Hashable, ...]) -> GumbelTopK:
        return GumbelTopK(min(self.k, len(names)), self.scale, self.smallest, MOVES)

    def joint(self, histogram: Histogram) -> dict[tuple[tuple[Hashable, ...], Outcome], arb]:
        """The law of the names and of the answer together: the answer alone tells less."""
        periods = histogram.periods()
        later, earlier = (self._named(Histogram(one)) for one in periods.leading)
        law: dict[tuple[tuple[Hashable, ...], Outcome], arb] = {}
        for first, p in later.items():
            for second, q in earlier.items():
                names = _together([first, second])
                rises = {(): arb(1)} if not names else self._law(periods, names)
                for answer, chance in rises.items():
                    ended = answer if len(answer) == self.k else (*answer, NOTHING)
                    key = ((*first, NOTHING, *second), ended)
                    law[key] = law.get(key, arb(0)) + p * q * chance
        return law

    def _law(self, periods: TwoPeriods, names: tuple[Hashable, ...]) -> dict[Outcome, arb]:
        return self._picks(names).probabilities(_rises(periods, names))

    def _named(self, counts: Histogram) -> dict[Outcome, arb]:
        """What is named of one period, without the length that was tried for it."""
        law: dict[Outcome, arb] = {}
        tried = isinstance(self.naming, TestedTopK) and self.naming.lengths == "private"
        for outcome, chance in self.naming.probabilities(counts).items():
            items = tuple(one for one in outcome[int(tried) :] if one is not NOTHING)
            law[items] = law.get(items, arb(0)) + chance
        return law

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The exact law of the answer."""
        law: dict[Outcome, arb] = {}
        for (_, answer), chance in self.joint(histogram).items():
            law[answer] = law.get(answer, arb(0)) + chance
        return law

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the answer on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[PeriodsOfCounts, ...]:
        """The parameters that ``topsecret verify`` checks: prices so large that errors show."""
        from topsecret.mechanisms.leading_rises_law import PeriodsOfCounts

        limited = LimitedDomain(1, 2, 0.7, 0.05)
        tested = TestedTopK(k=1, epsilon=1.0, delta=0.1, k_bar=2)
        return (
            PeriodsOfCounts(cls(1, limited, 1.0)),
            PeriodsOfCounts(cls(1, limited, 0.7), joint=True),
            PeriodsOfCounts(cls(2, LimitedDomain(2, 2, 0.7, 0.05), 0.7, smallest=True), joint=True),
            PeriodsOfCounts(cls(1, tested, 1.0), joint=True),
        )


def _together(lists: Iterable[Iterable[Hashable]]) -> tuple[Hashable, ...]:
    """What the lists name, each item once, in canonical order."""
    named = {canonical_key(item): item for items in lists for item in items}
    return tuple(named[key] for key in sorted(named))


def _rises(periods: TwoPeriods, names: tuple[Hashable, ...]) -> Histogram:
    """The rises of these items, which are a public domain now; one number was added to all."""
    return Histogram.of({item: _SHIFT + periods.rise(item) for item in names}, names)
