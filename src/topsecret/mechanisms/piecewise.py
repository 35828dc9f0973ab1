"""Exact functions on the real line: between two places a sum of terms c·xⁿ·e^(a·x).

Densities and distribution functions of exponential and Laplace noise are of this kind, and so are
their sums, products and integrals: the law of any comparison of such noisy values is a finite
computation, in balls, with no quadrature.

>>> from fractions import Fraction
>>> low, high = at(Fraction(0)), at(Fraction(1))
>>> chance = (exponential_density(high) * exponential_cdf(low)).integral().limit()
>>> chance.overlaps(1 - (-arb(1)).exp() / 2)
True

**Places** are numbers ln(q) + r with rational q > 0 and r, kept as ``Log``. Two of them are equal
only if both parts are: ln(q/q′) = r′ − r ≠ 0 would make e to a rational power rational, which it is
not (Lindemann). So equal places are recognised, and different ones are separated by balls.

**Precision.** Coefficients such as e^(h/τ) are large and cancel later; a result is a ball, so lost
digits show. ``guard_bits`` says how many more to work with.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key, reduce

from flint import arb, ctx

from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import ball
from topsecret.noise.bits import Log, is_less

Rate = int | Fraction
Terms = dict[tuple[int, Rate], arb]
"""The coefficient c of each xⁿ·e^(a·x), by (n, a)."""

_MOST_BITS = 16_384


def at(value: Fraction | int) -> Log:
    """A rational place.

    >>> at(3) == Log(Fraction(1), plus=Fraction(3))
    True
    """
    return Log(Fraction(1), plus=Fraction(value))


@dataclass(frozen=True, slots=True, eq=False)
class Piecewise:
    """A function with one sum of terms left of, between and right of its places."""

    places: tuple[Log, ...]
    """Where the terms change, in rising order."""
    pieces: tuple[Terms, ...]
    """One more than there are places; no terms mean 0."""

    def __add__(self, other: Piecewise) -> Piecewise:
        return self._with(other, _sum)

    def __mul__(self, other: Piecewise) -> Piecewise:
        return self._with(other, _product)

    def __neg__(self) -> Piecewise:
        return self.times(arb(-1))

    def __sub__(self, other: Piecewise) -> Piecewise:
        return self + -other

    def times(self, factor: arb) -> Piecewise:
        """The function times a number."""
        return Piecewise(
            self.places, tuple({key: factor * c for key, c in p.items()} for p in self.pieces)
        )

    def integral(self) -> Piecewise:
        """The integral from −∞ to x, as a function of x."""
        if any(a <= 0 for _, a in self.pieces[0]):
            raise InvalidParameter(
                "the integral from −∞ must converge; a term does not vanish there"
            )
        pieces = [_antiderivative(self.pieces[0])]
        for place, terms in zip(self.places, self.pieces[1:], strict=True):
            piece = _antiderivative(terms)
            here = place.ball(ctx.prec)
            level = _value(pieces[-1], here) - _value(piece, here)
            pieces.append(_sum(piece, {(0, 0): level}))
        return Piecewise(self.places, tuple(pieces))

    def derivative(self) -> Piecewise:
        """The derivative between the places."""
        return Piecewise(self.places, tuple(_derivative(terms) for terms in self.pieces))

    def limit(self) -> arb:
        """The value at +∞."""
        last = self.pieces[-1]
        if any(a > 0 or (a == 0 and n > 0) for n, a in last):
            raise InvalidParameter("the limit at +∞ must be finite; a term grows")
        return last.get((0, 0), arb(0))

    def __call__(self, x: Fraction | int) -> arb:
        """The value at a rational x (right of a place that x is)."""
        index = bisect_right([_sort_key(place) for place in self.places], _sort_key(at(x)))
        return _value(self.pieces[index], ball(Fraction(x)))

    def _with(self, other: Piecewise, combine: Callable[[Terms, Terms], Terms]) -> Piecewise:
        if self.places == other.places:
            pairs: Iterable[tuple[Terms, Terms]] = zip(self.pieces, other.pieces, strict=True)
            return Piecewise(self.places, tuple(combine(a, b) for a, b in pairs))
        mine, theirs = set(self.places), set(other.places)
        places = tuple(sorted(mine | theirs, key=_sort_key))
        i = j = 0
        pieces = [combine(self.pieces[0], other.pieces[0])]
        for place in places:
            i += place in mine
            j += place in theirs
            pieces.append(combine(self.pieces[i], other.pieces[j]))
        return Piecewise(places, tuple(pieces))


def constant(value: arb | int) -> Piecewise:
    """The same number everywhere."""
    return Piecewise((), ({(0, 0): arb(value)},))


def product(functions: Iterable[Piecewise]) -> Piecewise:
    """The product of functions; 1 of none."""
    return reduce(Piecewise.__mul__, functions, constant(1))


def exponential_density(start: Log, scale: Rate = 1) -> Piecewise:
    """The density of start + scale·Exp(1)."""
    rate = _inverse(scale)
    return Piecewise((start,), ({}, {(0, -rate): ball(rate) * _power(start, rate)}))


def exponential_cdf(start: Log, scale: Rate = 1) -> Piecewise:
    """P[start + scale·Exp(1) ≤ x]."""
    rate = _inverse(scale)
    return Piecewise((start,), ({}, {(0, 0): arb(1), (0, -rate): -_power(start, rate)}))


def laplace_density(centre: Log, scale: Rate = 1) -> Piecewise:
    """The density of centre + Lap(scale)."""
    rate = _inverse(scale)
    half = ball(rate) / 2
    return Piecewise(
        (centre,),
        ({(0, rate): half * _power(centre, -rate)}, {(0, -rate): half * _power(centre, rate)}),
    )


def laplace_cdf(centre: Log, scale: Rate = 1) -> Piecewise:
    """P[centre + Lap(scale) ≤ x]."""
    rate = _inverse(scale)
    return Piecewise(
        (centre,),
        (
            {(0, rate): _power(centre, -rate) / 2},
            {(0, 0): arb(1), (0, -rate): -_power(centre, rate) / 2},
        ),
    )


def guard_bits(places: Sequence[Log], runners: int, scale: Rate = 1) -> int:
    """Bits to add to the working precision so that cancelling coefficients keep theirs.

    A product of ``runners`` functions has coefficients up to e^(runners·x/scale) for the place x
    farthest from 0; integration by parts multiplies by small integers a few times over. Beyond
    ``_MOST_BITS`` the smallest probabilities are only known to be near 0.

    >>> guard_bits([at(0), at(10)], 3)
    148
    """
    farthest = max((abs(float(place.ball(64))) for place in places), default=0.0)
    return min(_MOST_BITS, 64 + 8 * runners + math.ceil(2 * runners * farthest / float(scale)))


def _inverse(scale: Rate) -> Rate:
    rate = 1 / Fraction(scale)
    return rate.numerator if rate.denominator == 1 else rate


def _power(place: Log, rate: Rate) -> arb:
    """e^(rate·place)."""
    if place.argument == 1:
        return ball(rate * place.plus).exp()
    return (ball(rate) * place.ball(ctx.prec)).exp()


def _before(left: Log, right: Log) -> int:
    if left == right:
        return 0
    if left.argument == right.argument:
        return -1 if left.plus < right.plus else 1
    return -1 if is_less(left, right) else 1


_sort_key = cmp_to_key(_before)


def _sum(left: Terms, right: Terms) -> Terms:
    total = dict(left)
    for key, c in right.items():
        total[key] = total[key] + c if key in total else c
    return {key: c for key, c in total.items() if not c.is_zero()}


def _product(left: Terms, right: Terms) -> Terms:
    total: Terms = {}
    for (n, a), c in left.items():
        for (m, b), e in right.items():
            key = n + m, a + b
            total[key] = total[key] + c * e if key in total else c * e
    return {key: c for key, c in total.items() if not c.is_zero()}


def _antiderivative(terms: Terms) -> Terms:
    """∫xⁿe^(ax) = e^(ax)·(xⁿ/a − n·x^(n−1)/a² + n(n−1)·x^(n−2)/a³ − …), by parts."""
    total: Terms = {}
    for (n, a), c in terms.items():
        if a == 0:
            parts = [((n + 1, a), c / (n + 1))]
        else:
            rate = ball(a)
            parts = []
            factor = c / rate
            for power in range(n, -1, -1):
                parts.append(((power, a), factor))
                factor = -factor * power / rate
        for key, part in parts:
            total[key] = total[key] + part if key in total else part
    return total


def _derivative(terms: Terms) -> Terms:
    total: Terms = {}
    for (n, a), c in terms.items():
        if a != 0:
            total = _sum(total, {(n, a): c * ball(a)})
        if n > 0:
            total = _sum(total, {(n - 1, a): c * n})
    return total


def _value(terms: Terms, x: arb) -> arb:
    total = arb(0)
    for (n, a), c in terms.items():
        term = c
        if n:
            term *= x**n
        if a:
            term *= (ball(a) * x).exp()
        total += term
    return total
