"""`CanonicalSet`: the whole set drawn at once, of a privately chosen size.

>>> from topsecret.counts.histogram import Histogram
>>> mechanism = CanonicalSet(k=2, epsilon=100)
>>> answer = mechanism.select(Histogram.of({"b": 90, "a": 50}, domain=["a", "b", "c"]))
>>> answer.items, answer.chosen
(('a', 'b'), 2)

After Shekelyan & Loukides 2022, with a private size; derived in docs/proofs/canonical-set.md.

**Statement.** Public: k, the domain of d ≥ k items, ε; ε_u = .15ε, ε_c = .85ε, ρ = .7. Choose a
size m ≤ k by report-noisy-max (``private_length``) at ε_u; then draw a set S of m items with
P(S) ∝ e^(ε_c·(ρ·min_(in) − (1 − ρ)·max_(out))), min_(in) the smallest count in S, max_(out) the
largest outside. (m, S) is ε-DP. The second step is ε_c-bounded-range. ``fill=True`` adds k − m
items drawn uniformly from the rest of the domain: no data enter, and they come after the m drawn
ones.

**Preconditions.** The domain is public; a person moves each count by at most 1, under add-remove
all in the same direction. Under replace both steps run at half their ε and keep their claims.
"""

from __future__ import annotations

import bisect
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any, ClassVar

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from topsecret.accounting import Loss, picks, pure
from topsecret.counts.histogram import Histogram
from topsecret.errors import TooLarge
from topsecret.exact.ordering import as_a_set
from topsecret.exact.rounding import Number, exact, precision
from topsecret.mechanisms import parameters
from topsecret.mechanisms.canonical_classes import Classes
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
from topsecret.noise.binomials import log_binomials
from topsecret.noise.bits import BitSource, SystemBits
from topsecret.noise.integers import distinct_below

_SIZE_SHARE = Fraction(3, 20)
_RHO = Fraction(7, 10)
_MOST = 20_000


@dataclass(frozen=True)
class CanonicalSet:
    """A set of at most k items of a public domain, its size chosen privately, drawn at once.

    Guarantee: ε-DP for ``epsilon``: a pure step of .15ε and a bounded-range step of .85ε. ``ranks``
    are public ranks of at least k at which the size step looks at the counts; 10k and 100k unless
    told otherwise. With ``fill`` the first ``chosen`` items are the drawn ones, the others random.
    """

    k: int
    epsilon: Number
    adjacency: parameters.Adjacency = "add-remove"
    fill: bool = False
    ranks: tuple[int, ...] | None = None

    meets_claim_exactly: ClassVar[bool] = False

    def __post_init__(self) -> None:
        parameters.adjacency(self.adjacency)
        check_public(self.k, self.epsilon, self.ranks)

    @property
    def ordered(self) -> bool:
        """A set is published."""
        return False

    @property
    def size_epsilon(self) -> Fraction:
        """ε_u, what the choice of the size costs."""
        return exact(self.epsilon) * _SIZE_SHARE

    @property
    def set_epsilon(self) -> Fraction:
        """ε_c, what the draw of the set costs."""
        return exact(self.epsilon) - self.size_epsilon

    @property
    def loss(self) -> Loss:
        """A pure step for the size, a bounded-range step for the set."""
        return pure(self.size_epsilon) + picks(1, self.set_epsilon)

    @property
    def length_scale(self) -> Fraction:
        """2ρ·s/ε_u, the scale of the size's noise in people."""
        return 2 * _RHO * parameters.directions(self.adjacency) / self.size_epsilon

    @property
    def exponents(self) -> tuple[Fraction, Fraction]:
        """How the logarithm of a set's weight falls with max_(out) and rises with min_(in)."""
        price = self.set_epsilon / parameters.directions(self.adjacency)
        return (1 - _RHO) * price, _RHO * price

    def margins(self, ranked: RankedGroups, size: int) -> NDArray[Any]:
        """u(m) in tenths of a person, for all lengths in rising order. Secret."""
        price = self.set_epsilon / parameters.directions(self.adjacency)
        table = _margin_table(self.k, size, price, self.ranks)
        high, at, level = (summable(ranked.at_rank(ranks)) for ranks in table[:3])
        offset, starts = table[3:]
        above = 7 * level * (table[2] < size)
        return np.asarray(np.minimum.reduceat(4 * high + 3 * at - above - offset, starts))

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the size, the class and the set."""
        size = histogram.require_domain("CanonicalSet", self.k)
        bits = SystemBits() if bits is None else bits
        ranked = RankedGroups.of(histogram)
        scores = scores_of(self.margins(ranked, size))
        m = lengths(self.k)[choose(scores, 10 * self.length_scale, bits)]
        leading, upto = Classes(ranked, m, *self.exponents).draw(bits)
        drawn = distinct_below(upto - leading, m - leading, bits)
        places = [*range(leading), *(leading + place for place in drawn)]
        if self.fill:
            places += _others(places, size, self.k - m, bits)
        items = histogram.names(ranked.at_places(places), bits)
        both = (*as_a_set(items[:m]), *as_a_set(items[m:]))
        return Selection(both, complete=True, ordered=False, chosen=m)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The law of the size times the law of the set, class by class."""
        size = histogram.require_domain("CanonicalSet", self.k)
        if sum(comb(size, m) for m in lengths(self.k)) * comb(size, self.k) > _MOST:
            raise TooLarge(
                f"the law of sets of up to {self.k} among {size} items has too many outcomes; "
                "ask for it on a smaller histogram"
            )
        scores = sorted(histogram.scores(), key=lambda pair: -pair[1])
        items = [item for item, _ in scores]
        counts = tuple(int(score) for _, score in scores)
        law: dict[Outcome, arb] = {}
        for m, chances in _law(self, counts, max(128, ctx.prec)).items():
            for places, chance in chances.items():
                chosen = [items[place] for place in places]
                law |= dict.fromkeys(self._filled(items, chosen, m), chance)
        return law

    def _filled(self, items: list[Hashable], chosen: list[Hashable], m: int) -> list[Outcome]:
        """The outcomes that a drawn set leads to, all equally likely."""
        if not self.fill:
            return [(m, *as_a_set(chosen))]
        rest = [item for item in items if item not in chosen]
        return [
            (m, *as_a_set(chosen), *as_a_set(others)) for others in combinations(rest, self.k - m)
        ]

    def set_law(self, ranked: RankedGroups, m: int, bits: int) -> dict[tuple[int, ...], arb]:
        """The law of the set of size m, as places in falling order of counts.

        Parameters: ``bits``: the precision of the probabilities.
        """
        law: dict[tuple[int, ...], arb] = {}
        for (leading, upto), chance in Classes(ranked, m, *self.exponents).law(bits).items():
            share = chance / comb(upto - leading, m - leading)
            for others in combinations(range(leading, upto), m - leading):
                places = (*range(leading), *others)
                law[places] = law.get(places, arb(0)) + share
        return law

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the size and the set on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[CanonicalSet, ...]:
        """The parameters that ``topsecret verify`` checks; small ranks show the size step."""
        return (
            cls(k=1, epsilon=2.0),
            cls(k=2, epsilon=0.7, ranks=(3,)),
            cls(k=2, epsilon=3.0, ranks=(2, 3)),
            cls(k=3, epsilon=4.0, ranks=(3,)),
            cls(k=3, epsilon=2.0, fill=True),
            cls(k=2, epsilon=3.0, adjacency="replace", ranks=(3,)),
        )


