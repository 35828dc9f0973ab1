"""How a histogram keeps its counts: by name, as an array, as real scores, or as leading rows.

Each table answers the same questions; none of them shows anything of its content.
"""

from __future__ import annotations

import bisect
import heapq
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from topsecret.errors import InvalidParameter
from topsecret.exact.ordering import canonical_key
from topsecret.noise.bits import BitSource
from topsecret.noise.integers import below_many, distinct_below
from topsecret.noise.screening import ScoreGroups

Item = Hashable
_INT64 = 2**63
_NO_DOMAIN = "leading rows have no public domain; count with domain=…"


class Table(Protocol):
    """What a histogram asks of the way it is stored."""

    @property
    def domain_size(self) -> int | None: ...
    def field(self) -> ScoreGroups: ...
    def names(self, groups: Sequence[int], bits: BitSource) -> tuple[Item, ...]: ...
    def ranked(self, size: int) -> list[tuple[Item, int]]: ...
    def scores(self) -> list[tuple[Item, Fraction]]: ...
    def counts_of(self, items: Sequence[Item]) -> list[int]: ...


class NamedTable:
    """Observed items by name, and perhaps a public domain that they belong to."""

    def __init__(
        self, items: list[Item], counts: NDArray[Any], domain: Sequence[Item] | None
    ) -> None:
        self._items = items
        self._counts = counts
        self._domain = domain

    @classmethod
    def of(cls, counts: Mapping[Any, int], domain: Sequence[Any] | None) -> NamedTable:
        """Check types, drop what nobody has or what lies outside the domain."""
        if domain is not None and not isinstance(domain, range):
            positions = {item: place for place, item in enumerate(domain)}
            if len(positions) != len(domain):
                raise InvalidParameter("domain must not name an item twice; remove the repetition")
            counts = {item: count for item, count in counts.items() if item in positions}
        elif domain is not None:
            counts = {item: count for item, count in counts.items() if item in domain}
        items = list(counts)
        values = _integers(list(counts.values()))
        if domain is None:
            seen = np.flatnonzero(values > 0)
            items, values = [items[i] for i in seen], values[seen]
        return cls(items, values, domain)

    @property
    def domain_size(self) -> int | None:
        return None if self._domain is None else len(self._domain)

    @cached_property
    def _groups(self) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
        """Distinct counts, where each starts in the order of counts, and that order."""
        order = np.argsort(self._counts, kind="stable")
        ranked = self._counts[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (ranked[1:] != ranked[:-1]).astype(bool)
        starts = np.flatnonzero(new)
        return ranked[starts], np.append(starts, len(order)), order

    def field(self) -> ScoreGroups:
        values, starts, _ = self._groups
        sizes = np.diff(starts)
        rest = self._unobserved
        if rest:  # they form a group of score 0 of their own, beside any zeros that were passed
            values = np.append(values, np.zeros(1, dtype=values.dtype))
            sizes = np.append(sizes, rest)
        return ScoreGroups(values, sizes)

    @property
    def _unobserved(self) -> int:
        return 0 if self._domain is None else len(self._domain) - len(self._items)

    def names(self, groups: Sequence[int], bits: BitSource) -> tuple[Item, ...]:
        values, starts, order = self._groups
        draws: dict[int, Iterator[Item]] = {}
        for group, needed in Counter(groups).items():
            if group == len(values):
                ranks = distinct_below(self._unobserved, needed, bits)
                draws[group] = iter([self._unobserved_item(rank) for rank in ranks])
            else:
                start, end = int(starts[group]), int(starts[group + 1])
                ranks = distinct_below(end - start, needed, bits)
                draws[group] = iter([self._items[order[start + rank]] for rank in ranks])
        return tuple(next(draws[group]) for group in groups)

    @cached_property
    def _observed_before(self) -> Any:
        """For the j-th observed place p of the domain: p − j, how many unobserved stand before."""
        domain = self._domain
        assert domain is not None
        if isinstance(domain, range):
            places = sorted(domain.index(cast(int, item)) for item in self._items)
        else:
            known = set(self._items)
            places = [place for place, item in enumerate(domain) if item in known]
        return [place - j for j, place in enumerate(places)]

    def _unobserved_item(self, rank: int) -> Item:
        assert self._domain is not None
        return self._domain[rank + bisect.bisect_right(self._observed_before, rank)]

    def ranked(self, size: int) -> list[tuple[Item, int]]:
        places, level = _leading(self._counts, size)
        above = [(self._items[i], int(self._counts[i])) for i in places]
        above.sort(key=lambda row: (-row[1], canonical_key(row[0])))
        tied = [self._items[i] for i in level]
        tied = heapq.nsmallest(size - len(above), tied, key=canonical_key)
        return above + [(item, int(self._counts[level[0]])) for item in tied]

    def scores(self) -> list[tuple[Item, Fraction]]:
        if self._domain is None:
            raise InvalidParameter("only a public domain can be listed; pass domain=…")
        known = dict(zip(self._items, self._counts, strict=True))
        return [(item, Fraction(int(known.get(item, 0)))) for item in self._domain]

    def counts_of(self, items: Sequence[Item]) -> list[int]:
        wanted = set(items)
        known = {
            item: int(count)
            for item, count in zip(self._items, self._counts, strict=True)
            if item in wanted
        }
        return [known.get(item, 0) for item in items]


class ArrayTable:
    """Integer counts over the public domain 0 … d − 1."""

    _FINE = 2**16
    _CHUNK = 2**18

    def __init__(self, counts: NDArray[np.int64]) -> None:
        self._counts = counts
        self._tail: NDArray[np.int64] | None = None
        self._values, self._sizes = self._tabulate()

    @classmethod
    def of(cls, array: NDArray[Any]) -> ArrayTable | NamedTable:
        """Keep a copy of our own, so that nobody changes it between counting and naming."""
        if array.dtype == np.uint64 and array.size and int(array.max()) >= _INT64:
            return NamedTable.of(dict(enumerate(array.tolist())), range(len(array)))
        return cls(array.astype(np.int64))

    def _tabulate(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The distinct counts in rising order and how many items have each."""
        counts = self._counts
        if counts.size == 0:
            return counts, counts
        low, high = int(counts.min()), int(counts.max())
        cut = min(high + 1, low + self._FINE)
        if low > -_INT64 // 2 and cut < _INT64:
            few, tail = self._tally(low, cut)
            used = np.flatnonzero(few)
            values, sizes = used + low, few[used]
            if len(tail) == 0:
                return values, sizes
            if len(tail) <= len(counts) // 8:
                self._tail = tail
                high_values, high_sizes = np.unique(counts[tail], return_counts=True)
                return np.append(values, high_values), np.append(sizes, high_sizes)
        values, sizes = np.unique(counts, return_counts=True)
        return values, sizes

    def _tally(self, low: int, cut: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many items have each count of low … cut − 1, and the places of higher counts.

        In chunks that fit the processor's cache: a temporary array of the whole length costs more
        than the counting.
        """
        few = np.zeros(cut - low + 1, dtype=np.int64)
        tails = []
        space = np.empty(min(self._CHUNK, len(self._counts)), dtype=np.int64)
        for start in range(0, len(self._counts), self._CHUNK):
            chunk = self._counts[start : start + self._CHUNK]
            clipped = np.minimum(chunk, cut, out=space[: len(chunk)])
            if low:
                clipped -= low
            found = np.bincount(clipped, minlength=len(few))
            if found[-1]:
                tails.append(np.flatnonzero(chunk >= cut) + start)
            few += found
        tail = np.concatenate(tails) if tails else np.empty(0, dtype=np.int64)
        return few[:-1], tail

    @property
    def domain_size(self) -> int:
        return len(self._counts)

    def field(self) -> ScoreGroups:
        return ScoreGroups(self._values, self._sizes)

    def names(self, groups: Sequence[int], bits: BitSource) -> tuple[Item, ...]:
        draws: dict[int, Iterator[Item]] = {}
        rare: dict[int, int] = {}
        for group, needed in Counter(groups).items():
            size = int(self._sizes[group])
            if size * 1000 >= len(self._counts) and needed * 4 <= size:
                draws[group] = iter(self._try_places(group, needed, bits))
            else:
                rare[group] = needed
        for group, places in self._places(list(rare)).items():
            ranks = distinct_below(len(places), rare[group], bits)
            draws[group] = iter([int(places[rank]) for rank in ranks])
        return tuple(next(draws[group]) for group in groups)

    def _try_places(self, group: int, needed: int, bits: BitSource) -> list[int]:
        """Different places of a frequent count: try uniform places of the domain until they fit."""
        value = self._values[group]
        batch = 2 * needed * len(self._counts) // int(self._sizes[group]) + 64
        found: dict[int, None] = {}
        while len(found) < needed:
            places = below_many(len(self._counts), batch, bits)
            found.update(dict.fromkeys(places[self._counts[places] == value].tolist()))
        return list(found)[:needed]

    def _places(self, groups: list[int]) -> dict[int, NDArray[np.int64]]:
        """All places of each of these counts, found in one pass over the array."""
        if not groups:
            return {}
        wanted = np.sort(self._values[groups])
        upwards = int(self._sizes[np.searchsorted(self._values, wanted[0]) :].sum())
        if self._tail is not None and upwards <= len(self._tail):
            places = self._tail
        elif upwards * 10 <= len(self._counts):
            places = np.flatnonzero(self._counts >= wanted[0])
        else:
            places = np.flatnonzero(np.isin(self._counts, wanted))
        found = self._counts[places]
        order = np.argsort(found, kind="stable")
        places, found = places[order], found[order]
        first = np.searchsorted(found, self._values[groups], side="left")
        last = np.searchsorted(found, self._values[groups], side="right")
        return {group: places[first[i] : last[i]] for i, group in enumerate(groups)}

    def ranked(self, size: int) -> list[tuple[Item, int]]:
        above, level = _leading(self._counts, size)
        above = above[np.lexsort((above, -self._counts[above]))]
        level = level[: size - len(above)]
        return [(int(i), int(self._counts[i])) for i in np.concatenate([above, level])]

    def scores(self) -> list[tuple[Item, Fraction]]:
        return [(place, Fraction(int(count))) for place, count in enumerate(self._counts)]

    def counts_of(self, items: Sequence[Item]) -> list[int]:
        places = range(len(self._counts))
        return [int(self._counts[cast(int, item)]) if item in places else 0 for item in items]


class ArrayScores:
    """Real scores over the public domain 0 … d − 1: every item is a group of its own."""

    def __init__(self, scores: NDArray[np.float64]) -> None:
        self._scores = scores

    @classmethod
    def of(cls, array: NDArray[Any]) -> ArrayScores:
        """Reject what is not a number; keep a copy of our own."""
        scores = array.astype(np.float64)
        if not np.isfinite(scores).all():
            raise InvalidParameter("scores must be finite numbers; remove NaN and infinities")
        return cls(scores)

    @property
    def domain_size(self) -> int:
        return len(self._scores)

    def field(self) -> ScoreGroups:
        return ScoreGroups(self._scores)

    def names(self, groups: Sequence[int], bits: BitSource) -> tuple[Item, ...]:
        return tuple(groups)

    def ranked(self, size: int) -> list[tuple[Item, int]]:
        raise _no_persons()

    def counts_of(self, items: Sequence[Item]) -> list[int]:
        raise _no_persons()

    def scores(self) -> list[tuple[Item, Fraction]]:
        return [(place, Fraction(float(score))) for place, score in enumerate(self._scores)]


class RankedTable:
    """The leading rows of a list that an engine has counted, ranked and cut."""

    def __init__(self, rows: list[tuple[Item, int]], limit: int | None) -> None:
        self._rows = rows
        self._limit = limit

    @classmethod
    def of(cls, pairs: Iterable[tuple[Any, int]], limit: int | None) -> RankedTable:
        """Keep the rows that somebody has, and see that they are ranked."""
        rows = [(item, int(count)) for item, count in pairs if count > 0]
        if any(a[1] < b[1] for a, b in pairwise(rows)):
            raise InvalidParameter("leading rows must come best first; order them by count")
        if len({item for item, _ in rows}) != len(rows):
            raise InvalidParameter("leading rows must name each item once; group them by item")
        return cls(rows, limit)

    @property
    def domain_size(self) -> None:
        return None

    def ranked(self, size: int) -> list[tuple[Item, int]]:
        if self._limit is not None and size > self._limit:
            raise InvalidParameter(
                f"this mechanism looks at {size} leading items, and {self._limit} were asked for; "
                "ask the source for k_bar + 1"
            )
        return self._rows[:size]

    def counts_of(self, items: Sequence[Item]) -> list[int]:
        known = dict(self._rows)
        return [known.get(item, 0) for item in items]

    def field(self) -> ScoreGroups:
        raise InvalidParameter(_NO_DOMAIN)

    def names(self, groups: Sequence[int], bits: BitSource) -> tuple[Item, ...]:
        raise InvalidParameter(_NO_DOMAIN)

    def scores(self) -> list[tuple[Item, Fraction]]:
        raise InvalidParameter(_NO_DOMAIN)


def _leading(counts: NDArray[Any], size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of the observed counts above the ``size``-th largest, and of those equal to it."""
    seen = np.flatnonzero(counts > 0)
    size = min(size, len(seen))
    if size == 0:
        return seen[:0], seen[:0]
    observed = counts[seen]
    least = np.partition(observed, len(observed) - size)[len(observed) - size]
    return seen[observed > least], seen[observed == least]


def _no_persons() -> InvalidParameter:
    return InvalidParameter(
        "real scores have no people to count; this mechanism needs integer counts"
    )


def as_array(counts: Any) -> NDArray[Any]:
    """A sequence as an array; whole numbers of any size stay exact.

    NumPy alone would turn -1 beside 2⁶³ into floats.
    """
    values = list(counts) if isinstance(counts, Iterable) else counts
    if isinstance(values, list) and values and all(hasattr(v, "__index__") for v in values):
        return _integers(values)
    return np.asarray(values)


def _integers(values: list[Any]) -> NDArray[Any]:
    """Counts as int64 where they fit, else as Python integers."""
    if any(isinstance(value, float) or not hasattr(value, "__index__") for value in values):
        raise InvalidParameter("counts must be whole numbers; for real scores use from_counts")
    plain = [value.__index__() for value in values]
    if all(-_INT64 < value < _INT64 for value in plain):
        return np.array(plain, dtype=np.int64)
    return np.array(plain, dtype=object)
