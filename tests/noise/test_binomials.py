"""ln C(n, m) in floats lies within its error bound, as ball arithmetic sees it."""

from __future__ import annotations

import numpy as np
from flint import arb

from topsecret.exact.rounding import precision
from topsecret.noise.binomials import log_binomial_ball, log_binomials


def test_the_error_bound_holds():
    rng = np.random.default_rng(3)
    n = np.minimum(10 ** rng.uniform(0, 18.9, 1500), 2.0**62).astype(np.int64)
    m = np.minimum(n, (10 ** rng.uniform(0, 6, 1500)).astype(np.int64))
    middle = rng.integers(0, 400, 500)
    n = np.concatenate([n, middle, [1, 2, 31, 32, 33, 64, 10**18]])
    m = np.concatenate(
        [m, (middle * rng.uniform(0, 1, 500)).astype(np.int64), [1, 1, 3, 16, 1, 32, 1]]
    )
    value, error = log_binomials(n, m)
    for i in range(len(n)):
        with precision(128):
            off = abs(log_binomial_ball(int(n[i]), int(m[i]), 128) - arb(float(value[i])))
            assert off <= float(error[i]) + 2.0**-100
    assert (error <= 2.0**-46 * (2 + m + value)).all()


def test_balls_know_small_binomials():
    assert log_binomial_ball(10, 3, 64).exp().contains(120)
    assert log_binomial_ball(10**18, 0, 64).contains(0)
