"""What a series counts by SQL against a slow count in Python: 52 weeks, some rows late."""

import datetime
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event, text

from topsecret import Series
from topsecret.ledger import Flexible, Ledger

WEEKS, PERSONS, ITEMS, LATE = 52, 25, 12, 1
START = datetime.date(2025, 1, 6)
SOAK = os.environ.get("TOPSECRET_SOAK") == "1"
CASES = [
    ("duckdb", "cumulative", 1, 6),
    ("postgres", "window", 3, 20),
    ("duckdb", "window", 3, 20),
    ("postgres", "cumulative", 1, 6),
]
"""The last two with ``TOPSECRET_SOAK=1`` alone."""
TABLE = "CREATE TABLE visits (moment TIMESTAMP, person INTEGER, place TEXT)"
Row = tuple[datetime.datetime, int, str]


def arriving() -> list[list[Row]]:
    """The rows that arrive in each week: most are its own, some up to three weeks late."""
    drawn = random.Random(23)
    found = []
    for week in range(WEEKS):
        rows = []
        for _ in range(drawn.randrange(30)):
            own = max(0, week - drawn.choice([0, 0, 0, 1, 1, 3]))
            when = START + datetime.timedelta(days=7 * own + drawn.randrange(7))
            moment = datetime.datetime.combine(when, datetime.time(drawn.randrange(24)))
            rows.append((moment, drawn.randrange(PERSONS), f"place {drawn.randrange(ITEMS)}"))
        found.append(rows + rows[:2])  # some twice
    return found


class SlowCount:
    """The rule of docs/proofs/series.md, row by row."""

    def __init__(self, series: Series) -> None:
        self.numbers = series.terms.numbers
        self.order = series._counts._hash
        self.table: list[Row] = []
        self.seen: set[tuple[int, str, int]] = set()
        self.used: Counter[int] = Counter()
        self.times: dict[tuple[int, str], list[int]] = {}

    def read(self, week: int) -> int:
        """How many pairs are read for a week: those of it and of LATE before it, no older ones."""
        window = self.numbers.kind == "window"  # which must know of which week a pair is
        weeks = [((m.date() - START).days // 7 + 1, p, i) for m, p, i in self.table]
        near = [(w * window, p, i) for w, p, i in weeks if week - LATE <= w <= week]
        return len(set(near))

    def take(self, week: int, rows: list[Row]) -> dict[str, int]:
        """The sums after a week, 1 for the first."""
        self.table += rows
        new = set()
        for moment, person, item in self.table:
            own = (moment.date() - START).days // 7 + 1
            if week - LATE <= own <= week and (person, item, own) not in self.seen:
                self.seen.add((person, item, own))
                new.add((person, item))
        for person, item in sorted(new, key=lambda p: self.order("pair", str(p[0]), f'"{p[1]}"')):
            times = self.times.get((person, item), [])
            cumulative = self.numbers.kind == "cumulative"
            again = not times or (not cumulative and week - times[-1] >= self.numbers.window)
            if again and self.used[person] < self.numbers.max_counts:
                self.used[person] += 1
                self.times.setdefault((person, item), []).append(week)
        reach = WEEKS if self.numbers.kind == "cumulative" else self.numbers.window
        counted = Counter(
            f'"{item}"'
            for (_, item), times in self.times.items()
            for t in times
            if t > week - reach
        )
        return dict(counted)


class DuckTable:
    def __init__(self, folder: Path) -> None:
        import duckdb

        self.connection = duckdb.connect(str(folder / "rows.duckdb"))
        self.connection.execute(
            "CREATE TABLE visits (moment TIMESTAMP, person INTEGER, place TEXT)"
        )
        self.source = self.connection
        self.ledger = Ledger(folder / "ledger.db")

    def add(self, rows: list[Row]) -> None:
        if rows:
            marks = ", ".join(["(?, ?, ?)"] * len(rows))  # one statement: DuckDB's are slow
            values = [value for row in rows for value in row]
            self.connection.execute(f"INSERT INTO visits VALUES {marks}", values)

    def close(self) -> None:
        self.connection.close()
        self.ledger.close()


class PostgresTable:
    def __init__(self, url: str) -> None:
        self.engine = create_engine(url)
        self.run(TABLE)
        self.source = url
        self.ledger = Ledger(url)  # the tables of its counts are tested there, too

    def run(self, statement: str, rows: Any = None) -> None:
        with self.engine.begin() as connection:
            connection.execute(text(statement), rows)

    def add(self, rows: list[Row]) -> None:
        if rows:
            values = [{"moment": m, "person": p, "place": i} for m, p, i in rows]
            self.run("INSERT INTO visits VALUES (:moment, :person, :place)", values)

    def close(self) -> None:
        self.engine.dispose()
        self.ledger.close()


@pytest.fixture
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DuckTable | PostgresTable]:
    if request.node.callspec.params["engine"] == "duckdb":
        made: DuckTable | PostgresTable = DuckTable(tmp_path)
    else:
        made = PostgresTable(request.getfixturevalue("postgres_url"))
    yield made
    made.close()


@pytest.mark.parametrize(("engine", "kind", "window", "limit"), CASES if SOAK else CASES[:2])
def test_the_counts_are_those_of_a_slow_count(
    table: DuckTable | PostgresTable, engine: str, kind: str, window: int, limit: int
) -> None:
    """Cumulative and window of three, with limits that bind."""
    table.ledger.open_budget("visits", Flexible.of(epsilon=9, delta=1e-3), person="person")
    series = Series(
        table.source,
        table="visits",
        item="place",
        person="person",
        time="moment",
        every="week",
        start=START,
        until=START + datetime.timedelta(days=7 * WEEKS - 1),
        kind=kind,  # type: ignore[arg-type]
        window=window,
        max_counts=limit,
        late=LATE,
        k=3,
        epsilon=2,
        ledger=table.ledger,
        dataset="visits",
    )
    slow = SlowCount(series)
    statements: list[int] = []
    assert table.ledger._store._engine is not None
    event.listen(
        table.ledger._store._engine, "before_cursor_execute", lambda *_: statements.append(week)
    )
    for week, rows in enumerate(arriving(), 1):
        table.add(rows)
        expected = slow.take(week, rows)
        found = series._found(week - 1, week)
        assert sum(map(len, found.values())) == slow.read(week)
        assert series._counts.seal(week, week - 1, found)
        nonces, sums = series._counts.sums(week)
        assert sums == expected, week
        assert len(nonces) == week
    assert max(slow.used.values()) == limit  # the limit was met
    # What a period costs does not grow with the periods before it: neither pairs nor statements.
    asked = Counter(statements)
    assert max(asked[one] for one in range(WEEKS - 9, WEEKS + 1)) <= max(
        asked[one] for one in range(2, 12)
    )
