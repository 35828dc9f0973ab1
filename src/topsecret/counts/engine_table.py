"""A histogram that an engine keeps: its groups of equal counts are here, its names are fetched.

>>> from topsecret.counts.histogram import Histogram
>>> class Engine:
...     size = 10**7
...     def counts(self): return [(0, 10**7 - 2), (5, 1), (9, 1)]
...     def items_at(self, wanted): return [f"item {count}" for count, _ in wanted]
...     def leading(self, rows): return [("item 9", 9), ("item 5", 5)][:rows]
>>> Histogram(GroupedTable(Engine()))
<Histogram: secret counts, public domain of 10000000 items>
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from topsecret.errors import TooLarge
from topsecret.noise.bits import BitSource
from topsecret.noise.integers import distinct_below
from topsecret.noise.screening import ScoreGroups

Item = Hashable


class CountedDomain(Protocol):
    """What an engine tells about the counts of a public domain."""

    @property
    def size(self) -> int | None:
        """How many items the domain has; None where it is not known. Public."""
        ...

    def counts(self) -> list[tuple[int, int]]:
        """(count, how many items have it); together all items of the domain."""
        ...

    def items_at(self, wanted: Sequence[tuple[int, int]]) -> list[Any]:
        """The item at each (count, place): the place among the items of that count, from 0."""
        ...

    def leading(self, rows: int) -> list[tuple[Any, int]]:
        """The leading observed items with their counts, ties in canonical order."""
        ...


class WeightedLabels(CountedDomain, Protocol):
    """What an engine tells about weighted sums: the counts are sums, with people beside them."""

    def persons_of(self, items: Sequence[Any]) -> list[int]:
        """How many people have each of these items, all named before."""
        ...


class PersonsTable:
    """How many people, beside weighted sums: for the leading items, and for what was named."""

    def __init__(self, labels: WeightedLabels) -> None:
        self._labels = labels

    @property
    def domain_size(self) -> int | None:
        """Public."""
        return self._labels.size

    def field(self) -> ScoreGroups:
        """Never: the groups are those of the sums."""
        raise TooLarge("the engine groups weighted sums alone; rank the leading counts instead")

    def names(self, groups: Sequence[int], bits: BitSource) -> tuple[Item, ...]:
        """Never: see ``field``."""
        raise TooLarge("the engine groups weighted sums alone; rank the leading counts instead")

    def ranked(self, size: int) -> list[tuple[Item, int]]:
        """The leading observed items by people."""
        return self._labels.leading(size)

    def scores(self) -> list[tuple[Item, Fraction]]:
        """Never: what an engine keeps is not listed here."""
        raise TooLarge("a domain that an engine counts is not listed; use a smaller histogram")

    def counts_of(self, items: Sequence[Item]) -> list[int]:
        """How many people have each of the items, all named before."""
        return self._labels.persons_of(items)


class GroupedTable:
    """The counts of a public domain as groups of equal counts."""

    def __init__(self, domain: CountedDomain) -> None:
        self._domain = domain
        groups = domain.counts()
        self._values = np.array([count for count, _ in groups], dtype=np.int64)
        self._sizes = [items for _, items in groups]
        self._named: dict[Item, int] = {}

    @property
    def domain_size(self) -> int | None:
        """Public."""
        return self._domain.size

    def field(self) -> ScoreGroups:
        """One group for each count."""
        return ScoreGroups(self._values, np.array(self._sizes, dtype=np.int64))

    def names(self, groups: Sequence[int], bits: BitSource) -> tuple[Item, ...]:
        """Uniform places within the groups, and the items that stand there."""
        places: dict[int, Iterator[int]] = {
            group: iter(distinct_below(self._sizes[group], needed, bits))
            for group, needed in Counter(groups).items()
        }
        wanted = [(int(self._values[group]), next(places[group])) for group in groups]
        items = tuple(self._domain.items_at(wanted))
        self._named |= {item: count for item, (count, _) in zip(items, wanted, strict=True)}
        return items

    def ranked(self, size: int) -> list[tuple[Item, int]]:
        """The leading observed items."""
        rows = self._domain.leading(size)
        self._named |= dict(rows)
        return rows

    def scores(self) -> list[tuple[Item, Fraction]]:
        """Never: a domain that an engine keeps is not listed here."""
        raise TooLarge("a domain that an engine counts is not listed; use a smaller histogram")

    def counts_of(self, items: Sequence[Item]) -> list[int]:
        """The counts of items that were named before."""
        return [self._named.get(item, 0) for item in items]
