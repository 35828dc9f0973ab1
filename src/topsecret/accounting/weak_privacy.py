"""When a guarantee is so weak that whoever asks should know it.

Everything that takes a budget from a user calls ``check_strength``: it refuses what protects nobody
and warns of what protects little. The receipt says it again.

>>> weakness(1, 1e-6) is None
True
>>> print(weakness(12, 1e-6))
epsilon = 12 is above 10: one person may make an answer more than 22,026 times as likely
>>> print(weakness(1, 0.01))
delta = 0.01 is above 0.001: that would allow publishing all rows of one in every 100 people
"""

from __future__ import annotations

import math
import sys
import warnings

from topsecret.errors import InvalidParameter, WeakPrivacy
from topsecret.exact.rounding import Number, exact, rounded_up, up

LARGEST_EPSILON = 10.0
"""e^10 is 22,026: beyond, an answer may as good as tell who is in the data."""

LARGEST_DELTA = 1e-3

VOID_DELTA = 0.1
"""From here on no guarantee is given at all: publishing the rows of a tenth of the people would
be allowed."""


def refuse_void(delta: Number) -> None:
    """Refuse a delta with which the guarantee means nothing."""
    if exact(delta, "delta") >= exact(VOID_DELTA):
        raise InvalidParameter(
            f"delta={delta} must be below {VOID_DELTA}: one that allows publishing the rows of "
            "every tenth person protects nobody; 1e-6 is the default, well below one over the "
            "number of people"
        )


def is_strong(epsilon: Number, delta: Number) -> bool:
    """Whether (ε, δ) is usual: nothing is to be said of it."""
    return epsilon <= LARGEST_EPSILON and delta <= LARGEST_DELTA


def check_strength(epsilon: Number, delta: Number) -> None:
    """Refuse a void delta; warn, at the caller's own line, of a weak (ε, δ)."""
    if is_strong(epsilon, delta):
        return
    refuse_void(delta)
    warn_if_weak(epsilon, delta)


def warn_if_weak(epsilon: Number, delta: Number) -> None:
    """Warn, at the caller's own line, of a weak (ε, δ), and refuse nothing."""
    weak = weakness(up(exact(epsilon, "epsilon")), up(exact(delta, "delta")))
    if weak is not None:
        warnings.warn(weak, WeakPrivacy, stacklevel=_depth_of_caller())


def _depth_of_caller() -> int:
    """How far up the first line outside of this package is."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("topsecret."):
        depth, frame = depth + 1, frame.f_back
    return depth


def weak_lines(epsilon: float, delta: float) -> tuple[tuple[str, str], ...]:
    """The line of a receipt about (ε, δ), where it is weak."""
    weak = weakness(epsilon, delta)
    return () if weak is None else (("Weak", f"{weak}."),)


def weak_sentence(epsilon: float, delta: float) -> str:
    """The same as a sentence that follows others, or nothing."""
    weak = weakness(epsilon, delta)
    return "" if weak is None else f" This is weak: {weak}."


def weakness(epsilon: float, delta: float) -> str | None:
    """What is weak about (ε, δ), in words; None for what is usual."""
    found = []
    if epsilon > LARGEST_EPSILON:
        found.append(
            f"epsilon = {rounded_up(epsilon)} is above 10: one person may make an answer more "
            "than 22,026 times as likely"
        )
    if delta > LARGEST_DELTA:
        found.append(
            f"delta = {rounded_up(delta)} is above 0.001: that would allow publishing all rows "
            f"of one in every {math.floor(1 / delta):,} people"
        )
    return "; ".join(found) or None
