"""A list whose bound on one person is chosen privately: how often it is calibrated."""

import math
from collections.abc import Callable

import pytest

from topsecret.calibration import Question, private_bound
from topsecret.calibration.prepared import Prepared
from topsecret.calibration.question import Scores
from topsecret.calibration.unknown_domain import limited_domain, tested
from topsecret.errors import InvalidParameter

Build = Callable[[Question], Prepared]


@pytest.mark.parametrize(
    ("build", "k", "epsilon", "delta", "most"),
    [
        (tested, 10, 1.12, 1e-6, 1),  # as benchmarks/accounting.py previews it
        (tested, 100, 0.21, 5e-9, 1),
        (tested, 14, 0.3, 1e-6, 1),  # here the first step is enough
        (tested, 20, 0.1, 1e-6, 1),
        (tested, 4, 1.0, 1e-9, 2),
        (limited_domain, 1, 0.2, 1e-7, 3),
        (limited_domain, 2, 0.2, 1e-7, 3),
        (limited_domain, 2, 0.5, 1e-6, 2),
        (limited_domain, 3, 1.0, 1e-7, 2),
        (limited_domain, 2, 0.01, 1e-4, 5),  # the search begins far beyond the end
        (limited_domain, 3, 0.02, 1e-9, 4),  # what is spent leaps
    ],
)
def test_the_first_step_that_is_enough_is_found_with_few_lists(
    build: Build,
    k: int,
    epsilon: float,
    delta: float,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Question.of(k=k, epsilon=epsilon, delta=delta).ranked_by(Scores(3, 1, "rows", (1, 3)))
    tried: list[float] = []

    def noted(numbers: Question) -> Prepared:
        tried.append(numbers.epsilon)
        return build(numbers)

    monkeypatch.setattr(private_bound, build.__name__, noted, raising=False)
    found = private_bound.with_private_bound(asked, noted)
    assert found.mechanism.loss.keeps_to(epsilon, delta)
    assert len(tried) <= most
    monkeypatch.setattr(private_bound, "_overspends", lambda question: False)
    monkeypatch.setattr(private_bound, "_STEEPEST", math.inf)
    monkeypatch.setattr(private_bound, "_FEW_STEP", {})
    monkeypatch.setattr(private_bound, "_STEP", math.inf)  # every step is tried
    assert private_bound.with_private_bound(asked, noted).mechanism == found.mechanism


def test_budgets_at_both_ends() -> None:
    """A list at an epsilon beyond the floats' exponents; none where delta is all of the budget."""
    large = Question.of(k=3, epsilon=1e5, delta=1e-6).ranked_by(Scores(3, 1, "rows", (1, 3)))
    found = private_bound.with_private_bound(large, limited_domain)
    assert found.mechanism.loss.keeps_to(large.epsilon, large.delta)
    small = Question.of(k=3, epsilon=0.001, delta=0.09).ranked_by(Scores(3, 1, "rows", (1, 3)))
    with pytest.raises(InvalidParameter, match=r"epsilon=0\.001 and delta=0\.09 leave nothing"):
        private_bound.with_private_bound(small, limited_domain)
