"""The float simulation of TestedTopK against the mechanism's exact law."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from experiments.tested_simulation import simulate

from topsecret import Histogram
from topsecret.mechanisms import TestedTopK


def test_the_simulation_names_as_many_items_as_the_law_says() -> None:
    """Each length within 5 deviations, seeded."""
    mechanism = TestedTopK(k=3, epsilon=3.0, delta=0.5, k_bar=5)
    counts = [7, 5, 4, 1]
    law: Counter[int] = Counter()
    for outcome, chance in mechanism.distribution(Histogram.of(dict(enumerate(counts)))).items():
        law[sum(isinstance(item, int) for item in outcome[1:])] += chance  # type: ignore[assignment]
    runs, rng = 3000, np.random.default_rng(5)
    seen = simulate(mechanism.schedule, np.array(counts), mechanism.slots, 3, runs, rng)
    found = Counter(seen.named.tolist())
    for length, chance in law.items():
        spread = math.sqrt(runs * chance * (1 - chance))
        assert abs(found[length] - runs * chance) < 5 * spread + 2, length
