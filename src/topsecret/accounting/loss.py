"""Losses: what releases cost, kept in their strongest form.

>>> from topsecret.accounting import gaussian, picks
>>> loss = picks(10, 0.1) + gaussian(0.01)
>>> loss == 5 * picks(2, 0.1) + gaussian(0.01)
True
>>> 0.74 < loss.epsilon(1e-6) < 0.86
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from topsecret.accounting import bounds
from topsecret.accounting.classical import Run
from topsecret.accounting.explanation import Explanation
from topsecret.accounting.renyi import Curve, NamedCurve
from topsecret.accounting.tested import Branch, TestedSteps
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, exact


class JointProfile(Protocol):
    """A bound on one whole release that is sharper than the sum of its parts. Hashable."""

    def delta(self, x: Fraction) -> float:
        """At least the divergence at x of every pair of neighbours, rounded up."""
        ...

    def epsilon(self, delta: Fraction) -> float:
        """An x at which it is at most ``delta``, rounded up; inf if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Loss:
    """The privacy loss of a sequence of releases; losses add, and ``n * loss`` is n in turn.

    Make one with ``picks``, ``pure``, ``gaussian``, ``zcdp``, ``rdp``, ``approximate``,
    ``discrete_gaussian``, ``failure`` and ``slack``. The form is canonical: picks keep their
    order, all other parts are sums, so equal sequences have equal losses. Picks of different
    epsilons cost more in one order than in another: a sum does not know which loss came first and
    charges the worst order; ``then`` knows, and so do ``picks_in_order`` and ``n * loss``.

    Guarantee: for steps chosen adaptively, with their number and parameters fixed beforehand
    and the picks in this order (the other parts anywhere), the sequence is
    (epsilon(delta), delta)-DP for every delta. Everything reported is rounded up.
    """

    pick_runs: tuple[Run, ...] = ()
    """Runs of bounded-range steps: how many, and the epsilon of each; in the order of time, or
    rising where it is not known."""
    pure_runs: tuple[Run, ...] = ()
    """Pure steps, sorted by epsilon: their order does not matter."""
    mu_squared: Fraction = Fraction(0)
    """Continuous Gaussian steps: the sum of their squared signal-to-noise ratios."""
    discrete_runs: tuple[Run, ...] = ()
    """Integer counts with discrete Gaussian noise: how many one person moves, and sigma²."""
    zcdp_rho: Fraction = Fraction(0)
    """Steps that are known only by their zCDP."""
    curves: tuple[tuple[int, NamedCurve], ...] = ()
    """Steps that are known only by a Rényi curve."""
    failures: Fraction = Fraction(0)
    """Probabilities of failure, added to delta."""
    slack: Fraction = Fraction(0)
    """Added to epsilon."""
    in_order: bool = True
    """Whether the picks came in this order; if not, the worst order is charged."""
    joint: JointProfile | None = None
    """The sharper profile of a single release, failures included; lost when losses add up."""

    def __add__(self, later: Loss) -> Loss:
        if not isinstance(later, Loss):
            return NotImplemented
        if NO_LOSS in (self, later):
            return later if self == NO_LOSS else self
        if not (self.pick_runs and later.pick_runs):
            runs, known = (*self.pick_runs, *later.pick_runs), self.in_order and later.in_order
        else:
            runs = _merged((*self.pick_runs, *later.pick_runs))
            known = len(runs) == 1
        return Loss(
            runs,
            _merged((*self.pure_runs, *later.pure_runs)),
            self.mu_squared + later.mu_squared,
            _merged((*self.discrete_runs, *later.discrete_runs)),
            self.zcdp_rho + later.zcdp_rho,
            _merged_curves((*self.curves, *later.curves)),
            self.failures + later.failures,
            self.slack + later.slack,
            known,
        )

    def then(self, later: Loss) -> Loss:
        """Both, the other one known to come later: never more than their sum.

        >>> large, small = picks(5, 0.5), picks(5, 0.25)
        >>> large.then(small).epsilon(1e-5) < (large + small).epsilon(1e-5)
        True
        """
        runs = _joined((*self.pick_runs, *later.pick_runs))
        return replace(self + later, pick_runs=runs, in_order=self.in_order and later.in_order)

    def __mul__(self, copies: int) -> Loss:
        if not isinstance(copies, int) or isinstance(copies, bool):
            return NotImplemented
        if copies < 0:
            raise InvalidParameter(f"copies={copies} of a loss must not be negative")
        if copies < 2:
            return self if copies else NO_LOSS
        if len(self.pick_runs) == 1:
            runs: tuple[Run, ...] = ((copies * self.pick_runs[0][0], self.pick_runs[0][1]),)
        else:
            runs = _joined(self.pick_runs * copies)
        return Loss(
            runs,
            tuple((copies * n, epsilon) for n, epsilon in self.pure_runs),
            copies * self.mu_squared,
            tuple((copies * n, variance) for n, variance in self.discrete_runs),
            copies * self.zcdp_rho,
            tuple((copies * n, curve) for n, curve in self.curves),
            copies * self.failures,
            copies * self.slack,
            self.in_order,
        )

    __rmul__ = __mul__

    def then_gaussian(self, mu_squared: Number) -> Loss:
        """This sequence, *followed by* continuous Gaussian steps of total ``mu_squared``.

        Never more than ``self + gaussian(mu_squared)``, which lets the Gaussians come first:
        those that come last absorb picks (docs/proofs/absorption.md).

        >>> list_and_counts = picks(5, 0.2).then_gaussian(0.01)
        >>> list_and_counts.epsilon(1e-6) < (picks(5, 0.2) + gaussian(0.01)).epsilon(1e-6)
        True
        """
        last = _price(mu_squared, "mu_squared")
        if self.pick_runs and self.in_order and not self.curves:
            steps = TestedSteps(Fraction(0), (Branch(self.pick_runs),), last)
            named = NamedCurve("picks, then Gaussians", steps)
            return replace(self, pick_runs=(), curves=((1, named),), joint=None)
        if len(self.curves) == 1 and not self.pick_runs:
            [(copies, known)] = self.curves
            if copies == 1 and isinstance(known.curve, TestedSteps):
                steps = known.curve.followed_by(last)
                return replace(self, curves=((1, NamedCurve(known.name, steps)),), joint=None)
        return self + gaussian(last)

    def epsilon(self, delta: Number) -> float:
        """The smallest provable epsilon at ``delta`` (failures included), or inf.

        >>> (picks(3, 0.5) + failure(1e-6)).epsilon(1e-6)
        1.5
        """
        return self.explain(delta).epsilon

    def delta(self, epsilon: Number) -> float:
        """The smallest provable delta at ``epsilon``, failures included, at most 1.

        >>> pure(1).delta(1)
        0.0
        """
        return _delta(self, _price(epsilon, "epsilon"))

    def keeps_to(self, epsilon: Number, delta: Number) -> bool:
        """Whether a valid bound is at most ``epsilon`` at ``delta``, the closed form asked first.

        The same answer as ``self.epsilon(delta) <= epsilon``, often in a thousandth of the time.

        >>> picks(1000, 0.01).keeps_to(0.65, 1e-6)
        True
        """
        target, left = _price(epsilon, "epsilon"), _price(delta, "delta")
        return bool(bounds.keeps_to(self, target, left)) or self.epsilon(left) <= target

    def rho(self) -> float | None:
        """The zCDP of the sequence, rounded up; None if a part is known by a Rényi curve only.

        Failures and slack stay apart: they are to be charged beside it
        (docs/proofs/many-queries.md).

        >>> picks(8, 1).rho()
        1.0
        """
        return bounds.rho_of(self)

    def explain(self, delta: Number) -> Explanation:
        """Every bound that is valid for this sequence, the smallest marked."""
        return _explanation(self, _price(delta, "delta"))

    def bound_used(self, delta: Number) -> str:
        """The name of the bound that gives ``epsilon(delta)``.

        >>> pure(1).bound_used(0)
        'basic'
        """
        return self.explain(delta).winner.name


