"""A total order of items that does not depend on the data: it breaks ties.

Two items always stand in the same order, whatever other items were seen beside them.

>>> sorted(["b", 2, "a", 1.5], key=canonical_key)
[1.5, 2, 'a', 'b']
"""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Iterable
from typing import Any


def canonical_key(item: Hashable) -> tuple[str, Any]:
    """A sort key: the kind of the item, then its natural order, or its text where it has none."""
    if isinstance(item, str):
        return ("str", item)
    if isinstance(item, int | float):
        return ("number", item) if item == item else ("number that is none", 0)
    if isinstance(item, bytes):
        return ("bytes", item)
    if isinstance(item, tuple):
        return ("tuple", tuple(canonical_key(part) for part in item))
    if isinstance(item, frozenset):
        return ("frozenset", tuple(sorted(canonical_key(part) for part in item)))
    if type(item) is datetime.date:
        return ("date", item)
    return (type(item).__qualname__, repr(item))


def as_a_set(items: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """The items in canonical order: the order of an unordered answer carries nothing."""
    return tuple(sorted(items, key=canonical_key))
