"""Draws from a table have the noise's exact law, its open words and ends included."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from topsecret.exact.rounding import precision
from topsecret.noise import integer_table
from topsecret.noise.bits import ReplayableBits, ScriptedBits
from topsecret.noise.integer_table import IntegerTable
from topsecret.noise.lattice import DiscreteLaplace, IntegerNoise
from topsecret.noise.rounded_gaussian import RoundedGaussian

NOISES = [
    DiscreteLaplace(Fraction(3, 2)),
    DiscreteLaplace(Fraction(1, 7)),
    RoundedGaussian(Fraction(5, 2)),
    RoundedGaussian(Fraction(1, 3)),
]
ALARM = 1e-6


def p_value(drawn: np.ndarray, noise: IntegerNoise) -> float:
    """Pearson's test of the draws against the law, rare values together."""
    with precision(64):
        law = {x: float(noise.mass(x)) for x in range(-40, 41)}
    common = [x for x, mass in law.items() if mass * drawn.size >= 10]
    observed = [int((drawn == x).sum()) for x in common]
    expected = [law[x] * drawn.size for x in common]
    observed.append(drawn.size - sum(observed))
    expected.append(max(drawn.size - sum(expected), 1e-9))
    keep = [place for place, value in enumerate(expected) if value >= 1e-3]
    return float(
        stats.chi2.sf(
            sum((observed[i] - expected[i]) ** 2 / expected[i] for i in keep), max(1, len(keep) - 1)
        )
    )


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_the_draws_have_the_law(noise: IntegerNoise) -> None:
    drawn = IntegerTable(noise).draw((40_000,), ReplayableBits(b"law"))
    assert p_value(drawn, noise) > ALARM
    single = np.array([noise.draw(ReplayableBits(bytes([n % 256, n // 256]))) for n in range(4000)])
    assert p_value(single, noise) > ALARM


def test_another_scale_is_rejected() -> None:
    drawn = IntegerTable(RoundedGaussian(Fraction(5, 2))).draw((40_000,), ReplayableBits(b"law"))
    assert p_value(drawn, RoundedGaussian(Fraction(26, 10))) < ALARM
    drawn = IntegerTable(DiscreteLaplace(Fraction(3, 2))).draw((40_000,), ReplayableBits(b"law"))
    assert p_value(drawn, DiscreteLaplace(Fraction(33, 20))) < ALARM


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_open_words_are_decided_by_their_further_bits(noise: IntegerNoise) -> None:
    """The word at each threshold: more ones put the uniform above it, zeros below."""
    table = IntegerTable(noise)
    low, _ = table._table
    for place in {0, len(low) // 2, len(low) - 1, *range(0, len(low), 7)}:
        x = table._reach - place
        word = np.array([low[place]], dtype=np.uint64).tobytes()
        below = int(table.draw((1,), ScriptedBits(word + bytes(8) + b"\x55" * 400))[0])
        above = int(table.draw((1,), ScriptedBits(word + b"\xff" * 8 + b"\x55" * 400))[0])
        # U < P[noise ≥ x] exactly when the draw is at least x.
        assert below >= x > above


def test_a_noise_too_wide_for_a_table_is_drawn_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integer_table, "MOST_ENTRIES", 4)
    noise = RoundedGaussian(Fraction(5, 2))
    drawn = IntegerTable(noise).draw((4000,), ReplayableBits(b"wide"))
    assert p_value(drawn, noise) > ALARM


def test_the_variance_and_the_half_width_are_those_of_the_law() -> None:
    for sigma in (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(7, 2)):
        noise = RoundedGaussian(sigma)
        with precision(64):
            masses = [float(noise.mass(x)) for x in range(60)]
        assert sum(2 * x * x * mass for x, mass in enumerate(masses)) == pytest.approx(
            noise.variance, rel=1e-6
        )
        width = noise.half_width(Fraction(95, 100))
        within = masses[0] + 2 * sum(masses[1 : width + 1])
        assert within >= 0.95
        assert width == 0 or within - 2 * masses[width] < 0.95
