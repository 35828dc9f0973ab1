"""How likely a label of one person alone is named, where a person adds different amounts to each.

A person adds x_j, at most ``most``, to each of at most ``items`` labels, Σ x_j² ≤ ``total``². Those
that nobody else has are named with probability 1 − Π Φ((T − x_j)/σ). The largest such probability
is enclosed from above:

- g(y) = −ln Φ((T − √y)/σ) is what a label of amount √y adds to −ln(1 − p). Let ĝ be the smallest
  concave function above g and above 0 for a label that is not there. By Jensen's inequality
  Σ g(x_j²) ≤ Σ ĝ(x_j²) ≤ N·ĝ(C²/N), with N = ``items`` and C = ``total``.
- Whole amounts up to a few hundred are taken one by one. Of more, a cell of amounts from a to b is
  taken as if its amounts were named as b and weighed as a², which is above all of them.

ĝ is reached by vectors of two kinds of amounts, so that the bound exceeds the largest sum by less
than one label adds: the worst vector has some labels at the clip, one in between, the rest equal.

>>> own = OwnLabels(most=10, total=20, items=100, sigma=Fraction(100), threshold=Fraction(560))
>>> 1e-6 < own.chance < 3e-6
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from topsecret.accounting.pairs import normal_below
from topsecret.exact.rounding import ball, precision, up

CELLS = 256
"""Amounts up to this are taken one by one, more in so many cells."""

_BITS = 128
_Point = tuple[Fraction, Fraction]
"""A squared amount, and at least what it adds to −ln(1 − p)."""


@dataclass(frozen=True, slots=True)
class OwnLabels:
    """What one person may add, the noise and the threshold, all in units of the scores. Public.

    Guarantee: ``chance`` is at least the probability that a label of the person alone is named,
    whatever they add within these limits; rounded up.
    """

    most: int
    total: int
    items: int
    sigma: Fraction
    threshold: Fraction

    @property
    def exponent(self) -> Fraction:
        """At least the largest −ln(1 − p)."""
        return _exponent(self)

    @property
    def chance(self) -> float:
        """At least the largest p."""
        with precision(_BITS):
            return min(1.0, up(-(-ball(self.exponent)).expm1()))

    def adds(self, amount: Fraction) -> Fraction:
        """−ln Φ((T − x)/σ), rounded up: what one label of this amount adds to the exponent."""
        with precision(_BITS):
            place = ball((self.threshold - amount) / self.sigma)
            return Fraction(up(-((-normal_below(-place)).log1p())))


@lru_cache(maxsize=256)
def _exponent(own: OwnLabels) -> Fraction:
    most = min(own.most, own.total)
    if most <= CELLS:
        whole = [Fraction(amount) for amount in range(1, most + 1)]
        points = [(amount**2, own.adds(amount)) for amount in whole]
    else:
        edges = [Fraction(most * cell, CELLS) for cell in range(CELLS + 1)]
        named = [own.adds(edge) for edge in edges[1:]]
        points = [(edge**2, high) for edge, high in zip(edges, named, strict=False)]
    hull = _concave([(Fraction(0), Fraction(0)), *points])
    return own.items * _at(hull, Fraction(own.total**2, own.items))


def _concave(points: Sequence[_Point]) -> list[_Point]:
    """The corners of the smallest concave function above the points."""
    hull: list[_Point] = []
    for point in sorted(points):
        if hull and hull[-1][0] == point[0]:
            hull.pop()  # the later one is higher
        while len(hull) > 1 and _below(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _below(first: _Point, middle: _Point, last: _Point) -> bool:
    """Whether the middle lies below the line from the first to the last."""
    rise = (middle[1] - first[1]) * (last[0] - first[0])
    return rise <= (last[1] - first[1]) * (middle[0] - first[0])


def _at(hull: Sequence[_Point], place: Fraction) -> Fraction:
    """The value there; beyond the last corner that of the last, since g never falls."""
    if place >= hull[-1][0]:
        return hull[-1][1]
    for (left, low), (right, high) in pairwise(hull):
        if left <= place <= right:
            return low + (high - low) * (place - left) / (right - left)
    return hull[0][1]
