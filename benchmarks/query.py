"""``top_k`` on 50 million rows against the same aggregation written by hand in DuckDB.

Ten disjoint groups are held against ``top_k`` of all rows: nearly everybody has rows in several.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.row import Row, interleaved
from topsecret import top_k, top_k_by

ROWS = 50_000_000
GROUPS = tuple(range(10))
ASKED: dict[str, Any] = {
    "item": "place",
    "person": "user",
    "k": 10,
    "epsilon": 1.0,
    "mechanism": "limited-domain",
}
BY_HAND = {
    "count(DISTINCT)": """
        SELECT place, count(DISTINCT "user") AS persons FROM read_parquet('{path}')
        WHERE place IS NOT NULL AND "user" IS NOT NULL
        GROUP BY place ORDER BY persons DESC, place LIMIT 201""",
    "DISTINCT pairs": """
        SELECT place, count(*) AS persons
        FROM (SELECT DISTINCT "user", place FROM read_parquet('{path}')
              WHERE place IS NOT NULL AND "user" IS NOT NULL)
        GROUP BY place ORDER BY persons DESC, place LIMIT 201""",
}


def run(rows: int = ROWS, rounds: int = 3) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        duckdb.sql(
            f'SELECT (random() * {rows // 25})::BIGINT AS "user", '
            "'place-' || (power(random(), 3) * 200000)::BIGINT AS place, "
            "floor(random() * 10)::INT AS area, range AS time "
            f"FROM range({rows})"
        ).write_parquet(str(path))
        found = [
            _against(name, sql.format(path=path), path, rounds) for name, sql in BY_HAND.items()
        ]
        return [*found, _groups(path, rounds)]


def _against(name: str, sql: str, path: Path, rounds: int) -> Row:
    def by_hand() -> object:
        with duckdb.connect() as engine:
            return engine.execute(sql).fetchall()

    return Row(
        f"top_k on a Parquet file, by hand: {name}",
        *interleaved(lambda: top_k(path, **ASKED), by_hand, rounds, time.process_time),
        1.1,
    )


def _groups(path: Path, rounds: int) -> Row:
    def ours() -> object:
        return top_k_by(path, by="area", groups=GROUPS, disjoint=True, **ASKED)

    times = interleaved(ours, lambda: top_k(path, **ASKED), rounds, time.process_time)
    return Row("10 disjoint groups, against top_k of all rows", *times, 1.5)
