"""``top_k`` on 50 million rows against the same aggregation written by hand in DuckDB."""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb

from benchmarks.row import Row, interleaved
from topsecret import top_k

ROWS = 50_000_000
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
            'SELECT (random() * 2000000)::BIGINT AS "user", '
            "'place-' || (power(random(), 3) * 200000)::BIGINT AS place, range AS time "
            f"FROM range({rows})"
        ).write_parquet(str(path))
        return [
            _against(name, sql.format(path=path), path, rounds) for name, sql in BY_HAND.items()
        ]


def _against(name: str, sql: str, path: Path, rounds: int) -> Row:
    def by_hand() -> object:
        with duckdb.connect() as engine:
            return engine.execute(sql).fetchall()

    def ours() -> object:
        return top_k(
            path, item="place", person="user", k=10, epsilon=1.0, mechanism="limited-domain"
        )

    return Row(
        f"top_k on a Parquet file, by hand: {name}", *interleaved(ours, by_hand, rounds), 1.1
    )
