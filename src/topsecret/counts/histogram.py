"""The secret: how many people have each item.

A :class:`Histogram` hides its content. Its ``repr`` and its errors show public facts only; the
mechanisms read it through three views: the *field* of equal scores, the *names* of groups that
won, and the *ranked* leading counts.

>>> Histogram.of({"a": 5, "b": 3})
<Histogram: secret counts, unknown domain>
>>> Histogram.of({"a": 5}, domain=["a", "b", "c"])
<Histogram: secret counts, public domain of 3 items>
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from topsecret.counts.clip import Clip
from topsecret.counts.scores_by_bound import AmountsOfPersons, ScoresByBound, UnboundedTable
from topsecret.counts.tables import (
    ArrayScores,
    ArrayTable,
    NamedTable,
    RankedTable,
    Table,
    as_array,
)
from topsecret.counts.two_periods import TwoPeriods
from topsecret.counts.weights import Weights, weighted_sums
from topsecret.errors import DomainRequired, InvalidParameter
from topsecret.noise.bits import BitSource
from topsecret.noise.screening import ScoreGroups

Item = Hashable


class Histogram:
    """Counts of distinct people per item, kept secret.

    Make one with :meth:`of`, :meth:`from_counts` or :meth:`leading`.

    Parameters: ``table``: the counts, as the constructors below make them; ``weighted``: sums of
    weights beside the counts, where there are any; ``counts``: how many people have each observed
    item; ``domain``: all items that may be named; None if they are not public; ``pairs``: items
    with their counts, best first; ``limit``: how many rows were asked for; ``holdings``: the items
    that each person has; ``weights``: how much each item of a person counts; ``salt``: a secret
    that chooses which items of a person count under a cap; ``amounts``: for each person what they
    add to each item; ``bounds``: the bounds on one person, of which one is chosen; ``clip``: how
    one person's part is bounded; ``later``: how many people have each item in the later period;
    ``earlier``: the same for the earlier period; ``sums``: the sums of the weights; ``groups``: the
    places of the groups, in the order of naming; ``bits``: where random bits come from;
    ``mechanism``: the name that an error gives; ``at_least``: how many items the domain must have.
    """

    __slots__ = ("_table", "_weighted")

    def __init__(self, table: Table, weighted: tuple[Weights | Clip, Table] | None = None) -> None:
        self._table = table
        self._weighted = weighted

    @classmethod
    def of(cls, counts: Mapping[Any, int], domain: Sequence[Any] | None = None) -> Histogram:
        """From a mapping of observed items; with ``domain``, all items that may be named.

        A domain may be any sequence without repetition, also a huge one such as
        ``range(10**12)``. Observed items outside the domain are left out: the domain is public,
        and what was observed is not.

        >>> Histogram.of({3: 7}, domain=range(10**12))
        <Histogram: secret counts, public domain of 1000000000000 items>
        """
        return cls(NamedTable.of(counts, domain))

    @classmethod
    def from_counts(cls, counts: ArrayLike) -> Histogram:
        """From an array over the public domain 0 … d − 1: integer counts, or real scores.

        >>> Histogram.from_counts([4, 0, 2])
        <Histogram: secret counts, public domain of 3 items>
        """
        array = counts if isinstance(counts, np.ndarray) else as_array(counts)
        if array.ndim != 1:
            raise InvalidParameter(
                f"counts must be one row; found {array.ndim} dimensions; pass a 1-d array"
            )
        if array.dtype.kind == "f":
            return cls(ArrayScores.of(array))
        if array.dtype.kind in "iub" or array.size == 0:
            return cls(ArrayTable.of(array))
        if array.dtype == object:
            return cls(NamedTable.of(dict(enumerate(array)), range(len(array))))
        raise InvalidParameter(
            f"counts must be integers or floats; found an array of {array.dtype}"
        )

    @classmethod
    def leading(cls, pairs: Iterable[tuple[Any, int]], limit: int | None = None) -> Histogram:
        """From the leading rows of a ranked list, best first, ties already broken.

        ``limit`` is how many rows were asked for (public); fewer may have been observed.
        """
        return cls(RankedTable.of(pairs, limit))

    @classmethod
    def of_holdings(
        cls,
        holdings: Mapping[Any, Collection[Any]],
        weights: Weights,
        domain: Sequence[Any] | None = None,
        salt: bytes = b"",
    ) -> Histogram:
        """From each person's items: the counts of people, and their weighted sums beside them.

        >>> Histogram.of_holdings({"ada": ["tea"]}, Weights.share())
        <Histogram: secret counts, unknown domain>
        """
        inside = {
            person: [item for item in dict.fromkeys(items) if domain is None or item in domain]
            for person, items in holdings.items()
        }
        counts = Counter(item for items in inside.values() for item in items)
        sums = weighted_sums(inside, weights, salt)
        return cls(NamedTable.of(counts, domain), (weights, NamedTable.of(sums, domain)))

    @classmethod
    def of_amounts(
        cls,
        amounts: Mapping[Any, Mapping[Any, int]],
        bounds: Sequence[int],
        domain: Sequence[Any] | None = None,
    ) -> Histogram:
        """From what each person adds to each item, for a mechanism that chooses one of the bounds.

        >>> Histogram.of_amounts({"ada": {"tea": 7}}, bounds=[1, 5])
        <Histogram: secret counts, unknown domain>
        """
        return cls.by_bound(AmountsOfPersons(amounts, tuple(bounds), domain))

    @classmethod
    def of_parts(cls, amounts: Mapping[Any, Mapping[Any, int]], clip: Clip) -> Histogram:
        """From what each person adds to each item: the scores, and the sums of parts beside them.

        >>> Histogram.of_parts({"ada": {"tea": 7}}, Clip(bound=5))
        <Histogram: secret counts, unknown domain>
        """
        scores: Counter[Any] = Counter()
        sums: Counter[Any] = Counter()
        for mine in amounts.values():
            scores.update({item: min(amount, clip.bound) for item, amount in mine.items()})
            sums.update(clip.parts(mine))
        return cls(NamedTable.of(scores, None), (clip, NamedTable.of(sums, None)))

    @classmethod
    def of_periods(cls, later: Mapping[Any, int], earlier: Mapping[Any, int]) -> Histogram:
        """From the counts of people in two periods, for a mechanism that ranks by rises.

        >>> Histogram.of_periods({"tea": 9}, {"tea": 8, "jam": 2})
        <Histogram: secret counts, unknown domain>
        """
        after, before = (
            [(item, n, other.get(item, 0)) for item, n in cls.of(own).ranked(len(own))]
            for own, other in ((later, earlier), (earlier, later))
        )
        return cls(TwoPeriods(after, before))

    def periods(self) -> TwoPeriods:
        """The leading items of two periods, and their rises. Secret."""
        if not isinstance(self._table, TwoPeriods):
            raise InvalidParameter(
                "the histogram must have been counted for two periods; one has no rises"
            )
        return self._table

    @classmethod
    def by_bound(cls, scores: ScoresByBound) -> Histogram:
        """With scores at several bounds on one person."""
        return cls(UnboundedTable(scores))

    def at_bounds(self, bounds: tuple[int, ...]) -> ScoresByBound:
        """The scores at these bounds. Secret."""
        table = self._table
        if not isinstance(table, UnboundedTable) or table.scores_by_bound.bounds != bounds:
            raise InvalidParameter(
                f"the histogram must have been counted with the bounds {list(bounds)}; its counts "
                "do not tell how much each person adds"
            )
        return table.scores_by_bound

    def beside(self, weights: Weights, sums: Histogram) -> Histogram:
        """These counts with sums of weights beside them, of the same people."""
        return Histogram(self._table, (weights, sums._table))

    def weighted(self, weights: Weights | Clip) -> Histogram:
        """The sums of these weights, or of parts, in their unit, in place of counts. Secret."""
        if self._weighted is None or self._weighted[0] != weights:
            raise InvalidParameter(
                f"the histogram must have been counted with {weights}; counts alone do not "
                "tell how many items each person has"
            )
        return Histogram(self._weighted[1])

    @property
    def domain_size(self) -> int | None:
        """The number of items in the public domain; None when the domain is unknown. Public."""
        return self._table.domain_size

    def require_domain(self, mechanism: str, at_least: int) -> int:
        """The size of the public domain, or an error that names the fix."""
        size = self.domain_size
        if size is None:
            raise DomainRequired(
                f"{mechanism} names any item of a public domain, and this histogram has none; "
                "pass domain=…, or use LimitedDomain, which names observed items only"
            )
        if size < at_least:
            raise InvalidParameter(
                f"k={at_least} must be at most the {size} items of the public domain; lower k"
            )
        return size

    def field(self) -> ScoreGroups:
        """The groups of equal scores over the public domain. Secret."""
        return self._table.field()

    def names(self, groups: Sequence[int], bits: BitSource) -> tuple[Item, ...]:
        """An item for each group in turn, uniform among those of the group not yet named."""
        return self._table.names(groups, bits)

    def ranked(self, size: int) -> list[tuple[Item, int]]:
        """The ``size`` leading observed items with their counts, ties in canonical order. Secret.

        Fewer when fewer were observed; an item that nobody has is never among them.
        """
        return self._table.ranked(size)

    def scores(self) -> list[tuple[Item, Fraction]]:
        """Every item of a small public domain with its score. Secret."""
        return self._table.scores()

    def counts_of(self, items: Sequence[Item]) -> list[int]:
        """The counts of these items in turn; 0 for one that nobody has. Secret."""
        return self._table.counts_of(items)

    def __repr__(self) -> str:
        size = self.domain_size
        domain = "unknown domain" if size is None else f"public domain of {size} items"
        return f"<Histogram: secret counts, {domain}>"
