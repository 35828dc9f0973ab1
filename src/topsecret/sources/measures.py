"""What items are ranked by beside people: rows and sums, each clipped person by person.

>>> measure_of("rows", max_per_item=5).most
5
>>> measure_of(Sum("price", unit="0.01"), max_per_item=50).sensitivity
5000
>>> measure_of("persons") is None
True
>>> measure_of("rows", max_per_item="private").bounds[:5]
(1, 2, 5, 10, 20)

A person adds a whole number of units, from 0 to ``most``, to the score of each of their items,
whatever their rows hold and whatever others have: for counts of rows the number of their rows with
the item; for sums each value is rounded to the nearest unit, values below 0 and what is no number
count as 0, and a value or a sum beyond the bound counts as the bound.

With several ``bounds`` a private choice, which a mechanism makes, takes one of them. They are
public: those that the caller lists, or 1, 2, 5, 10, 20, 50 and so on, whatever the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from topsecret.errors import InvalidParameter
from topsecret.sources.fingerprints import Fingerprint

MOST = 10**9
"""The largest bound in units: billions of a person's rows, and of people, stay within 64 bits."""

FINEST = 6
"""The smallest unit is 10⁻⁶."""

MOST_ROWS = 1_000
"""The largest bound on rows that is tried where nobody lists them."""

MOST_TOTAL = 10**8
"""The largest bound on all that one person adds, in units: squares stay within 64 bits."""

MOST_ITEMS = 100
"""So many items of a person count, at most, where all that they add is bounded."""

MOST_BOUNDS = 64
"""How many bounds may be listed."""

PRIVATE = "private"
"""The word for bounds that nobody lists, of which one is chosen privately."""

REVEALING = "because it could give people away"
"""Why it is not reported how much a bound leaves out."""

Amount = int | float | str | Decimal | Fraction
BoundLike = Amount | Sequence[Amount]
"""A number, several of which one is chosen privately, or "private" for the usual ones."""


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of a column of numbers: whole ones, or multiples of a public ``unit`` such as 0.01.

    >>> Sum("price", unit=0.01)
    Sum('price', unit='0.01')
    """

    column: str
    """The column that is summed."""
    unit: Amount = 1
    """What values are rounded to multiples of."""

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
    """The bound, as a decimal number in text."""
    unit: str = "1"
    """The unit, as a decimal number in text."""


MeasureLike = str | Sum
"""``"persons"``, ``"rows"`` or a ``Sum``."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Rows, or a column's sum, of which one person adds at most ``most`` units to one item."""

    most: int
    """In units: whole rows, or 10^(−digits) of the column's values."""
    column: str | None = None
    """The column that is summed; None for rows."""
    digits: int = 0
    """How many decimal places a unit has."""
    bounds: tuple[int, ...] = ()
    """The bounds of which a private choice takes one, rising to ``most``; none if it is fixed."""
    total: int = 0
    """The root of the sum of squares of all that one person adds, at most; 0 for no such bound."""

    def at(self, bound: int) -> Measure:
        """The same measure with one of its bounds, in units."""
        return replace(self, most=bound, bounds=())

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
        if self.total:
            return (
                f"{replace(self, total=0).clipping}; where the root of the sum of squares of all "
                f"that a person adds exceeds {_decimal(self.total, self.digits)} it is scaled down "
                "together, and rounded down"
            )
        if self.column is None:
            rows = "row" if self.most == 1 else "rows"
            clipped = f"at most {self.bound} {rows} of each person count for each item"
            return f"{clipped}; how many rows that leaves out is not reported, {REVEALING}"
        unit = f"multiple of {_decimal(1, self.digits)}" if self.digits else "whole number"
        return (
            f"each person adds at most {self.bound} of {self.column!r} to each item; every value "
            f"is rounded to the nearest {unit}, and negative values and what is no number count as "
            f"0; how much that leaves out is not reported, {REVEALING}"
        )

    def fingerprint(self) -> Fingerprint:
        """What tells it from another."""
        found: Fingerprint = {"column": self.column, "digits": self.digits, "most": self.most}
        found = found | {"bounds": list(self.bounds)} if self.bounds else found
        return found | {"total": self.total} if self.total else found


