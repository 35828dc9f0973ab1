"""k="all" over 10⁷ labels, counted by DuckDB and by PostgreSQL: against GROUP BY by hand.

``python -m benchmarks.weighted [--labels N] [--rows N] [postgresql+psycopg://…]`` prints a line for
each engine: the seconds of both, their ratio (the target is 1.6), and how many rows left the engine
(fewer than 100,000). DuckDB's are processor seconds, PostgreSQL's are the clock's, since its
processes are not ours: measure it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.domain import Moved
from topsecret import top_k

ASKED: dict[str, Any] = {"item": "place", "person": "user", "k": "all", "epsilon": 1.0}
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


def in_duckdb(labels: int, rows: int) -> None:
    from topsecret.sources.engines.duckdb import DuckSession

    moved = Moved(DuckSession, "run")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.duckdb"
        with duckdb.connect(str(path)) as engine:
            engine.execute(events(f"range({rows})", labels, max(1, rows // 5)))

        def by_hand() -> None:
            with duckdb.connect(str(path), read_only=True) as engine:
                engine.execute(BY_HAND).fetchall()

        report("DuckDB", moved, time.process_time, by_hand, str(path))


def in_postgresql(url: str, labels: int, rows: int) -> None:
    import sqlalchemy

    from topsecret.sources.engines.sqlalchemy import SqlSession

    moved = Moved(SqlSession, "run")
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE IF EXISTS visits")
        source = f"generate_series(1, {rows})"
        connection.exec_driver_sql(events(source, labels, max(1, rows // 5)))

    def by_hand() -> None:
        with engine.connect() as connection:
            connection.exec_driver_sql(BY_HAND).fetchall()

    report("PostgreSQL", moved, time.perf_counter, by_hand, engine)
    engine.dispose()


def report(
    name: str, moved: Moved, clock: Callable[[], float], by_hand: Callable[[], None], source: Any
) -> None:
    by_hand()  # the first reading warms the caches of both
    start = clock()
    by_hand()
    middle = clock()
    moved.rows = 0
    named = len(top_k(source, table="visits", **ASKED).items)
    ours, theirs = clock() - middle, middle - start
    print(
        f"{name}: {ours:.1f} s against {theirs:.1f} s by hand, {ours / theirs:.2f} times (at most "
        f"1.6); {moved.rows:,} rows left the engine, {named:,} labels named",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?")
    parser.add_argument("--labels", type=int, default=10_000_000)
    parser.add_argument("--rows", type=int, default=50_000_000)
    given = parser.parse_args()
    in_duckdb(given.labels, given.rows)
    if given.url is not None:
        in_postgresql(given.url, given.labels, given.rows)
