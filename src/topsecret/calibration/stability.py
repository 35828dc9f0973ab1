"""Mechanisms that look for a drop in the counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from topsecret.accounting import calibrate, calibrate_zcdp, delta_after_pick
from topsecret.calibration.prepared import Prepared, set_ended, set_stable
from topsecret.calibration.question import Question
from topsecret.calibration.words import LIKELY, too_small
from topsecret.exact.rounding import ball, down, exact, precision, up
from topsecret.mechanisms import StableFixedK, StableTopK

TEST_SHARE = 10
"""A tenth of delta is for the test to fail with, as in `TestedTopK`: the quantile hardly grows
with it, and the rest is worth more to the composition."""

_CLOSENESS = 1
"""One place away from k is worth one person of gap."""


def stable(question: Question) -> Prepared:
    """`StableTopK`: k is chosen where the counts drop most."""
    rho, failing = _stable_rho(question.k_bar, question.epsilon, question.delta)
    if rho <= 0:
        raise too_small(question)
    return stable_at(question, rho, failing)


def stable_at(question: Question, rho: float, failing: float) -> Prepared:
    """`StableTopK` at a rho and a failure of its test that others fixed."""
    mechanism = StableTopK(question.k_bar, rho, failing)
    with precision(64):
        z = (2 * ball(exact(failing))).erfcinv() * ball(2).sqrt()
        even = math.ceil(up(1 + ball(mechanism.tester.scale) * z))
        likely = math.ceil(up(1 + ball(mechanism.tester.scale) * (z + ball(LIKELY))))
    return Prepared(
        "stable",
        question,
        mechanism,
        {"k_bar": question.k_bar, "rho": rho, "test_failure": failing},
        up(mechanism.tester.scale),
        f"the item stands above the widest drop among the leading {question.k_bar + 1} counts, "
        f"found with noise, and that drop passes a noisy test; one of {even:,} people passes "
        f"half of the time, and 98% of the time if it is {likely:,}",
        f"a set of up to {question.k_bar} items, without order, or nothing",
        "stands for the whole set: no drop in the counts was wide enough",
        set_stable,
    )


def stable_fixed_k(question: Question) -> Prepared:
    """`StableFixedK`: a drop near k where there is one, picks otherwise."""
    k, k_bar = question.length, question.k_bar
    failing = down(exact(question.delta) / TEST_SHARE)
    threshold = None if question.domain_size else down(exact(question.delta) * 2 / 5)
    rho = calibrate(
        lambda part: StableFixedK(k, k_bar, part, failing, _CLOSENESS, threshold).loss,
        question.epsilon,
        question.delta,
        calibrate_zcdp(question.epsilon, question.delta) or question.epsilon,
    )
    if rho <= 0:
        raise too_small(question)
    mechanism = StableFixedK(k, k_bar, rho, failing, _CLOSENESS, threshold)
    names = "any item" if threshold is None else "an observed item far enough above the rest"
    return Prepared(
        "stable-fixed-k",
        question,
        mechanism,
        {
            "k_bar": k_bar,
            "rho": rho,
            "test_failure": failing,
            "threshold_delta": threshold,
            "closeness": _CLOSENESS,
        },
        up(mechanism.stable.tester.scale),
        f"the item stands above a wide drop in the counts near rank {k}, which passes a noisy "
        f"test, or noisy picks name it ({names})",
        f"a set of up to {k} items, without order",
        "stands for the items that are too close together",
        set_ended,
        k + 1,
    )


@lru_cache(maxsize=256)
def _stable_rho(k_bar: int, epsilon: float, delta: float) -> tuple[float, float]:
    failing = down(exact(delta) / TEST_SHARE)

    # From 2 places on the cost does not depend on k̄.
    places = min(k_bar, 2)
    start = calibrate_zcdp(epsilon, delta) or epsilon
    if places == 2:
        # With the order of choice and test known it would be this; the loss forgets the order.
        start = 0.975 * known_order_rho(epsilon, exact(delta) - exact(failing), failing) or start
    rho = calibrate(
        lambda part: StableTopK(places, part, failing).loss, epsilon, delta, start, tolerance=1e-3
    )
    return rho, failing


def known_order_rho(
    epsilon: float, left: Fraction, failing: float, mu_squared: Fraction = Fraction(0)
) -> float:
    """The largest rho, or nearly, of a choice and a test *before* Gaussians of ``mu_squared``.

    One pick before two Gaussians, whose delta at ``epsilon`` must be at most ``left``; 0 if none.
    """

    def spent(rho: float) -> float:
        loss = StableTopK(2, rho, failing).loss
        [(_, choice)] = loss.pick_runs
        return delta_after_pick(choice, loss.mu_squared + mu_squared, epsilon, cells=24)

    low, high = 0.0, epsilon + 1.0
    kept, broken = _bracket(spent, left, epsilon)
    for _ in range(40):
        middle = (low + high) / 2 if low else high / 16
        if high - low < 1e-4 * low or middle < 1e-12:
            break
        fits = middle <= kept or (middle < broken and spent(middle) <= left)
        low, high = (middle, high) if fits else (low, middle)
    return low


def _bracket(
    spent: Callable[[float], float], left: Fraction, epsilon: float, looks: int = 8
) -> tuple[float, float]:
    """Two rho close together, the first of which keeps to ``left`` and the second does not.

    What is spent rises with rho, and its logarithm falls nearly as a line in 1/rho, from which
    the next guess follows.
    """
    kept, broken = 0.0, math.inf
    if not 0 < left < 1 or not epsilon > 0:
        return kept, broken
    rho, slope = epsilon**2 / (-2 * math.log(left)), epsilon**2 / 2
    before: tuple[float, float] | None = None
    for _ in range(looks):
        delta = spent(rho)
        kept, broken = (rho, broken) if delta <= left else (kept, rho)
        if broken - kept < 5e-5 * kept or not 0 < delta < 1:
            break
        here = 1 / rho, math.log(delta) - math.log(left)
        if before is not None and here[0] != before[0]:
            slope = max(slope / 8, (before[1] - here[1]) / (here[0] - before[0]))
        before = here
        # A little beyond, so that both sides are known soon.
        inverse = (here[0] + here[1] / slope) * (1 + (1e-5 if delta > left else -1e-5))
        rho = 1 / inverse if inverse > 0 else 0.0
        if not kept < rho < broken:
            rho = (kept + broken) / 2 if math.isfinite(broken) else 2 * kept
    return kept, broken
