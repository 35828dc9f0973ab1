"""What SQLite needs beside its SQL: functions, and text that may not be text.

SQLite keeps any bytes as text. Python's driver fails on those that are not UTF-8, so that one
row could make a query fail; here every text has a name, and no two have the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from topsecret.errors import DataIndependentFailure

ENCODING = "UTF-8"

MARK = "\ufffd\\x"
"""In front of the hexadecimal digits of bytes that are not UTF-8."""


def wrong_encoding(encoding: str) -> str:
    """Why a database whose text is not UTF-8 is refused."""
    # Text would be neither equal nor in the order of code points, as everywhere else.
    return (
        f"the SQLite database is encoded in {encoding}; copy it into one with UTF-8 "
        "(sqlite3 old.db .dump | sqlite3 new.db)"
    )


def check_file(path: str | None) -> None:
    """The database is there: SQLite would make an empty one under a mistyped name."""
    if path and path != ":memory:" and not path.startswith("file:") and not Path(path).is_file():
        raise DataIndependentFailure(f"there is no SQLite database {path}; check the path")


def give_functions(raw: Any) -> None:
    """Give a driver's connection the functions that the statements use."""
    raw.create_function("topsecret_md5", 1, _md5, deterministic=True)
    # Its own text of a float has 15 digits, which merges some.
    raw.create_function("topsecret_float_hex", 1, float.hex, deterministic=True)
    # Its own functions know the letters from A to Z alone.
    raw.create_function("topsecret_lower", 1, _lower, deterministic=True)
    raw.create_function("topsecret_upper", 1, _upper, deterministic=True)


@contextmanager
def reading(raw: Any) -> Iterator[None]:
    """While this lasts, text comes back under its name."""
    usual = raw.text_factory
    raw.text_factory = name_of
    try:
        yield
    finally:
        raw.text_factory = usual


@contextmanager
def within(raw: Any, seconds: float) -> Iterator[None]:
    """While this lasts, statements fail that have not ended after so many seconds."""
    deadline = monotonic() + seconds
    raw.set_progress_handler(lambda: monotonic() > deadline, 10_000)
    try:
        yield
    finally:
        raw.set_progress_handler(None, 0)


def name_of(text: bytes) -> str:
    """The text itself, or one that no other bytes have.

    >>> name_of("café".encode()), name_of(b"caf\\xe9")
    ('café', '�\\\\x636166e9')
    """
    try:
        name = text.decode()
    except ValueError:
        return MARK + text.hex()
    return MARK + text.hex() if name.startswith(MARK) else name


def _md5(text: bytes | None) -> str | None:
    return None if text is None else hashlib.md5(text, usedforsecurity=False).hexdigest()


def _lower(text: bytes | None) -> str | None:
    """Letter by letter, as engines do: one that would become several stays.

    >>> _lower("ÀΣİ".encode()), _upper("éß".encode())
    ('àσİ', 'Éß')
    """
    return None if text is None else _lettered(name_of(text), str.lower)


def _upper(text: bytes | None) -> str | None:
    return None if text is None else _lettered(name_of(text), str.upper)


def _lettered(text: str, change: Callable[[str], str]) -> str:
    return "".join(other if len(other := change(letter)) == 1 else letter for letter in text)
