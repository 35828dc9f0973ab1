"""How ``top_k`` grows with the rows: processor time and memory of the process, 10⁵ to 10⁸ rows.

Processor time, because a busy machine stretches the clock; all threads count, imports do not.

``python -m benchmarks.growth [LARGEST]`` writes docs/results/growth.csv and growth.svg.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

RESULTS = Path(__file__).parent.parent / "docs" / "results"
SIZES = (10**5, 10**6, 10**7, 5 * 10**7, 10**8)
# Persons and places do not grow: what grows is how often they meet.
EVENTS = """
SELECT (hash(range) % 100000)::INTEGER AS "user",
       'place-' || (power((hash(range + 77) % 1000000) / 1e6, 3) * 10000)::INTEGER AS place
FROM range({rows})
"""
BY_HAND = """
SELECT place, count(*) AS persons
FROM (SELECT DISTINCT "user", place FROM read_parquet('{path}')
      WHERE place IS NOT NULL AND "user" IS NOT NULL)
GROUP BY place ORDER BY persons DESC, place LIMIT 201
"""
OURS = """
import sys, time
from benchmarks.memory import peak
from topsecret import top_k
start = time.process_time()
top_k(sys.argv[1], item="place", person="user", k=10, epsilon=1.0, mechanism="limited-domain")
print(time.process_time() - start, peak())
"""
PEER = """
import sys, time
import duckdb
from benchmarks.memory import peak
start = time.process_time()
engine = duckdb.connect()
engine.execute("SET enable_progress_bar = false")
engine.execute(sys.argv[1]).fetchall()
print(time.process_time() - start, peak())
"""


SERIES = {
    "top_k": "top_k",
    "top_k_2gb": "top_k, TOPSECRET_MEMORY=2GB",
    "by_hand": "DuckDB by hand",
}
STYLES = {"top_k": "o-", "top_k_2gb": "^-", "by_hand": "s--"}


def measured(path: Path) -> dict[str, tuple[float, float]]:
    """Processor seconds and peak memory in MB, all in turns: the best of two."""
    tasks = {
        "top_k": (OURS, str(path), {}),
        "top_k_2gb": (OURS, str(path), {"TOPSECRET_MEMORY": "2GB"}),
        "by_hand": (PEER, BY_HAND.format(path=path), {}),
    }
    best = dict.fromkeys(tasks, (float("inf"), 0.0))
    for _ in range(2):
        for name, (code, argument, changes) in tasks.items():
            words = [sys.executable, "-c", code, argument]
            environment = os.environ | changes
            done = subprocess.run(
                words, check=True, capture_output=True, text=True, env=environment
            )
            seconds, memory = map(float, done.stdout.split())
            best[name] = min(best[name], (seconds, memory))
    return best


def main() -> None:
    largest = int(float(sys.argv[1])) if len(sys.argv) > 1 else SIZES[-1]
    RESULTS.mkdir(parents=True, exist_ok=True)
    rows_of = [["rows", *(f"{name}_{unit}" for unit in ("seconds", "mb") for name in SERIES)]]
    with tempfile.TemporaryDirectory() as folder:
        for rows in (size for size in SIZES if size <= largest):
            path = Path(folder) / "events.parquet"
            start = time.perf_counter()
            duckdb.sql(EVENTS.format(rows=rows)).write_parquet(str(path))
            print(f"{rows:,} rows written in {time.perf_counter() - start:.0f} s", flush=True)
            found = measured(path)
            seconds = [f"{found[name][0]:.3g}" for name in SERIES]
            rows_of.append([str(rows), *seconds, *(f"{found[name][1]:.0f}" for name in SERIES)])
            print(rows_of[-1], flush=True)
            with (RESULTS / "growth.csv").open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(rows_of)
            draw()


def draw() -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "growth"
    with (RESULTS / "growth.csv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    rows = [int(line["rows"]) for line in table]
    figure = Figure(figsize=(8, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, unit in ((left, "seconds"), (right, "mb")):
        for who, name in SERIES.items():
            values = [float(line[f"{who}_{unit}"]) for line in table]
            axes.plot(rows, values, STYLES[who], label=name)
        axes.set_xscale("log")
        axes.set_xlabel("rows")
    left.set_yscale("log")
    left.set_title("processor seconds")
    right.set_title("memory of the process, MB")
    right.set_ylim(bottom=0)
    right.legend()
    figure.savefig(RESULTS / "growth.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
