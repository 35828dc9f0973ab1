"""Prices of `TestedTopK` for common budgets, found beforehand: the search takes seconds.

``python -m experiments.tested_table`` writes the table. A price that is too high would cost more
than the budget, and the loss, which is always computed from the prices themselves, would say so:
a test and ``make soak`` hold the entries against their budgets.
"""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from importlib.resources import files


def known_prices(k: int, epsilon: Fraction, delta: Fraction) -> tuple[float, ...] | None:
    """The price of each length, longest first; None where the table has no such budget.

    >>> known_prices(10, Fraction(1.0), Fraction(1e-6)) is not None
    True
    """
    return _table().get((k, epsilon, delta))


@cache
def _table() -> dict[tuple[int, Fraction, Fraction], tuple[float, ...]]:
    text = files("topsecret.mechanisms").joinpath("tested_table.json").read_text("utf-8")
    return {
        (k, Fraction(epsilon), Fraction(delta)): tuple(prices)
        for k, epsilon, delta, prices in json.loads(text)
    }
