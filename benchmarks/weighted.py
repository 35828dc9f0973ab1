"""Weighted persons over many labels, counted by DuckDB and by PostgreSQL: against GROUP BY by hand.

``make bench`` has 10⁶ labels and 5·10⁶ rows in DuckDB, and the calibration of the private choice
against 0.2 seconds. ``python -m benchmarks.weighted [--labels N] [--rows N] [--server PID]
[postgresql://…]`` prints two lines, for DuckDB or for the server at this address, of the top 100 as
"auto" answers it and of k="all": the seconds of ours and by hand, their ratio (the target is 1.6),
and how many rows left the engine (fewer than 100,000). They are processor seconds; those of
PostgreSQL, too, where ``--server`` names the first process of a server on this machine (the first
line of its postmaster.pid), and otherwise the clock's: measure them on a machine that does nothing
else.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.domain import Moved
from benchmarks.row import Row, interleaved
from topsecret import top_k
from topsecret.mechanisms import TestedOrWeighted

ASKED: dict[str, Any] = {"table": "visits", "item": "place", "person": "user", "epsilon": 1.0}
LENGTHS: tuple[Any, ...] = (100, "all")
BY_HAND = (
    'SELECT place, COUNT(DISTINCT "user") AS n FROM visits '
    "GROUP BY place ORDER BY n DESC, place LIMIT 1000"
)


def events(source: str, labels: int, persons: int) -> str:
    """Rows of persons with five items each on average, some labels far more common than others."""
    return (
        f'CREATE TABLE visits AS SELECT CAST(random() * {persons} AS BIGINT) AS "user", '
        f"CAST(power(random(), 3) * {labels} AS BIGINT) AS place FROM {source}"
    )


def run(labels: int = 1_000_000, rows: int = 5_000_000) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path, by_hand = _database(Path(folder), labels, rows)
        found = []
        for k in LENGTHS:
            ask = partial(top_k, str(path), k=k, **ASKED)
            times = interleaved(ask, by_hand, 3, time.process_time)
            found.append(Row(f"weighted persons of {labels:,} labels, k = {k}", *times, 1.6))
    start = time.process_time()
    TestedOrWeighted(10, 0.4, 1.01e-6).branches  # noqa: B018  # the calibration
    return [*found, Row("calibrate the choice", time.process_time() - start, 0.2, 1.0)]


def _database(folder: Path, labels: int, rows: int) -> tuple[Path, Callable[[], None]]:
    """A file of events, and the aggregation by hand."""
    path = folder / "shop.duckdb"
    with duckdb.connect(str(path)) as engine:
        engine.execute(events(f"range({rows})", labels, max(1, rows // 5)))

    def by_hand() -> None:
        with duckdb.connect(str(path), read_only=True) as engine:
            engine.execute(BY_HAND).fetchall()

    return path, by_hand


def in_duckdb(labels: int, rows: int) -> None:
    from topsecret.sources.engines.duckdb_session import DuckSession

    moved = Moved(DuckSession, "run")
    with tempfile.TemporaryDirectory() as folder:
        path, by_hand = _database(Path(folder), labels, rows)
        report("DuckDB", moved, time.process_time, by_hand, str(path))


def seconds_of_server(pid: int) -> float:
    """Processor seconds of this process and of what a server's ended processes used."""
    time.sleep(1.0)  # the process of a connection that was closed has ended by then
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return time.process_time() + sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")


def in_postgresql(url: str, labels: int, rows: int, server: int | None) -> None:
    import sqlalchemy

    from topsecret.sources.engines.sqlalchemy import SqlSession

    moved = Moved(SqlSession, "run")
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE IF EXISTS visits")
        source = f"generate_series(1, {rows})"
        connection.exec_driver_sql(events(source, labels, max(1, rows // 5)))
        connection.exec_driver_sql("ANALYZE visits")

    def by_hand() -> None:
        with engine.connect() as connection:
            connection.exec_driver_sql(BY_HAND).fetchall()

    clock = time.perf_counter if server is None else partial(seconds_of_server, server)
    report("PostgreSQL", moved, clock, by_hand, engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE visits")


def report(
    name: str, moved: Moved, clock: Callable[[], float], by_hand: Callable[[], None], source: Any
) -> None:
    by_hand()  # the first reading warms the caches of both
    for k in LENGTHS:
        start = clock()
        by_hand()
        middle = clock()
        moved.rows = 0
        named = len(top_k(source, k=k, **ASKED).items)
        ours, theirs = clock() - middle, middle - start
        print(
            f"{name}, k = {k}: {ours:.1f} s against {theirs:.1f} s by hand, {ours / theirs:.2f} "
            f"times (at most 1.6); {moved.rows:,} rows left the engine, {named:,} labels named",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?")
    parser.add_argument("--labels", type=int, default=10_000_000)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--server", type=int, metavar="PID")
    given = parser.parse_args()
    if given.url is None:
        in_duckdb(given.labels, given.rows)
    else:
        in_postgresql(given.url, given.labels, given.rows, given.server)
