"""Directed rounding: from exact numbers to floats and back, never on the wrong side.

Every epsilon and delta that leaves the system is rounded up, every remaining budget down.
The exact numbers are fractions (a user's float *is* a fraction) and real balls of
python-flint: a ball encloses the true value whatever its precision.

>>> from fractions import Fraction
>>> up(ball(Fraction(1, 3))) >= Fraction(1, 3) >= down(ball(Fraction(1, 3)))
True
"""

from __future__ import annotations

import math
import os
import sys
import threading
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from flint import arb, ctx, fmpq

from topsecret.errors import InvalidParameter

Number = int | float | Fraction


class _Turn:
    """python-flint has one precision for the whole process: one thread at a time may change it.

    A ball at another thread's precision would still enclose the truth, but more loosely than
    its code counts on.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        # A child process must not wait for a thread of its parent that it does not have.
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self.lock = threading.RLock()


_TURN = _Turn()


class precision:  # noqa: N801 - read as a verb, like the functions around it
    """Evaluate balls with this many bits inside the block."""

    __slots__ = ("_before", "_bits")

    def __init__(self, bits: int) -> None:
        self._bits = bits

    def __enter__(self) -> None:
        _TURN.lock.acquire()
        self._before = ctx.prec
        try:
            ctx.prec = self._bits
        except BaseException:
            _TURN.lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        ctx.prec = self._before
        _TURN.lock.release()


def exact(value: Number, name: str = "value") -> Fraction:
    """The rational number that ``value`` is, with no rounding.

    >>> exact(0.1) == Fraction(3602879701896397, 2**55)
    True
    """
    if type(value) is Fraction:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        try:  # NumPy's scalars and decimals have the same exact meaning
            if isinstance(value, str):
                raise TypeError
            value = value.item() if hasattr(value, "item") else Fraction(value)
        except (TypeError, ValueError):
            kind = type(value).__name__
            raise InvalidParameter(f"{name} must be a number; found a {kind}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidParameter(f"{name}={value} must be finite")
    return Fraction(value)


def ball(value: Number) -> arb:
    """A ball around the exact rational value at the current precision."""
    if isinstance(value, int):
        return arb(value)
    if type(value) is not Fraction:
        value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def up(value: arb | Fraction) -> float:
    """The smallest float, or nearly, that is at least every number of the ball; inf if unknown."""
    if isinstance(value, Fraction):
        nearest = _nearest(value)
        return nearest if _at_least(nearest, value) else math.nextafter(nearest, math.inf)
    bound = value.upper()
    if not bound.is_finite():
        return math.inf if bound.is_nan() else float(bound)  # max(0.0, nan) would be 0
    result = max(float(bound), -sys.float_info.max)
    while math.isfinite(result) and not arb(result) >= bound:
        result = math.nextafter(result, math.inf)
    return result


def down(value: arb | Fraction) -> float:
    """The largest float, or nearly, that is at most every number of the ball."""
    return -up(-value) + 0.0  # 0 and not −0


def rounded_up(value: float | Fraction, digits: int = 6) -> str:
    """A number with few digits, rounded up.

    >>> rounded_up(0.33333333, 3), rounded_up(0.9999), rounded_up(1.0), rounded_up(1e-06)
    ('0.334', '0.9999', '1', '1e-06')
    """
    return _short(up(value) if isinstance(value, Fraction) else value, digits, ROUND_CEILING)


def rounded_down(value: float | Fraction, digits: int = 6) -> str:
    """A number with few digits, rounded down.

    >>> rounded_down(Fraction(2, 3), 3)
    '0.666'
    """
    return _short(down(value) if isinstance(value, Fraction) else value, digits, ROUND_FLOOR)


def _short(value: float, digits: int, rounding: str) -> str:
    return f"{float(Context(prec=digits, rounding=rounding).plus(Decimal(repr(value)))):.{digits}g}"


def root_up(value: Fraction) -> Fraction:
    """A fraction of about 64 bits that is at least √value; the root itself where it is one.

    >>> root_up(Fraction(4, 9)) >= Fraction(2, 3), root_up(Fraction(9, 4))
    (True, Fraction(3, 2))
    """
    shift = max(0, 64 - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    scaled = -(-(value.numerator << 2 * shift) // value.denominator)
    root = math.isqrt(scaled)
    return Fraction(root + (root * root < scaled), 1 << shift)


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _at_least(nearest: float, value: Fraction) -> bool:
    return nearest == math.inf or (nearest > -math.inf and Fraction(nearest) >= value)
