"""Many races at once have the law of one race each."""

import math
from fractions import Fraction

import numpy as np
import pytest

from topsecret.noise import many
from topsecret.noise.bits import ReplayableBits
from topsecret.noise.distributions import GAUSSIAN, GUMBEL, Noise
from topsecret.noise.many import winners
from topsecret.noise.screening import Screen

ROWS = 40_000


def counts(found: np.ndarray, places: int) -> np.ndarray:
    return np.bincount(found, minlength=places)


def test_gumbel_winners_follow_plackett_luce() -> None:
    """Each place within 6 standard deviations (alarm rate below 1e-8); scale 3 is rejected."""
    scores = np.array([3, 0, 2, 2])

    def law(scale: float) -> np.ndarray:
        weights = np.exp(scores / scale)
        return weights / weights.sum()

    table = np.tile(scores, (ROWS, 1))
    found = counts(winners(table, GUMBEL, Fraction(2), ReplayableBits(b"g")), 4)
    deviation = np.sqrt(ROWS * law(2.0) * (1 - law(2.0)))
    assert (np.abs(found - ROWS * law(2.0)) < 6 * deviation).all()
    assert (np.abs(found - ROWS * law(3.0)) > 6 * deviation).any()


def test_gaussian_winners_of_two() -> None:
    table = np.tile([1, 0], (ROWS, 1))
    found = counts(winners(table, GAUSSIAN, Fraction(1), ReplayableBits(b"n")), 2)
    chance = 0.5 * math.erfc(-1 / 2)  # Φ(1/√2)
    assert abs(found[0] - ROWS * chance) < 6 * math.sqrt(ROWS * chance * (1 - chance))


@pytest.mark.parametrize("noise", [GUMBEL, GAUSSIAN])
def test_wide_enclosures_change_nothing_but_the_time(
    noise: Noise, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = np.random.default_rng(1).integers(0, 5, (300, 20))
    narrow = winners(table, noise, Fraction(3), ReplayableBits(b"w"))

    class Wide(Screen):
        def bounds(self, groups, words):  # type: ignore[no-untyped-def]
            lower, upper = super().bounds(groups, words)
            return lower - 0.5, upper + 0.5

    monkeypatch.setattr(many, "Screen", Wide)
    assert np.array_equal(winners(table, noise, Fraction(3), ReplayableBits(b"w")), narrow)


def test_no_rows_and_single_places() -> None:
    assert winners(np.zeros((0, 4), np.int64), GUMBEL, Fraction(1), ReplayableBits(b"")).size == 0
    assert winners(np.ones((3, 1), np.int64), GUMBEL, Fraction(1), ReplayableBits(b"")).sum() == 0
