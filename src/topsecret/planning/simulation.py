"""Expected recall on an example shape: the real mechanisms, drawn again and again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from topsecret.calibration import PUBLIC_DOMAIN, Prepared, Question, prepare
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter
from topsecret.noise.bits import BitSource, SystemBits

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many steps are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Recall:
    """What one mechanism found of the true top k, over several runs.

    With k="auto" or "all" there is no true top k: ``mean`` is the share of runs that named any.
    """

    name: str
    mean: float
    error: float
    """The standard error of the mean."""
    named: float
    """How many items were named, on average."""
    empty: float
    """The share of runs that named nothing."""
    shorter: float
    """The share of runs that named something, but fewer than k items."""


def simulate(
    question: Question,
    names: Sequence[str],
    counts: Sequence[int],
    *,
    runs: int,
    items_each: int = 1,
    scores: Sequence[int] | None = None,
    bits: BitSource | None = None,
    progress: Progress | None = None,
) -> tuple[Recall, ...]:
    """The recall of each mechanism on these public counts, most common first.

    With ``scores`` the mechanisms rank by those, place by place, and the counts are the truth.
    """
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 2:
        raise InvalidParameter(f"runs={runs!r} must be a whole number of at least 2")
    if question.domain_size is not None and len(counts) > question.domain_size:
        raise InvalidParameter(
            f"the shape has {len(counts)} items and the public domain {question.domain_size}; "
            "raise domain_size or shorten the shape"
        )
    total = runs * len(names)
    found = []
    for turn, name in enumerate(names):
        prepared = prepare(name, question)
        seen = counts if scores is None else scores
        histogram = _histogram(prepared, seen, items_each)
        found_shares, lengths = [], []
        for run in range(runs):
            if progress is not None:
                progress(f"simulating {name}", turn * runs + run, total)
            chosen = prepared.mechanism.select(histogram, SystemBits() if bits is None else bits)
            lengths.append(len(chosen.items))
            found_shares.append(_score(question, chosen.items, counts))
        mean = math.fsum(found_shares) / runs
        spread = math.fsum((share - mean) ** 2 for share in found_shares) / (runs - 1)
        empty, full = lengths.count(0) / runs, 1 if isinstance(question.k, str) else question.k
        shorter = sum(0 < length < full for length in lengths) / runs
        error = math.sqrt(spread / runs)
        found.append(Recall(name, mean, error, sum(lengths) / runs, empty, shorter))
    return tuple(found)


def _histogram(prepared: Prepared, counts: Sequence[int], items_each: int) -> Histogram:
    """Items are named by their places, so that the first k are the true top k."""
    observed = {place: count for place, count in enumerate(counts) if count > 0}
    size = prepared.question.domain_size
    weights = getattr(prepared.mechanism, "weights", None)
    if weights is not None:
        # Everybody has as many items as the shape says; the cut keeps each with the same chance.
        kept = min(items_each, weights.most_items)
        share = weights.of(kept) * kept
        sums = {place: count * share // items_each for place, count in observed.items()}
        domain = None if size is None else range(size)
        table = Histogram.of(sums, domain)
        return Histogram.of(observed, domain).beside(weights, table)
    if size is not None and (prepared.name in PUBLIC_DOMAIN or prepared.name == "stable-fixed-k"):
        return Histogram.of(observed, domain=range(size))
    ranked = sorted(observed.items(), key=lambda pair: (-pair[1], pair[0]))
    return Histogram.leading(ranked[: prepared.rows], limit=prepared.rows)


def _score(question: Question, items: Sequence[object], counts: Sequence[int]) -> float:
    if isinstance(question.k, str):
        return float(bool(items))
    k = question.k
    least = counts[k - 1] if len(counts) >= k else 0
    right = sum(
        isinstance(item, int) and item < len(counts) and counts[item] >= max(least, 1)
        for item in items
    )
    return min(right, k) / k
