"""Intervals of noisy counts: each covers as often as it says, on seeded runs of the exact law."""

import math

import numpy as np
import pytest

from topsecret.calibration.counts import intervals_of
from topsecret.mechanisms import CorrelatedCounts
from topsecret.results.intervals import Intervals, smoothed

RUNS = 10_000
"""Of the law in floats; tests/mechanisms hold the exact draw to the same law."""


def drawn(law: Intervals, counts: np.ndarray, persons: int, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    common = rng.normal(0, law.common_sigma or 0.0, RUNS)
    own = rng.normal(0, law.item_sigma, (RUNS, law.released))
    noisy = np.rint(counts + own + law.weight * common[:, None]).astype(int)
    return noisy, np.rint(persons + common).astype(int)


LAWS = [
    pytest.param(intervals_of(CorrelatedCounts(mu, cap).noise(m)), id=f"mu={mu}, m={m}, cap={cap}")
    for mu, m, cap in [(0.1, 5, None), (0.1, 50, None), (0.08, 100, 25), (0.3, 10, None)]
]


@pytest.mark.parametrize("law", LAWS)
def test_every_interval_covers_95_percent(law: Intervals) -> None:
    """Within ±1%: a correct one fails by chance with probability below 10⁻⁵."""
    counts = np.linspace(900, 300, law.released).astype(int)
    persons = 2000
    noisy, all_persons = drawn(law, counts, persons, seed=law.released)

    def covered(inside: np.ndarray) -> float:
        return float(np.mean(inside))

    each = np.abs(noisy[:, 0] - counts[0]) <= law.half_width()
    whole = (np.abs(noisy - counts) <= law.list_half_width()).all(axis=1)
    total = np.abs(all_persons - persons) <= law.persons_half_width()
    lead = np.abs((noisy[:, 0] - noisy[:, 1]) - (counts[0] - counts[1]))
    between = lead <= law.difference_half_width()
    ends = [law.share(int(n), int(p)) for n, p in zip(noisy[:, 0], all_persons, strict=True)]
    share = counts[0] / persons
    shares = np.array([low <= share <= high for low, high in ends])
    for kind in (each, whole, total, between, shares):
        assert 0.94 < covered(kind) < 0.965
    narrower = np.abs(noisy[:, 0] - counts[0]) <= 0.8 * law.half_width()
    assert covered(narrower) < 0.93


def test_no_whole_half_width_is_smaller() -> None:
    """Narrow intervals hold more often than 95% because widths are whole: one less is too few."""
    for sigma in np.geomspace(0.8, 80, 300).tolist():
        width = Intervals(1, 0.0, sigma, sigma).half_width()

        def holds(w: int, sigma: float = sigma) -> float:
            return math.erf((w + 0.5) / sigma / math.sqrt(2))

        assert holds(width) >= 0.95 > holds(width - 1)


def test_known_factors() -> None:
    for m, z in ((10, 2.78), (50, 3.28), (100, 3.47)):
        law = intervals_of(CorrelatedCounts(0.01).noise(m))
        assert law.list_half_width() / law.sigma == pytest.approx(z, abs=0.006)


def test_a_share_is_between_nothing_and_all() -> None:
    law = intervals_of(CorrelatedCounts(0.5).noise(4))
    low, high = law.share(500, 1000)
    assert 0.48 < low < 0.5 < high < 0.52
    assert law.share(-3, 1000)[0] == 0.0
    assert law.share(5, 2) == (0.0, 1.0)


def test_without_common_noise_there_are_no_persons() -> None:
    law = intervals_of(CorrelatedCounts(0.5, adjacency="replace").noise(4))
    assert law.persons_half_width() is None
    assert law.sigma == law.item_sigma


def zipf(rng: np.random.Generator, items: int) -> np.ndarray:
    weights = 3000 / np.arange(1, items + 1) ** rng.uniform(0.6, 1.2)
    return np.sort(rng.poisson(weights))[::-1]


def test_the_order_of_neighbours_claims_no_more_than_is_true() -> None:
    """Over heavy-tailed lists, among pairs claimed at p to p + .1 at least about p are right."""
    law, rng = intervals_of(CorrelatedCounts(0.1).noise(40)), np.random.default_rng(5)
    claimed, right = [], []
    for _ in range(150):
        counts = zipf(rng, 40)
        noise = rng.normal(0, law.item_sigma, 40) + law.weight * rng.normal(0, law.common_sigma)
        shown = np.rint(counts + noise).astype(int)
        places = np.argsort(-counts + rng.gumbel(0, 12, 40))  # the list's own noisy order
        listed, true = shown[places].tolist(), counts[places]
        for place in range(39):
            sure = law.order(listed, place)
            ahead = 1.0 if true[place] > true[place + 1] else 0.5 * (true[place] == true[place + 1])
            claimed.append(max(sure, 1 - sure))
            right.append(ahead if sure >= 0.5 else 1 - ahead)
    sure, true = np.array(claimed), np.array(right)
    for low in (0.5, 0.6, 0.7, 0.8, 0.9):
        among = (sure >= low) & (sure < low + 0.1)
        assert among.sum() > 50
        # two standard errors and two hundredths
        slack = 0.02 + 2 * math.sqrt(0.25 / among.sum())
        assert true[among].mean() > sure[among].mean() - slack


def test_smoothed_values_fall_half_way() -> None:
    assert smoothed((50, 20, 30)) == (50.0, 22.5, 27.5)
    assert smoothed(()) == ()
    assert smoothed((-4,)) == (0.0,)


def test_no_order_is_called_certain() -> None:
    law = Intervals(3, 0.0, 10.0, None)
    far, near = law.order_in_words((9000, 5000, 10)), law.order_in_words((9000, 8999, 10))
    assert "with a probability of over 99%, whichever two, each two by themselves; the whole" in far
    assert "(ranks 1 and 2) to over 99%, each two by themselves; the whole" in near
    assert "over 99% (ranks 1 and 2). Smoothed" in law.order_in_words((9000, 10))
    assert "100%" not in far + near
