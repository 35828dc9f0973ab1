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
import ipaddress
import math
import uuid
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np

DEEPEST = 9
"""How deep tuples within tuples are looked into: Python's own limit may be another elsewhere."""
LONGEST = 400
"""Digits of whole numbers that are compared with those of other types: no float has more."""
MICROSECOND = datetime.timedelta(microseconds=1)
EPOCH = datetime.datetime(1970, 1, 1)
BELOW_MICROSECONDS = ("ns", "ps", "fs", "as")
WRITTEN_ALIKE = (
    uuid.UUID,
    ipaddress.IPv4Address,
    ipaddress.IPv4Interface,
    ipaddress.IPv4Network,
    ipaddress.IPv6Address,
    ipaddress.IPv6Interface,
    ipaddress.IPv6Network,
    Fraction,
)
"""Types whose equals are written alike. Of a type that nobody looked at, this is not known."""


def equal_text(value: Any) -> str | None:
    """The text that a value shares with its equals alone; None for what has no known text."""
    try:
        return _known(value)
    except Exception:  # a signalling NaN, a moment beyond what is counted, an object's own code
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
    kind = type(value)
    if kind in WRITTEN_ALIKE:
        return f"{kind.__name__}:{value}"
    if isinstance(value, Enum):
        return f"enumeration:{kind.__module__}.{kind.__qualname__}.{value.name}"
    return None


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
        offset = value.utcoffset()
        kind = "datetime" if offset is None else "moment"
        since = value.replace(tzinfo=None) - EPOCH - (offset or datetime.timedelta())
        return f"{kind}:{since // MICROSECOND},{getattr(value, 'nanosecond', 0)}"
    if isinstance(value, datetime.date):
        return f"date:{value.isoformat()}"
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
        if kind == "timedelta" and unit in ("Y", "M"):
            return f"months:{value.astype('m8[M]').astype('i8')}"
        if unit in BELOW_MICROSECONDS:
            return "{}:{},{}".format(
                kind, *divmod(int(value.astype(f"{value.dtype.kind}8[ns]").astype("i8")), 1000)
            )
        return f"{kind}:{value.astype(f'{value.dtype.kind}8[us]').astype('i8')},0"
    return None


def _known_number(value: Any) -> str | None:
    """One text for equal numbers of whatever type; None for what is no number."""
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    if isinstance(value, complex | np.complexfloating):
        real, imaginary = _known_number(value.real), _known_number(value.imag)
        return real if imaginary == "int:0" else f"complex:{real} {imaginary}"
    if not isinstance(value, int | float | Decimal | Fraction | np.floating):
        return None
    if not value:
        return "int:0"
    finite = isinstance(value, int | Fraction) or math.isfinite(value)
    if not finite and math.isnan(value):
        return "float:nan"
    small = not isinstance(value, Decimal) or value.adjusted() < LONGEST
    if finite and small and value == (whole := int(value)):
        # Python writes no decimal digits of numbers beyond some thousand of them.
        return f"int:{whole}" if abs(whole) < 10**LONGEST else f"int:{whole:x} (hexadecimal)"
    if isinstance(value, Fraction) and abs(value) > 10**300:
        return None  # no float is equal; beyond its range there is none to compare with
    close = float(value)
    if value == close:
        return f"float:{close!r}"
    if isinstance(value, Decimal):  # 0.1 and 0.10 are equal
        sign, digits, exponent = value.as_tuple()
        shown = "".join(map(str, digits)).rstrip("0")
        return f"Decimal:{sign},{shown},{int(exponent) + len(digits) - len(shown)}"
    return None
