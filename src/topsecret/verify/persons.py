"""All small sets of people, each with several items, and all pairs that differ in one person.

For mechanisms whose answer depends on how many items each person has: counts alone do not tell.

>>> sets = PersonSets(items=2, levels=(0, 1, 5))
>>> sets.persons(sets.index[(0, 1), (("a", "b"),)])
{'b 1': ('b',), 'a+b 1': ('a', 'b')}
>>> len(sets), len(sets.pairs("add-remove")[0])
(27, 72)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, combinations_with_replacement, product
from string import ascii_lowercase

import numpy as np

from topsecret.counts.histogram import Histogram
from topsecret.verify.neighbours import Indices, Neighbourhood

Several = tuple[tuple[str, ...], ...]
"""The people with several items: their items."""
Counting = Callable[[Mapping[str, Sequence[str]], Sequence[str] | None], Histogram]
"""How a mechanism has people counted: their items by person, and the public domain if any."""

_MOST_ITEMS = 3
_SEVERAL = 2


@dataclass(frozen=True)
class PersonSets:
    """For each item a number of people who have it alone, and up to two who have several."""

    items: int
    """How many items there are."""
    levels: tuple[int, ...]
    """How many people may have an item alone: small numbers, and one that hides a person."""

    @property
    def names(self) -> tuple[str, ...]:
        """The items' names."""
        return tuple(ascii_lowercase[: self.items])

    @cached_property
    def all(self) -> list[tuple[tuple[int, ...], Several]]:
        """Every set of people."""
        groups = [c for n in range(2, self.items + 1) for c in combinations(self.names, n)]
        several = chain.from_iterable(
            combinations_with_replacement(groups, n) for n in range(_SEVERAL + 1)
        )
        return list(product(product(self.levels, repeat=self.items), list(several)))

    @cached_property
    def index(self) -> dict[tuple[tuple[int, ...], Several], int]:
        """The place of each."""
        return {one: place for place, one in enumerate(self.all)}

    def __len__(self) -> int:
        return len(self.all)

    def persons(self, index: int) -> dict[str, tuple[str, ...]]:
        """Everybody's items, those with one item first. Nobody's name depends on the others."""
        alone, several = self.all[index]
        everybody = [(name,) for name, n in zip(self.names, alone, strict=True) for _ in range(n)]
        named: dict[str, tuple[str, ...]] = {}
        for items in (*everybody, *several):
            number = 1 + sum(items == other for other in named.values())
            named[f"{'+'.join(items)} {number}"] = items
        return named

    def pairs(self, adjacency: str) -> tuple[Indices, Indices]:
        """All ordered pairs that differ in one person: one more or less, or other items."""
        persons = [c for n in range(1, self.items + 1) for c in combinations(self.names, n)]
        found: set[tuple[int, int]] = set()
        for place in range(len(self)):
            bigger = [i for i in (self._with(place, person) for person in persons) if i is not None]
            for other in bigger:
                found |= {(place, other), (other, place)}
            if adjacency == "replace":
                found |= {(one, other) for one in bigger for other in bigger if one != other}
        first, second = zip(*sorted(found), strict=True)
        return np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)

    def _with(self, place: int, person: tuple[str, ...]) -> int | None:
        alone, several = self.all[place]
        if len(person) == 1:
            column = self.names.index(person[0])
            alone = (*alone[:column], alone[column] + 1, *alone[column + 1 :])
        else:
            several = tuple(sorted((*several, person), key=lambda one: (len(one), one)))
        return self.index.get((alone, several))


@dataclass(frozen=True)
class PersonFamily:
    """All sets of people, as a mechanism has them counted."""

    sets: PersonSets
    counted: Counting
    public: bool

    def __len__(self) -> int:
        return len(self.sets)

    def histogram(self, index: int) -> Histogram:
        """What the mechanism sees of this set."""
        return self.counted(self.sets.persons(index), self.sets.names if self.public else None)

    def show(self, index: int) -> dict[str, int]:
        """How many people have which items."""
        alone, several = self.sets.all[index]
        shown = dict(zip(self.sets.names, alone, strict=True))
        for items in several:
            shown["+".join(items)] = shown.get("+".join(items), 0) + 1
        return shown

    def pairs(self, neighbourhood: Neighbourhood) -> tuple[Indices, Indices]:
        """All neighbours."""
        return self.sets.pairs(neighbourhood.adjacency)


def person_families(
    counted: Counting, public: bool, items: int, max_count: int, tall: int
) -> list[PersonFamily]:
    """The families that a check with at most ``items`` items runs over, as for counts."""
    levels = tuple(dict.fromkeys((0, 1, min(2, max_count), max_count)))
    sizes = range(1 if public else min(items, _MOST_ITEMS), min(items, _MOST_ITEMS) + 1)
    sets = [PersonSets(size, levels) for size in sizes]
    sets.append(PersonSets(min(2, items), (*range(0, tall + 1, 4), tall + 1)))
    return [PersonFamily(one, counted, public) for one in sets]
