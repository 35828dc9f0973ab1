"""The cost of a private choice among public options: one pick, and then the costliest option.

The option is published, so that what follows may be charged by its own steps. Whatever a pair of
neighbours, the whole is one bounded-range step in front of the largest of the options' profiles
(docs/proofs/weighted-histogram.md).

>>> gaussian_release = TestedSteps(Fraction(0), (), Fraction(1, 100))
>>> steps = ChosenSteps(Fraction(1, 20), (gaussian_release, gaussian_release))
>>> float(steps.rho())
0.0053125
>>> steps.profile(1e-6).delta(1) < 1e-6
True
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from flint import arb

from topsecret.accounting.absorption import absorbed
from topsecret.accounting.profile import Profile, gaussian_profile, maximum
from topsecret.accounting.tested import TestedSteps, choice_spacing, half_decade_of, reach_of
from topsecret.exact.rounding import Number, ball, root_up


@dataclass(frozen=True, slots=True)
class ChosenSteps:
    """A pick of ``choice``, and then the steps of the option that it names.

    A Gaussian release is ``TestedSteps(Fraction(0), (), mu_squared)``, without branches.
    """

    choice: Fraction
    options: tuple[TestedSteps, ...]
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.choice, self.options)))

    def __hash__(self) -> int:
        return self._hash

    def __call__(self, alpha: arb) -> arb:
        """The Rényi divergence of order alpha, by zCDP; the profile is far sharper."""
        return alpha * ball(self.rho())

    def rho(self) -> Fraction:
        """The zCDP of the whole."""
        return self.choice**2 / 8 + max(option.rho() for option in self.options)

    def absorbed(self) -> Fraction | None:
        """The mu² of a Gaussian step that dominates the whole; None for steps above 1."""
        found = [option.absorbed() for option in self.options]
        known = [value for value in found if value is not None]
        return absorbed(((1, self.choice),), max(known)) if len(known) == len(found) else None

    def profile(self, delta: Number) -> Profile:
        """A bound on the whole for every x, on a grid that serves deltas near ``delta``."""
        return _profile(self, half_decade_of(delta))


@lru_cache(maxsize=64)
def _profile(steps: ChosenSteps, half_decade: int) -> Profile:
    reach = reach_of(float(steps.rho()), half_decade)
    spacing = choice_spacing(steps.choice, reach)
    delta = 1.001 * 10.0 ** (half_decade / 2)  # inside the half decade
    profiles = [
        option.profile(delta).on_grid(spacing, reach)
        if option.branches or option.choice
        else gaussian_profile(root_up(option.mu_squared), spacing, reach)
        for option in steps.options
    ]
    return maximum(profiles).after_pick(steps.choice)
