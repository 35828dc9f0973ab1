"""Students of noisy shares: they learn, use what is known of the noise, and name their mistakes."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier

from topsecret.errors import InvalidParameter
from topsecret.pate import NoisyShares, PateClassifier, plan_answers, students
from topsecret.pate.plan import MOST, recommended_cut, recommended_queries
from topsecret.pate.students import ShareRidge, SoftStudent, f1_threshold, likely_rates

RNG = np.random.default_rng(3)
WEIGHTS = RNG.normal(size=(8, 5))
X = RNG.normal(size=(3000, 8))
Y = X @ WEIGHTS + RNG.normal(size=(3000, 5)) > 1.5
TRUE = 1 / (1 + np.exp(-1.5 * (X @ WEIGHTS - 1.5)))


def noisy(rows: slice, deviation: float) -> np.ndarray:
    return TRUE[rows] + np.random.default_rng(1).normal(0, deviation, (rows.stop - rows.start, 5))


def f1(found: np.ndarray) -> float:
    truth, named = Y[2000:], found != 0
    return float(2 * (truth & named).sum() / (truth.sum() + named.sum()))


@pytest.mark.parametrize(
    "model",
    [
        ShareRidge(),
        Ridge(),
        RandomForestRegressor(20, min_samples_leaf=10, random_state=0),
        LogisticRegression(),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("threshold", ["f1", "rates"])
def test_every_kind_of_student_learns_shares(model: object, threshold: str) -> None:
    student = SoftStudent(model, threshold)  # type: ignore[arg-type]
    student.fit(X[:400], noisy(slice(0, 400), 0.3), 0.3**2)
    assert f1(student.predict(X[2000:])) > 0.6
    one = SoftStudent(model, threshold)  # type: ignore[arg-type]
    one.fit(X[:40], noisy(slice(0, 40), 0.3)[:, :1], 0.3**2)
    assert one.predict(X[2000:]).shape == (len(X) - 2000, 1)


def test_the_known_noise_sets_the_ridge() -> None:
    """On few rows a fit that does not know of the noise takes some of it for signal."""
    errors = []
    for seed in range(20):
        rows = slice(20 * seed, 20 * seed + 20)
        shares = TRUE[rows] + np.random.default_rng(seed).normal(0, 1.0, (20, 5))
        told = [ShareRidge().fit(X[rows], shares, v).predict(X[2000:]) for v in (1.0, 0.0)]
        errors.append([np.mean((each - TRUE[2000:]) ** 2) for each in told])
    known, unknown = np.mean(errors, axis=0)
    assert known < 0.9 * unknown
    clear = ShareRidge().fit(X[:200], noisy(slice(0, 200), 0.01), 0.01**2).predict(X[2000:])
    assert np.mean((clear - TRUE[2000:]) ** 2) < 0.04


def test_the_threshold_of_f1_names_more_where_little_is_known() -> None:
    assert f1_threshold(np.full((10, 3), 0.2)) < 0.2
    sure = np.array([[0.95, 0.9, 0.02, 0.01]])
    assert 0.02 < f1_threshold(sure) < 0.9
    assert f1_threshold(np.zeros((2, 2))) == 0.5


def test_what_is_left_out_is_the_estimate_of_the_other_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ridge(values: np.ndarray, seen: np.ndarray, *_: object) -> tuple[np.ndarray, float]:
        return np.repeat((values**2 / (values**2 + 5.0))[:, None], seen.shape[1], axis=1), 1.0

    monkeypatch.setattr(students, "_gains", ridge)
    shares = noisy(slice(0, 30), 0.3)
    fitted = ShareRidge().fit(X[:30], shares, 0.3**2)
    rows, residue = X[:30] - X[:30].mean(axis=0), shares - shares.mean(axis=0)
    for row in (0, 17, 29):
        others = np.delete(rows, row, axis=0)
        learnt = others.T @ np.delete(residue, row, axis=0)
        alone = rows[row] @ np.linalg.solve(others.T @ others + 5 * np.eye(8), learnt)
        assert np.allclose(fitted.left_out_[row], fitted.intercept_ + alone)


@pytest.mark.parametrize("model", [ShareRidge(), Ridge()], ids=lambda each: type(each).__name__)
def test_all_labels_are_named_where_the_noise_hides_their_rates(model: object) -> None:
    def named(rows: int, deviation: float, threshold: str = "f1") -> bool:
        student = SoftStudent(model, threshold)  # type: ignore[arg-type]
        shares = noisy(slice(0, rows), deviation)
        return bool(student.fit(X[:rows], shares, deviation**2).predict(X[:20]).all())

    assert named(50, 20.0)
    assert not named(500, 1.0)
    assert not named(50, 20.0, "rates")


def test_noisy_rates_are_drawn_together_by_as_much_as_is_noise() -> None:
    """Of unequal labels that the noise hides the shrunk rates err less, of clear ones no more."""
    rng = np.random.default_rng(5)
    truth = np.exp(rng.normal(-2, 0.5, (200, 12))).clip(0, 1)
    for deviation, part in ((0.005, 1.02), (0.1, 0.7), (0.5, 0.3)):
        told = truth + rng.normal(0, deviation, truth.shape)
        rates = np.array([likely_rates(row, deviation) for row in told])
        assert ((rates - truth) ** 2).mean() < (part * deviation) ** 2
        assert rates.min() >= 0
        assert rates.max() <= 1


def test_sparse_and_constant_features_are_ordinary_inputs() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    student = SoftStudent(ShareRidge(), "f1")
    told = student.fit(sparse.csr_matrix(X[:100]), noisy(slice(0, 100), 0.1), 0.01)
    assert told.shares(sparse.csr_matrix(X[:5])).shape == (5, 5)
    constant = SoftStudent(ShareRidge(), "f1").fit(np.ones((20, 3)), noisy(slice(0, 20), 0.1), 0.01)
    assert np.ptp(constant.shares(np.ones((2, 3))), axis=0).max() == 0


def test_auto_is_the_default_and_soft() -> None:
    model = PateClassifier(RidgeClassifier(), teachers=60, epsilon=4)
    model.fit(X[:1500], Y[:1500], public=X[1500:2000])
    assert isinstance(model.rule_, NoisyShares)
    assert model.answered_ == 500
    assert f1(model.predict(X[2000:])) > 0.45
    assert model.epsilon_ <= 4
    assert model.predict_shares(X[:2]).shape == (2, 5)
    assert model.plan(5, 500).method == "shares"


def test_hard_students_know_no_shares_and_wrong_options_are_named() -> None:
    def fit(**options: object) -> PateClassifier:
        model = PateClassifier(RidgeClassifier(), teachers=10, **options)  # type: ignore[arg-type]
        return model.fit(X[:200], Y[:200], public=X[200:220])

    with pytest.raises(InvalidParameter, match="only students of shares know shares"):
        fit(method="pate", queries=5).predict_shares(X[:1])
    with pytest.raises(InvalidParameter, match="max_votes=2 does not go with method='auto'"):
        fit(max_votes=2)
    with pytest.raises(InvalidParameter, match="weight_limit=2 does not go with method='pate'"):
        fit(method="pate", weight_limit=2)
    with pytest.raises(InvalidParameter, match="expected_labels=2 is for method='auto'"):
        fit(method="shares", expected_labels=2)
    with pytest.raises(InvalidParameter, match="threshold='half' must be"):
        fit(threshold="half")
    with pytest.raises(InvalidParameter, match="expected_labels=9 must be above 0 and at most"):
        fit(expected_labels=9)
    fit(method="shares", max_votes=2)
    fit(method="shares", weight_limit=2)


def test_the_rule_follows_public_numbers() -> None:
    budget = (2.0, 1e-6, "replace")
    assert recommended_cut(22, 400, 500, *budget) == 4  # type: ignore[arg-type]
    assert recommended_cut(8, 400, 500, *budget) is None  # type: ignore[arg-type]
    assert recommended_cut(100, 400, 500, *budget, expected_labels=15) == 8  # type: ignore[arg-type]
    assert recommended_cut(22, 400, 500, 64.0, 1e-6, "replace") is None
    assert recommended_queries("shares", 22, 400, 9000, *budget) == MOST  # type: ignore[arg-type]
    few = recommended_queries("pate", 22, 4000, 9000, *budget)  # type: ignore[arg-type]
    assert 100 < few < 9000
    plan = plan_answers(12, 200, queries=600, epsilon=2, delta=1e-6)
    assert plan.rows[0].stable_answers[0] < 0.01  # no query at all, as measured
    assert [row.queries for row in plan.rows] == [600, 300, 150, 60]
    noise = [row.share_deviation for row in plan.rows]
    assert noise == sorted(noise, reverse=True)
    assert "method 'shares', max_votes 4" in str(plan)
