"""Which bounds are valid for a loss, and what each gives."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from flint import arb

from topsecret.accounting import classical, renyi
from topsecret.accounting.absorption import absorbed
from topsecret.accounting.chosen import ChosenSteps
from topsecret.accounting.explanation import Bound
from topsecret.accounting.optimal import (
    MOST_STEPS,
    Steps,
    in_front,
    optimal_delta,
    optimal_epsilon,
    treatable,
)
from topsecret.accounting.profile import Profile, gaussian_delta
from topsecret.accounting.tested import TestedSteps
from topsecret.exact.rounding import ball, precision, up

if TYPE_CHECKING:
    from topsecret.accounting.loss import Loss

BASIC = "the sum of the epsilons"
DURFEE_ROGERS = "Durfee & Rogers 2019, Lemma 4.4"
ZCDP = "Bun & Steinke 2016; Cesar & Rogers 2021; converted by Canonne et al. 2020"
RENYI = "tight Rényi curves, converted by Canonne et al. 2020, Prop. 12"
OPTIMAL = "optimal adaptive composition, after Dong, Durfee & Rogers 2020"
PURE = "Kairouz, Oh & Viswanath 2015, Thm 3.3"
GAUSSIAN = "Balle & Wang 2018, Thm 8"
JOINT = "noise and threshold of one release together (proof: WeightedHistogram)"
ABSORBED = "picks absorbed by Gaussians, in closed form (proof: absorption)"

BRANCHING = TestedSteps | ChosenSteps
"""Steps after a published choice, which have a zCDP, a closed form and a profile of their own."""

CLOSE = Fraction(3, 1000)
"""The recursion is left out where the closed form's mu² exceeds that of a Gaussian of the same
variance by no more: it could lower epsilon by a fifth of a percent, and takes seconds."""


def epsilons(loss: Loss, delta: Fraction) -> tuple[Bound, ...]:
    """Every bound that is valid for the loss, as a total epsilon at ``delta``."""
    left = delta - loss.failures
    found: list[Bound] = []
    if loss.joint is not None and not loss.slack:
        found.append(Bound("joint", loss.joint.epsilon(delta), JOINT))
    if left < 0:
        failures = Bound("failures", math.inf, "delta is below the probability of failure")
        return (*found, failures)

    def add(name: str, epsilon: float, source: str) -> None:
        total = up(Fraction(epsilon) + loss.slack) if math.isfinite(epsilon) else math.inf
        found.append(Bound(name, total, source))

    if left >= 1:
        add("trivial", 0.0, "delta is at least 1")
        return tuple(found)
    steps = _steps(loss)
    by_epsilon = _known_by_epsilon(loss)
    if by_epsilon:
        add("basic", up(steps.total), BASIC)
    if left == 0:
        if not by_epsilon:
            add("basic", math.inf, "a part of the loss needs a delta above 0")
        return tuple(found)
    if steps.picks or steps.pures:
        if by_epsilon:
            add(
                "Durfee-Rogers",
                classical.durfee_rogers_epsilon(steps.picks, steps.pures, left),
                DURFEE_ROGERS,
            )
        equal = _equal_steps(steps)
        if by_epsilon and equal is not None:
            add("KOV", classical.optimal_pure_epsilon(*equal, left), PURE)
    if not _empty(loss):
        by_rho = None
        if _has_rho(loss):
            with precision(192):
                rho = _rho(loss)
            by_rho = renyi.renyi_epsilon(lambda alpha: alpha * rho, left)
            add("zCDP", by_rho, ZCDP)
        if by_rho is None or steps.picks or steps.pures:  # otherwise the curve is the same
            by_rho = renyi.renyi_epsilon(renyi_of(loss), left)
        add("Rényi", by_rho, RENYI)
    if _only_gaussian(loss):
        add("Gaussian", classical.gaussian_epsilon(loss.mu_squared, left), GAUSSIAN)
        return tuple(found)
    mu_squared = _absorbed(loss)
    if mu_squared is not None:
        add("absorbed", classical.gaussian_epsilon(mu_squared, left), ABSORBED)
        if _is_close(loss, mu_squared):
            return tuple(found)
    if _has_profile(loss):
        add("optimal", optimal_epsilon(steps, left), OPTIMAL)
    elif (tested := _tested_profile(loss, left)) is not None:
        add("optimal", tested.epsilon(left), OPTIMAL)
    return tuple(found)


def is_closed(loss: Loss) -> bool:
    """Whether the closed form is used alone: the recursion would hardly sharpen it."""
    mu_squared = _absorbed(loss)
    return mu_squared is not None and _is_close(loss, mu_squared)


def _is_close(loss: Loss, mu_squared: Fraction) -> bool:
    """A choice and short branches keep their recursion: prices rest on that."""
    for _, named in loss.curves:
        if isinstance(named.curve, ChosenSteps):
            return False
        if isinstance(named.curve, TestedSteps) and any(
            named.curve.is_short(branch) for branch in named.curve.branches
        ):
            return False
    return mu_squared <= (1 + CLOSE) * _variance(loss)


def keeps_to(loss: Loss, epsilon: Fraction, delta: Fraction) -> bool | None:
    """Whether a quick bound shows that the loss keeps to (epsilon, delta); None if none does.

    The closed form, then the profile that a tested selection was certified with. For searches and
    checks: None says nothing about the other bounds.
    """
    left = delta - loss.failures
    if epsilon < loss.slack or left <= 0:
        return None
    mu_squared = _absorbed(loss)
    if mu_squared is not None:
        with precision(160):
            spent = up(gaussian_delta(mu_squared, epsilon - loss.slack))
        if Fraction(spent) <= left:
            return True
    tested = _tested_profile(loss, left)
    if tested is not None and math.isfinite(found := tested.epsilon(left)):
        return True if Fraction(found) + loss.slack <= epsilon else None
    return None


def smallest_delta(loss: Loss, epsilon: Fraction) -> float:
    """The smallest delta that a valid bound gives at a total ``epsilon``."""
    x = epsilon - loss.slack
    steps = _steps(loss)
    found = [1.0]
    if x >= 0:
        if _known_by_epsilon(loss) and steps.total <= x:
            found.append(0.0)
        elif not _empty(loss):
            found.append(renyi.renyi_delta(renyi_of(loss), x))
            equal = _equal_steps(steps)
            if _known_by_epsilon(loss) and equal is not None:
                found.append(classical.optimal_pure_delta(*equal, x))
    if found[-1] > 0:
        mu_squared = None if _empty(loss) else _absorbed(loss)
        if mu_squared is not None:
            with precision(160):
                found.append(up(gaussian_delta(mu_squared, x)))
        if _empty(loss):
            with precision(96):
                found.append(up(-ball(x).expm1()))
        elif mu_squared is not None and _is_close(loss, mu_squared):
            pass  # also a Gaussian loss alone, for which the closed form is exact
        elif _has_profile(loss):
            found.append(optimal_delta(steps, x, min(found)))
        elif (tested := _tested_profile(loss, Fraction(min(found)))) is not None:
            found.append(tested.delta(x))
    total = min(1.0, up(Fraction(max(0.0, min(found))) + loss.failures))
    if loss.joint is not None and not loss.slack:
        return min(total, loss.joint.delta(epsilon))
    return total


def rho_of(loss: Loss) -> float | None:
    """The zCDP of the loss, rounded up, where it has one."""
    if not _has_rho(loss):
        return None
    with precision(96):
        return up(_rho(loss))


def renyi_of(loss: Loss) -> renyi.Curve:
    """The Rényi curve of the loss; each order is evaluated at the precision of the moment.

    What has a rho is added up once, not at every order.
    """
    rho = _gaussian_rho(loss) + _branching_rho(loss)
    others = [(n, one.curve) for n, one in loss.curves if not isinstance(one.curve, BRANCHING)]

    def curve(alpha: arb) -> arb:
        total = alpha * ball(rho)
        for n, epsilon in loss.pick_runs:
            total += n * renyi.bounded_range(epsilon, alpha)
        for n, epsilon in loss.pure_runs:
            total += n * renyi.pure_dp(epsilon, alpha)
        for n, other in others:
            total += n * other(alpha)
        return total

    return curve


def pure_total(loss: Loss) -> Fraction | None:
    """The sum of the epsilons; None where a part is not known by its epsilon."""
    return _steps(loss).total if _known_by_epsilon(loss) else None


def _rho(loss: Loss) -> arb:
    rational = _gaussian_rho(loss)
    rational += sum((n * e * e / 8 for n, e in loss.pick_runs), Fraction(0))
    rational += _branching_rho(loss)
    pures = sum((n * classical.pure_rho(e) for n, e in loss.pure_runs), arb(0))
    return ball(rational) + pures


def _gaussian_rho(loss: Loss) -> Fraction:
    # Canonne, Kamath & Steinke 2020, Thm 4: a discrete Gaussian has the zCDP of a continuous one.
    discretes = sum((n / (2 * variance) for n, variance in loss.discrete_runs), Fraction(0))
    return loss.zcdp_rho + loss.mu_squared / 2 + discretes


def _branching_rho(loss: Loss) -> Fraction:
    """The zCDP of the tested selections among the curves."""
    return sum(
        (n * named.curve.rho() for n, named in loss.curves if isinstance(named.curve, BRANCHING)),
        Fraction(0),
    )


def _steps(loss: Loss) -> Steps:
    runs = loss.pick_runs, loss.pure_runs
    return Steps(*runs, loss.mu_squared, loss.discrete_runs, loss.in_order)


def _equal_steps(steps: Steps) -> tuple[int, Fraction] | None:
    """All steps as pure ones of one epsilon: a bounded-range step is a pure step too."""
    runs = (*steps.picks, *steps.pures)
    count = sum(n for n, _ in runs)
    if len({epsilon for _, epsilon in runs}) != 1 or count > MOST_STEPS:
        return None
    return count, runs[0][1]


def _known_by_epsilon(loss: Loss) -> bool:
    return not (loss.mu_squared or loss.discrete_runs or loss.zcdp_rho or loss.curves)


def _has_profile(loss: Loss) -> bool:
    return not (loss.zcdp_rho or loss.curves) and not _empty(loss)


def _has_rho(loss: Loss) -> bool:
    return all(isinstance(named.curve, BRANCHING) for _, named in loss.curves)


def _tested_profile(loss: Loss, delta: Fraction) -> Profile | None:
    """One tested selection, and steps of a fixed worst pair, which may be moved to the front.

    None for every other loss: what this function does not know must not be left out of the sum.
    """
    if len(loss.curves) != 1 or delta < Fraction(1, 10**250):
        return None
    [(copies, named)] = loss.curves
    steps = _steps(loss)
    known = replace(
        type(loss)(),
        curves=loss.curves,
        pure_runs=loss.pure_runs,
        discrete_runs=loss.discrete_runs,
        mu_squared=loss.mu_squared,
        failures=loss.failures,
        slack=loss.slack,
    )
    if copies != 1 or loss != known or not treatable(steps):
        return None
    if not isinstance(named.curve, BRANCHING):
        return None
    return in_front(named.curve.profile(delta), steps)


def _absorbed(loss: Loss) -> Fraction | None:
    """The mu² of one Gaussian that dominates the sequence; None where a part has none.

    Each part is dominated by its own whatever comes later, so they add in any order
    (docs/proofs/absorption.md, section 2). The Gaussian steps of a loss may have come before its
    picks, so the picks are charged with an imaginary one behind them.
    """
    if loss.pure_runs or loss.discrete_runs or loss.zcdp_rho:
        return None
    picked = absorbed(loss.pick_runs)
    if picked is None:
        return None
    total = picked + loss.mu_squared
    for n, named in loss.curves:
        whole = named.curve.absorbed() if isinstance(named.curve, BRANCHING) else None
        if whole is None:
            return None
        total += n * whole
    return total


def _variance(loss: Loss) -> Fraction:
    """The mu² of a Gaussian with the losses' largest variance; picks have ε²/4."""
    picked = sum((n * e * e / 4 for n, e in loss.pick_runs), loss.mu_squared)
    return picked + 2 * _branching_rho(loss)


def _only_gaussian(loss: Loss) -> bool:
    others = (loss.pick_runs, loss.pure_runs, loss.discrete_runs, loss.zcdp_rho, loss.curves)
    return bool(loss.mu_squared) and not any(others)


def _empty(loss: Loss) -> bool:
    return _known_by_epsilon(loss) and not (loss.pick_runs or loss.pure_runs)
