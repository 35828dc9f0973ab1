"""The option -k: a whole number, "auto" or "all"."""

from __future__ import annotations

from typing import Literal

from topsecret.errors import InvalidParameter


def length(text: str) -> int | Literal["auto", "all"]:
    """The number that was typed, or "auto" or "all".

    >>> length("10"), length("auto"), length("all")
    (10, 'auto', 'all')
    """
    if text == "auto":
        return "auto"
    if text == "all":
        return "all"
    try:
        return int(text)
    except ValueError:
        raise InvalidParameter(
            f"k={text!r} must be a whole number, auto or all; write -k 10"
        ) from None
