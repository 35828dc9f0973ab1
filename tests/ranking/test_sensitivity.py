"""One comparison moves the stationary distribution no further than S, in exact arithmetic."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from topsecret.errors import InvalidParameter
from topsecret.ranking.sensitivity import PromisedMixing, promised, unconditional

Matrix = list[list[Fraction]]
Outcomes = dict[tuple[int, int], Fraction]


def chain(items: int, games: dict[tuple[int, int], int], won: Outcomes, theta: Fraction) -> Matrix:
    """P_θ: won[i, j] of the games of i and j went to i (a half for a tie)."""
    most = max(sum(n for pair, n in games.items() if i in pair) for i in range(items))
    rows = [[Fraction(0)] * items for _ in range(items)]
    for (i, j), n in games.items():
        rows[i][j] = (n - won[i, j]) / most  # i lost: the walker goes to j
        rows[j][i] = won[i, j] / most
    for i in range(items):
        rows[i][i] = 1 - sum(rows[i])
    return [[(1 - theta) * p + theta / items for p in row] for row in rows]


def stationary(rows: Matrix) -> list[Fraction]:
    """π by Gaussian elimination in fractions."""
    size = len(rows)
    system = [[rows[j][i] - (i == j) for j in range(size)] + [Fraction(0)] for i in range(size)]
    system[0] = [Fraction(1)] * (size + 1)
    for column in range(size):
        pivot = next(row for row in range(column, size) if system[row][column])
        system[column], system[pivot] = system[pivot], system[column]
        lead = system[column][column]
        system[column] = [value / lead for value in system[column]]
        for row in range(size):
            if row != column and (factor := system[row][column]):
                pairs = zip(system[row], system[column], strict=True)
                system[row] = [a - factor * b for a, b in pairs]
    return [row[-1] for row in system]


def tau(rows: Matrix) -> Fraction:
    """τ₁ = ½ max Σ |P_il − P_jl|."""
    return max(
        sum((abs(a - b) for a, b in zip(first, second, strict=True)), Fraction(0)) / 2
        for first, second in combinations(rows, 2)
    )


def schedule_numbers(items: int, games: dict[tuple[int, int], int]) -> tuple[int, int]:
    most = max(sum(n for pair, n in games.items() if i in pair) for i in range(items))
    fewest = min(games.get(pair, 0) for pair in combinations(range(items), 2))
    return most, fewest


CASES = {
    "complete, once": (3, {(0, 1): 1, (0, 2): 1, (1, 2): 1}, Fraction(0)),
    "complete, twice": (3, {(0, 1): 2, (0, 2): 2, (1, 2): 2}, Fraction(0)),
    "complete, uneven": (3, {(0, 1): 1, (0, 2): 3, (1, 2): 2}, Fraction(0)),
    "complete, four items": (4, dict.fromkeys(combinations(range(4), 2), 1), Fraction(0)),
    "complete, teleport": (3, {(0, 1): 1, (0, 2): 3, (1, 2): 2}, Fraction(1, 4)),
    "path, teleport": (3, {(0, 1): 2, (1, 2): 2}, Fraction(1, 3)),
    "star, teleport": (4, {(0, 1): 1, (0, 2): 2, (0, 3): 1}, Fraction(1, 10)),
    "two parts, teleport": (4, {(0, 1): 2, (2, 3): 2}, Fraction(1, 5)),
}


@pytest.mark.parametrize(("items", "games", "theta"), CASES.values(), ids=CASES)
def test_the_bound_holds_on_all_outcomes_and_all_changed_comparisons(
    items: int, games: dict[tuple[int, int], int], theta: Fraction
) -> None:
    mixing = unconditional(*schedule_numbers(items, games), theta)
    halves = [[Fraction(h, 2) for h in range(2 * n + 1)] for n in games.values()]
    laws = {}
    for won in product(*halves):
        rows = chain(items, games, dict(zip(games, won, strict=True)), theta)
        assert 1 - tau(rows) >= mixing.overlap
        laws[won] = stationary(rows)
    largest = Fraction(0)
    for won, law in laws.items():
        for place in range(len(won)):
            for change in (Fraction(1, 2), Fraction(1)):  # a tie, or the other side, wins
                other = laws.get((*won[:place], won[place] + change, *won[place + 1 :]))
                if other is not None:
                    moved = max(abs(a - b) for a, b in zip(law, other, strict=True))
                    largest = max(largest, moved)
    assert 0 < largest <= mixing.sensitivity


def test_half_of_the_bound_is_broken() -> None:
    """Half of S is reached on two items: the check above can fail."""
    games = {(0, 1): 1}
    first, second = (stationary(chain(2, games, {(0, 1): w}, Fraction(0))) for w in (0, 1))
    assert abs(first[0] - second[0]) == unconditional(1, 1).sensitivity == 1


def test_the_bound_holds_on_random_changed_comparisons() -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        items = int(rng.integers(3, 7))
        pairs = [pair for pair in combinations(range(items), 2) if rng.random() < 0.7]
        games = {pair: int(rng.integers(1, 6)) for pair in pairs or [(0, 1)]}
        theta = Fraction(int(rng.integers(1, 9)), 10)
        mixing = unconditional(*schedule_numbers(items, games), theta)
        won = {pair: Fraction(int(rng.integers(0, n + 1))) for pair, n in games.items()}
        before = stationary(chain(items, games, won, theta))
        pair = list(games)[int(rng.integers(len(games)))]
        won[pair] += 1 if won[pair] < games[pair] else -1
        after = stationary(chain(items, games, won, theta))
        assert max(abs(a - b) for a, b in zip(before, after, strict=True)) <= mixing.sensitivity


def test_the_condition_of_the_paper_fails_on_a_path_of_three_items() -> None:
    """Both ends beat the middle: τ₁ = 1, so no public ρ < 1 holds for all data."""
    games = {(0, 1): 4, (1, 2): 4}
    rows = chain(3, games, {(0, 1): Fraction(4), (1, 2): Fraction(0)}, Fraction(0))
    assert tau(rows) == 1
    # And near it one comparison moves π by more than twice what ρ = .5 would promise.
    mirrored = chain(3, games, {(0, 1): Fraction(4), (1, 2): Fraction(1)}, Fraction(0))
    assert stationary(mirrored) == [1, 0, 0]
    between = chain(3, games, {(0, 1): Fraction(3), (1, 2): Fraction(1)}, Fraction(0))
    moved = abs(stationary(between)[0] - stationary(mirrored)[0])
    assert moved == Fraction(4, 7) > 2 * promised(8, PromisedMixing(0.5)).sensitivity


def test_equal_meetings_give_the_numbers_of_the_claim() -> None:
    """d = 4 opponents, 5 meetings each: (1 − θ)/(θ·d·5)."""
    theta = Fraction(3, 10)
    assert unconditional(20, 0, theta).sensitivity == (1 - theta) / (theta * 4 * 5)
    assert unconditional(20, 5).sensitivity == Fraction(1, 5)
    assert promised(20, PromisedMixing(Fraction(1, 2))).sensitivity == Fraction(1, 10)


def test_mistakes_are_named() -> None:
    with pytest.raises(InvalidParameter, match="some pair of items never met, so that without"):
        unconditional(10, 0)
    with pytest.raises(InvalidParameter, match="teleport=1 must be at least 0 and below 1"):
        unconditional(10, 0, 1)
    with pytest.raises(InvalidParameter, match="rho=1 must be at least 0 and below 1"):
        PromisedMixing(1)
