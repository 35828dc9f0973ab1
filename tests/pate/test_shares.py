"""Soft answers: the joint law of rounded shares on all neighbours, and wrong variants of it."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from topsecret.accounting import gaussian
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import precision
from topsecret.noise.bits import ReplayableBits
from topsecret.noise.rounded_gaussian import RoundedGaussian
from topsecret.pate import Aggregator, NoisyShares, noisy_majority, noisy_shares, shares
from topsecret.pate.shares import weight

Move = tuple[int, ...]
EPSILONS = (0.0, 0.2, 0.5, 1.0, 2.0)


def moves(rule: NoisyShares) -> set[Move]:
    """How all ballots of one teacher that replace each other move the counts, in units."""
    ballots = [np.array([ballot], dtype=bool) for ballot in product((0, 1), repeat=rule.labels)]
    other = np.ones((1, rule.labels), dtype=bool)  # another teacher, who stays
    counts = [rule.count(np.vstack([ballot, other])) for ballot in ballots]
    if rule.adjacency == "add-remove":
        return {tuple((count - counts[0]).tolist()) for count in counts}
    return {tuple((a - b).tolist()) for a in counts for b in counts}


def divergence(noise: RoundedGaussian, moved: Move, epsilon: float) -> float:
    """sup_S P(S) − e^ε·P′(S) of the joint law within a window of the grid: a lower bound."""
    reach = math.ceil(5 * float(noise.sigma)) + max(map(abs, moved))
    with precision(80):
        masses = np.array([float(noise.mass(x)) for x in range(-reach, reach + 1)])
    first = second = np.ones(1)
    for shift in moved:
        if shift:
            shifted = np.zeros_like(masses)
            at = np.arange(len(masses)) - shift
            inside = (at >= 0) & (at < len(masses))
            shifted[inside] = masses[at[inside]]
            first = np.multiply.outer(first, masses).ravel()
            second = np.multiply.outer(second, shifted).ravel()
    kept = second > 0
    return float(np.maximum(first[kept] - math.exp(epsilon) * second[kept], 0).sum())


def claimed(moved_squared: int, sigma: float, epsilon: float) -> float:
    """The Gaussian mechanism's delta at epsilon."""
    mu = math.sqrt(moved_squared) / sigma
    return _phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * _phi(-mu / 2 - epsilon / mu)


def _phi(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def excess(rule: NoisyShares, met: set[Move], moved_squared: int) -> float:
    """By how much the joint law exceeds the claim on the worst pair of neighbours."""
    noise = RoundedGaussian(Fraction(rule.sigma) * rule.unit)
    worst = {tuple(sorted(map(abs, move))) for move in met if any(move)}
    found = -math.inf
    for move in worst:
        signed = tuple(x if i % 2 else -x for i, x in enumerate(move))
        for epsilon in EPSILONS:
            claim = claimed(moved_squared, float(rule.sigma), epsilon)
            found = max(found, divergence(noise, signed, epsilon) - claim)
    return found


SIGMA = Fraction(3, 2)
RULES = [
    NoisyShares(3, 2, SIGMA),
    NoisyShares(3, 2, SIGMA, max_votes=1),
    NoisyShares(3, 2, SIGMA, max_votes=1, adjacency="add-remove"),
    NoisyShares(3, 2, SIGMA, max_votes=2, adjacency="add-remove"),
]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_the_joint_law_keeps_to_the_charge_on_all_neighbours(rule: NoisyShares) -> None:
    assert rule.loss == gaussian(Fraction(rule.moved) / SIGMA**2)
    assert excess(rule, moves(rule), rule.moved) <= 1e-12


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_weighted_ballots_keep_to_the_charge(
    adjacency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "UNIT", 4)  # a grid that can be enumerated
    rule = NoisyShares(3, 2, Fraction(3, 2), weight_limit=1, adjacency=adjacency)  # type: ignore[arg-type]
    met = moves(rule)
    assert excess(rule, met, rule.moved) <= 1e-12
    monkeypatch.setattr(shares, "weight", lambda size, limit: 4)  # weights forgotten
    assert excess(rule, moves(rule), rule.moved) > 0.02


def test_a_cut_that_is_not_enforced_is_rejected() -> None:
    rule = NoisyShares(3, 2, SIGMA, max_votes=1)
    whole = replace(rule, max_votes=None)
    assert excess(rule, moves(whole), rule.moved) > 0.02


def test_replace_charged_as_add_remove_is_rejected() -> None:
    rule = NoisyShares(3, 2, SIGMA, max_votes=1)
    add_remove = replace(rule, adjacency="add-remove")
    assert add_remove.moved == 1
    assert excess(rule, moves(rule), add_remove.moved) > 0.02


def test_no_ballot_is_heavier_than_its_limit() -> None:
    for limit in (1, 2, 3, 7):
        for size in range(1, 200):
            assert size * weight(size, limit) ** 2 <= limit * 1024**2
            assert weight(size, limit) <= 1024


@pytest.mark.parametrize("bounds", [{}, {"max_votes": 2}, {"weight_limit": 2}], ids=repr)
def test_the_reported_deviation_is_that_of_the_draws(bounds: dict[str, int]) -> None:
    """Of 20,000 draws the standard deviation has a relative error of .005: four of them alarm."""
    rule = NoisyShares(5, 40, 3, **bounds)  # type: ignore[arg-type]
    counts = np.zeros((4000, 5), dtype=np.int64)
    drawn = rule.shares(counts, ReplayableBits(b"deviation"))
    assert abs(drawn.std() / rule.share_deviation - 1) < 0.02
    too_small = replace(rule, sigma=2.8).share_deviation
    assert abs(drawn.std() / too_small - 1) > 0.02


def test_answers_cost_what_a_majority_costs_and_hold_it() -> None:
    budget = {"queries": 50, "epsilon": 3, "delta": 1e-6}
    soft = noisy_shares(6, 100, **budget, max_votes=2)  # type: ignore[arg-type]
    hard = noisy_majority(6, 100, **budget, max_votes=2)  # type: ignore[arg-type]
    assert float(soft.sigma) == pytest.approx(float(hard.sigma), rel=1e-3)
    aggregator = Aggregator(soft, epsilon=3, delta=1e-6, queries=50)
    votes = np.zeros((100, 6), dtype=bool)
    votes[:, 1] = True
    answers = list(aggregator.answers([votes] * 50))
    told = np.array([answer.shares for answer in answers])
    assert abs(told.mean(axis=0) - votes.mean(axis=0)).max() < 5 * soft.share_deviation / 50**0.5
    for answer in answers:
        assert answer.labels == tuple(np.flatnonzero(np.array(answer.shares) > 0.5))
    assert aggregator.spent().epsilon <= 3
    assert aggregator.left == 0


def test_weights_count_ballots_by_their_length() -> None:
    rule = NoisyShares(4, 3, 1, weight_limit=1)
    votes = np.array([[1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]], dtype=bool)
    assert rule.count(votes).tolist() == [1024 + 512, 512, 512, 512]


def test_mistakes_are_named() -> None:
    with pytest.raises(InvalidParameter, match="both bound a ballot; leave one out"):
        NoisyShares(3, 9, 1, max_votes=1, weight_limit=1)
    rule = NoisyShares(3, 9, 1, weight_limit=1)
    with pytest.raises(InvalidParameter, match="weight_limit=1 is enforced on each ballot"):
        Aggregator(rule, epsilon=9, delta=1e-6, queries=1).answer_counts([1, 2, 3])
