"""The guarantee of an answer in words.

>>> without_or_with(1.0, 0.0)
'epsilon = 1, without a delta'
"""

from __future__ import annotations

import math
from fractions import Fraction

from topsecret.exact.rounding import rounded_up

LIMITED = "the guarantee limits how much that can change the answer"


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
    failing = (
        f", except for a failure of probability at most {rounded_up(delta)} (delta), "
        f"1 in {_one_in(delta):,}"
        if delta
        else ""
    )
    return (
        f"{without_or_with(epsilon, delta)}: no one person makes any answer more than {factor} "
        f"times as likely, or as unlikely (e^epsilon){failing}. This is about privacy; it does "
        "not say how accurate the list is."
    )


def _one_in(delta: float) -> int:
    """The largest n of two digits and zeros with delta <= 1/n."""
    n = int(1 / Fraction(delta))
    return int(str(n)[:2].ljust(len(str(n)), "0"))


def order_in_words(ordered: bool, any_items: bool) -> str:
    """What the order of a list is worth, as sentences after the one about its end."""
    if not ordered:
        return " Its order means nothing."
    noisy = "Noise took part in the choice: where items are nearly level, the wrong one may come"
    return f" {noisy} first or be listed at all." if any_items else ""
