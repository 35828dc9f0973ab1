"""E9: the speed of selection against other libraries, as ratios within one run.

    python -m experiments E9

Counts d/rank in random places, k = 100 items, Gumbel noise of scale 10 (or the peer's equivalent).
The peers take their input as they want it; making it is not timed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.report import draw, figures, markdown, write_page, write_table
from experiments.throwaway import Unavailable, ask, environment
from experiments.trials import Progress, quiet
from topsecret import Histogram
from topsecret.mechanisms import GumbelTopK, LimitedDomain, Mechanism, OneshotExponential
from topsecret.noise.bits import SystemBits

NAME = "e9-selection-speed"
TITLE = "E9. Speed of selection"
K, SCALE = 100, 10.0
PEERS = Path(__file__).parent / "peers"


@dataclass(frozen=True)
class Row:
    """Ours against one peer at one size, medians in CPU seconds."""

    peer: str
    mechanism: str
    items: int
    k: int
    ours: float
    theirs: float
    rounds: int

    @property
    def ratio(self) -> float:
        """How many times as long the peer takes."""
        return self.theirs / self.ours


def zipf(d: int) -> NDArray[np.int64]:
    """Counts d/rank in random places."""
    counts = (d / np.arange(1, d + 1)).astype(np.int64)
    np.random.default_rng(7).shuffle(counts)
    return counts


def in_turns(
    ours: Callable[[], object], theirs: Callable[[], object], rounds: int
) -> tuple[float, float]:
    """Median CPU seconds of each, in turns, after one round to warm up if there are several.

    CPU and not wall time: on a shared machine a long task waits more often than a short one.
    """
    times: tuple[list[float], list[float]] = ([], [])
    if rounds == 1:
        ours()
    for turn in range(1 if rounds == 1 else 0, rounds + 1):
        for function, found in zip((ours, theirs), times, strict=True):
            start = time.process_time()
            function()
            if turn:
                found.append(time.process_time() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def gumbel(counts: NDArray[np.int64]) -> Callable[[], object]:
    """Ours from the array to the names."""
    return lambda: GumbelTopK(K, SCALE).select(Histogram.from_counts(counts), SystemBits())


def plain(counts: NDArray[np.int64]) -> Callable[[], object]:
    """No privacy at all: the floor."""
    return lambda: np.argpartition(counts, len(counts) - K)[-K:]


def insecure(counts: NDArray[np.int64]) -> Callable[[], object]:
    """The usual line: float noise of a generator that can be predicted."""
    rng = np.random.default_rng()

    def line() -> object:
        noisy = counts + rng.gumbel(scale=SCALE, size=len(counts))
        return np.argpartition(noisy, len(counts) - K)[-K:]

    return line


def opendp(counts: NDArray[np.int64]) -> Callable[[], object]:
    """OpenDP's make_noisy_top_k under zCDP (Gumbel noise, exact)."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    measurement = dp.m.make_noisy_top_k(
        dp.vector_domain(dp.atom_domain(T=int)),
        dp.linf_distance(T=int, monotonic=True),
        dp.zero_concentrated_divergence(),
        k=K,
        scale=SCALE,
    )
    as_list = counts.tolist()
    return lambda: measurement(as_list)


def run(
    smoke: bool = False, seed: int = 1, repetitions: int | None = None, progress: Progress = quiet
) -> str:
    """Seven rounds where a peer is quick, one or two where it takes seconds. The seed is unused."""
    rounds = repetitions or (1 if smoke else 7)
    sizes = (10**4,) if smoke else (10**4, 10**5, 10**6, 10**7)
    rows: list[Row] = []
    skipped: list[str] = []
    for place, d in enumerate(sizes):
        progress(f"E9 NumPy, {d} items", place, len(sizes) + 3)
        counts = zipf(d)
        for peer, line in (
            ("NumPy without privacy", plain),
            ("NumPy, insecure noise", insecure),
        ):
            times = in_turns(gumbel(counts), line(counts), rounds)
            rows.append(Row(peer, "GumbelTopK", d, K, *times, rounds))
        where = Histogram.leading([(i, int(d / (i + 1))) for i in range(20 * K + 1)])
        limited: Mechanism = LimitedDomain(K, 20 * K, 1 / SCALE, 1e-7)
        times = in_turns(lambda m=limited, h=where: m.select(h), plain(counts), rounds)  # type: ignore[misc]
        rows.append(
            Row("NumPy without privacy", "LimitedDomain, counts ranked", d, K, *times, rounds)
        )
    _add_opendp(rows, skipped, smoke, progress)
    _add_diffprivlib(rows, skipped, smoke, progress)
    _add_joint(rows, skipped, smoke, progress)
    head = ["peer", "ours is", "items", "k", "ours, CPU s", "peer, CPU s", "peer / ours", "rounds"]
    cells = []
    for r in rows:
        times = [figures(number) for number in (r.ours, r.theirs, r.ratio)]
        cells.append([r.peer, r.mechanism, r.items, r.k, *times, r.rounds])
    write_table(NAME, head, cells)
    draw(NAME, lambda figure: _paint(figure, rows))
    return _write(rows, skipped, head, cells)


