"""Pure mechanisms: permute-and-flip against OpenDP, one-shot noise against Gumbel noise."""

from __future__ import annotations

import numpy as np

from benchmarks.row import Row, interleaved
from benchmarks.selection import SCALE, K, opendp_seconds, zipf
from topsecret import Histogram
from topsecret.mechanisms import CanonicalSet, GumbelTopK, OneshotExponential, PermuteAndFlip


def run(rounds: int = 7) -> list[Row]:
    histogram = Histogram.from_counts(zipf(10**6))
    gumbel = GumbelTopK(k=K, scale=SCALE)
    oneshot = OneshotExponential(k=K, epsilon=K / SCALE)
    return [
        _opendp(),
        Row(
            "d=10⁶ counts, k=100: OneshotExponential, against GumbelTopK",
            *interleaved(
                lambda: oneshot.select(histogram), lambda: gumbel.select(histogram), rounds
            ),
            target=1.5,
        ),
        _canonical(rounds),
    ]


def _canonical(rounds: int) -> Row:
    large = Histogram.from_counts(zipf(10**7))
    whole_set = CanonicalSet(k=K, epsilon=1.0)
    oneshot = OneshotExponential(k=K, epsilon=1.0)
    return Row(
        "d=10⁷ counts, k=100: CanonicalSet, against OneshotExponential",
        *interleaved(lambda: whole_set.select(large), lambda: oneshot.select(large), rounds),
        target=3.0,
    )


def ours(counts: np.ndarray) -> object:
    return PermuteAndFlip(k=K, scale=SCALE).select(Histogram.from_counts(counts))


def _opendp() -> Row:
    """One run of OpenDP at d = 10⁵, taken ten times: it grows a little faster than d."""
    peer = 10 * opendp_seconds(zipf(10**5), "max_divergence")
    counts = zipf(10**6)
    mine, _ = interleaved(lambda: ours(counts), lambda: None, 7)
    return Row("d=10⁶ counts, k=100: PermuteAndFlip, against opendp × 10", mine, peer, 1 / 100)
