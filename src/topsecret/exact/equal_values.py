"""One text for values that are equal, whatever their types: by it a person is known.

Who is known by two texts is two persons, counted twice or taught to two teachers. ``repr`` is not
enough: equal decimals, moments and bytes have several, and an object without a text of its own
writes its address.

>>> equal_text(1) == equal_text(True) == equal_text(Decimal("1.00"))
True
>>> equal_text(1) == equal_text("1")
False
>>> equal_text(object()) is None
True
"""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

DEEPEST = 9
"""How deep tuples within tuples are looked into: Python's own limit may be another elsewhere."""
RESOLUTION = datetime.timedelta(microseconds=1)
LONGEST = 400
"""Digits of whole numbers that are compared with those of other types: no float has more."""


def equal_text(value: Any) -> str | None:
    """The text that a value shares with its equals alone; None for what has none of its own."""
    try:
        return _known(value)
    except Exception:  # a signalling NaN, an object's own code
        return None


def _known(value: Any, depth: int = 0) -> str | None:
    if isinstance(value, str):
        return f"text:{str.__str__(value)}"  # of an enumeration, too, what it is equal to
    if isinstance(value, tuple | frozenset):
        if depth == DEEPEST:
            return None
        parts = [_known(one, depth + 1) for one in value]
        known = [f"{len(one)},{one}" for one in parts if one is not None]
        if len(known) < len(value):
            return None
        ordered = known if isinstance(value, tuple) else sorted(known)
        return f"{'tuple' if isinstance(value, tuple) else 'frozenset'}:{''.join(ordered)}"
    if value is None:
        return "none:"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"bytes:{bytes(value).hex()}"
    if isinstance(value, datetime.datetime):  # the same moment in two zones is equal
        in_utc = value.astimezone(datetime.UTC) if value.tzinfo else value
        return f"datetime:{in_utc.isoformat()}"
    if isinstance(value, datetime.timedelta):
        return f"timedelta:{value // RESOLUTION},{getattr(value, 'nanoseconds', 0)}"
    kind: Any = type(value)
    number = _known_number(value)
    if number is not None or kind.__str__ is object.__str__:
        return number
    return f"{kind.__name__}:{value!s}"


def _known_number(value: Any) -> str | None:
    """One text for equal numbers of whatever type; None for what is no number."""
    if isinstance(value, np.number | np.bool_) and not isinstance(value, np.timedelta64):
        value = value.item()
    if not isinstance(value, int | float | Decimal | Fraction):
        return None
    if not value:
        return "int:0"
    finite = not isinstance(value, float | Decimal) or math.isfinite(value)
    small = not isinstance(value, Decimal) or value.adjusted() < LONGEST
    if finite and small and value == (whole := int(value)):
        # Python writes no decimal digits of numbers beyond some thousand of them.
        return f"int:{whole}" if abs(whole) < 10**LONGEST else f"int:{whole:x} (hexadecimal)"
    if value == (close := float(value)):
        return f"float:{close!r}"
    if isinstance(value, Decimal):  # 0.1 and 0.10 are equal
        sign, digits, exponent = value.as_tuple()
        shown = "".join(map(str, digits)).rstrip("0")
        return f"Decimal:{sign},{shown},{int(exponent) + len(digits) - len(shown)}"
    return None
