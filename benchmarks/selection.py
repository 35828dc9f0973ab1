"""Selection against NumPy without privacy, the usual insecure line, and OpenDP."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.row import Row, interleaved
from topsecret import Histogram
from topsecret.accounting import calibrate_limited_domain
from topsecret.mechanisms import GumbelTopK, LimitedDomain, Mechanism, TestedTopK

K = 100
SCALE = 10.0


def zipf(d: int) -> np.ndarray:
    """Counts d/rank in random places."""
    counts = (d / np.arange(1, d + 1)).astype(np.int64)
    np.random.default_rng(7).shuffle(counts)
    return counts


def plain(counts: np.ndarray) -> np.ndarray:
    return np.argpartition(counts, len(counts) - K)[-K:]


def insecure(counts: np.ndarray) -> np.ndarray:
    noisy = counts + np.random.default_rng().gumbel(scale=SCALE, size=len(counts))
    return np.argpartition(noisy, len(counts) - K)[-K:]


def ours(counts: np.ndarray) -> object:
    return GumbelTopK(k=K, scale=SCALE).select(Histogram.from_counts(counts))


def run(rounds: int = 7) -> list[Row]:
    rows = []
    large = zipf(10**7)
    rows.append(
        Row(
            "d=10⁷ counts, k=100: argpartition without privacy",
            *interleaved(lambda: ours(large), lambda: plain(large), rounds),
            target=1.5,
        )
    )
    rows.append(
        Row(
            "d=10⁷ counts, k=100: counts + rng.gumbel, argpartition",
            *interleaved(lambda: ours(large), lambda: insecure(large), rounds),
            target=0.4,
        )
    )
    scores = np.random.default_rng(3).normal(size=10**6) * 50
    rows.append(
        Row(
            "d=10⁶ distinct float scores, k=100: scores + rng.gumbel",
            *interleaved(lambda: ours(scores), lambda: insecure(scores), rounds),
            target=1.5,
        )
    )
    rows.append(_huge_domain(rounds))
    rows.extend(_tested(rounds, k) for k in (10, 50, 1000))
    rows.append(_opendp())
    return rows


def _huge_domain(rounds: int) -> Row:
    counts = dict(enumerate(zipf(10**5).tolist()))

    def within(domain: range) -> object:
        return GumbelTopK(k=K, scale=SCALE).select(Histogram.of(counts, domain=domain))

    return Row(
        "public domain of 10¹⁸, 10⁵ observed: the 10⁵ alone",
        *interleaved(lambda: within(range(10**18)), lambda: within(range(10**5)), rounds),
        target=2.0,
    )


def _tested(rounds: int, k: int) -> Row:
    """Twenty selections each of the same counts, each mechanism at its own depth."""
    tested = TestedTopK(k, 1.0, 1e-6)
    limited = LimitedDomain(k, 20 * k, *calibrate_limited_domain(k, 20 * k, 1.0, 1e-6))

    def twenty(mechanism: Mechanism, rows: int) -> None:
        leading = [(rank, 20_000 // (rank + 20)) for rank in range(rows)]
        counts = Histogram.leading(leading, limit=rows)
        for _ in range(20):
            mechanism.select(counts)

    return Row(
        f"TestedTopK, k={k}, twenty selections: LimitedDomain",
        *interleaved(
            lambda: twenty(tested, tested.slots + 1),
            lambda: twenty(limited, 20 * k + 1),
            rounds,
            time.process_time,
        ),
        target=3.0,
    )


def opendp_seconds(counts: np.ndarray, divergence: str) -> float:
    """One run of OpenDP's noisy top k under one of its measures of privacy."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    measurement = dp.m.make_noisy_top_k(
        dp.vector_domain(dp.atom_domain(T=int)),
        dp.linf_distance(T=int, monotonic=True),
        getattr(dp, divergence)(),
        k=K,
        scale=SCALE,
    )
    as_list = counts.tolist()
    start = time.perf_counter()
    measurement(as_list)
    return time.perf_counter() - start


def _opendp() -> Row:
    """One run of OpenDP (it takes the better part of a minute), the median of seven of ours."""
    counts = zipf(10**5)
    peer = opendp_seconds(counts, "zero_concentrated_divergence")
    mine, _ = interleaved(lambda: ours(counts), lambda: None, 7)
    return Row("d=10⁵ counts, k=100: opendp 0.16 make_noisy_top_k", mine, peer, target=1 / 1000)
