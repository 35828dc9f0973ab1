"""No part of a sum is forgotten: whatever is added to a loss, the sum costs at least each part."""

import math
from dataclasses import fields
from itertools import combinations

import pytest

from topsecret.accounting import (
    Loss,
    approximate,
    discrete_gaussian,
    failure,
    gaussian,
    picks,
    pure,
    rdp,
    slack,
    zcdp,
)
from topsecret.accounting.renyi import pure_dp
from topsecret.calibration import Question, prepare
from topsecret.calibration.counts import CountsBudget, with_counts
from topsecret.errors import InvalidParameter
from topsecret.ledger import Metered, Picks, Price
from topsecret.mechanisms import TestedOrWeighted, TestedTopK, WeightedHistogram

DELTA = 2e-6


def curve(alpha):
    return pure_dp(1, alpha)


KINDS = {
    "picks": picks(5, 0.25),
    "picks of unknown order": picks(2, 0.25) + picks(1, 0.5),
    "pure": pure(0.5),
    "gaussian": gaussian(0.25),
    "discrete Gaussian": discrete_gaussian(9, 5),
    "zCDP": zcdp(0.125),
    "Rényi": rdp("a curve", curve),
    "tested": TestedTopK(5, 1.0, 1e-6).loss,
    "weighted": WeightedHistogram(None, 1.0, 1e-6).loss,
    "chosen": TestedOrWeighted(2, 1.0, 1e-6).loss,
    "approximate": approximate(0.5, 1e-7),
    "failure": failure(1e-7),
    "slack": slack(0.1),
}


def test_every_field_of_a_loss_is_one_of_the_kinds() -> None:
    """A new kind of step must come to this file before it comes to a user."""
    empty = Loss()
    for field in fields(Loss):
        name = field.name
        assert any(getattr(loss, name) != getattr(empty, name) for loss in KINDS.values()), name


@pytest.mark.parametrize(("one", "other"), list(combinations(KINDS, 2)))
def test_a_sum_costs_at_least_each_part(one: str, other: str) -> None:
    both = KINDS[one] + KINDS[other]
    for part in (KINDS[one], KINDS[other]):
        if not part.failures:
            assert both.epsilon(DELTA) >= part.epsilon(DELTA) * (1 - 1e-3)
        for epsilon in (0.25, 1.0):
            assert both.delta(epsilon) >= part.delta(epsilon) * (1 - 1e-2)
    assert both.delta(both.epsilon(DELTA)) <= DELTA * (1 + 1e-2)


def test_counts_beside_a_tested_list_are_charged() -> None:
    tested, counts = KINDS["tested"], discrete_gaussian(1, 5)
    assert (tested + counts).epsilon(DELTA) > counts.epsilon(DELTA) > 10
    mild = discrete_gaussian(2000, 5)
    sum_of_both = (tested + mild).explain(DELTA)
    assert sum_of_both.winner.name == "optimal"
    by_renyi = (tested + zcdp(5 / 4000)).epsilon(DELTA)
    assert tested.epsilon(DELTA) < sum_of_both.epsilon <= by_renyi


QUESTIONS = {
    "tested": {"k": 10},
    "limited-domain": {"k": 10},
    "optimal-threshold": {"k": 5},
    "fixed-threshold": {"k": 5},
    "top-stable": {"k": 5},
    "stable-fixed-k": {"k": 5},
    "gumbel": {"k": 5, "domain_size": 50},
    "pruned": {"k": 5, "domain_size": 50},
    "permute-and-flip": {"k": 5, "domain_size": 50},
    "limited-domain-laplace": {"k": 5, "max_items": 2},
}


@pytest.mark.parametrize(
    ("name", "share"), [("tested", 0.15), *((name, 0.9) for name in QUESTIONS)]
)
def test_a_list_with_counts_keeps_to_its_budget(name: str, share: float) -> None:
    question = Question.of(epsilon=1.0, **QUESTIONS[name])  # type: ignore[arg-type]
    selection, counts = with_counts(name, question, CountsBudget(share))
    both, alone = counts.total, counts.behind(question.length).loss
    assert both.epsilon(1e-6) <= 1
    assert both.epsilon(1e-6) >= max(
        alone.epsilon(1e-6) * (1 - 1e-3), selection.mechanism.loss.epsilon(1e-6) * (1 - 1e-3)
    )
    # The counts alone: they cannot be cheaper in company.
    assert alone.delta(1) <= 1e-6


def test_a_metered_budget_pays_for_nothing_it_does_not_know() -> None:
    budget = Metered.of(epsilon=1, delta=1e-6, queries=10, picks=20)
    terms = Picks(5, budget.price, budget.query_delta)
    plain = picks(5, budget.price) + failure(budget.query_delta)
    assert budget.worst(Price(plain, terms))["picks"] == 5
    for name, more in KINDS.items():
        if name != "picks":
            with pytest.raises(InvalidParameter):
                budget.worst(Price(plain + more, terms))


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1.0, 0.09), (1.0, 1e-100), (1e-3, 1e-9), (10.0, 1e-6)]
)
def test_a_tested_list_keeps_to_odd_budgets(epsilon: float, delta: float) -> None:
    question = Question.of(k=2, epsilon=epsilon, delta=delta)
    assert prepare("tested", question).mechanism.loss.epsilon(delta) <= epsilon


def test_a_budget_without_room_for_a_test_says_so() -> None:
    with pytest.raises(InvalidParameter, match="leave nothing for a test"):
        _ = TestedTopK(2, 1.0, 1e-300).loss


@pytest.mark.parametrize("loss", [pure(1) + gaussian(4000), pure(10**6) + failure(1e-9)])
def test_a_loss_beyond_all_grids_has_a_bound(loss: Loss) -> None:
    assert 0 < loss.epsilon(1e-6) < math.inf
