"""The bounds that hold for a loss, side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction


def shown(value: float, digits: int = 6) -> str:
    """A number in short, rounded up: what is printed is never below what is proven.

    >>> shown(0.12345611), shown(math.inf)
    ('0.123457', 'inf')
    """
    if not math.isfinite(value):
        return str(value)
    short = Context(prec=digits, rounding=ROUND_CEILING).plus(Decimal(value))
    return f"{short.normalize():g}"


@dataclass(frozen=True, slots=True)
class Bound:
    """One provable epsilon, where it comes from, and its name."""

    name: str
    """Of the bound."""
    epsilon: float
    """What it proves, rounded up."""
    source: str
    """Where it is from."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Every bound that is valid for a sequence at one delta, the smallest first.

    >>> tight, loose = Bound("b", 1.0, "here"), Bound("a", 2.0, "there")
    >>> print(Explanation(Fraction(1, 1000), (loose, tight)))
    delta = 0.001
      bound  epsilon  source
    * b            1  here
      a            2  there
    """

    delta: Fraction
    """At which the bounds are compared."""
    bounds: tuple[Bound, ...]
    """Every bound that is valid for the loss."""

    def __post_init__(self) -> None:
        ranked = tuple(sorted(self.bounds, key=lambda bound: bound.epsilon))
        object.__setattr__(self, "bounds", ranked)

    @property
    def winner(self) -> Bound:
        """The bound with the smallest epsilon."""
        return self.bounds[0]

    @property
    def epsilon(self) -> float:
        """The smallest epsilon."""
        return self.winner.epsilon

    def __str__(self) -> str:
        rows = [("", "bound", "epsilon", "source")]
        for bound in self.bounds:
            mark = "*" if bound is self.winner else ""
            rows.append((mark, bound.name, shown(bound.epsilon), bound.source))
        name = max(len(row[1]) for row in rows)
        number = max(len(row[2]) for row in rows)
        lines = [
            f"{mark:1} {label:{name}}  {value:>{number}}  {source}"
            for mark, label, value, source in rows
        ]
        return "\n".join([f"delta = {float(self.delta):g}", *lines])
