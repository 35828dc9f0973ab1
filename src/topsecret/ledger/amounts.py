"""Amounts of a budget's resources: exact fractions under names, compared without tolerance.

>>> from fractions import Fraction
>>> left = minus({"picks": Fraction(50), "queries": Fraction(10)}, {"picks": Fraction(13)})
>>> as_text(left)
{'picks': '37', 'queries': '10'}
>>> shortages({"picks": Fraction(38), "queries": Fraction(1)}, left)
('picks',)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

Amounts = Mapping[str, Fraction]
"""How much of each resource: picks and queries of a metered budget; rho, delta and slack of a
flexible one. A resource that is not named is 0."""

_GRID = 1 << 256

NOTHING_SPENT: Amounts = {}


def on_grid(value: Fraction) -> Fraction:
    """The value rounded up to a multiple of 2⁻²⁵⁶: sums stay short however many are added.

    >>> on_grid(Fraction(1, 3)) > Fraction(1, 3), on_grid(Fraction(3, 8))
    (True, Fraction(3, 8))
    """
    return Fraction(-(-value.numerator * _GRID // value.denominator), _GRID)


def plus(one: Amounts, other: Amounts) -> Amounts:
    """The sum, resource by resource."""
    return {**one, **{n: value + one[n] if n in one else value for n, value in other.items()}}


def minus(one: Amounts, other: Amounts) -> Amounts:
    """The difference, resource by resource."""
    return plus(one, {name: -value for name, value in other.items()})


def least(one: Amounts, other: Amounts) -> Amounts:
    """The smaller amount of each resource; what one of them does not name is 0 there.

    >>> least({"picks": Fraction(20), "queries": Fraction(3)}, {"queries": Fraction(5)})
    {'picks': Fraction(0, 1), 'queries': Fraction(3, 1)}
    """
    nothing = Fraction(0)
    return {
        name: min(one.get(name, nothing), other.get(name, nothing)) for name in {**one, **other}
    }


def named(amounts: Amounts, names: Iterable[str]) -> Amounts:
    """The amounts of all these resources, also of those that were left out because they are 0."""
    return {name: amounts.get(name, Fraction(0)) for name in names}


def shortages(needed: Amounts, left: Amounts) -> tuple[str, ...]:
    """The resources of which more is needed than there is left."""
    return tuple(name for name, value in needed.items() if value > left.get(name, Fraction(0)))


def as_text(amounts: Amounts) -> dict[str, str]:
    """The exact numbers as text, for the store; zeros are left out."""
    return {name: str(value) for name, value in sorted(amounts.items()) if value}


def from_text(record: Mapping[str, str]) -> Amounts:
    """The inverse of ``as_text``."""
    return {name: Fraction(value) for name, value in record.items()}
