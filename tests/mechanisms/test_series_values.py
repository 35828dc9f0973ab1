"""A series' noise: exact, the same for the same key, with the covariance that C says."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from topsecret.errors import InvalidParameter
from topsecret.mechanisms.series_numbers import SeriesNumbers, coefficients, squared_length
from topsecret.mechanisms.series_values import SeriesNoise
from topsecret.noise.keyed_normals import KeyedBits, KeyedNormals

KEYS = [bytes([number]) * 32 for number in range(8)]


def numbers(kind: str = "cumulative", periods: int = 8, window: int = 1) -> SeriesNumbers:
    return SeriesNumbers.calibrated(kind, periods, window, 2, 1.0, 1e-4)  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "window"), [("cumulative", 1), ("window", 1), ("window", 3)])
def test_the_root_times_itself_sums(kind: str, window: int) -> None:
    a = [float(one.mid()) for one in coefficients(kind, 12, window)]  # type: ignore[arg-type]
    product = [sum(a[j] * a[s - j] for j in range(s + 1)) for s in range(12)]
    reach = window if kind == "window" else 12
    assert product == pytest.approx([float(s < reach) for s in range(12)], abs=1e-12)


@pytest.mark.parametrize(
    ("kind", "periods", "window", "factor"),
    [
        ("cumulative", 12, 1, 1.85),
        ("cumulative", 52, 1, 2.32),
        ("cumulative", 365, 1, 2.94),
        ("window", 365, 4, 1.62),
        ("window", 365, 12, 2.06),
        ("window", 365, 30, 2.43),
    ],
)
def test_the_error_grows_like_a_logarithm(
    kind: str, periods: int, window: int, factor: float
) -> None:
    """The last period's deviation, in units of √D/μ."""
    found = SeriesNumbers.calibrated(kind, periods, window, 1, 1.0, 1e-6)  # type: ignore[arg-type]
    assert found.deviation(periods) * float(found.mu_squared) ** 0.5 == pytest.approx(
        factor, abs=0.01
    )
    assert found.loss.epsilon(1e-6) <= 1


def test_no_placement_of_counts_is_longer_than_kappa() -> None:
    """All placements of counts at least W apart, against what is charged for each."""
    periods, window = 9, 3
    a = [float(one.mid()) for one in coefficients("window", periods, window)]
    places = range(periods)
    columns = np.array([[a[t - s] if t >= s else 0.0 for t in places] for s in places])
    longest = float(squared_length("window", periods, window))
    seen = 0.0
    for chosen in range(1, 2**periods):
        times = [t for t in range(periods) if chosen >> t & 1]
        if all(b - a >= window for a, b in itertools.pairwise(times)):
            length = float((columns[times].sum(axis=0) ** 2).sum())
            assert length <= len(times) * longest
            seen = max(seen, length / len(times))
    assert seen > 0.85 * longest


@pytest.mark.parametrize(("kind", "window"), [("cumulative", 1), ("window", 2)])
def test_the_noise_has_the_covariance_of_the_root(kind: str, window: int) -> None:
    """4,000 labels; entries of a correlation matrix are off by .016, and .08 is never seen."""
    public = numbers(kind, 8, window)
    labels = [b"label %d" % number for number in range(4000)]
    middle = []
    for period in (1, 2, 5, 8):
        lower, upper = SeriesNoise(public, KEYS[:period]).bounds(labels)
        assert (lower < upper).all()
        middle.append((lower + upper) / 2)
    a = [float(one.mid()) for one in public.coefficients()]
    root = np.array([[a[t - s] if s <= t else 0.0 for s in range(8)] for t in (0, 1, 4, 7)])
    expected = root @ root.T * float(public.sigma) ** 2
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs(np.cov(middle) / scale - expected / scale).max() < 0.08


def test_floats_enclose_the_exact_values() -> None:
    noise = SeriesNoise(numbers(), KEYS)
    labels = [b"%d" % number for number in range(50)]
    lower, upper = noise.bounds(labels)
    exact = noise.values({}, dict.fromkeys(labels, 0))
    for place, label in enumerate(labels):
        value = Fraction(exact[label], 1024)
        assert lower[place] - Fraction(1, 2048) <= value <= upper[place] + Fraction(1, 2048)


def test_labels_pass_as_if_each_was_drawn_exactly() -> None:
    """The screen by floats drops no label that its exact value would name."""
    public = SeriesNumbers.calibrated("cumulative", 8, 1, 1, 4.0, 0.05)
    sums = {b"%d" % number: 1 + number % 9 for number in range(200)}
    noise = SeriesNoise(public, KEYS[:3])
    exact = noise.values({}, sums)
    expected = {label: v for label, v in exact.items() if v > public.threshold(3)}
    assert noise.values(sums, {}) == expected
    assert 0 < len(expected) < len(sums)


def test_a_label_that_nobody_has_is_not_named() -> None:
    assert SeriesNoise(numbers(), KEYS[:1]).values({b"none": 0, b"many": 10**6}, {}).keys() == {
        b"many"
    }


def test_the_same_key_gives_the_same_noise_and_another_key_another() -> None:
    known = {b"tea": 5}
    one = SeriesNoise(numbers(), KEYS).values({}, known)
    assert one == SeriesNoise(numbers(), KEYS).values({}, known)
    assert one != SeriesNoise(numbers(), [*KEYS[:-1], b"x" * 32]).values({}, known)
    assert b"tea" not in repr(SeriesNoise(numbers(), KEYS)).encode()


def test_more_bits_sharpen_the_same_normal() -> None:
    normals = KeyedNormals(KEYS[0])
    coarse, fine = normals.ball(b"tea", 64), KeyedNormals(KEYS[0]).ball(b"tea", 600)
    assert coarse.contains(fine)
    assert fine.rad() < coarse.rad()
    stream = KeyedBits(KEYS[0], b"tea")
    assert stream.take(100) + stream.take(50) == KeyedBits(KEYS[0], b"tea").take(150)
    with pytest.raises(InvalidParameter, match="32 bytes"):
        KeyedNormals(b"short")
