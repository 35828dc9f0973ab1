"""The rules that public parameters obey, each with an error that names the fix."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, get_args

from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, exact

Adjacency = Literal["add-remove", "replace"]

LARGEST_SENSITIVITY = 2**31
"""With it the sums of fewer than 2³² people stay below 2⁶³."""


def whole(value: int, name: str, at_least: int = 1) -> int:
    """A whole number that is large enough."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidParameter(f"{name}={value!r} must be a whole number, such as {at_least}")
    number = value.__index__()
    if number < at_least:
        raise InvalidParameter(f"{name}={number} must be at least {at_least}; raise {name}")
    return number


def positive(value: Number, name: str) -> Fraction:
    """A finite number above 0, exactly as given."""
    number = exact(value, name)
    if number <= 0:
        raise InvalidParameter(f"{name}={value} must be above 0; raise {name}")
    return number


def not_negative(value: Number, name: str) -> Fraction:
    """A finite number of at least 0, exactly as given."""
    number = exact(value, name)
    if number < 0:
        raise InvalidParameter(f"{name}={value} must be at least 0; raise {name}")
    return number


def probability(value: Number, name: str) -> Fraction:
    """A number strictly between 0 and 1, exactly as given."""
    number = exact(value, name)
    if not 0 < number < 1:
        raise InvalidParameter(f"{name}={value} must lie between 0 and 1, such as 1e-6")
    return number


def sensitivity(value: int) -> int:
    """The most that one person moves a score by, small enough for any sum of it in 64 bits."""
    number = whole(value, "sensitivity")
    if number > LARGEST_SENSITIVITY:
        raise InvalidParameter(
            f"sensitivity={number} must be at most {LARGEST_SENSITIVITY}; take a larger unit"
        )
    return number


def cap(value: int | None) -> int | None:
    """How many items one person may touch; None for no restriction."""
    return None if value is None else whole(value, "max_items")


def at_most(value: int, name: str, limit: int, limit_name: str) -> None:
    """One parameter bounds another."""
    if value > limit:
        raise InvalidParameter(
            f"{name}={value} must be at most {limit_name}={limit}; "
            f"raise {limit_name} or lower {name}"
        )


def one_of(value: str, name: str, known: Sequence[str]) -> None:
    """One of a few words."""
    if value not in known:
        choices = " or ".join(repr(word) for word in known)
        raise InvalidParameter(f"{name}={value!r} must be {choices}")


def adjacency(value: str) -> Adjacency:
    """Which datasets are neighbours: "add-remove" or "replace"."""
    for known in get_args(Adjacency):
        if value == known:
            return known  # type: ignore[no-any-return]  # get_args forgets the Literal
    raise InvalidParameter(f"adjacency={value!r} must be 'add-remove' or 'replace'")


def directions(relation: Adjacency) -> int:
    """s of docs/notation.md: 1 when all scores move one way between neighbours, else 2."""
    return 1 if relation == "add-remove" else 2