def measure_of(
    measure: MeasureLike, max_per_item: BoundLike | None = None, max_total: Amount | None = None
) -> Measure | None:
    """The measure with its bounds, checked; None for distinct people, whose bound is one.

    Parameters: ``measure``: people, rows or a ``Sum``; ``max_per_item``: the most that one person
    adds to one item; ``max_total``: the root of the sum of squares of all that one person adds, at
    most.
    """
    if max_total is None:
        return _per_item(measure, max_per_item)
    most = max_total if max_per_item is None else max_per_item
    bounded = None if measure == "persons" else _per_item(measure, most)
    if bounded is None or bounded.bounds:
        raise InvalidParameter(
            f"max_total={max_total} bounds all the rows, or the sums, of one person, beside one "
            "public max_per_item; leave it out, or pass measure='rows' and max_per_item=5, say"
        )
    total = _units(max_total, bounded.digits, "max_total")
    if not bounded.most <= total <= MOST_TOTAL:
        raise InvalidParameter(
            f"max_total={max_total} must be at least max_per_item={bounded.bound} and at most "
            f"{_decimal(MOST_TOTAL, bounded.digits)}"
        )
    return replace(bounded, total=total)


def _per_item(measure: MeasureLike, max_per_item: BoundLike | None) -> Measure | None:
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
            "bounded change: rank by a sum, and count people in a question of its own"
        )
    if max_per_item is None:
        raise InvalidParameter(
            f"measure={measure!r} needs a bound on what one person adds to one item, a number "
            "that is public; pass max_per_item=5, say, or max_per_item='private'"
        )
    column = measure.column if isinstance(measure, Sum) else None
    digits = _digits(measure.unit) if isinstance(measure, Sum) else 0
    if max_per_item == PRIVATE:
        bounds = _usual(MOST_ROWS if column is None else MOST)
    elif isinstance(max_per_item, Sequence) and not isinstance(max_per_item, str):
        bounds = tuple(_units(one, digits) for one in max_per_item)
        if not 2 <= len(bounds) <= MOST_BOUNDS or list(bounds) != sorted(set(bounds)):
            raise InvalidParameter(
                f"max_per_item={list(max_per_item)} must be one number, or from two to "
                f"{MOST_BOUNDS} that rise, of which one is chosen privately"
            )
    else:
        return Measure(_units(max_per_item, digits), column, digits)
    return Measure(bounds[-1], column, digits, bounds)


def _units(bound: Amount, digits: int, name: str = "max_per_item") -> int:
    """A bound as a whole number of units."""
    most = _exact(bound, name) * 10**digits
    if most.denominator != 1 or not 1 <= most <= MOST:
        raise InvalidParameter(
            f"{name}={bound} must be a whole multiple of the unit "
            f"{_decimal(1, digits)}, from it to {_decimal(MOST, digits)}"
        )
    return int(most)


def _usual(most: int) -> tuple[int, ...]:
    """1, 2, 5, 10, 20, 50 and so on, in units."""
    decades = range(len(str(most)))
    return tuple(n for d in decades for n in (10**d, 2 * 10**d, 5 * 10**d) if n <= most)


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
        if isinstance(value, int | Fraction):
            return Fraction(value)
        written = Decimal(str(value))
        # A fraction would write out all zeros of 1e9999999 before any bound is looked at.
        if not written.is_finite() or abs(written.adjusted()) > 20:
            raise ValueError
        return Fraction(written)
    except (TypeError, ValueError, ArithmeticError):
        raise InvalidParameter(f"{name}={value!r} must be a number, such as 1") from None


def _decimal(units: int, digits: int) -> str:
    """So many units in decimals, without zeros at the end."""
    if not digits:
        return str(units)
    whole, rest = divmod(units, 10**digits)
    return f"{whole}.{rest:0{digits}d}".rstrip("0").rstrip(".")
