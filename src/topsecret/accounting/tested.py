"""The cost of `TestedTopK`: one of several branches, each of picks, prunes and a Gaussian test.

A private pick chooses the branch and is published; the branch is then a sequence of
bounded-range steps in a fixed order with one Gaussian step at the very end
(docs/proofs/tested-top-k.md).

>>> steps = TestedSteps(Fraction(1, 10), (Branch(((5, Fraction(1, 20)),)),), Fraction(1, 100))
>>> steps.profile(1e-6).delta(1) < 1e-6
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb

from topsecret.accounting import renyi
from topsecret.accounting.absorption import absorbed
from topsecret.accounting.classical import Run
from topsecret.accounting.profile import Profile, gaussian_profile, maximum
from topsecret.accounting.recursion import WIDEST_SPACING
from topsecret.exact.rounding import Number, ball, exact

FINE = 32
"""Grid cells for the largest step: the chords then cost less than 10⁻³ of epsilon."""
ROUGH = 12
"""For searching: within half a percent."""


@dataclass(frozen=True, slots=True)
class Branch:
    """Bounded-range steps in the order of time, as runs of how many and which epsilon."""

    runs: tuple[Run, ...]

    def rho(self) -> Fraction:
        """The zCDP of the steps."""
        return sum((n * epsilon * epsilon / 8 for n, epsilon in self.runs), Fraction(0))

    @property
    def unit(self) -> Fraction:
        """The largest number that all epsilons are multiples of."""
        common = Fraction(0)
        for _, epsilon in self.runs:
            scale = math.lcm(common.denominator, epsilon.denominator)
            common = Fraction(math.gcd(int(common * scale), int(epsilon * scale)), scale)
        return common


@dataclass(frozen=True, slots=True)
class TestedSteps:
    """A branch chosen by a pick of ``choice`` (0 if there is but one), its steps, then the test.

    It is a Rényi curve (call it with an order) that also has a profile of its own.
    """

    __test__ = False  # not a test case, whatever its name begins with

    choice: Fraction
    branches: tuple[Branch, ...]
    mu_squared: Fraction

    def __call__(self, alpha: arb) -> arb:
        """The Rényi divergence of order alpha: the choice, the worst branch, the test."""
        worst = arb(0)
        for branch in self.branches:
            total = arb(0)
            for n, epsilon in branch.runs:
                total += n * renyi.bounded_range(epsilon, alpha)
            worst = worst.max(total)
        chosen = renyi.bounded_range(self.choice, alpha) if self.choice else arb(0)
        return chosen + worst + alpha * ball(self.mu_squared) / 2

    def rho(self) -> Fraction:
        """The zCDP of the whole."""
        worst = max(branch.rho() for branch in self.branches)
        return self.choice**2 / 8 + worst + self.mu_squared / 2

    def absorbed(self) -> Fraction | None:
        """The mu² of a Gaussian step that dominates the whole; None for steps above 1.

        The branch is public, so the largest of theirs holds for all; the choice comes first.
        """
        found = [absorbed(branch.runs, self.mu_squared) for branch in self.branches]
        known = [value for value in found if value is not None]
        return absorbed(((1, self.choice),), max(known)) if len(known) == len(found) else None

    def profile(self, delta: Number, fineness: int = FINE) -> Profile:
        """A bound on the whole for every x, on a grid that serves deltas near ``delta``."""
        level = math.floor(2 * math.log10(float(exact(delta))))
        return _profile(self, level, fineness)

    def delta(self, x: Number, expected: Number, fineness: int = FINE) -> float:
        """The bound at x, rounded up, given roughly how large it will be."""
        return self.profile(expected, fineness).delta(x)


@lru_cache(maxsize=64)
def _profile(steps: TestedSteps, half_decade: int, fineness: int) -> Profile:
    reach = _reach(float(steps.rho()), half_decade)
    profiles = [
        branch_profile(branch, steps.mu_squared, reach, fineness) for branch in steps.branches
    ]
    profile = profiles[0] if len(profiles) == 1 else maximum(profiles)
    if steps.choice == 0:
        return profile
    cells = max(1, round(steps.choice / profile.spacing))
    return profile.on_grid(steps.choice / cells).after_pick(steps.choice)


@lru_cache(maxsize=256)
def branch_profile(branch: Branch, mu_squared: Fraction, reach: Fraction, fineness: int) -> Profile:
    """The test last, the steps in front of it, last to first.

    Why in that order: docs/proofs/accounting.md, section 1.
    """
    largest = max(epsilon for _, epsilon in branch.runs)
    unit = branch.unit
    cells = max(1, round(unit * fineness / largest), math.ceil(unit / WIDEST_SPACING))
    # Without a common divisor worth the name each step moves to a grid of its own.
    spacing = unit / cells if 64 * fineness * unit > largest else largest / fineness
    profile = gaussian_profile_of(mu_squared, spacing, reach)
    for n, epsilon in reversed(branch.runs):
        profile = profile.after_picks([epsilon] * n)
    return profile


@lru_cache(maxsize=64)
def gaussian_profile_of(mu_squared: Fraction, spacing: Fraction, reach: Fraction) -> Profile:
    """The profile of the test alone: mu is the square root, rounded up."""
    numerator = math.isqrt(mu_squared.numerator * 10**40 // mu_squared.denominator) + 1
    return gaussian_profile(Fraction(numerator, 10**20), spacing, reach)


def _reach(rho: float, half_decade: int) -> Fraction:
    """Beyond it the profile is one number, about 10⁻⁵ of the delta in question."""
    surprise = -half_decade / 2 * math.log(10) + 1.0 + math.log(1e6)
    return Fraction(round((rho + 2 * math.sqrt(rho * surprise)) * 2**20), 2**20)
