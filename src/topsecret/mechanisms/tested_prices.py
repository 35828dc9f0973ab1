"""The price of each length of `TestedTopK`: the largest that one common Gaussian covers.

All branches are held against the same Gaussian step G_(μ∗), the largest one that keeps to the
budget behind the choice of the length. So a price depends on its own branch and on (ε, δ) alone,
and whichever lengths compete, their maximum keeps to the budget. Floats search; the schedule that
uses the prices certifies them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from topsecret.accounting.absorption import (
    LARGEST_ABSORBED,
    about_absorbed,
    calibrate_absorbed,
)
from topsecret.accounting.profile import LARGEST_PICK, Profile
from topsecret.accounting.tested import (
    CELLS,
    FEW_STEPS,
    FINE_CELLS,
    MORE_STEPS,
    Branch,
    branch_profile,
    reach_of,
)

_CLOSE = 1e-2
"""How far below the Gaussian a branch may stay, relative in delta: 6·10⁻⁴ of its price."""


@dataclass(frozen=True)
class Target:
    """What the branches must keep to, all public."""

    epsilon: Fraction
    """What all steps together must keep to."""
    budget: Fraction
    """The delta that is left beside the test's failure."""
    choice: Fraction
    """ε_u; 0 when there is one branch."""
    mu_squared: Fraction
    """The test, and the Gaussian steps behind it."""

    @cached_property
    def limit(self) -> float:
        """μ∗: about the largest μ at which T_(choice) G_μ keeps to (epsilon, budget)."""
        # Room for the chords of the certificate, whose error grows with the square of the slope.
        aim = float(self.budget) * (1 - 5e-4 + 1.25e-4 * math.log(self.budget))
        # ln δ is nearly a line in 1/μ²: secants through the last two tries, each within a factor 4.
        place = 2 * math.log(1 / aim) / max(1e-6, float(self.epsilon)) ** 2
        before, off_before = 1.1 * place, self._off(1.1 * place, aim)
        for _ in range(100):
            off = self._off(place, aim)
            step = off * (place - before) / (off - off_before) if off != off_before else 0.0
            before, off_before = place, off
            place = min(max(place - step, before / 4), 4 * before)
            if abs(step) <= 1e-7 * place:
                break
        return (1 - 1e-7) / math.sqrt(place)

    @cached_property
    def deviations(self) -> float:
        """z: how many standard deviations of G_(μ∗) lie between its mean and −epsilon."""
        return float(self.epsilon) / self.limit + self.limit / 2

    @property
    def share(self) -> float:
        """How much of μ∗² is left for the steps."""
        return 1 - float(self.mu_squared) / self.limit**2

    def _off(self, place: float, aim: float) -> float:
        return math.log(self._behind_choice(1 / math.sqrt(place)) / aim)

    def _behind_choice(self, mu: float) -> float:
        """sup_t q_t·G(ε − t) + (1 − q_t)·G(ε − t + ε_u), on a fine grid of t."""
        x, choice = float(self.epsilon), float(self.choice)
        if choice == 0:
            return float(gaussian_deltas(mu, np.array([x]))[0])
        t = np.linspace(0.0, choice, 65)
        share = np.expm1(t - choice) / np.expm1(-choice)
        near, far = gaussian_deltas(mu, x - t), gaussian_deltas(mu, x - t + choice)
        return float((share * near + (1 - share) * far).max())

    @cached_property
    def reach(self) -> Fraction:
        """How far the recursion must keep a branch."""
        half_decade = math.floor(2 * math.log10(float(self.budget)))
        rho = self.limit**2 / 2 + float(self.choice) ** 2 / 8
        return reach_of(rho, half_decade)

    def excess(self, profile: Profile) -> float:
        """ln of the largest quotient of the profile and G_(μ∗) where the choice looks at them."""
        places, limits = self._compared
        h = float(profile.spacing)
        last = len(profile.values) - 2
        cells = np.minimum((places / h).astype(int), last)
        theta = np.expm1(places - cells * h) / math.expm1(h)
        upper, lower = profile.values[cells], profile.values[cells + 1]
        found = upper - theta * (upper - lower)
        return float(np.log(found / limits).max())

    @cached_property
    def _compared(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where branches are compared with G_(μ∗), and what it is there."""
        x, choice = float(self.epsilon), float(self.choice)
        places = np.linspace(max(0.0, x - choice), x + choice, 33 if choice else 1)
        return places, gaussian_deltas(self.limit, places)


def gaussian_deltas(mu: float, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Φ(μ/2 − x/μ) − e^x·Φ(−μ/2 − x/μ) in floats, for searching."""
    below = [math.erfc((v / mu - mu / 2) / math.sqrt(2)) / 2 for v in x.tolist()]
    above = [
        math.exp(min(v, 700)) * math.erfc((v / mu + mu / 2) / math.sqrt(2)) / 2 for v in x.tolist()
    ]
    found: NDArray[np.float64] = np.array(below) - np.array(above)
    return np.clip(found, 1e-300, None)


@lru_cache(maxsize=4096)
def price_of(unit: Branch, target: Target) -> Fraction:
    """The largest factor, or nearly, at which the branch and its test stay below G_(μ∗)."""
    price = _closed_price(unit, target)
    if target.limit**2 <= target.mu_squared:
        return Fraction(0)  # the test alone takes all of a budget that is mostly delta
    if (
        unit.steps > (FEW_STEPS if target.choice else MORE_STEPS)
        and price * _largest(unit) < LARGEST_ABSORBED
    ):
        return price
    return _by_recursion(unit, target)


def rough_price_of(unit: Branch, target: Target) -> Fraction:
    """About the price, within half a percent or so: few steps cost less than the closed form says.

    By how much follows from the branch's fourth cumulant (``part``) at the z deviations where it is
    asked. The numbers were fitted to the recursion: at most ``FEW_STEPS`` steps, ε from .1 to 8, δ
    from 10⁻¹⁰ to 10⁻⁴. Half of the steps need one try then, nearly all others two.
    """
    closed, mu, z = _about_closed(unit, target), min(target.limit, 2.0), min(target.deviations, 8.0)
    if not closed:
        return Fraction(0)
    squares = [(n, float(e * Fraction(closed)) ** 2) for n, e in unit.runs]
    fourth, second = sum(n * v * v for n, v in squares), sum(n * v for n, v in squares) / 4
    part = fourth / second / target.limit**2
    linear = 0.00684 - 0.00725 * z + 0.00231 * z * z
    linear += mu * (0.0109 - 0.00382 * z + 0.0000581 * z * z + 0.00748 * mu)
    square = -0.0132 + 0.00499 * z - 0.000434 * z * z + target.share * (0.00899 + 0.001 * z)
    square += mu * (-0.011 + 0.00176 * z + 0.00117 * mu)
    return Fraction(closed * math.exp(min(max(part * linear + part * part * square, 0.0), 0.6)))


def _about_closed(unit: Branch, target: Target) -> float:
    """The closed form's price in floats, also where that is beyond its range."""
    return about_absorbed(unit.runs, float(target.mu_squared), target.limit**2)


@lru_cache(maxsize=4096)
def _closed_price(unit: Branch, target: Target) -> Fraction:
    limit = Fraction(target.limit) ** 2
    return calibrate_absorbed(lambda e: unit.scaled(e).runs, target.mu_squared, limit)


def _largest(unit: Branch) -> Fraction:
    return max(epsilon for _, epsilon in unit.runs)


def _by_recursion(unit: Branch, target: Target) -> Fraction:
    """Newton's method: ln δ grows like a power of the price, about z² times the steps' share."""
    most = float(LARGEST_PICK / _largest(unit))
    slope = 0.76 * target.deviations**2.1 * target.share**0.8 * math.exp(-0.21 * target.limit)
    price, low = min(most, float(rough_price_of(unit, target))), 0.0
    before: tuple[float, float] | None = None
    cells = CELLS if target.choice else FINE_CELLS

    def excess_at(price: float) -> float:
        branch = unit.scaled(_short(price))
        return target.excess(branch_profile(branch, target.mu_squared, target.reach, cells))

    for _ in range(12):
        excess = excess_at(price)
        if excess <= 0:
            low = max(low, price)
            if excess > -_CLOSE or price == most:
                break
        if before is not None and abs(math.log(price / before[0])) > 1e-9:
            measured = (excess - before[1]) / math.log(price / before[0])
            slope = measured if measured > 1 else slope
        before = (price, excess)
        price = min(most, price * math.exp(-(excess + _CLOSE / 2) / slope))
    while low == 0.0:
        price *= 0.98
        if excess_at(price) <= 0:
            low = price
    return _short(low)


def _short(price: float) -> Fraction:
    """A price of 24 binary digits, rounded down: grids and sums of fractions stay small."""
    mantissa, exponent = math.frexp(price)
    return Fraction(math.floor(mantissa * 2**24)) * Fraction(2) ** (exponent - 24)
