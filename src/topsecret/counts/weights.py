"""Weights: how much one person adds to each of their items, by how many items they have.

>>> share = Weights.share()
>>> [share.of(n) for n in (1, 3, 12, 100)]
[1024, 1024, 512, 177]
>>> weighted_sums({"ada": ["tea", "jam"], "bob": ["tea"]}, share)
{'tea': 2048, 'jam': 1024}

Weights are whole multiples of 1/1024 of a person, from a public table, so that sums are integers
and no order of adding them matters. A person with more items than ``most_items`` keeps those that
come first by a keyed hash of person and item: a function of their own items and the salt alone.

Guarantee: n items at weight w(n) have n·w(n)² at most ``squared_norm``, for every n, in integers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from topsecret.errors import InvalidParameter

UNIT = 1024
"""A whole person."""

FULL_ITEMS = 3
"""Up to this many items count in full with ``share``."""
MOST_ITEMS = 100
"""At most this many items of one person count with ``share``."""
LARGEST_TABLE = 10_000

Weighting = Literal["share", "cap"]


@dataclass(frozen=True)
class Weights:
    """A public table of weights. Make one with :meth:`share` or :meth:`cap`."""

    weighting: Weighting
    """How a person with many items counts: "share" or "cap"."""
    most_items: int
    """How many items of one person count: N."""
    full_items: int
    """A person with up to this many items adds 1 to each of them: D."""

    def __post_init__(self) -> None:
        if self.weighting not in ("share", "cap"):
            raise InvalidParameter(f"weighting={self.weighting!r} must be 'share' or 'cap'")
        if not 1 <= self.full_items <= self.most_items <= LARGEST_TABLE:
            raise InvalidParameter(
                f"full_items={self.full_items} and most_items={self.most_items} must rise from 1 "
                f"to at most {LARGEST_TABLE}"
            )
        if self.weighting == "cap" and self.full_items != self.most_items:
            raise InvalidParameter("a cap counts all kept items in full; full_items is most_items")

    @classmethod
    def share(cls, max_items: int | None = None) -> Weights:
        """Persons with n > 3 items add about √(3/n) to each; ``max_items`` lowers the cut of 100.

        >>> Weights.share(max_items=2).of(2)
        1024
        """
        most = MOST_ITEMS if max_items is None else min(MOST_ITEMS, max_items)
        return cls("share", most, min(FULL_ITEMS, most))

    @classmethod
    def cap(cls, max_items: int) -> Weights:
        """Every person adds 1 to each of at most ``max_items`` items.

        >>> Weights.cap(5).of(5)
        1024
        """
        return cls("cap", max_items, max_items)

    def of(self, items: int) -> int:
        """The weight of each item of a person who keeps this many, in 1/1024."""
        # isqrt rounds down: items·weight² ≤ full_items·UNIT² holds in integers.
        return math.isqrt(UNIT * UNIT * min(items, self.full_items) // items)

    @cached_property
    def table(self) -> tuple[int, ...]:
        """The weights for 1, 2, … ``most_items`` items, in 1/1024; never rising."""
        return tuple(self.of(n) for n in range(1, self.most_items + 1))

    @property
    def squared_norm(self) -> Fraction:
        """The largest n·w(n)², in persons²."""
        return Fraction(max(n * w * w for n, w in enumerate(self.table, 1)), UNIT * UNIT)


def weighted_sums(
    holdings: Mapping[Any, Collection[Hashable]], weights: Weights, salt: bytes = b""
) -> dict[Hashable, int]:
    """The sum of weights of each item, from each person's items. Secret."""
    sums: dict[Hashable, int] = {}
    for person, items in holdings.items():
        kept = kept_items(person, items, weights.most_items, salt)
        for item in kept:
            sums[item] = sums.get(item, 0) + weights.of(len(kept))
    return sums


def kept_items(
    person: object, items: Collection[Hashable], most: int, salt: bytes
) -> list[Hashable]:
    """The person's items, those of the least keyed hashes if there are more than ``most``."""
    distinct = list(dict.fromkeys(items))
    if len(distinct) <= most:
        return distinct
    return sorted(distinct, key=lambda item: (_digest(person, item, salt), str(item)))[:most]


def _digest(person: object, item: Hashable, salt: bytes) -> str:
    """The digest by which engines number a person's items; lengths make the message one-to-one."""
    parts = item if isinstance(item, tuple) else (item,)
    message = salt.hex() + "".join(f"{len(str(p))}:{p}" for p in (person, *parts))
    return hashlib.md5(message.encode(), usedforsecurity=False).hexdigest()
