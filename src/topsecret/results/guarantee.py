"""The guarantee of an answer in words.

>>> without_or_with(1.0, 0.0)
'epsilon = 1, without a delta'
"""

from __future__ import annotations

import math

from topsecret.exact.rounding import rounded_up


def without_or_with(epsilon: float, delta: float) -> str:
    """The two numbers of a guarantee in words; one where there is no delta."""
    if delta == 0:
        return f"epsilon = {rounded_up(epsilon)}, without a delta"
    return f"epsilon = {rounded_up(epsilon)} and delta = {rounded_up(delta)}"


def guarantee(epsilon: float, delta: float) -> str:
    """What the two numbers mean for one person."""
    factor = (
        rounded_up(math.nextafter(math.exp(epsilon), math.inf), 3) if epsilon < 20 else "e^epsilon"
    )
    failing = f", except for a failure of probability at most {rounded_up(delta)} (delta)"
    return (
        f"{without_or_with(epsilon, delta)}: with one person more "
        f"or less, no answer becomes more than {factor} times as likely (e^epsilon)"
        f"{failing if delta else ''}."
    )
