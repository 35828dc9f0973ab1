"""Mechanisms with one fixed worst pair, as weights on a grid of privacy losses.

If the loss L = ln(dP/dQ) has a known law under P, putting the mechanism in front of a profile
F(y) gives E[F(y e^-L)]. With F replaced by its chords this is a sum over grid points whose
weights depend on the distance alone: two numbers for each grid cell, its mass under P and its
mass under Q (because E_P[e^-L; cell] = Q(cell)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, arb_poly

from topsecret.accounting.erfc_grid import erfc_on_grid
from topsecret.accounting.recursion import Floats
from topsecret.exact.rounding import ball, precision, up

_BITS = 160


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Upper bounds of the weights of x − k·h for k = −reach … reach, and of all beyond."""

    values: Floats
    reach: int
    rest: float


def normal_below(z: arb) -> arb:
    """The standard normal distribution function.

    >>> float(normal_below(arb(0)))
    0.5
    """
    return (-z / arb(2).sqrt()).erfc() / 2


@lru_cache(maxsize=64)
def gaussian_weights(mu_squared: Fraction, spacing: Fraction, reach: int) -> Weights:
    """The pair N(mu, 1), N(0, 1): the loss is N(mu²/2, mu²) under P and N(−mu²/2, mu²) under Q."""
    with precision(_BITS):
        h, mu = ball(spacing), ball(mu_squared).sqrt()
        width, half = h.expm1(), ball(mu_squared) / 2
        edges = [h * k for k in range(-reach, reach + 1)]
        places_p = [(edge - half) / mu for edge in edges]
        masses_p = _cell_masses(places_p, h / mu)
        masses_q = masses_p[::-1]  # the edges are symmetric: (edge + half)/mu from the other end
        total = [arb(0)] * (2 * reach + 1)
        # Losses below −reach h: the profile is at most its value there.
        total[0] += normal_below(places_p[0])
        growth, power = h.exp(), edges[0].exp()
        for i, (mass, other) in enumerate(zip(masses_p, masses_q, strict=True)):
            power *= growth  # e^edge of the right edge
            to_left_edge = (other * power - mass) / width
            total[i] += to_left_edge
            total[i + 1] += mass - to_left_edge
        return _rounded(total, reach, normal_below(-places_p[-1]))


def _cell_masses(places: list[arb], step: arb) -> list[arb]:
    """The normal mass between neighbouring places, with a small relative error in both tails."""
    signs = [bool(place > 0) for place in places]
    left, root = signs.index(True) if signs[-1] else len(signs), arb(2).sqrt()
    below = erfc_on_grid(-places[left - 1] / root, step / root, left, _BITS - 20) if left else []
    right = len(signs) - left
    above = erfc_on_grid(places[left] / root, step / root, right, _BITS - 20) if right else []
    tails = [erfc / 2 for erfc in (*below[::-1], *above)]
    masses = []
    for i in range(len(places) - 1):
        if signs[i] == signs[i + 1]:
            masses.append(tails[i] - tails[i + 1] if signs[i] else tails[i + 1] - tails[i])
        else:
            masses.append(1 - tails[i] - tails[i + 1])
    return masses


@lru_cache(maxsize=64)
def response_weights(epsilon: Fraction, count: int, spacing: Fraction, reach: int) -> Weights:
    """``count`` randomized responses, the worst pure steps: (2i − count)·epsilon, i binomial."""
    with precision(_BITS):
        odds = ball(epsilon).exp()
        mass = (1 / (1 + odds)) ** count
        points = []
        for i in range(count + 1):
            points.append(((2 * i - count) * epsilon, mass))
            mass = mass * odds * (count - i) / (i + 1)
        return _point_weights(points, arb(0), spacing, reach)


@lru_cache(maxsize=64)
def discrete_gaussian_weights(
    sigma_squared: Fraction, count: int, spacing: Fraction, reach: int
) -> Weights:
    """``count`` counts with discrete Gaussian noise, each moved by one: a lattice of losses.

    P(k) is proportional to e^(−(k − 1)²/(2σ²)) and Q(k) to e^(−k²/(2σ²)), so the loss at k
    is (2k − 1)/(2σ²) and that of the sum K of ``count`` of them (2K − count)/(2σ²).
    """
    radius = lattice_radius(sigma_squared)
    with precision(2 * _BITS):
        half = ball(1 / (2 * sigma_squared))
        terms = [(-half * k * k).exp() for k in range(radius + 1)]
        tail = (-half * (radius + 1) ** 2).exp() / -(-half * (2 * radius + 3)).expm1()
        norm = terms[0] + 2 * sum(terms[1:], arb(0))  # at most the true one: masses from above
        one = _Lattice([term / norm for term in (*reversed(terms[1:]), *terms)], 2 * tail / norm)
        whole = one.copies(count, lambda n: lattice_radius(n * sigma_squared))
        middle = len(whole.masses) // 2
        points = [
            ((2 * (i - middle) + count) / (2 * sigma_squared), mass)
            for i, mass in enumerate(whole.masses)
        ]
        return _point_weights(points, whole.rest, spacing, reach)


def lattice_radius(variance: Fraction) -> int:
    """How far a lattice is kept: twelve standard deviations, all else below 1e-31."""
    return math.ceil(12 * math.sqrt(variance)) + 1


@dataclass(frozen=True, slots=True, eq=False)
class _Lattice:
    """Masses at −r to r, from above, and a bound on what lies elsewhere."""

    masses: list[arb]
    rest: arb

    def copies(self, count: int, radius: Callable[[int], int]) -> _Lattice:
        """The sum of ``count`` independent ones, cut to ``radius(n)`` after each product."""
        if count == 1:
            return self
        half = self.copies(count // 2, radius)
        whole = half._plus(half, radius(2 * (count // 2)))
        return whole._plus(self, radius(count)) if count % 2 else whole

    def _plus(self, other: _Lattice, radius: int) -> _Lattice:
        size = len(self.masses) + len(other.masses) - 1
        product = (arb_poly(self.masses) * arb_poly(other.masses)).coeffs()
        product += [arb(0)] * (size - len(product))
        cut = max(0, size // 2 - radius)
        lost = sum((*product[:cut], *product[size - cut :]), arb(0))
        return _Lattice(product[cut : size - cut], self.rest + other.rest + lost)


def _point_weights(
    points: list[tuple[Fraction, arb]], rest: arb, spacing: Fraction, reach: int
) -> Weights:
    """Chord weights of a law with finitely many losses, and ``rest`` of unknown losses."""
    h = ball(spacing)
    width, total = h.expm1(), [arb(0)] * (2 * reach + 1)
    for loss, mass in points:
        place = loss / spacing
        cell = math.floor(place)
        if cell >= reach:
            rest += mass
        elif cell < -reach:
            total[0] += mass
        else:
            share = (ball(cell + 1 - place) * h).expm1() / width
            total[cell + reach] += mass * share
            total[cell + reach + 1] += mass * (1 - share)
    return _rounded(total, reach, rest)


def _rounded(total: list[arb], reach: int, rest: arb) -> Weights:
    values = np.array([max(0.0, up(weight)) for weight in total])
    values.flags.writeable = False
    return Weights(values, reach, max(0.0, up(rest)))
