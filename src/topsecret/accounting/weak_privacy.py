"""When a guarantee is so weak that whoever asks should know it.

>>> weakness(1, 1e-6) is None
True
>>> print(weakness(12, 1e-6))
epsilon = 12 is above 10: one person may make an answer more than 22,026 times as likely
>>> print(weakness(1, 0.01))
delta = 0.01 is above 0.001: the guarantee may fail altogether, for one in every 100 persons
"""

from __future__ import annotations

import math

from topsecret.exact.rounding import rounded_up

LARGEST_EPSILON = 10.0
"""e^10 is 22,026: beyond, an answer may as good as tell who is in the data."""

LARGEST_DELTA = 1e-3

VOID_DELTA = 0.1
"""From here on no guarantee is given at all: publishing the rows of a tenth of the persons would
be allowed."""


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
            f"delta = {rounded_up(delta)} is above 0.001: the guarantee may fail altogether, for "
            f"one in every {math.floor(1 / delta):,} persons"
        )
    return "; ".join(found) or None
