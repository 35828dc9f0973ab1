"""The least noise with which a number of queries keeps to a budget. Public numbers only.

>>> rule = stable_labels(labels=5, teachers=100, queries=50, epsilon=2, delta=1e-6)
>>> 0.99 * 2 < (50 * rule.loss).epsilon(1e-6) <= 2
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from topsecret.accounting import Loss, calibrate, gaussian
from topsecret.accounting.running import RunningEpsilon
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, down, exact, root_up
from topsecret.mechanisms import parameters
from topsecret.pate.rules import NoisyMajority, StableLabels
from topsecret.pate.shares import NoisyShares

ENOUGH = 1e-3
"""How much of epsilon a calibration may leave unspent, relative."""


def stable_labels(
    labels: int,
    teachers: int,
    *,
    queries: int,
    epsilon: Number,
    delta: Number,
    selection: Literal["gumbel", "gaussian"] = "gumbel",
    adjacency: parameters.Adjacency = "replace",
    k_bar: int | None = None,
    regulariser: Sequence[Number] | None = None,
) -> StableLabels:
    """`StableLabels` whose ``queries`` answers spend (epsilon, delta).

    Parameters, beside those of ``noisy_majority``: ``selection``: the noise that chooses the gap;
    ``k_bar``: how many labels an answer may have; ``regulariser``: what is added to the score of
    each length, public.

    Half of delta is for the tests' failures; the choice and the test get the same zCDP, as in
    ``StableTopK``.
    """
    queries = parameters.whole(queries, "queries")
    failure = down(parameters.probability(delta, "delta") / (2 * queries))

    def rule(rho: Number) -> StableLabels:
        moves = parameters.directions(adjacency)
        variance = 1
        if selection == "gaussian":
            variance = min(labels - 1 if k_bar is None else k_bar, 4)
        return StableLabels(
            labels,
            teachers,
            moves * root_up(variance / exact(rho)),
            moves * root_up(1 / exact(rho)),
            failure,
            selection,
            adjacency,
            k_bar,
            None if regulariser is None else tuple(regulariser),
        )

    rule(1)  # a wrong parameter is found here, by its own name
    parameters.adjacency(adjacency)
    rho = _largest(lambda rho: rule(rho).loss, queries, epsilon, delta)
    return rule(rho)


def noisy_majority(
    labels: int,
    teachers: int,
    *,
    queries: int,
    epsilon: Number,
    delta: Number,
    max_votes: int | None = None,
    adjacency: parameters.Adjacency = "replace",
) -> NoisyMajority:
    """`NoisyMajority` (PATE; with ``max_votes`` PATE-τ) whose answers spend (epsilon, delta).

    Parameters: ``labels``: how many there are; ``teachers``: how many vote; ``queries``: how many
    answers the budget is for; ``epsilon``: of all of them together; ``delta``: of all of them
    together; ``max_votes``: cuts every ballot to so many labels; ``adjacency``: whether a teacher
    is replaced, or added and removed.
    """
    queries = parameters.whole(queries, "queries")

    def rule(precision: Number) -> NoisyMajority:
        return NoisyMajority(labels, teachers, root_up(1 / exact(precision)), max_votes, adjacency)

    rule(1)
    return rule(_largest(lambda value: rule(value).loss, queries, epsilon, delta))


def noisy_shares(
    labels: int,
    teachers: int,
    *,
    queries: int,
    epsilon: Number,
    delta: Number,
    max_votes: int | None = None,
    weight_limit: int | None = None,
    adjacency: parameters.Adjacency = "replace",
) -> NoisyShares:
    """`NoisyShares` whose answers spend (epsilon, delta): the price of `noisy_majority`.

    Parameters, beside those of ``noisy_majority``: ``weight_limit``: weights ballots in place of a
    cut.
    """
    bounds = (max_votes, weight_limit, adjacency)
    moved = NoisyShares(labels, teachers, 1, *bounds).moved
    queries = parameters.whole(queries, "queries")
    mu_squared = calibrate(gaussian, epsilon, delta)
    if mu_squared <= 0:
        raise InvalidParameter(
            f"epsilon={float(exact(epsilon)):g} is too small for delta={float(exact(delta)):g}; "
            "raise one of them"
        )
    # The losses of Gaussian answers add up to one of the sum of their mu².
    return NoisyShares(labels, teachers, root_up(queries * moved / exact(mu_squared)), *bounds)


def _largest(
    loss_of: Callable[[float], Loss], queries: int, epsilon: Number, delta: Number
) -> float:
    parameters.positive(epsilon, "epsilon")
    parameters.probability(delta, "delta")
    target, failure = exact(epsilon), exact(delta)

    def roughly(value: float) -> bool:
        return RunningEpsilon(loss_of(value), failure).after(queries) <= target

    # The cheap bound first: it finds where to ask the full accountant.
    low, high = -80.0, 40.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if roughly(2.0**middle) else (low, middle)
    found = calibrate(
        lambda value: queries * loss_of(value),
        epsilon,
        delta,
        start=1.1 * 2.0**low,
        tolerance=ENOUGH,
    )
    if found <= 0:
        raise InvalidParameter(
            f"epsilon={float(target):g} is too small for queries={queries}; "
            "raise epsilon or ask fewer"
        )
    return found
