"""A public domain of 10⁷ items, counted by DuckDB and by PostgreSQL: seconds and rows moved.

``python -m benchmarks.domain [postgresql+psycopg://…]`` prints a line for each engine.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

from topsecret import Column, top_k

ITEMS = 10_000_000
EVENTS = 20_000_000
ANSWER: dict[str, Any] = {"item": "place", "person": "user", "k": 100, "epsilon": 1.0}


class Moved:
    """Counts the rows that a session's class brings to this process."""

    def __init__(self, session: Any, method: str) -> None:
        self.rows = 0
        plain = getattr(session, method)

        def counted(this: Any, *values: Any) -> Any:
            rows = plain(this, *values)
            self.rows += len(rows)
            return rows

        setattr(session, method, counted)


def in_duckdb() -> None:
    from topsecret.sources.engines.duckdb_session import DuckSession

    moved = Moved(DuckSession, "ask")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.duckdb"
        with duckdb.connect(str(path)) as engine:
            engine.execute(f"CREATE TABLE venues AS SELECT range AS id FROM range({ITEMS})")
            engine.execute(
                'CREATE TABLE visits AS SELECT (random() * 1000000)::BIGINT AS "user", '
                f"(power(random(), 4) * {ITEMS * 1.2})::BIGINT AS place FROM range({EVENTS})"
            )
        for name, domain in (("range", range(ITEMS)), ("table", Column("venues", "id"))):
            report(f"DuckDB, {name}", moved, str(path), table="visits", domain=domain)


def in_postgresql(url: str) -> None:
    import sqlalchemy

    from topsecret.sources.engines.sqlalchemy import SqlSession

    moved = Moved(SqlSession, "run")
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE IF EXISTS visits, venues")
        connection.exec_driver_sql(
            f"CREATE TABLE venues AS SELECT generate_series(0, {ITEMS - 1})::BIGINT AS id"
        )
        connection.exec_driver_sql(
            'CREATE TABLE visits AS SELECT (random() * 1000000)::BIGINT AS "user", '
            f"(power(random(), 4) * {ITEMS * 1.2})::BIGINT AS place "
            f"FROM generate_series(1, {EVENTS // 4})"
        )
    for name, domain in (("range", range(ITEMS)), ("table", Column("venues", "id"))):
        report(f"PostgreSQL, {name}", moved, engine, table="visits", domain=domain)
    engine.dispose()


def report(name: str, moved: Moved, source: Any, **more: Any) -> None:
    moved.rows = 0
    start = time.perf_counter()
    release = top_k(source, **ANSWER, **more)
    assert len(release.items) == 100
    print(f"{name}: {time.perf_counter() - start:.1f} s, {moved.rows:,} rows moved", flush=True)


if __name__ == "__main__":
    in_duckdb()
    if len(sys.argv) > 1:
        in_postgresql(sys.argv[1])
