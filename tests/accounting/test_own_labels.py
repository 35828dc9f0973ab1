"""The chance that a label of one person alone is named: against all small vectors."""

from collections.abc import Iterator
from fractions import Fraction

import pytest

from topsecret.accounting.own_labels import OwnLabels

SMALL = [
    OwnLabels(most, total, items, Fraction(sigma), Fraction(threshold))
    for most, total, items in ((1, 2, 4), (2, 4, 4), (3, 3, 3), (3, 5, 5), (4, 7, 4), (5, 5, 2))
    for sigma, threshold in ((1, 3), (2, 5), (4, 24), (7, 20))
]


def vectors(own: OwnLabels, largest: int, left: int, squares: int) -> Iterator[tuple[int, ...]]:
    """All falling vectors of whole amounts within the limits."""
    yield ()
    if left == 0:
        return
    for amount in range(1, largest + 1):
        if amount**2 <= squares:
            for rest in vectors(own, amount, left - 1, squares - amount**2):
                yield (amount, *rest)


def worst(own: OwnLabels) -> tuple[Fraction, tuple[int, ...]]:
    adds = {n: own.adds(Fraction(n)) for n in range(1, own.most + 1)}
    everything = vectors(own, own.most, own.items, own.total**2)
    return max((sum((adds[n] for n in one), Fraction(0)), one) for one in everything)


@pytest.mark.parametrize("own", SMALL, ids=str)
def test_no_vector_exceeds_the_bound_and_it_is_at_most_one_label_above(own: OwnLabels) -> None:
    largest, _ = worst(own)
    assert largest <= own.exponent <= largest + own.adds(Fraction(own.most))


@pytest.mark.parametrize("own", [one for one in SMALL if one.threshold >= 2.5 * one.sigma], ids=str)
def test_the_worst_vector_has_some_at_the_clip_one_free_and_the_rest_equal(own: OwnLabels) -> None:
    """Equal but for one unit, since amounts are whole."""
    _, vector = worst(own)
    rest = [amount for amount in vector if amount < own.most]
    assert any(
        max(equal, default=0) - min(equal, default=0) <= 1
        for equal in [rest, *([*rest[:i], *rest[i + 1 :]] for i in range(len(rest)))]
    )


def test_flat_vectors_alone_understate_it() -> None:
    """One label at 4 and one at 3 are named more often than any flat vector of that length."""
    own = OwnLabels(4, 5, 10, Fraction(1), Fraction(7))
    flat = max(
        n * own.adds(Fraction(amount))
        for amount in range(1, 5)
        for n in range(1, 11)
        if n * amount**2 <= 25
    )
    largest, vector = worst(own)
    assert vector == (4, 3)
    assert flat < largest <= own.exponent


def test_cells_enclose_whole_amounts() -> None:
    """More amounts than cells: never below what the amounts one by one give, and hardly above."""
    fine = OwnLabels(250, 400, 20, Fraction(1000), Fraction(5500))
    coarse = OwnLabels(2500, 4000, 20, Fraction(10_000), Fraction(55_000))
    assert fine.exponent <= coarse.exponent <= fine.exponent * Fraction(101, 100)
    assert 0 < fine.chance < coarse.chance < 1e-5
