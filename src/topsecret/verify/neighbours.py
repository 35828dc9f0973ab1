"""All small histograms, and all pairs of them that one person can turn into each other.

>>> cube = Cube(items=2, max_count=1)
>>> cube.counts().tolist()
[[0, 0], [0, 1], [1, 0], [1, 1]]
>>> first, second = neighbours(cube, Neighbourhood(max_items=1))
>>> sorted(zip(first.tolist(), second.tolist()))
[(0, 1), (0, 2), (1, 0), (1, 3), (2, 0), (2, 3), (3, 1), (3, 2)]
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from string import ascii_lowercase

import numpy as np
from numpy.typing import NDArray

from topsecret.errors import InvalidParameter, TooLarge

Indices = NDArray[np.int64]

_MOST_HISTOGRAMS = 100_000


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What one person can change: the relation under which a mechanism makes its claim."""

    adjacency: str = "add-remove"
    """``"add-remove"``: one person more or less. ``"replace"``: one person's items change."""
    max_items: int | None = None
    """How many items one person may touch; ``None`` is no limit."""
    sensitivity: int = 1
    """How far one person may move one score; 1 for counts of people."""

    def __post_init__(self) -> None:
        if self.adjacency not in ("add-remove", "replace"):
            raise InvalidParameter(
                f"adjacency={self.adjacency!r} must be 'add-remove' or 'replace'"
            )

    def steps(self, items: int) -> list[tuple[int, ...]]:
        """Every change of the counts that one person can make, in both directions.

        A person who is replaced takes their old items away and brings their new ones, so at most
        ``max_items`` counts fall and at most ``max_items`` rise. (Items in both sets do not
        move.) Any such change happens to any histogram whose falling counts are at least 1:
        one person has exactly the falling items, everybody else has one item each.

        >>> len(Neighbourhood().steps(items=4))
        30
        >>> len(Neighbourhood(adjacency="replace").steps(items=4))
        80
        >>> len(Neighbourhood(adjacency="replace", max_items=1).steps(items=4))
        20
        """
        limit = items if self.max_items is None else self.max_items
        moves = range(-self.sensitivity, self.sensitivity + 1)
        steps = []
        for step in product(moves, repeat=items):
            rising = sum(move > 0 for move in step)
            falling = sum(move < 0 for move in step)
            one_way = rising == 0 or falling == 0
            if not any(step) or max(rising, falling) > limit:
                continue
            if one_way or self.adjacency == "replace":
                steps.append(step)
        return steps


@dataclass(frozen=True, slots=True)
class Cube:
    """All histograms over ``items`` items with counts from 0 to ``max_count``."""

    items: int
    max_count: int

    def __post_init__(self) -> None:
        if self.items < 1 or self.max_count < 1:
            raise InvalidParameter(
                f"items={self.items} and max_count={self.max_count} must both be at least 1"
            )
        if len(self) > _MOST_HISTOGRAMS:
            raise TooLarge(
                f"{self.items} items with counts up to {self.max_count} are {len(self):,} "
                f"histograms; at most {_MOST_HISTOGRAMS:,} are enumerated: lower one of them"
            )

    def __len__(self) -> int:
        return int((self.max_count + 1) ** self.items)

    @property
    def names(self) -> tuple[str, ...]:
        """The items' names, in the canonical order that breaks ties."""
        return tuple(ascii_lowercase[: self.items])

    def counts(self) -> Indices:
        """One row per histogram; the row's index is its counts read as a number."""
        axes = np.indices((self.max_count + 1,) * self.items)
        return axes.reshape(self.items, -1).T.astype(np.int64)


def neighbours(cube: Cube, neighbourhood: Neighbourhood) -> tuple[Indices, Indices]:
    """All ordered pairs of neighbouring histograms of the cube, as two arrays of indices."""
    counts = cube.counts()
    radix = (cube.max_count + 1) ** np.arange(cube.items - 1, -1, -1, dtype=np.int64)
    first: list[Indices] = []
    second: list[Indices] = []
    for step in neighbourhood.steps(cube.items):
        moved = counts + np.array(step, dtype=np.int64)
        inside = np.flatnonzero(((moved >= 0) & (moved <= cube.max_count)).all(axis=1))
        first.append(inside)
        second.append(moved[inside] @ radix)
    nobody = np.zeros(0, dtype=np.int64)
    return np.concatenate([nobody, *first]), np.concatenate([nobody, *second])
