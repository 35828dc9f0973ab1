"""Profiles: how distinguishable two neighbours are, as a rigorous bound for every epsilon.

A profile bounds delta(x) for every x, in both directions and for every pair of neighbours.
Steps are put *in front* of it, so a sequence of releases is built from its last to its first.

>>> after = identity_profile(spacing=Fraction(1, 100), reach=1).after_pick(Fraction(1, 10))
>>> 0.0249 < after.delta(0) < 0.0251  # one pick of 0.1: tanh(0.1 / 4)
True
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import groupby

import numpy as np
from flint import arb

from topsecret.accounting import recursion
from topsecret.accounting.erfc_grid import erfc_on_grid
from topsecret.accounting.pairs import (
    discrete_gaussian_weights,
    gaussian_weights,
    lattice_radius,
    normal_below,
    response_weights,
)
from topsecret.accounting.recursion import WIDEST_SPACING, Floats
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, ball, down, exact, precision, up

LARGEST_PICK = 30
"""Above this e^epsilon leaves the range in which the error bounds of the recursion are proven."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """An upper bound on delta(x), kept at x = 0, spacing, 2 spacing, ...

    Guarantee: if the profile bounds every pair of neighbours for what comes later, then
    ``after_pick(epsilon)`` bounds it with one more adaptively chosen epsilon-bounded-range step
    in front, and likewise for the other steps. Every value is rounded up; the last one holds for
    everything beyond the reach.
    """

    spacing: Fraction
    values: Floats

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    @property
    def reach(self) -> Fraction:
        """The largest x that is kept."""
        return self.spacing * (len(self.values) - 1)

    def after_pick(self, epsilon: Number) -> Profile:
        """One bounded-range step in front (docs/proofs/accounting.md, sections 1 and 2)."""
        return self.after_picks([epsilon])

    def after_picks(self, epsilons: Iterable[Number]) -> Profile:
        """Several bounded-range steps in front: the *last* of the list is applied first.

        The list is in the order of time. If the spacing does not divide an epsilon the profile
        moves to the nearest grid that does, at the price of one more chord; choose a common
        divisor when there is one.
        """
        runs = [(len(list(run)), epsilon) for epsilon, run in groupby(epsilons)]
        return self.after_runs([(n, exact(epsilon, "epsilon")) for n, epsilon in runs])

    def after_runs(self, runs: Iterable[tuple[int, Fraction]]) -> Profile:
        """The same for runs of equal steps: how many, and the epsilon of each."""
        profile = self
        for n, epsilon in reversed(list(runs)):
            profile = profile._after(n, epsilon, self.spacing)
        return profile

    def _after(self, times: int, epsilon: Fraction, spacing: Fraction) -> Profile:
        if epsilon < 0 or epsilon > LARGEST_PICK:
            raise InvalidParameter(f"epsilon={epsilon} must lie between 0 and {LARGEST_PICK}")
        if epsilon == 0 or times == 0:
            return self
        cells = max(1, round(epsilon / spacing), math.ceil(epsilon / WIDEST_SPACING))
        profile = self.on_grid(epsilon / cells)
        constants = _step_constants(profile.spacing, cells)
        mirror = _mirror(profile.spacing, -(-cells // 16) * 16)
        values = profile.values
        with np.errstate(over="ignore"):  # entering it takes a twentieth of a step's time
            for _ in range(times):
                values = recursion.pick_step(values, constants, mirror)
        return Profile(profile.spacing, values)

    def after_pure(self, epsilon: Number, count: int = 1) -> Profile:
        """``count`` epsilon-DP steps in front: randomized response is the worst of them."""
        epsilon = exact(epsilon, "epsilon")
        if epsilon < 0:
            raise InvalidParameter(f"epsilon={epsilon} must not be negative")
        if epsilon == 0 or count == 0:
            return self
        # Losses beyond twice the reach map every kept x to where the bound is one number anyway.
        reach = min(math.ceil(count * epsilon / self.spacing) + 1, 2 * len(self.values))
        weights = response_weights(epsilon, count, self.spacing, reach)
        return self._averaged(weights.values, reach, weights.rest)

    def after_gaussian(self, mu_squared: Number) -> Profile:
        """A Gaussian step of squared signal-to-noise ratio ``mu_squared`` in front.

        In front of everything it bounds Gaussian steps interleaved with the others in any order:
        moving a step with a fixed worst pair to the front can only raise the bound.
        """
        mu_squared = exact(mu_squared, "mu_squared")
        if mu_squared < 0:
            raise InvalidParameter(f"mu_squared={mu_squared} must not be negative")
        if mu_squared == 0:
            return self
        # Beyond 14 standard deviations lies less than 1e-43; it is charged all the same.
        widest = Fraction(float(mu_squared) / 2 + 14 * math.sqrt(mu_squared))
        reach = min(math.ceil(widest / self.spacing) + 1, 2 * len(self.values))
        weights = gaussian_weights(mu_squared, self.spacing, reach)
        return self._averaged(weights.values, reach, weights.rest)

    def after_discrete_gaussian(self, sigma_squared: Number, count: int = 1) -> Profile:
        """``count`` integer counts with discrete Gaussian noise in front, each moved by one."""
        sigma_squared = exact(sigma_squared, "sigma_squared")
        if sigma_squared <= 0:
            raise InvalidParameter(f"sigma_squared={sigma_squared} must be above 0")
        if count == 0:
            return self
        largest = (2 * lattice_radius(count * sigma_squared) + count) / (2 * sigma_squared)
        reach = min(math.ceil(largest / self.spacing) + 1, 2 * len(self.values))
        weights = discrete_gaussian_weights(sigma_squared, count, self.spacing, reach)
        return self._averaged(weights.values, reach, weights.rest)

    def _averaged(self, weights: Floats, reach: int, rest: float) -> Profile:
        mirror = _mirror(self.spacing, reach)
        return Profile(
            self.spacing, recursion.average_step(self.values, weights, reach, mirror, rest)
        )

    def on_grid(self, spacing: Number, reach: Number | None = None) -> Profile:
        """The same bound at another spacing: chord values, so never below this one."""
        if reach is None and spacing == self.spacing:
            return self
        spacing = _checked_spacing(spacing)
        size = math.ceil((self.reach if reach is None else exact(reach)) / spacing) + 1
        values = recursion.resampled(self.values, self.spacing, spacing, size)
        return Profile(spacing, values)

    def delta(self, x: Number) -> float:
        """The bound at x, rounded up; x may be negative."""
        x = exact(x, "x")
        with precision(96):
            place = min(abs(x) / self.spacing, Fraction(len(self.values) - 1))
            cell = min(math.floor(place), len(self.values) - 2)
            upper, lower = arb(float(self.values[cell])), arb(float(self.values[cell + 1]))
            h = ball(self.spacing)
            theta = (ball(place - cell) * h).expm1() / h.expm1()
            value = upper - theta * (upper - lower)
            if x < 0:
                value = 1 - ball(x).exp() * (1 - value)
            return min(1.0, max(0.0, up(value)))

    def epsilon(self, delta: Number) -> float:
        """The smallest x >= 0 at which the bound is at most ``delta``, rounded up; inf if none."""
        delta = exact(delta, "delta")
        index = int(np.searchsorted(-self.values, -down(delta), side="left"))
        if index == len(self.values):
            return math.inf
        if index == 0:
            return 0.0
        with precision(96):
            upper, lower = float(self.values[index - 1]), float(self.values[index])
            theta = (arb(upper) - ball(delta)) / (arb(upper) - arb(lower))
            h = ball(self.spacing)
            offset = (theta * h.expm1()).log1p()
            return up(h * (index - 1) + offset)


def identity_profile(spacing: Number, reach: Number) -> Profile:
    """Nothing released: delta(x) = max(0, 1 - e^x), which is 0 on the grid."""
    spacing = _checked_spacing(spacing)
    size = max(2, math.ceil(exact(reach, "reach") / spacing) + 1)
    return Profile(spacing, np.zeros(size))


def gaussian_profile(mu: Number, spacing: Number, reach: Number) -> Profile:
    """One Gaussian step of signal-to-noise ratio ``mu``: the start when the Gaussian comes last.

    >>> 0.38 < gaussian_profile(1, spacing=0.01, reach=6).delta(0) < 0.39
    True
    """
    mu_squared = exact(mu, "mu") ** 2
    spacing = _checked_spacing(spacing)
    size = max(2, math.ceil(exact(reach, "reach") / spacing) + 1)
    return Profile(spacing, _gaussian_values(mu_squared, spacing, size).copy())


def gaussian_delta(mu_squared: Fraction, x: Fraction) -> arb:
    """The exact profile of the Gaussian mechanism (Balle & Wang 2018, Thm 8; Dong et al. 2019)."""
    if mu_squared == 0:
        return arb(0) if x >= 0 else 1 - ball(x).exp()
    mu, y = ball(mu_squared).sqrt(), ball(x)
    return normal_below(mu / 2 - y / mu) - y.exp() * normal_below(-mu / 2 - y / mu)


@lru_cache(maxsize=16)
def _gaussian_values(mu_squared: Fraction, spacing: Fraction, size: int) -> Floats:
    """``gaussian_delta`` at 0, spacing, ..., rounded up: constants once, e^x by products."""
    if mu_squared == 0:
        return np.zeros(size)
    with precision(96):
        mu, root = ball(mu_squared).sqrt(), arb(2).sqrt()
        place, step = mu / 2 / root, ball(spacing) / mu / root
        growth, power = ball(spacing).exp(), arb(0.5)
        values = []
        below, above = (erfc_on_grid(start, step, size) for start in (-place, place))
        for near, far in zip(below, above, strict=True):
            values.append(up(near / 2 - power * far))
            power *= growth
    return recursion.falling(np.clip(np.array(values), 0.0, 1.0))


def maximum(profiles: Sequence[Profile]) -> Profile:
    """The bound when one of several sequences runs, whichever: the largest at every x."""
    if not profiles:
        raise InvalidParameter("maximum needs at least one profile")
    spacing, reach = profiles[0].spacing, max(profile.reach for profile in profiles)
    moved = [
        profile
        if profile.spacing == spacing and profile.reach == reach
        else profile.on_grid(spacing, reach)
        for profile in profiles
    ]
    size = min(len(profile.values) for profile in moved)
    return Profile(spacing, np.maximum.reduce([profile.values[:size] for profile in moved]))


def _checked_spacing(spacing: Number) -> Fraction:
    value = exact(spacing, "spacing")
    if not Fraction(1, 10**8) <= value <= WIDEST_SPACING:
        raise InvalidParameter(f"spacing={spacing} must lie between 1e-8 and {WIDEST_SPACING}")
    return value


@lru_cache(maxsize=256)
def _step_constants(spacing: Fraction, cells: int) -> recursion.StepConstants:
    return recursion.step_constants(spacing, cells)


@lru_cache(maxsize=64)
def _mirror(spacing: Fraction, count: int) -> Floats:
    factors = recursion.mirror_factors(spacing, count)
    factors.flags.writeable = False
    return factors
