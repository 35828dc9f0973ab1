"""Scores at several bounds on one person, of which a mechanism takes one.

>>> rows = {"ada": {"tea": 7}, "bob": {"tea": 1, "jam": 2}}
>>> amounts = AmountsOfPersons(rows, (1, 5), None)
>>> amounts.beyond(1), amounts.at(1).ranked(2)
([4], [('tea', 6), ('jam', 2)])
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol

from topsecret.counts.engine_table import CountedDomain, GroupedTable
from topsecret.counts.tables import NamedTable, RankedTable, Table
from topsecret.errors import InvalidParameter
from topsecret.noise.bits import BitSource
from topsecret.noise.screening import ScoreGroups

Item = Hashable


class ScoresByBound(Protocol):
    """The scores of all items at each of several bounds. Secret."""

    @property
    def bounds(self) -> tuple[int, ...]:
        """The bounds, rising. Public."""
        ...

    @property
    def domain_size(self) -> int | None:
        """How many items the public domain has; None where it is not known. Public."""
        ...

    def beyond(self, rank: int) -> list[int]:
        """For each bound but the last: what people add between it and the next one, to the item
        that has the ``rank``-th most of that."""
        ...

    def at(self, place: int) -> Table:
        """The scores at one of the bounds."""
        ...


class AmountsOfPersons:
    """What each person adds to each item, in memory."""

    def __init__(
        self,
        amounts: Mapping[Any, Mapping[Any, int]],
        bounds: tuple[int, ...],
        domain: Sequence[Any] | None,
    ) -> None:
        self._amounts = amounts
        self._domain = domain
        self.bounds = bounds

    @property
    def domain_size(self) -> int | None:
        """Public."""
        return None if self._domain is None else len(self._domain)

    def beyond(self, rank: int) -> list[int]:
        """See ``ScoresByBound``."""
        found = []
        for low, high in zip(self.bounds[:-1], self.bounds[1:], strict=True):
            above, below = self._scores(high), self._scores(low)
            added = sorted((above[item] - below[item] for item in above), reverse=True)
            found.append(added[rank - 1] if len(added) >= rank else 0)
        return found

    def at(self, place: int) -> Table:
        """See ``ScoresByBound``."""
        return NamedTable.of(self._scores(self.bounds[place]), self._domain)

    def _scores(self, bound: int) -> dict[Any, int]:
        scores: dict[Any, int] = {}
        for items in self._amounts.values():
            for item, amount in items.items():
                if amount > 0 and (self._domain is None or item in self._domain):
                    scores[item] = scores.get(item, 0) + min(amount, bound)
        return scores


class EngineScores(Protocol):
    """What an engine tells about scores at several bounds."""

    @property
    def size(self) -> int | None:
        """How many items the public domain has; None where it is not known. Public."""
        ...

    def beyond(self, rank: int) -> list[int]:
        """See ``ScoresByBound``."""
        ...

    def at(self, place: int) -> CountedDomain:
        """The scores at one of the bounds."""
        ...


class ScoresKeptByEngine:
    """Scores by bound that an engine keeps; the leading ones of an unknown domain are read."""

    def __init__(self, scores: EngineScores, bounds: tuple[int, ...], rows: int) -> None:
        self._scores = scores
        self._rows = rows
        self.bounds = bounds

    @property
    def domain_size(self) -> int | None:
        """Public."""
        return self._scores.size

    def beyond(self, rank: int) -> list[int]:
        """See ``ScoresByBound``."""
        return self._scores.beyond(rank)

    def at(self, place: int) -> Table:
        """See ``ScoresByBound``."""
        counted = self._scores.at(place)
        if self.domain_size is not None:
            return GroupedTable(counted)
        return RankedTable.of(counted.leading(self._rows), self._rows)


class UnboundedTable:
    """Where the counts of a histogram would be: there are none until a bound is chosen."""

    def __init__(self, scores: ScoresByBound) -> None:
        self.scores_by_bound = scores

    @property
    def domain_size(self) -> int | None:
        """Public."""
        return self.scores_by_bound.domain_size

    def field(self) -> ScoreGroups:
        """Never."""
        raise _no_bound()

    def names(self, groups: Sequence[int], bits: BitSource) -> tuple[Item, ...]:
        """Never."""
        raise _no_bound()

    def ranked(self, size: int) -> list[tuple[Item, int]]:
        """Never."""
        raise _no_bound()

    def scores(self) -> list[tuple[Item, Fraction]]:
        """Never."""
        raise _no_bound()

    def counts_of(self, items: Sequence[Item]) -> list[int]:
        """Never."""
        raise _no_bound()


def _no_bound() -> InvalidParameter:
    return InvalidParameter(
        "the histogram has scores at several bounds; use a mechanism that chooses one, or pass "
        "one bound"
    )
