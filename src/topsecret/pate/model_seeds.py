"""What models draw while they learn, from seeds. No noise is drawn here: no answer rests on it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """The streams that everybody draws from start at ``seed``, and are put back at the end."""
    before = np.random.get_state(), random.getstate()
    np.random.seed(seed % 2**32)
    random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(before[0])
        random.setstate(before[1])


def seeded(estimator: Any, seed: int) -> Any:
    """The estimator with a stream of its own where it can have one: threads share the others."""
    missing = [
        name
        for name, value in estimator.get_params().items()
        if value is None and name.rpartition("__")[2] == "random_state"
    ]
    return estimator.set_params(**dict.fromkeys(missing, seed % 2**32))