def _others(places: list[int], size: int, count: int, bits: BitSource) -> list[int]:
    """Places outside ``places``, uniform and different."""
    taken = sorted(places)
    before = [place - rank for rank, place in enumerate(taken)]
    free = distinct_below(size - len(taken), count, bits)
    return [rank + bisect.bisect_right(before, rank) for rank in free]


@lru_cache(maxsize=32)
def _margin_table(
    k: int, size: int, price: Fraction, ranks: tuple[int, ...] | None
) -> tuple[NDArray[Any], ...]:
    """For every (m, r, t): the ranks m, r + 1 and t, and ten times c(m, r, t); where each m starts.

    c is a public constant, so that its rounding is free.
    """
    levels = np.array(ranks_below(size, k, ranks), dtype=np.int64)
    sizes = np.array(lengths(k), dtype=np.int64)
    number = sizes * len(levels)
    starts = np.cumsum(number) - number
    m = np.repeat(sizes, number)
    inner = np.arange(len(m)) - np.repeat(starts, number)
    r, t = inner // len(levels), levels[inner % len(levels)]
    c = np.ceil(log_binomials(t - r, m - r)[0] / float(price))
    return m, r + 1, t, whole_offsets(10 * c), starts


@lru_cache(maxsize=4096)
def _law(
    mechanism: CanonicalSet, counts: tuple[int, ...], bits: int
) -> dict[int, dict[tuple[int, ...], arb]]:
    """The joint law of size and places on counts in falling order."""
    ranked = RankedGroups.of(Histogram.from_counts(counts))
    scores, k = scores_of(mechanism.margins(ranked, len(counts))), mechanism.k
    with precision(bits + 32):
        chances = choice_law(scores, 10 * mechanism.length_scale)
        return {
            m: {
                places: chance * share / (comb(len(counts) - m, k - m) if mechanism.fill else 1)
                for places, share in mechanism.set_law(ranked, m, bits + 32).items()
            }
            for m, chance in zip(lengths(k), chances, strict=True)
        }
