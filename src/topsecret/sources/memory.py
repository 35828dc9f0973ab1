"""How much memory the embedded engine may use: checked before anything is paid or read.

>>> size("500MB"), size("2 GiB")
('500MB', '2 GiB')
"""

from __future__ import annotations

import os
import re
from fractions import Fraction

from topsecret.errors import InvalidParameter

VARIABLE = "TOPSECRET_MEMORY"
LEAST, MOST = 16 * 10**6, 10**15
"""Bytes. With less, DuckDB cannot even begin; more, it cannot count."""

_SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?([KMGT])(i?)B", re.IGNORECASE)


def memory() -> str | None:
    """The size that TOPSECRET_MEMORY names, or None where it names none."""
    named = os.environ.get(VARIABLE, "").strip()
    return size(named) if named else None


def size(named: str) -> str:
    """The size as it was named, once it is one that an engine can keep to."""
    found = _SIZE.fullmatch(named) if named.isascii() else None
    if found is None:
        raise InvalidParameter(f"{VARIABLE} must be a size such as 500MB or 2GB")
    power = "KMGT".index(found[2].upper()) + 1
    bytes_ = Fraction(found[1]) * (1024 if found[3] else 1000) ** power
    if bytes_ < LEAST:
        raise InvalidParameter(f"{VARIABLE} must be a size such as 500MB or 2GB, at least 16MB")
    if bytes_ > MOST:
        raise InvalidParameter(f"{VARIABLE} must be a size such as 500MB or 2GB, at most 1000TB")
    return named