NO_LOSS = Loss()
"""Nothing was released."""


def picks(n: int, epsilon: Number) -> Loss:
    """``n`` bounded-range steps of ``epsilon`` each (one exponential-mechanism pick is one).

    Parameters: ``n``: how many, fixed beforehand; ``epsilon``: of each.
    """
    return picks_in_order([epsilon] * _count(n)) if n < 2 else n * picks_in_order([epsilon])


def picks_in_order(epsilons: Sequence[Number]) -> Loss:
    """Bounded-range steps with these epsilons, first to last.

    >>> picks_in_order([0.5, 0.5, 0.25]).pick_runs
    ((2, Fraction(1, 2)), (1, Fraction(1, 4)))
    """
    return Loss(pick_runs=_joined(tuple((1, _price(epsilon, "epsilon")) for epsilon in epsilons)))


def pure(epsilon: Number) -> Loss:
    """An epsilon-DP step."""
    return Loss(pure_runs=_merged(((1, _price(epsilon, "epsilon")),)))


def gaussian(mu_squared: Number) -> Loss:
    """A step whose loss is that of continuous Gaussian noise: mu² = (sensitivity / sigma)²."""
    return Loss(mu_squared=_price(mu_squared, "mu_squared"))


def discrete_gaussian(sigma_squared: Number, count: int = 1) -> Loss:
    """``count`` integer counts, each moved by at most 1, with discrete Gaussian noise.

    The same release as ``zcdp(count / (2 sigma²))``, kept in its stronger form
    (docs/proofs/accounting.md, section 1).

    Parameters: ``sigma_squared``: the variance of the noise of each; ``count``: how many.
    """
    variance = _price(sigma_squared, "sigma_squared")
    if variance == 0:
        raise InvalidParameter(f"sigma_squared={sigma_squared} must be above 0")
    return Loss(discrete_runs=_merged(((_count(count, "count"), variance),)))


