"""The aggregator answers until the budget is used, streams, and never tells what the votes were."""

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from topsecret.errors import BudgetExceeded, InvalidParameter
from topsecret.pate import Aggregator, NoisyMajority, NoisyShares, StableLabels
from topsecret.pate.ballots import count_votes, cut_ballots, surest

STABLE = StableLabels(labels=3, teachers=300, selection_scale=10, test_scale=10, failure=1e-9)
MAJORITY = NoisyMajority(labels=3, teachers=300, sigma=20)
SHARES = NoisyShares(labels=3, teachers=300, sigma=20)


def clear(label: int = 1) -> np.ndarray:
    votes = np.zeros((300, 3), dtype=bool)
    votes[:, label] = True
    return votes


def test_clear_votes_are_answered_and_close_ones_are_not() -> None:
    aggregator = Aggregator(STABLE, epsilon=5, delta=1e-6)
    assert aggregator.answer(clear(2)).labels == (2,)
    assert aggregator.answer(np.zeros((300, 3))).labels is None
    assert aggregator.answer_counts([300, 299, 0]).labels == (0, 1)


def test_the_capacity_is_the_budget_and_no_query_more() -> None:
    aggregator = Aggregator(MAJORITY, epsilon=1, delta=1e-6)
    capacity = aggregator.capacity
    assert (capacity * MAJORITY.loss).epsilon(1e-6) <= 1
    assert ((capacity + 1) * MAJORITY.loss).epsilon(1e-6) > 1
    stream = aggregator.answers(clear() for _ in range(capacity + 5))
    answers = [next(stream) for _ in range(capacity)]
    assert answers[-1].number == capacity == aggregator.asked
    with pytest.raises(BudgetExceeded, match=f"all {capacity} queries that epsilon=1 and delta"):
        next(stream)
    assert aggregator.left == 0
    with pytest.raises(BudgetExceeded):
        aggregator.answer(clear())
    assert aggregator.spent().epsilon <= 1


def test_the_running_epsilon_rises_and_covers_what_was_spent() -> None:
    aggregator = Aggregator(STABLE, epsilon=20, delta=1e-6, queries=50)
    answers = list(aggregator.answers(clear() for _ in range(30)))
    assert [answer.number for answer in answers] == list(range(1, 31))
    running = [answer.epsilon for answer in answers]
    assert running == sorted(running)
    spent = aggregator.spent()
    assert spent.epsilon <= running[-1] <= 1.2 * spent.epsilon
    assert spent.delta == answers[0].delta == 1e-6


def test_the_cost_does_not_depend_on_the_votes() -> None:
    costs = []
    for votes in (clear(), np.zeros((300, 3)), np.ones((300, 3))):
        aggregator = Aggregator(STABLE, epsilon=5, delta=1e-6, queries=9)
        costs.append((aggregator.answer(votes).epsilon, aggregator.spent(), aggregator.left))
    assert costs[0] == costs[1] == costs[2]


def test_queries_that_do_not_fit_are_refused_before_any() -> None:
    with pytest.raises(InvalidParameter, match="queries=1000 do not fit into epsilon=1 and"):
        Aggregator(STABLE, epsilon=1, delta=1e-6, queries=1000)


@pytest.mark.parametrize("rule", [MAJORITY, SHARES], ids=["majority", "shares"])
def test_memory_does_not_grow_with_the_stream(rule: NoisyMajority | NoisyShares) -> None:
    def peak(queries: int) -> int:
        aggregator = Aggregator(rule, epsilon=1000, delta=1e-6, queries=queries)

        def stream() -> Iterator[np.ndarray]:
            for _ in range(queries):
                yield clear()

        tracemalloc.start()
        for _ in aggregator.answers(stream()):
            pass
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    peak(64)
    assert peak(2000) < 2 * peak(200)


def test_votes_of_any_kind_count_once() -> None:
    votes = np.array([[2.5, 0.0], [np.nan, -1.0], [0.0, 0.0]])
    assert count_votes(votes).tolist() == [2, 1]


def test_more_teachers_than_a_byte_holds() -> None:
    assert count_votes(np.ones((1001, 2), dtype=bool)).tolist() == [1001, 1001]


def test_counts_beyond_the_teachers_are_cut_off_in_silence() -> None:
    aggregator = Aggregator(STABLE, epsilon=5, delta=1e-6, queries=3)
    assert aggregator.answer_counts([10**6, -5, 0]).labels == (0,)
    huge = np.array([2**64 - 1, 0, 0], dtype=np.uint64)
    assert aggregator.answer_counts(huge).labels == (0,)


def test_a_cut_ballot_keeps_its_first_or_its_surest_votes() -> None:
    ballots = np.array([[1, 1, 1], [0, 1, 1]], dtype=bool)
    assert cut_ballots(ballots, 2).tolist() == [[True, True, False], [False, True, True]]
    scores = np.array([[0.1, 0.2, 0.3], [0.9, 0.2, 0.3]])
    assert surest(scores, ballots, 1).tolist() == [[False, False, True], [False, False, True]]


def test_the_cut_is_enforced_and_needs_the_ballots() -> None:
    rule = NoisyMajority(labels=3, teachers=300, sigma=1, max_votes=1)
    aggregator = Aggregator(rule, epsilon=10**4, delta=1e-6, queries=2)
    assert aggregator.answer(np.ones((300, 3))).labels == (0,)
    with pytest.raises(InvalidParameter, match="max_votes=1 is enforced on each ballot"):
        aggregator.answer_counts([1, 2, 3])


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (np.zeros((2, 3)), r"votes have the shape \(2, 3\); they must have one row for each"),
        (np.full((300, 3), "x"), "votes must be truth values or numbers; found an array of"),
    ],
)
def test_wrong_shapes_and_types_are_public_mistakes(votes: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Aggregator(STABLE, epsilon=5, delta=1e-6, queries=3).answer(votes)


def test_the_repr_tells_public_numbers_only() -> None:
    aggregator = Aggregator(MAJORITY, epsilon=1, delta=1e-6, queries=3)
    assert repr(aggregator).startswith("<Aggregator: 0 of 3 queries answered, NoisyMajority(")
