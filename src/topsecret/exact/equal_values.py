"""One text for values that are equal, whatever their types: by it a person is known.

Who is known by two texts is two people, counted twice or taught to two teachers. ``repr`` is not
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
import ipaddress
import uuid
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np

DEEPEST = 9
"""How deep tuples within tuples are looked into: Python's own limit may be another elsewhere."""
LONGEST = 10_000
"""Digits, before and behind the point, of numbers that are compared: no float has so many.
Longer ones have no text here."""
MICROSECOND = datetime.timedelta(microseconds=1)
EPOCH = datetime.datetime(1970, 1, 1)
BELOW_MICROSECONDS = ("ns", "ps", "fs", "as")
WRITTEN_ALIKE = (
    uuid.UUID,
    ipaddress.IPv4Interface,
    ipaddress.IPv4Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Interface,
    ipaddress.IPv6Address,
    ipaddress.IPv6Network,
)
"""Types whose equals, those of types made from them included, are written alike.

An interface is an address, too, whose text would leave out its network.
"""


def equal_text(value: Any) -> str | None:
    """The text that a value shares with its equals; None for what has no text of its own.

    What equals one value equals the others, too: a day is the moment at which it begins, because
    NumPy's days equal both. Of a type that is not known here its own text (``__str__``) is taken,
    which must be the same for equals.
    """
    try:
        return _known(value)
    except Exception:  # a NaN that signals, a moment or number beyond bounds, an object's own code
        return None


def _known(value: Any, depth: int = 0) -> str | None:
    if isinstance(value, str):
        return f"text:{str.__str__(value)}"  # of an enumeration, too, what it is equal to
    if isinstance(value, tuple | list | frozenset | set):
        return _known_parts(value, depth + 1) if depth < DEEPEST else None
    if value is None:
        return "none:"
    if isinstance(value, bytes | bytearray | memoryview):
        as_bytes = not isinstance(value, memoryview) or value.format == "B"
        return f"bytes:{bytes(value).hex()}" if as_bytes else None
    time = _known_time(value)
    if time is not None:
        return time
    number = _known_number(value)
    if number is not None:
        return number
    for known in WRITTEN_ALIKE:
        if isinstance(value, known):
            return f"{known.__name__}:{known.__str__(value)}"
    kind: Any = type(value)
    if isinstance(value, Enum):
        # A flag that is none of those with a name is known by its number.
        name = f"={_known(value.value)}" if value.name is None else f".{value.name}"
        return f"enumeration:{kind.__module__}.{kind.__qualname__}{name}"
    if kind.__str__ is object.__str__ or kind.__module__ in ("builtins", "numpy"):
        return None  # it may write an address, or equal dictionaries in two orders
    return f"{kind.__module__}.{kind.__qualname__}:{value!s}"


def _known_parts(value: Any, depth: int) -> str | None:
    parts = [_known(one, depth) for one in value]
    known = [f"{len(one)},{one}" for one in parts if one is not None]
    if len(known) < len(value):
        return None
    if isinstance(value, frozenset | set):
        return f"set:{''.join(sorted(known))}"
    return f"{'tuple' if isinstance(value, tuple) else 'list'}:{''.join(known)}"


def _known_time(value: Any) -> str | None:
    """One text for equal moments, durations and times of a day of whatever type and zone."""
    if isinstance(value, datetime.datetime):
        offset = value.replace(fold=0).utcoffset()  # equal in one zone, whatever the fold
        kind = "datetime" if offset is None else "moment"
        since = value.replace(tzinfo=None) - EPOCH - (offset or datetime.timedelta())
        return f"{kind}:{since // MICROSECOND},{getattr(value, 'nanosecond', 0)}"
    if isinstance(value, datetime.date):
        return f"datetime:{(value - EPOCH.date()) // MICROSECOND},0"
    if isinstance(value, datetime.timedelta):
        return f"timedelta:{value // MICROSECOND},{getattr(value, 'nanoseconds', 0)}"
    if isinstance(value, datetime.time):
        offset = value.utcoffset()
        since = datetime.datetime.combine(EPOCH, value.replace(tzinfo=None)) - EPOCH
        zone = "" if offset is None else " in a zone"
        return f"time{zone}:{(since - (offset or datetime.timedelta())) // MICROSECOND}"
    if isinstance(value, np.datetime64 | np.timedelta64):
        unit, _ = np.datetime_data(value.dtype)
        kind = "datetime" if isinstance(value, np.datetime64) else "timedelta"
        if kind == "timedelta" and unit == "generic":
            return _known_number(value.astype("i8"))
        if kind == "timedelta" and unit in ("Y", "M"):
            return f"months:{_in_units(value, 'M')}"
        if unit in BELOW_MICROSECONDS:
            return "{}:{},{}".format(kind, *divmod(_in_units(value, "ns"), 1000))
        return f"{kind}:{_in_units(value, 'us')},0"
    return None


def _in_units(value: Any, unit: str) -> int:
    """How many of these units it is; one that is no whole number of them, or too many, raises.

    NumPy begins anew beyond 64 bits, at a moment that may be another's.
    """
    exact = value.astype(f"{value.dtype.kind}8[{unit}]")
    if exact.astype(value.dtype) != value:
        raise OverflowError
    return int(exact.astype("i8"))


def _known_number(value: Any) -> str | None:
    """One text for equal numbers of whatever type; None for what is no number.

    One that is too long raises: its own text would not be that of its equals.
    """
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    if isinstance(value, complex | np.complexfloating):
        real, imaginary = _known_number(value.real), _known_number(value.imag)
        return real if imaginary == "number:0/1" else f"complex:{real} {imaginary}"
    if not isinstance(value, int | float | Decimal | Fraction | np.floating):
        return None
    if isinstance(value, Decimal):
        finite = value.is_finite()
    else:
        finite = not isinstance(value, float | np.floating) or bool(np.isfinite(value))
    if not finite:
        return f"float:{float(value)!r}"
    if isinstance(value, Decimal) and value and not -LONGEST < value.adjusted() < LONGEST:
        raise OverflowError
    numerator, denominator = value.as_integer_ratio()
    if max(abs(numerator), denominator) >= 10**LONGEST:
        raise OverflowError
    return f"number:{numerator:x}/{denominator:x}"