def zcdp(rho: Number) -> Loss:
    """A step known only to be rho-zCDP (say, a number of picks that is not fixed)."""
    return Loss(zcdp_rho=_price(rho, "rho"))


def rdp(name: str, curve: Curve) -> Loss:
    """A step known by its Rényi curve: a hashable callable from alpha > 1 to a ball."""
    return Loss(curves=((1, NamedCurve(name, curve)),))


def failure(delta: Number) -> Loss:
    """An event of probability ``delta`` in which nothing is promised."""
    delta = _price(delta, "delta")
    if delta > 1:
        raise InvalidParameter(f"delta={float(delta)} must be at most 1")
    return Loss(failures=delta)


def slack(epsilon: Number) -> Loss:
    """An amount that is added to epsilon whatever the bound: a law known up to a factor."""
    return Loss(slack=_price(epsilon, "slack"))


def approximate(epsilon: Number, delta: Number) -> Loss:
    """An (epsilon, delta)-DP step: a pure one but for a failure (KOV 2015, Thm 3.1)."""
    return pure(epsilon) + failure(delta)


def _price(value: Number, name: str) -> Fraction:
    result = exact(value, name)
    if result < 0:
        raise InvalidParameter(f"{name}={value} must not be negative")
    return result


def _count(n: int, name: str = "n") -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise InvalidParameter(f"{name}={n!r} must be a whole number, 0 or more")
    return n


def _joined(runs: tuple[Run, ...]) -> tuple[Run, ...]:
    """Neighbouring runs of one epsilon become one; steps of epsilon 0 vanish."""
    result: list[Run] = []
    for n, epsilon in runs:
        if n == 0 or epsilon == 0:
            continue
        if result and result[-1][1] == epsilon:
            result[-1] = (result[-1][0] + n, epsilon)
        else:
            result.append((n, epsilon))
    return tuple(result)


def _merged(runs: tuple[Run, ...]) -> tuple[Run, ...]:
    return _joined(tuple(sorted(runs, key=lambda run: run[1])))


def _merged_curves(runs: tuple[tuple[int, NamedCurve], ...]) -> tuple[tuple[int, NamedCurve], ...]:
    counts: dict[NamedCurve, int] = {}
    for n, curve in runs:
        counts[curve] = counts.get(curve, 0) + n
    ordered = sorted(counts, key=lambda curve: (curve.name, repr(curve.curve)))
    return tuple((counts[curve], curve) for curve in ordered)


@lru_cache(maxsize=4096)
def _explanation(loss: Loss, delta: Fraction) -> Explanation:
    return Explanation(delta, bounds.epsilons(loss, delta))


@lru_cache(maxsize=4096)
def _delta(loss: Loss, epsilon: Fraction) -> float:
    return bounds.smallest_delta(loss, epsilon)
