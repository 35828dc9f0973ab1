"""A period of a series late in the year against one early in it: what it costs must not grow.

``make bench`` runs 52 weeks of a series over a DuckDB table, each with as many new rows as every
other, and compares the processor seconds of weeks 43 to 52 with those of weeks 6 to 15: of reading
the rows and of counting them in the ledger. The noise is left out: that of a label is a sum over
all weeks until then, and grows with them.
"""

from __future__ import annotations

import datetime
import tempfile
import time
from pathlib import Path

import duckdb

from benchmarks.row import Row
from topsecret import Series
from topsecret.ledger import Flexible, Ledger

WEEKS, ROWS, PERSONS, PLACES = 52, 600, 200_000, 2_000
START = datetime.date(2026, 1, 5)
EARLY, LATE = range(6, 16), range(43, 53)


def run() -> list[Row]:
    counting: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        events = duckdb.connect(str(Path(folder) / "visits.duckdb"))
        events.execute("CREATE TABLE visits (day DATE, person BIGINT, place BIGINT)")
        ledger = Ledger(Path(folder) / "ledger.db")
        ledger.open_budget("visits", Flexible.of(epsilon=9, delta=1e-3), person="person")
        series = Series(
            events,
            table="visits",
            item="place",
            person="person",
            time="day",
            every="week",
            start=START,
            until=START + datetime.timedelta(days=7 * WEEKS - 1),
            k=10,
            epsilon=1,
            late=1,
            ledger=ledger,
            dataset="visits",
        )
        for week in range(1, WEEKS + 1):
            first = START + datetime.timedelta(days=7 * (week - 1))
            events.execute(
                f"INSERT INTO visits SELECT DATE '{first}' + (random() * 6)::INTEGER, "
                f"(random() * {PERSONS})::BIGINT, (power(random(), 3) * {PLACES})::BIGINT "
                f"FROM range({ROWS})"
            )
            begin = time.process_time()
            series._counts.seal(week, week - 1, series._found(week - 1, week))
            series._counts.sums(week)
            counting[week] = time.process_time() - begin
        ledger.close()
        events.close()
    late, early = (sum(counting[week] for week in weeks) for weeks in (LATE, EARLY))
    return [Row("count a late week of a series, against an early one", late / 10, early / 10, 1.3)]
