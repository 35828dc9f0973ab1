"""The optimal bound for picks, pure steps and Gaussian steps: which grid, and the answer.

The choice of the grid uses floats freely: every grid gives a valid bound, a good one a tight
bound in time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product

from topsecret.accounting.classical import Run
from topsecret.accounting.pairs import lattice_radius
from topsecret.accounting.profile import LARGEST_PICK, Profile, identity_profile, maximum
from topsecret.accounting.recursion import WIDEST_SPACING

FINE = 2e-4
"""How much of epsilon the chords may cost, about."""
MOST_STEPS = 20_000
MOST_WORK = 2e8
"""Cells times grid points times steps: about two seconds."""
LEAST_WORK = 1e6
"""Where the estimate would allow a coarser grid than this, spend at least about 20 ms."""
MOST_POINTS = 40_000
MOST_LATTICE = 100_000
MOST_ORDERS = 300
"""How many sets of picks that are left may arise, where their order is not known."""
AVERAGING_POINTS = 1000
FINEST_SPACING = 1e-8


@dataclass(frozen=True, slots=True)
class Steps:
    """What the optimal recursion can treat: runs of picks in order, and steps of a fixed pair."""

    picks: tuple[Run, ...]
    """Runs of bounded-range steps: how many, and the epsilon of each."""
    pures: tuple[Run, ...]
    """Runs of pure steps."""
    mu_squared: Fraction
    """mu² of all Gaussian steps together."""
    discretes: tuple[Run, ...] = ()
    """Runs of discrete Gaussian steps: how many, and the sigma² of each."""
    in_order: bool = True
    """Whether the picks came in this order; otherwise the worst order counts."""

    @property
    def total(self) -> Fraction:
        """The sum of all epsilons."""
        return sum((n * e for n, e in (*self.picks, *self.pures)), Fraction(0))

    def rho(self) -> float:
        """About the zCDP, for choosing grids only."""
        picks = sum(n * float(e) ** 2 / 8 for n, e in self.picks)
        pures = sum(n * float(e) * math.tanh(float(e) / 2) for n, e in self.pures)
        discretes = sum(n / (2 * float(variance)) for n, variance in self.discretes)
        return picks + pures + discretes + float(self.mu_squared) / 2


def optimal_epsilon(steps: Steps, delta: Fraction, tolerance: float = FINE) -> float:
    """The optimal epsilon at ``delta``, rounded up; inf where no grid serves.

    >>> steps = Steps(((10, Fraction(1, 10)),), (), Fraction(0))
    >>> 0.6340 < optimal_epsilon(steps, Fraction(1, 10**6)) < 0.6345
    True
    """
    profile = _profile(steps, delta, tolerance)
    return math.inf if profile is None else profile.epsilon(delta)


def optimal_delta(steps: Steps, x: Fraction, expected: float, tolerance: float = FINE) -> float:
    """The optimal delta at x, rounded up, given roughly how large it will be."""
    if expected < 1e-250:
        return 1.0
    profile = _profile(steps, Fraction(expected), tolerance)
    return 1.0 if profile is None else profile.delta(x)


def _profile(steps: Steps, delta: Fraction, tolerance: float) -> Profile | None:
    if delta <= 0 or delta < Fraction(1, 10**250):
        return None
    # One grid for each half decade of delta, so that neighbouring questions share a profile.
    decade = math.floor(2 * math.log10(min(1.0, float(delta))))
    return optimal_profile(steps, decade, tolerance)


@lru_cache(maxsize=256)
def optimal_profile(steps: Steps, half_decade: int, tolerance: float) -> Profile | None:
    """The profile of the steps on a grid for deltas near 10^(h/2), h the ``half_decade``."""
    if not treatable(steps):
        return None
    count = sum(n for n, _ in steps.picks)
    surprise = -half_decade / 2 * math.log(10) + 1.0
    rho = steps.rho()
    if rho == 0:
        return None
    # Beyond the reach the profile is one number; at 1e-5 of delta over the steps it is harmless.
    far = surprise + math.log(1e5) + math.log(1 + count) / 2
    reach = rho + 2 * math.sqrt(rho * far)
    if not (steps.mu_squared or steps.discretes):
        reach = min(reach, float(steps.total))
    spacing = _spacing(steps, count, rho, reach, surprise, tolerance)
    if spacing < FINEST_SPACING:
        return None
    # Past the sum of the epsilons the bound vanishes: keep a few cells of that.
    profile = identity_profile(spacing, Fraction(reach) + spacing * (4 + 2 * len(steps.pures)))
    if not steps.in_order:
        worst = _worst_order(profile, steps.picks)
        return None if worst is None else in_front(worst, replace(steps, picks=()))
    tiny: list[Run] = []
    for n, epsilon in reversed(steps.picks):
        cells = max(1, round(epsilon / spacing), math.ceil(epsilon / WIDEST_SPACING))
        if reach / float(epsilon / cells) > MOST_POINTS or epsilon / cells < FINEST_SPACING:
            tiny.append((n, epsilon))
            continue
        profile = profile.on_grid(epsilon / cells).after_picks([epsilon] * n)
    # A pick is a pure step too, and a pure step may be moved to the front.
    return in_front(profile, replace(steps, picks=(), pures=(*steps.pures, *tiny)))


def _worst_order(after: Profile, runs: tuple[Run, ...]) -> Profile | None:
    """The largest profile over all orders of the picks; None where there are too many orders.

    Whichever pick comes first of those that are left, the rest is at most the largest profile of
    the rest: F(left) = max over i of T_i F(left without one i).
    """
    if math.prod(n + 1 for n, _ in runs) > MOST_ORDERS:
        return None
    known: dict[tuple[int, ...], Profile] = {}
    for left in product(*(range(n + 1) for n, _ in runs)):
        found = [
            known[(*left[:i], left[i] - 1, *left[i + 1 :])].after_pick(epsilon)
            for i, (_, epsilon) in enumerate(runs)
            if left[i]
        ]
        known[left] = maximum(found) if found else after
    return known[left]


def in_front(profile: Profile, steps: Steps) -> Profile | None:
    """Pure, discrete Gaussian and Gaussian steps in front of a profile; there must be no picks.

    None where the reach is too long for a grid; the loss is then so large that nobody asks.
    """
    assert not steps.picks
    if not (steps.pures or steps.mu_squared or steps.discretes):
        return profile
    # Each of them costs one chord however many it stands for, so a coarser grid serves.
    coarse = max(profile.spacing, min(profile.reach / AVERAGING_POINTS, WIDEST_SPACING))
    if profile.reach / coarse > 4 * AVERAGING_POINTS:
        return None
    profile = profile.on_grid(coarse)
    for n, epsilon in steps.pures:
        profile = profile.after_pure(epsilon, n)
    for n, variance in steps.discretes:
        profile = profile.after_discrete_gaussian(variance, n)
    return profile.after_gaussian(steps.mu_squared)


def treatable(steps: Steps) -> bool:
    """Whether there are few enough steps, each small enough."""
    lattices = (2 * lattice_radius(n * variance) for n, variance in steps.discretes)
    return (
        sum(n for n, _ in steps.picks) <= MOST_STEPS
        and all(e <= LARGEST_PICK for _, e in steps.picks)
        and all(n <= MOST_STEPS for n, _ in steps.pures)
        and all(n <= MOST_LATTICE for n in lattices)
    )


def _spacing(
    steps: Steps, count: int, rho: float, reach: float, surprise: float, tolerance: float
) -> Fraction:
    """The spacing at which chords cost about ``tolerance`` of epsilon, within the work allowed."""
    chords = max(1, count) + len(steps.pures) + len(steps.discretes) + 1
    slope = math.sqrt(2 * surprise) / math.sqrt(2 * rho)
    epsilon = rho + 2 * math.sqrt(rho * surprise)
    wanted = math.sqrt(8 * tolerance * epsilon / (chords * slope))
    picked = sum(n * float(e) for n, e in steps.picks)
    cheapest = max(math.sqrt(picked * reach / MOST_WORK), reach / MOST_POINTS)
    least_work = LEAST_WORK * min(1.0, FINE / tolerance)
    wanted = min(wanted, max(math.sqrt(picked * reach / least_work), reach / 1000), reach / 100)
    spacing = min(max(wanted, cheapest), float(WIDEST_SPACING))
    return _shared(steps, spacing) or Fraction(spacing)


def _shared(steps: Steps, spacing: float) -> Fraction | None:
    """A spacing that divides every pick, close to the wanted one, if there is one."""
    epsilons = {epsilon for _, epsilon in steps.picks}
    if not epsilons:
        return None
    common = Fraction(0)
    for epsilon in epsilons:
        scale = math.lcm(common.denominator, epsilon.denominator)
        common = Fraction(math.gcd(int(common * scale), int(epsilon * scale)), scale)
    parts = max(1, round(common / Fraction(spacing)))
    shared = common / parts
    near = spacing / 2 <= shared <= 2 * spacing and shared <= WIDEST_SPACING
    return shared if near else None
