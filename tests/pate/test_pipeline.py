"""From private rows to a student: accuracy, guarantee, and nothing told about the rows."""

import pickle
import random
import warnings
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier

from topsecret.errors import InvalidParameter
from topsecret.noise.bits import ReplayableBits
from topsecret.pate import teachers as training
from topsecret.pate.pipeline import PateClassifier

RNG = np.random.default_rng(3)
X = RNG.normal(size=(3600, 4))
Y = (X + 0.1 * RNG.normal(size=X.shape) > 0.3).astype(int)
PRIVATE, PUBLIC, TEST = slice(0, 3000), slice(3000, 3300), slice(3300, 3600)


@pytest.mark.parametrize(
    ("method", "max_votes"), [("stable", None), ("pate", None), ("pate-tau", 2)]
)
def test_the_student_learns_within_the_budget(method: Any, max_votes: int | None) -> None:
    model = PateClassifier(
        RidgeClassifier(),
        teachers=150,
        queries=60,
        epsilon=30,
        method=method,
        max_votes=max_votes,
        n_jobs=2,
    )
    model.fit(X[PRIVATE], Y[PRIVATE], public=X[PUBLIC])
    report = model.report(X[TEST], Y[TEST])
    assert report["accuracy"] == model.score(X[TEST], Y[TEST]) > 0.75
    assert report["epsilon"] == model.epsilon_ <= 30
    assert report["delta"] == 1e-6
    assert len(model.answers_) == 60


def test_it_is_an_estimator() -> None:
    model = PateClassifier(RidgeClassifier(alpha=2), teachers=7, epsilon=3)
    copy = clone(model)
    assert copy.get_params()["teachers"] == 7
    assert copy.get_params()["estimator__alpha"] == 2
    assert copy.set_params(epsilon=4).epsilon == 4


def test_a_pickled_model_holds_no_teacher() -> None:
    model = PateClassifier(RidgeClassifier(), teachers=50, queries=5, epsilon=30, method="pate")
    model.fit(X[PRIVATE], Y[PRIVATE], public=X[PUBLIC])
    assert len(pickle.dumps(model)) < 10_000
    assert isinstance(pickle.loads(pickle.dumps(model)).student_, RidgeClassifier)


def test_a_student_of_no_answers_predicts_nothing() -> None:
    model = PateClassifier(
        RidgeClassifier(), teachers=10, queries=20, epsilon=0.01, method="stable"
    )
    model.fit(X[PRIVATE], Y[PRIVATE], public=X[PUBLIC])
    assert model.answered_ == 0
    assert not model.predict(X[TEST]).any()


class Moody(BaseEstimator):  # type: ignore[misc]
    """Warns and fails by what its rows are."""

    def fit(self, features: Any, labels: Any) -> "Moody":
        warnings.warn("the rows are strange", stacklevel=1)
        if (features > 100).any():
            raise ValueError(f"cannot stand {features.max()}")
        self.labels = labels.shape[1]
        return self

    def predict(self, features: Any) -> Any:
        return np.ones((len(features), self.labels))


def test_a_teacher_that_fails_on_its_rows_votes_for_nothing() -> None:
    rows = np.zeros((100, 2))
    rows[0] = 1e6
    student = RidgeClassifier()  # what it learns is private already, so it may complain
    model = PateClassifier(
        Moody(), student=student, teachers=10, queries=3, epsilon=1000, method="pate"
    )
    model.fit(rows, np.ones((100, 3)), public=np.zeros((5, 2)))  # neither warns nor raises
    parts = [np.arange(10), np.arange(10, 20)]
    models = [training.train(Moody(), rows[part], np.ones((10, 3))) for part in parts]
    poll = next(training.polls(models, np.zeros((1, 2)), 3, None))
    assert poll.tolist() == [[False] * 3, [True] * 3]


class Drawing(BaseEstimator):  # type: ignore[misc]
    """Draws numbers that everybody draws from, more of them for larger rows."""

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit(self, features: Any, labels: Any) -> "Drawing":
        np.random.random(int(features.max()))
        random.random()
        self.votes = np.random.random(labels.shape[1]) + random.random() > 1
        return self

    def predict(self, features: Any) -> Any:
        return np.repeat(self.votes[None], len(features), axis=0)