def _add_opendp(rows: list[Row], skipped: list[str], smoke: bool, progress: Progress) -> None:
    if importlib.util.find_spec("opendp") is None:
        skipped.append("OpenDP is not installed (`pip install opendp==0.16.*`)")
        return
    for d in (1000,) if smoke else (10**3, 10**4, 3 * 10**4):
        progress(f"E9 OpenDP, {d} items", 1, 3)
        counts, rounds = zipf(d), 1 if d > 10**3 else 3
        times = in_turns(gumbel(counts), opendp(counts), rounds)
        rows.append(Row("OpenDP 0.16, noisy top k", "GumbelTopK", d, K, *times, rounds))


def _add_diffprivlib(rows: list[Row], skipped: list[str], smoke: bool, progress: Progress) -> None:
    if smoke:
        skipped.append("diffprivlib is left out of the smoke run")
        return
    try:
        with environment("diffprivlib", ["diffprivlib", "scikit-learn<1.5"]) as python:
            for d in (10**3, 10**4):
                progress(f"E9 diffprivlib, {d} items", 2, 3)
                script = PEERS / "diffprivlib_speed.py"
                theirs = [ask(python, script, d, K, 1 / SCALE)["seconds"] for _ in range(3)]
                ours, _ = in_turns(gumbel(zipf(d)), lambda: None, 7)
                peer = "diffprivlib 0.6, Exponential peeled"
                rows.append(Row(peer, "GumbelTopK", d, K, ours, statistics.median(theirs), 3))
    except Unavailable as reason:
        skipped.append(f"diffprivlib: {reason}")


def _add_joint(rows: list[Row], skipped: list[str], smoke: bool, progress: Progress) -> None:
    folder = os.environ.get("TOPSECRET_DP_TOPK")
    if not folder:
        skipped.append(
            "Google's joint mechanism is no package; name a checkout that holds `dp_topk` in "
            "TOPSECRET_DP_TOPK to have it measured"
        )
        return
    try:
        with environment("joint", ["numpy<2"]) as python:  # it fails on newer ones
            for d in (1000,) if smoke else (10**3, 10**4, 3 * 10**4):
                progress(f"E9 joint mechanism, {d} items", 2, 3)
                counts, rounds = zipf(d), 1 if d > 10**3 else 3
                theirs = ask(python, PEERS / "joint_speed.py", folder, d, K, rounds)["seconds"]
                ours, _ = in_turns(_oneshot(counts), lambda: None, 7)
                peer = "Google, joint (pure)"
                rows.append(Row(peer, "OneshotExponential", d, K, ours, theirs, rounds))
    except Unavailable as reason:
        skipped.append(f"Google's joint mechanism: {reason}")


def _oneshot(counts: NDArray[np.int64]) -> Callable[[], object]:
    mechanism = OneshotExponential(K, 1.0)
    return lambda: mechanism.select(Histogram.from_counts(counts), SystemBits())


def _paint(figure, rows) -> None:  # type: ignore[no-untyped-def]
    axis = figure.subplots()
    for peer in dict.fromkeys((row.peer, row.mechanism) for row in rows):
        line = [row for row in rows if (row.peer, row.mechanism) == peer]
        label = f"{peer[0]} / ours ({peer[1]})"
        axis.plot([r.items for r in line], [r.ratio for r in line], marker="o", label=label)
    axis.axhline(1, color="grey", linewidth=0.8)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("items")
    axis.set_ylabel("CPU time of the peer / CPU time of ours")
    axis.grid(alpha=0.3)
    axis.legend(fontsize="small")


GOOGLE = (
    "Google's research code runs in an environment of its own, too, since it needs NumPy 1, whose "
    "generator is not safe to release with. Its joint mechanism is pure; ours beside it is "
    "the pure OneshotExponential."
)


def _write(rows, skipped, head, cells) -> str:  # type: ignore[no-untyped-def]
    parts = []
    for peer, mechanism in (
        ("NumPy without privacy", "GumbelTopK"),
        ("NumPy, insecure noise", "GumbelTopK"),
        ("OpenDP", "GumbelTopK"),
        ("diffprivlib", "GumbelTopK"),
        ("Google", "OneshotExponential"),
    ):
        found = [r for r in rows if r.peer.startswith(peer) and r.mechanism == mechanism]
        if found:
            few, many = found[0], found[-1]
            beside = f"; {figures(few.ratio)} with {few.items:,}" if few is not many else ""
            name = re.sub(r" [\d.]+,", ",", many.peer)  # a version reads like a ratio there
            parts.append(f"{figures(many.ratio)} for {name} ({many.items:,} items{beside})")
    verdict = (
        f"CPU time of each peer divided by ours (k = {K}), with the most items that were "
        f"measured: {'; '.join(parts)}."
    )
    return write_page(
        NAME,
        TITLE,
        verdict,
        markdown(head, cells),
        "Medians of CPU time, ours and the peer's in turns on the same machine (diffprivlib in an "
        "environment of its own, one process after another). Ours draws its noise exactly from "
        "the system's cryptographic source; so does OpenDP. NumPy's noise is floating point from a "
        "predictable generator, diffprivlib's floating point: these are not safe to release with. "
        "LimitedDomain is given the 20·k leading counts, as a query engine returns them: so "
        "many whatever the number of items, and its steps do not grow with that. Its times differ "
        "all the same; why was not looked into. CPU time is compared because the machine "
        "was shared.",
        *([GOOGLE] if any(row.peer.startswith("Google") for row in rows) else []),
        ("Skipped: " + "; ".join(skipped) + ".") if skipped else "Nothing was skipped.",
    )
