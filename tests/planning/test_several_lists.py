"""Several lists of one budget: the first try is enough, and never too much."""

import pytest

from topsecret.calibration import Question, prepare_at
from topsecret.calibration.counts import USUAL, CountsBudget
from topsecret.calibration.question import Scores
from topsecret.errors import InvalidParameter
from topsecret.planning.summary import outlook_of
from topsecret.questions import planned_lists
from topsecret.questions.planned_lists import Plan, _together, lists_within


def plan(lists: int, mechanism: str = "auto", **numbers: object) -> Plan:
    counts = numbers.pop("counts", None)
    assert counts is None or isinstance(counts, CountsBudget)
    scores = numbers.pop("scores", None)
    assert scores is None or isinstance(scores, Scores)
    asked = Question.of(**numbers).ranked_by(scores)  # type: ignore[arg-type]
    return lists_within(asked, mechanism, counts, None, lists, False)


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


@pytest.mark.parametrize("cap", [None, 3])
@pytest.mark.parametrize(("k", "lists", "before"), [(1, 20, 467), (2, 20, 753), (3, 5, 258)])
def test_bounds_and_picks_of_all_lists_are_calibrated_at_once(
    k: int, lists: int, before: int, cap: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calibrated one by one they needed leads of ``before``, and several times as long."""
    monkeypatch.setattr(planned_lists, "TRIES", 1)
    by_rows = Scores(3, 1, "rows", bounds=(1, 2, 3))
    found = plan(lists, k=k, epsilon=1.0, delta=1e-7, scores=by_rows, max_items=cap)
    assert 0.99 <= found.epsilon <= 1
    assert found.epsilon == (lists * found.each.loss).epsilon(1e-7)
    assert found.each.delta * lists <= 1e-7
    lead = outlook_of(found.each).lead
    assert lead is not None
    assert lead < before


def test_a_metered_budget_has_no_price_for_a_bound() -> None:
    asked = Question.of(k=2, epsilon=1.0, delta=1e-7)
    with pytest.raises(InvalidParameter, match="not metered"):
        prepare_at("limited-domain", asked.ranked_by(Scores(3, 1, "rows", (1, 2, 3))), 0.1, 1e-8)