def test_one_row_does_not_decide_what_other_teachers_or_the_student_draw() -> None:
    """A script that seeds NumPy first: the numbers left after one teacher are its rows' doing."""
    seen = []
    for large in (1, 5):
        np.random.seed(0)
        random.seed(0)
        rows = np.array([[large], [2], [3]])
        models = [
            training.train(clone(Drawing()), rows[[n]], np.ones((1, 30)), seed)
            for n, seed in enumerate((7, 8, 9))
        ]
        assert [model.random_state for model in models if model] == [7, 8, 9]
        polled = [training.ballots(model, rows, 30, None).tolist() for model in models]
        seen.append((polled, np.random.random(), random.random()))
    assert seen[0][0][1] != seen[0][0][2]  # each has a seed of its own
    assert seen[0][0][1:] == seen[1][0][1:]
    assert seen[0][1:] == seen[1][1:]


def test_a_wrong_estimator_is_told_by_the_rehearsal() -> None:
    with pytest.raises(ValueError, match="alpha"):
        PateClassifier(RidgeClassifier(alpha="large"), teachers=10).fit(
            X[PRIVATE], Y[PRIVATE], public=X[PUBLIC]
        )


def test_every_row_has_one_teacher() -> None:
    parts = training.split(103, 10, ReplayableBits(b"s"))
    assert sorted(np.concatenate(parts).tolist()) == list(range(103))
    assert {len(part) for part in parts} == {10, 11}


def test_all_rows_of_a_group_meet_in_one_teacher_whatever_the_others_are() -> None:
    groups = [f"p{i % 40}" for i in range(400)]
    parts = training.split_groups(groups, 7, ReplayableBits(b"g"))
    owner = {row: teacher for teacher, part in enumerate(parts) for row in part.tolist()}
    assert all(len({owner[row] for row in range(i, 400, 40)}) == 1 for i in range(40))
    fewer = training.split_groups(groups[:100], 7, ReplayableBits(b"g"))
    assert all(owner[row] == t for t, part in enumerate(fewer) for row in part.tolist())


def test_equal_numbers_are_one_group() -> None:
    groups = [1, True, 1.0, np.int64(1), np.float32(1)]
    parts = training.split_groups([*groups, 10**5000], 1000, ReplayableBits(b"g"))
    assert sorted(map(len, parts))[-1] == 5


@pytest.mark.parametrize(
    "equal",
    [
        [memoryview(b"ann"), memoryview(b"ann"), b"ann"],
        [Decimal("1.0"), Decimal("1.00"), 1],
        [(1,), (np.int64(1),), (Fraction(1),)],
        ["ann", StrEnum("Name", {"ANN": "ann"})("ann"), np.str_("ann")],
        [
            datetime(2020, 1, 1, 12 + zone, tzinfo=timezone(timedelta(hours=zone)))
            for zone in (0, 1)
        ],
        [object(), object()],  # no text of their own: all in one place, never one by one
    ],
)
def test_equal_groups_are_one_whatever_their_types(equal: list[Any]) -> None:
    parts = training.split_groups(equal, 1000, ReplayableBits(b"g"))
    assert max(map(len, parts)) == len(equal)


def test_probabilities_order_the_votes_of_a_cut_ballot() -> None:
    teacher = OneVsRestClassifier(LogisticRegression()).fit(X[:300], Y[:300])
    votes = training.ballots(teacher, X[TEST], 4, 1)
    assert votes.sum(axis=1).max() == 1
    sure = teacher.decision_function(X[TEST]).argmax(axis=1)
    chosen = votes.any(axis=1)
    assert (votes.argmax(axis=1)[chosen] == sure[chosen]).all()


def test_mistakes_are_named() -> None:
    def fit(**changes: Any) -> None:
        model = PateClassifier(RidgeClassifier(), teachers=10, queries=5, **changes)
        model.fit(X[PRIVATE], Y[PRIVATE], public=X[PUBLIC])

    with pytest.raises(InvalidParameter, match="max_votes=3 does not go with method='stable'"):
        fit(max_votes=3, method="stable")
    with pytest.raises(InvalidParameter, match="method='best' must be 'auto' or 'shares'"):
        fit(method="best")
    with pytest.raises(InvalidParameter, match=r"y has the shape \(3000,\)"):
        PateClassifier(RidgeClassifier()).fit(X[PRIVATE], Y[PRIVATE][:, 0], public=X[PUBLIC])
    with pytest.raises(InvalidParameter, match="queries=400 must be at most the number of public"):
        PateClassifier(RidgeClassifier(), queries=400).fit(X[PRIVATE], Y[PRIVATE], public=X[PUBLIC])
