"""`TestedTopK` in floats, for comparisons over very many cells: NumPy's noise, never for a release.

The law is that of the mechanism up to float rounding; the mechanism itself draws exactly and takes
ten times as long. tests/experiments hold the two against each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topsecret.mechanisms import WeightedHistogram
from topsecret.mechanisms.pick_prune_test import own_variances, spreads
from topsecret.mechanisms.tested_schedule import UNIT, Length, Schedule
from topsecret.mechanisms.tested_top_k import length_scores

Counts = NDArray[np.int64]
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Seen:
    """What the runs of one cell gave, run by run."""

    right: NDArray[np.int64]
    """How many of the named items belong to the true top k."""
    named: NDArray[np.int64]
    k: int
    lengths: NDArray[np.int64]
    """The length that `TestedTopK` drew; 0 for the others."""

    @property
    def recall(self) -> float:
        """The mean share of the true top k that was named."""
        return float(np.minimum(self.right, self.k).mean()) / self.k

    @property
    def empty(self) -> float:
        """The share of empty answers."""
        return float((self.named == 0).mean())


def leads_over(counts: Counts, slots: int) -> tuple[Counts, int]:
    """The leads of all slots, null slots included, and the count that they are over."""
    rest = int(counts[slots]) if len(counts) > slots else 0
    leads = np.zeros(slots, dtype=np.int64)
    ahead = counts[:slots] - rest
    leads[: len(ahead)] = np.maximum(ahead, 0)
    return leads, rest


def simulate(
    schedule: Schedule, counts: Counts, slots: int, k: int, runs: int, rng: np.random.Generator
) -> Seen:
    """So many answers about these counts, largest first."""
    leads, rest = leads_over(counts, slots)
    scores = np.array(length_scores(schedule, leads[leads > 0].tolist())) / UNIT
    scores = float(schedule.choice) / 2 * scores
    least = max(1, int(counts[k - 1]) - rest if len(counts) >= k else 1)
    right, named, lengths = (np.zeros(runs, dtype=np.int64) for _ in range(3))
    for run in range(runs):
        length = schedule.lengths[int(np.argmax(scores + _gumbel(len(scores), rng)))]
        kept = answer(length, leads, rng)
        right[run], named[run], lengths[run] = (kept >= least).sum(), len(kept), length.size
    return Seen(right, named, k, lengths)


def simulate_limited(
    price: float,
    threshold_delta: float,
    counts: Counts,
    k_bar: int,
    k: int,
    runs: int,
    rng: np.random.Generator,
) -> Seen:
    """The same for `LimitedDomain` at a price per pick and the delta of its threshold."""
    leads, rest = leads_over(counts, k_bar)
    leads = leads[: min(k_bar, len(counts))]
    level = price * 1 + np.log(k_bar / threshold_delta)
    least = max(1, int(counts[k - 1]) - rest if len(counts) >= k else 1)
    right, named = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=np.int64)
    for run in range(runs):
        noisy = price * leads + _gumbel(len(leads), rng)
        ahead = np.flatnonzero(noisy > level + rng.gumbel())
        if len(ahead) > k:
            ahead = ahead[np.argpartition(-noisy[ahead], k - 1)[:k]]
        right[run], named[run] = (leads[ahead] >= least).sum(), len(ahead)
    return Seen(right, named, k, np.zeros_like(named))


def simulate_weighted(
    release: WeightedHistogram,
    sums: Reals,
    counts: Counts,
    k: int,
    runs: int,
    rng: np.random.Generator,
) -> Seen:
    """The same for `WeightedHistogram`, of items with these sums of weights and these counts."""
    least = max(1, int(np.sort(counts)[::-1][k - 1]) if len(counts) >= k else 1)
    right, named = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=np.int64)
    for run in range(runs):
        values = sums + float(release.sigma) * rng.standard_normal(len(sums))
        ahead = np.flatnonzero(values > float(release.threshold or 0))
        if len(ahead) > k:
            ahead = ahead[np.argpartition(-values[ahead], k - 1)[:k]]
        right[run], named[run] = (counts[ahead] >= least).sum(), len(ahead)
    return Seen(right, named, k, np.zeros_like(named))


def either(first: Seen, second: Seen, chance: float, rng: np.random.Generator) -> Seen:
    """Run by run the answer of the second with this chance, else that of the first."""
    drawn = rng.random(len(first.named)) < chance
    return Seen(
        np.where(drawn, second.right, first.right),
        np.where(drawn, second.named, first.named),
        first.k,
        np.where(drawn, second.lengths, first.lengths),
    )


def answer(length: Length, leads: Counts, rng: np.random.Generator) -> Counts:
    """The leads of the released items, without their order; none for ⊥."""
    picked = _pick(length, leads, rng)
    strengths = np.maximum(picked, 1)
    pull = -float(length.price) * strengths + _gumbel(len(picked), rng)
    kept = picked[np.argsort(-pull)[length.prunes :]]
    strengths = np.maximum(kept, 1)
    order = np.argsort(float(length.later_price) * strengths - _gumbel(len(kept), rng))
    kept = kept[order]  # the first goes first
    least = np.minimum.accumulate(np.maximum(kept, 1)[::-1])[::-1]
    sigma, lists = float(length.test.sigma), length.test.lists
    noise = rng.normal(size=lists) * np.sqrt(np.array(own_variances(lists), dtype=float))
    if lists > 1:
        noise += rng.normal() * np.sqrt(0.5)
    levels = np.array(spreads(lists), dtype=float) * float(length.test.quantile)
    starts = [length.size - size for size in length.list_sizes]
    passing = (least[starts] - 1) / sigma + noise > levels
    if not passing.any():
        return kept[:0]
    released = kept[starts[int(np.argmax(passing))] :]
    return released if released.min() > 0 else kept[:0]


def _pick(length: Length, leads: Counts, rng: np.random.Generator) -> Counts:
    left = leads.astype(float)
    picked = []
    for count, price in length.levels:
        noisy = float(price) * left + _gumbel(len(left), rng)
        best = np.argpartition(-noisy, count - 1)[:count]
        picked.append(leads[best])
        left[best] = -np.inf
    return np.concatenate(picked)


def _gumbel(size: int, rng: np.random.Generator) -> Reals:
    """−ln E of exponentials E: half the time of the generator's own."""
    drawn: Reals = -np.log(rng.standard_exponential(size))
    return drawn
