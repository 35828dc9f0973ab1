"""What items are ranked by beside persons: rows and sums, each clipped person by person.

>>> measure_of("rows", max_per_item=5)
Measure(most=5, column=None, digits=0)
>>> measure_of(Sum("price", unit="0.01"), max_per_item=50).sensitivity
5000
>>> measure_of("persons") is None
True

A person adds a whole number of units, from 0 to ``most``, to the score of each of their items,
whatever their rows hold and whatever others have: for counts of rows the number of their rows with
the item; for sums each value is rounded to the nearest unit, values below 0 and what is no number
count as 0, and a value or a sum beyond the bound counts as the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from topsecret.errors import InvalidParameter
from topsecret.sources.fingerprints import Fingerprint

MOST = 10**9
"""The largest bound in units: billions of a person's rows, and of persons, stay within 64 bits."""

FINEST = 6
"""The smallest unit is 10⁻⁶."""

Amount = int | float | str | Decimal | Fraction


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of a column of numbers: whole ones, or multiples of a public ``unit`` such as 0.01.

    >>> Sum("price", unit=0.01)
    Sum('price', unit='0.01')
    """

    column: str
    unit: Amount = 1

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise InvalidParameter(
                f"Sum({self.column!r}) must name a column of numbers; write Sum('price')"
            )
        _digits(self.unit)

    def __repr__(self) -> str:
        digits = _digits(self.unit)
        unit = f", unit={_decimal(1, digits)!r}" if digits else ""
        return f"Sum({self.column!r}{unit})"


@dataclass(frozen=True, slots=True)
class Bound:
    """How much one person adds to an item at most, in multiples of a public unit."""

    most: str
    unit: str = "1"


MeasureLike = str | Sum
"""``"persons"``, ``"rows"`` or a ``Sum``."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Rows, or a column's sum, of which one person adds at most ``most`` units to one item."""

    most: int
    """In units: whole rows, or 10^(−digits) of the column's values."""
    column: str | None = None
    digits: int = 0

    @property
    def sensitivity(self) -> int:
        """How many units one person moves a score by, at most."""
        return self.most

    @property
    def per_unit(self) -> int:
        """How many units one whole is."""
        return int(10**self.digits)

    @property
    def bound(self) -> str:
        """The bound as a number that the caller knows.

        >>> Measure(525, "price", 2).bound
        '5.25'
        """
        return _decimal(self.most, self.digits)

    @property
    def noun(self) -> str:
        """What a score counts, in words: "42 rows", "42 of price"."""
        return "rows" if self.column is None else f"of {self.column}"

    @property
    def described(self) -> str:
        """What the items are ranked by, in words."""
        return "number of rows" if self.column is None else f"sum of {self.column!r}"

    @property
    def clipping(self) -> str:
        """How one person's part is bounded, in words: how it works, never how much it changed."""
        if self.column is None:
            rows = "row" if self.most == 1 else "rows"
            clipped = f"at most {self.bound} {rows} of each person count for one item"
            return f"{clipped}; how much that changed is not told"
        unit = _decimal(1, self.digits)
        return (
            f"each person adds at most {self.bound} of {self.column!r} to one item; every value is "
            f"rounded to the nearest multiple of {unit}, negative values and what is no number "
            "count as 0; how much that changed is not told"
        )

    def fingerprint(self) -> Fingerprint:
        """What tells it from another."""
        return {"column": self.column, "digits": self.digits, "most": self.most}


def measure_of(measure: MeasureLike, max_per_item: Amount | None = None) -> Measure | None:
    """The measure with its bound, checked; None for distinct persons, whose bound is one."""
    if measure == "persons":
        if max_per_item is not None:
            raise InvalidParameter(
                f"max_per_item={max_per_item} bounds rows and sums: a person counts once for an "
                "item; leave it out, or pass measure='rows'"
            )
        return None
    if not isinstance(measure, Sum) and measure != "rows":
        raise InvalidParameter(
            f"measure={measure!r} must be 'persons', 'rows' or Sum('column'); an average has no "
            "bounded change: rank by a sum, and ask for persons apart"
        )
    if max_per_item is None:
        raise InvalidParameter(
            f"measure={measure!r} needs a bound on what one person adds to one item, a number "
            "that is public; pass max_per_item=5, say"
        )
    digits = _digits(measure.unit) if isinstance(measure, Sum) else 0
    most = _exact(max_per_item, "max_per_item") * 10**digits
    if most.denominator != 1 or not 1 <= most <= MOST:
        raise InvalidParameter(
            f"max_per_item={max_per_item} must be a whole multiple of the unit "
            f"{_decimal(1, digits)}, from it to {_decimal(MOST, digits)}"
        )
    return Measure(int(most), measure.column if isinstance(measure, Sum) else None, digits)


def _digits(unit: Amount) -> int:
    """d where the unit is 10^(−d)."""
    value = _exact(unit, "unit")
    for digits in range(FINEST + 1):
        if value * 10**digits == 1:
            return digits
    raise InvalidParameter(f"unit={unit} must be 1, 0.1, 0.01 or so on, to 0.000001")


def _exact(value: Amount, name: str) -> Fraction:
    """The number as it is written: 0.01 is one hundredth, not the nearest float."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return Fraction(str(value))
    except (TypeError, ValueError, ZeroDivisionError):
        raise InvalidParameter(f"{name}={value!r} must be a number, such as 1") from None


def _decimal(units: int, digits: int) -> str:
    """So many units in decimals, without zeros at the end."""
    if not digits:
        return str(units)
    whole, rest = divmod(units, 10**digits)
    return f"{whole}.{rest:0{digits}d}".rstrip("0").rstrip(".")
