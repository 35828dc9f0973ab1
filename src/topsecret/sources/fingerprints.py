"""What tells one question, or one source, from another, in values that last.

A ledger recognises a question that was paid for by its fingerprint. Every part of a question has
one, made of plain JSON values that are named here one by one: a later version that adds a field
must leave the fingerprints of the questions that were possible before as they are, which
``tests/golden`` checks. ``repr()`` is no fingerprint: it changes with the code.

>>> plain(("a", 1, None))
['a', 1, None]
>>> import datetime
>>> plain(datetime.date(2026, 1, 31))
{'date': '2026-01-31'}
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

Fingerprint = dict[str, Any]
"""Plain values that JSON can hold. Public: it holds no password and nothing of the rows."""


def plain(value: Any) -> Any:
    """A value of a condition or of a domain, with its type where JSON has none for it."""
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return {type(value).__name__: str(value)}


def digest(values: Any) -> str:
    """A short text that no other values have."""
    text = json.dumps(plain(values), separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
