"""The option -k: a whole number or "auto"."""

from __future__ import annotations

from typing import Literal

from topsecret.errors import InvalidParameter


def length(text: str) -> int | Literal["auto"]:
    """The number that was typed, or "auto".

    >>> length("10"), length("auto")
    (10, 'auto')
    """
    if text == "auto":
        return "auto"
    try:
        return int(text)
    except ValueError:
        raise InvalidParameter(f"k={text!r} must be a whole number or auto; write -k 10") from None
