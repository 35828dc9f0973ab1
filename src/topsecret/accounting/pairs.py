"""Mechanisms with one fixed worst pair, as weights on a grid of privacy losses.

If the loss L = ln(dP/dQ) has a known law under P, putting the mechanism in front of a profile
F(y) gives E[F(y e^-L)]. With F replaced by its chords this is a sum over grid points whose
weights depend on the distance alone: two numbers for each grid cell, its mass under P and its
mass under Q (because E_P[e^-L; cell] = Q(cell)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from topsecret.accounting.recursion import Floats
from topsecret.rounding import ball, precision, up

_BITS = 160


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Upper bounds of the weights of x - k h for k = -reach .. reach, and of all beyond."""

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
    """The pair N(mu, 1), N(0, 1): the loss is N(mu²/2, mu²) under P and N(-mu²/2, mu²) under Q."""
    with precision(_BITS):
        h, mu = ball(spacing), ball(mu_squared).sqrt()
        width, half = h.expm1(), ball(mu_squared) / 2
        edges = [h * k for k in range(-reach, reach + 1)]
        places_p = [(edge - half) / mu for edge in edges]
        masses_p = _cell_masses(places_p)
        masses_q = _cell_masses([(edge + half) / mu for edge in edges])
        total = [arb(0)] * (2 * reach + 1)
        # Losses below -reach h: the profile is at most its value there.
        total[0] += normal_below(places_p[0])
        for i, (mass, other) in enumerate(zip(masses_p, masses_q, strict=True)):
            to_left_edge = (other * edges[i + 1].exp() - mass) / width
            total[i] += to_left_edge
            total[i + 1] += mass - to_left_edge
        return _rounded(total, reach, normal_below(-places_p[-1]))


def _cell_masses(places: list[arb]) -> list[arb]:
    """The normal mass between neighbouring places, with a small relative error in both tails."""
    signs = [bool(place > 0) for place in places]
    tails = [
        normal_below(-place if sign else place) for place, sign in zip(places, signs, strict=True)
    ]
    masses = []
    for i in range(len(places) - 1):
        if signs[i] == signs[i + 1]:
            masses.append(tails[i] - tails[i + 1] if signs[i] else tails[i + 1] - tails[i])
        else:
            masses.append(1 - tails[i] - tails[i + 1])
    return masses


@lru_cache(maxsize=64)
def response_weights(epsilon: Fraction, count: int, spacing: Fraction, reach: int) -> Weights:
    """``count`` randomized responses, the worst pure steps: (2i - count) epsilon, i binomial."""
    with precision(_BITS):
        h, e = ball(spacing), ball(epsilon)
        width = h.expm1()
        likely = 1 / (1 + (-e).exp())
        total, rest = [arb(0)] * (2 * reach + 1), arb(0)
        mass = (1 - likely) ** count
        odds = e.exp()
        for i in range(count + 1):
            place = (2 * i - count) * epsilon / spacing
            cell = math.floor(place)
            if cell >= reach:
                rest += mass
            elif cell < -reach:
                total[0] += mass
            else:
                share = ((ball(cell + 1 - place)) * h).expm1() / width
                total[cell + reach] += mass * share
                total[cell + reach + 1] += mass * (1 - share)
            mass = mass * odds * (count - i) / (i + 1)
        return _rounded(total, reach, rest)


def _rounded(total: list[arb], reach: int, rest: arb) -> Weights:
    values = np.array([max(0.0, up(weight)) for weight in total])
    values.flags.writeable = False
    return Weights(values, reach, max(0.0, up(rest)))
