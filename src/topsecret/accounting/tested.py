"""The cost of `TestedTopK`: one of several branches, each of picks, prunes and a Gaussian test.

A private pick chooses the branch and is published; the branch is then a sequence of
bounded-range steps in a fixed order with one Gaussian step at the very end
(docs/proofs/tested-top-k.md). A branch of few steps is bounded by the recursion, which is sharper;
one of many by absorption, which is a closed form and by then as sharp.

>>> steps = TestedSteps(Fraction(1, 10), (Branch(((5, Fraction(1, 20)),)),), Fraction(1, 100))
>>> steps.profile(1e-6).delta(1) < 1e-6
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

from flint import arb

from topsecret.accounting.absorption import absorbed
from topsecret.accounting.classical import Run
from topsecret.accounting.profile import Profile, gaussian_profile, maximum
from topsecret.accounting.recursion import WIDEST_SPACING
from topsecret.exact.rounding import Number, ball, exact, root_up

FEW_STEPS = 32
"""Up to so many steps one of several branches goes through the recursion."""
MORE_STEPS = 250
"""Up to so many steps the only branch does: beyond, the closed form spends 99.8% of epsilon."""
CELLS = 16
"""Grid cells of the recursion for the largest step: the chords cost less than 10⁻³ of epsilon."""
FINE_CELLS = 24
"""The same for the only branch, whose price is calibrated with it alone: less than half of that."""
CHOICE_CELLS = 40
"""Grid cells for the choice of the branch."""


@dataclass(frozen=True, slots=True)
class Branch:
    """Bounded-range steps in the order of time, as runs of how many and which epsilon."""

    runs: tuple[Run, ...]
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.runs))

    def __hash__(self) -> int:  # once: that of a fraction takes longer than a step of a search
        return self._hash

    def rho(self) -> Fraction:
        """The zCDP of the steps."""
        scale, whole = self._in_wholes()
        squares = sum(n * e * e for (n, _), e in zip(self.runs, whole, strict=True))
        return Fraction(squares, 8 * scale * scale)

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return sum(n for n, _ in self.runs)

    def scaled(self, factor: Fraction) -> Branch:
        """All epsilons times the factor."""
        return Branch(tuple((n, epsilon * factor) for n, epsilon in self.runs))

    @property
    def unit(self) -> Fraction:
        """The largest number that all epsilons are multiples of."""
        scale, whole = self._in_wholes()
        return Fraction(math.gcd(*whole), scale)

    def _in_wholes(self) -> tuple[int, list[int]]:
        """A common denominator of all epsilons, and the epsilons over it."""
        scale = math.lcm(*(epsilon.denominator for _, epsilon in self.runs))
        return scale, [e.numerator * (scale // e.denominator) for _, e in self.runs]


@dataclass(frozen=True, slots=True)
class TestedSteps:
    """A branch chosen by a pick of ``choice`` (0 if there is but one), its steps, then the test.

    It is a Rényi curve (call it with an order) that also has a profile of its own. Without branches
    it is one Gaussian step.
    """

    __test__ = False  # not a test case, whatever its name begins with

    choice: Fraction
    branches: tuple[Branch, ...]
    mu_squared: Fraction
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.choice, self.branches, self.mu_squared)))

    def __hash__(self) -> int:
        return self._hash

    def __call__(self, alpha: arb) -> arb:
        """The Rényi divergence of order alpha, by zCDP; the profile is far sharper."""
        return alpha * ball(self.rho())

    def rho(self) -> Fraction:
        """The zCDP of the whole."""
        return _rho(self)

    def absorbed(self) -> Fraction | None:
        """The mu² of a Gaussian step that dominates the whole; None for steps above 1.

        The branch is public, so the largest of theirs holds for all; the choice comes first.
        """
        each = [_absorbed(branch, self.mu_squared) for branch in self.branches]
        found = each or [self.mu_squared]
        known = [value for value in found if value is not None]
        return absorbed(((1, self.choice),), max(known)) if len(known) == len(found) else None

    def is_short(self, branch: Branch) -> bool:
        """Whether the branch goes through the recursion."""
        return branch.steps <= (MORE_STEPS if len(self.branches) == 1 else FEW_STEPS)

    def followed_by(self, mu_squared: Fraction) -> TestedSteps:
        """With further Gaussian steps at the end, say noisy counts of what was released."""
        return replace(self, mu_squared=self.mu_squared + mu_squared)

    def worst_branch(self, delta: Number) -> Profile:
        """F: a bound on every branch with its test, before the choice is charged."""
        return _worst_branch(self, half_decade_of(delta))

    def profile(self, delta: Number) -> Profile:
        """A bound on the whole for every x, on a grid that serves deltas near ``delta``."""
        return _profile(self, half_decade_of(delta))

    def delta(self, x: Number, expected: Number) -> float:
        """The bound at x, rounded up, given roughly how large it will be."""
        return self.profile(expected).delta(x)


@lru_cache(maxsize=64)
def _rho(steps: TestedSteps) -> Fraction:
    worst = max((branch.rho() for branch in steps.branches), default=Fraction(0))
    return steps.choice**2 / 8 + worst + steps.mu_squared / 2


def half_decade_of(delta: Number) -> int:
    """Deltas differ by half a decade or count as one: similar ones share a grid."""
    return math.floor(2 * math.log10(float(exact(delta))))


@lru_cache(maxsize=64)
def _profile(steps: TestedSteps, half_decade: int) -> Profile:
    worst = _worst_branch(steps, half_decade)
    return worst if steps.choice == 0 else worst.after_pick(steps.choice)


@lru_cache(maxsize=64)
def _worst_branch(steps: TestedSteps, half_decade: int) -> Profile:
    recursive, closed = [], []
    for branch in steps.branches:
        whole = None if steps.is_short(branch) else _absorbed(branch, steps.mu_squared)
        if whole is None:
            recursive.append(branch)
        else:
            closed.append(whole)
    # Prices were searched on the grids of this reach, so that the certificate finds their profiles
    # again. Without the Gaussian of a long branch, by the least zCDP: few steps have more, but a
    # lighter tail.
    least = min(map(_about_rho, recursive), default=0.0) + float(steps.mu_squared) / 2
    rho = float(steps.choice) ** 2 / 8 + (float(max(closed)) / 2 if closed else least)
    reach = reach_of(rho, half_decade)
    spacing = choice_spacing(steps.choice, reach)
    cells = FINE_CELLS if len(steps.branches) == 1 else CELLS
    found = [
        branch_profile(branch, steps.mu_squared, reach, cells).on_grid(spacing, reach)
        for branch in recursive
    ]
    largest = root_up(max(closed, default=steps.mu_squared))
    return maximum([gaussian_profile(largest, spacing, reach), *found])


@lru_cache(maxsize=1024)
def _absorbed(branch: Branch, mu_squared: Fraction) -> Fraction | None:
    return absorbed(branch.runs, mu_squared)


def _about_rho(branch: Branch) -> float:
    """``rho`` in floats: what a grid spans needs no more."""
    return sum(n * float(epsilon) ** 2 for n, epsilon in branch.runs) / 8


def choice_spacing(choice: Fraction, reach: Fraction) -> Fraction:
    """A spacing that divides the choice."""
    if choice == 0:
        return min(reach / 1024, WIDEST_SPACING)
    return choice / max(CHOICE_CELLS, math.ceil(choice / WIDEST_SPACING))


@lru_cache(maxsize=1024)
def branch_profile(branch: Branch, mu_squared: Fraction, reach: Fraction, most: int) -> Profile:
    """The test last, the steps in front of it, last to first: the recursion.

    Why in that order: docs/proofs/accounting.md, section 1.
    """
    runs = [(n, epsilon) for n, epsilon in branch.runs if n and epsilon]
    largest = max(epsilon for _, epsilon in runs)
    unit = branch.unit
    cells = max(1, round(unit * most / largest), math.ceil(unit / WIDEST_SPACING))
    # Without a common divisor worth the name each step moves to a grid of its own.
    spacing = unit / cells if 64 * most * unit > largest else largest / most
    return _test_profile(mu_squared, reach).on_grid(spacing).after_runs(runs)


@lru_cache(maxsize=64)
def _test_profile(mu_squared: Fraction, reach: Fraction) -> Profile:
    """The test alone, on a grid so fine that all branches can take theirs from it."""
    return gaussian_profile(root_up(mu_squared), min(reach / 448, WIDEST_SPACING), reach)


def reach_of(rho: float, half_decade: int) -> Fraction:
    """Beyond it the profile is one number, about 10⁻⁵ of the delta in question."""
    surprise = -half_decade / 2 * math.log(10) + 1.0 + math.log(1e6)
    wanted = rho + 2 * math.sqrt(rho * surprise)
    # Rounded to an eighth of an octave, so that similar losses share their profiles.
    return Fraction(2.0 ** (math.ceil(8 * math.log2(wanted)) / 8))
