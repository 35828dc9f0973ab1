"""Every float enclosure contains the true value, as ball arithmetic sees it."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, fmpz

from topsecret.exact.rounding import precision
from topsecret.noise.distributions import EXPONENTIAL, GAUSSIAN, GUMBEL, LAPLACE
from topsecret.noise.enclosures import (
    arrival_bounds,
    decay_bounds,
    gumbel_bounds,
    gumbels_around,
    log_bounds,
    survival_bounds,
)
from topsecret.noise.screening import uniform_bounds

RNG = np.random.default_rng(20191)


def encloses(function, points, lower, upper):
    with precision(512):
        for point, low, high in zip(points, lower, upper, strict=True):
            true = function(arb(float(point)))
            assert arb(float(low)) <= true <= arb(float(high)), float(point)


def around(*centres):
    """The floats next to each centre: where a branch of the code changes."""
    return np.concatenate(
        [[c, np.nextafter(c, 0), np.nextafter(c, np.inf), c * (1 + 1e-9)] for c in centres]
    )


def test_logarithm():
    x = np.concatenate(
        [
            2.0 ** RNG.uniform(-1000, 1000, 3000),
            RNG.uniform(0.5, 2, 3000),
            1 + RNG.normal(0, 1e-9, 1000),
            around(0.5, np.sqrt(0.5), 1.0, np.sqrt(2), 2.0),
        ]
    )
    encloses(lambda t: t.log(), x, *log_bounds(x, x))
    ends = np.array([0.0, np.inf])
    assert (
        log_bounds(ends, ends)[0].tolist()
        == log_bounds(ends, ends)[1].tolist()
        == [-np.inf, np.inf]
    )


def test_arrival():
    v = np.concatenate(
        [
            2.0 ** RNG.uniform(-64, 0, 3000),
            RNG.uniform(0, 1, 3000),
            around(0.25, 0.5),
            1 - 2.0 ** RNG.uniform(-50, -2, 1000),
        ]
    )
    encloses(lambda t: -(-t).log1p(), v, *arrival_bounds(v, v))
    first, last = arrival_bounds(np.array([0.0]), np.array([1.0]))
    assert (first[0], last[0]) == (0.0, np.inf)


def test_survival():
    s = np.concatenate(
        [2.0 ** RNG.uniform(-300, 8, 3000), RNG.uniform(0, 2, 3000), around(0.25, 64.0)]
    )
    encloses(lambda t: -(-t).expm1(), s, *survival_bounds(s, s))
    assert survival_bounds(np.array([0.0]), np.array([np.inf]))[1][0] == 1.0


def test_one_gumbel_and_many_from_their_words():
    """Both ends of what the 64 bits leave open lie inside, for plain floats and for arrays."""
    edges = [2**44, 2**62, 2**63, 2**64 - 2**52, 2**64 - 1, 1, 0]
    words = [2 ** int(e) + int(RNG.integers(2 ** int(e))) for e in RNG.integers(30, 63, 400)]
    words += [int(w) for w in RNG.integers(2**64 - 1, size=2_000, dtype=np.uint64)]
    words += [2**64 - 1 - 2 ** int(e) for e in RNG.integers(40, 62, 400)]
    words += [w + step for w in edges for step in (-1, 0, 1) if 0 <= w + step < 2**64]
    sizes = [int(2 ** RNG.uniform(0, 52.9)) if turn % 2 else 1 for turn in range(len(words))]
    arrays = gumbel_bounds(np.array(words, dtype=np.uint64), np.array(sizes, dtype=np.float64))
    narrow = 0
    with precision(256):
        plain = gumbels_around(words, sizes)
        for word, size, one, low, high in zip(words, sizes, plain, *arrays, strict=True):
            ends = [arb(fmpz(word + step)) / 2**64 for step in (1, 0)]
            least, most = (-(-(-v).log1p() / size).log() if 0 < v < 1 else None for v in ends)
            for lower, upper in (one, (float(low), float(high))):
                assert lower == -np.inf or arb(lower) <= least
                assert upper == np.inf or most <= arb(upper)
                narrow += upper - lower < 2.0**-38
    assert narrow > 1.9 * 2_300  # most of the words: those of the far ends stay open
    assert gumbels_around([2**63], [2**53]) == [(-np.inf, np.inf)]


@pytest.mark.parametrize("noise", [GUMBEL, EXPONENTIAL, LAPLACE, GAUSSIAN], ids=repr)
def test_noise(noise):
    s = np.concatenate(
        [2.0 ** RNG.uniform(-62, 5, 1500), RNG.uniform(0, 3, 1500), around(np.log(2), 0.25)]
    )
    lower, upper = noise.bounds(s, s)
    encloses(noise.ball, s, lower, upper)
    assert np.median(upper - lower) < (0.02 if noise is GAUSSIAN else 1e-10)


@pytest.mark.parametrize("noise", [GUMBEL, EXPONENTIAL, LAPLACE, GAUSSIAN], ids=repr)
def test_noise_at_the_ends_is_open_not_wrong(noise):
    lower, upper = noise.bounds(np.array([0.0]), np.array([np.inf]))
    assert upper[0] == np.inf
    assert lower[0] <= 0.0


@pytest.mark.parametrize("noise", [GUMBEL, EXPONENTIAL, LAPLACE, GAUSSIAN], ids=repr)
def test_tail_is_the_arrivals_law(noise):
    """P[q(S) > q(s)] = P[S < s] = 1 − e^(−s)."""
    with precision(256):
        for s in RNG.uniform(0.001, 4, 50):
            arrival = arb(float(s))
            assert noise.tail(noise.ball(arrival)).overlaps(-(-arrival).expm1())


def test_uniform_bounds_hold_all_reals_of_a_prefix():
    words = np.array([0, 1, 2**53 + 1, 2**63, 2**64 - 1], dtype=np.uint64)
    lower, upper = uniform_bounds(words)
    for word, low, high in zip(words.tolist(), lower, upper, strict=True):
        assert arb(float(low)) <= arb(fmpz(word)) / arb(2) ** 64
        assert arb(float(high)) >= (arb(fmpz(word)) + 1) / arb(2) ** 64


def test_decay():
    s = np.concatenate([RNG.uniform(0, 512, 2000), 2.0 ** RNG.uniform(-60, 9, 2000), [0.0, 512.0]])
    encloses(lambda t: (-t).exp(), s, *decay_bounds(s, s))
    lower, upper = decay_bounds(np.array([600.0, np.inf]), np.array([700.0, np.inf]))
    assert lower.tolist() == [0.0, 0.0]
    assert (upper > 0).all()
