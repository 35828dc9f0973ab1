"""Several lists of one budget: the first try is enough, and never too much."""

import pytest

from topsecret.calibration import Question
from topsecret.calibration.counts import USUAL, CountsBudget
from topsecret.planning.summary import outlook_of
from topsecret.questions import planned_lists
from topsecret.questions.planned_lists import Plan, _together, lists_within


def plan(lists: int, mechanism: str = "auto", **numbers: object) -> Plan:
    counts = numbers.pop("counts", None)
    assert counts is None or isinstance(counts, CountsBudget)
    return lists_within(Question.of(**numbers), mechanism, counts, None, lists, False)  # type: ignore[arg-type]


@pytest.mark.parametrize("counts", [None, USUAL])
@pytest.mark.parametrize(("k", "lists", "epsilon"), [(1, 20, 0.5), (3, 2, 2.0), (5, 3, 1.0)])
def test_one_calibration_finds_the_budget_of_each(
    k: int, lists: int, epsilon: float, counts: CountsBudget | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A preview has a tenth of a second, which is about one calibration of a tested list."""
    monkeypatch.setattr(planned_lists, "TRIES", 1)
    choose = "private" if counts is None else "public"
    # A δ of its own: plans are kept.
    found = plan(lists, k=k, epsilon=epsilon, delta=2.1e-8, counts=counts, choose=choose)
    assert 0.97 * epsilon <= found.epsilon <= epsilon
    assert found.epsilon == _together(found.each, lists, 2.1e-8)
    assert found.each.delta * lists <= 2.1e-8


@pytest.mark.parametrize(
    ("mechanism", "more"),
    [
        ("auto", {"domain_size": 50, "delta": 1e-7}),
        ("auto", {"domain_size": 50, "delta": 0}),
        ("auto", {"k": "all", "delta": 1e-7}),
        ("auto", {"k": "auto", "delta": 1e-7}),
        ("auto", {"delta": 1e-7, "max_items": 2}),
        ("tested", {"delta": 0.01}),
        ("limited-domain-laplace", {"delta": 1e-7, "max_items": 2}),
    ],
)
def test_whatever_the_mechanism_all_keep_to_the_budget(
    mechanism: str, more: dict[str, object]
) -> None:
    found = plan(4, mechanism, **{"k": 2, "epsilon": 1.0} | more)
    assert 0.9 <= found.epsilon <= 1.0


def test_picks_of_all_lists_are_calibrated_at_once() -> None:
    """Two picks by themselves leave nothing of δ to adding up: 458 persons at ε/20 each."""
    lead = outlook_of(plan(20, k=1, epsilon=1.0, delta=1e-7).each).lead
    assert lead is not None
    assert 250 < lead < 300
