"""The solver agrees with a dense eigen-solver, and its error bound is true."""

from fractions import Fraction

import numpy as np
import pytest

from topsecret.ranking import Comparisons
from topsecret.ranking import stationary as solver
from topsecret.ranking.sensitivity import unconditional
from topsecret.ranking.stationary import Chain, attainable_error, stationary


def random_games(rng: np.random.Generator, items: int, rows: int) -> Comparisons:
    strength = np.exp(rng.normal(size=items))
    pairs = np.array([rng.choice(items, 2, replace=False) for _ in range(rows)])
    first = rng.random(rows) < strength[pairs[:, 0]] / strength[pairs].sum(axis=1)
    winners = np.where(first, pairs[:, 0], pairs[:, 1])
    losers = pairs.sum(axis=1) - winners
    ties = rng.random(rows) < 0.1
    return Comparisons.from_codes(winners, losers, items=range(items), ties=ties, schedule="public")


def dense(games: Comparisons, theta: float) -> np.ndarray:
    """The left eigenvector of the largest eigenvalue, by LAPACK."""
    wins = games.wins.toarray()
    moves = wins.T / games.most_games
    moves += np.diag(1 - moves.sum(axis=1))
    moves = (1 - theta) * moves + theta / len(moves)
    values, vectors = np.linalg.eig(moves.T)
    vector = np.real(vectors[:, np.argmax(np.real(values))])
    return vector / vector.sum()


@pytest.mark.parametrize("theta", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("directly", [True, False])
def test_it_agrees_with_a_dense_eigen_solver(
    theta: float, directly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solver, "DENSE", 10**6 if directly else 0)
    rng = np.random.default_rng(11)
    for items, rows in ((5, 8), (30, 60), (200, 1500)):
        games = random_games(rng, items, rows)
        mixing = unconditional(games.most_games, games.fewest_meetings, theta)
        found = stationary(games, Fraction(theta), mixing)
        difference = np.abs(found.scores - dense(games, theta)).max()
        assert difference < 1e-8
        assert difference <= float(found.error) + 1e-12  # LAPACK has errors of its own


def test_a_complete_graph_needs_no_teleport() -> None:
    rng = np.random.default_rng(2)
    wins = rng.integers(0, 9, (12, 12)) + 1
    np.fill_diagonal(wins, 0)
    games = Comparisons.from_matrix(wins, schedule="public")
    mixing = unconditional(games.most_games, games.fewest_meetings)
    found = stationary(games, Fraction(0), mixing)
    assert np.abs(found.scores - dense(games, 0.0)).max() < 1e-8


def test_the_error_bound_does_not_depend_on_outcomes() -> None:
    winners, losers = [0, 1, 2, 0], [1, 2, 0, 1]
    bounds = set()
    for a, b in ((winners, losers), (losers, winners)):
        games = Comparisons.from_rows(a, b, schedule="public")
        mixing = unconditional(games.most_games, games.fewest_meetings, 0.3)
        bounds.add(attainable_error(Chain(games, Fraction(3, 10)), mixing))
    assert len(bounds) == 1


def test_a_poor_guess_costs_steps_and_no_correctness(monkeypatch: pytest.MonkeyPatch) -> None:
    games = random_games(np.random.default_rng(4), 40, 300)
    mixing = unconditional(games.most_games, games.fewest_meetings, 0.1)
    good = stationary(games, Fraction(1, 10), mixing)

    def poor(self: Chain, teleport: Fraction) -> np.ndarray:
        return np.eye(self.size)[0]

    monkeypatch.setattr(Chain, "guess", poor)
    again = stationary(games, Fraction(1, 10), mixing)
    assert np.abs(good.scores - again.scores).max() <= float(good.error + again.error)


def test_the_wrong_direction_of_the_walk_is_told_apart() -> None:
    games = Comparisons.from_rows(["a"] * 9 + ["b"], ["b"] * 9 + ["a"], schedule="public")
    found = stationary(games, Fraction(0), unconditional(10, 10))
    assert np.allclose(found.scores, [0.9, 0.1])
