"""Conditions and expressions mean the same on every engine, and a typo costs nothing."""

import datetime
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlalchemy

from postgres import Server
from topsecret import Expression, top_k
from topsecret.errors import DataIndependentFailure, InvalidParameter
from topsecret.ledger import Flexible, Ledger
from topsecret.sources import CountQuery, Source
from topsecret.sources.engines.duckdb_tables import OpenConnection
from topsecret.sources.engines.sqlalchemy import SqlSource

ENGINES = ("duckdb", "sqlite", "postgresql")
ROWS = [
    ("ann", "Tea", 9.5, 3, "2024-05-01 17:30:00", "2024-05-01", True),
    ("bob", "ÉCLAIR", 10.5, 12, "2024-05-01 19:00:00", "2024-05-02", False),
    ("cy", "\u2003pie ", 100, 7, "2024-05-02 08:00:00", "2024-05-03", True),
    ("\x01dé", "Tea", 2, 7, "2024-05-01 18:00:00.500", "2024-05-04", True),
]
TYPES = {
    "duckdb": ("DOUBLE", "TIMESTAMP"),
    "sqlite": ("REAL", "TIMESTAMP"),
    "postgresql": ("DOUBLE PRECISION", "TIMESTAMP"),
}
Asked = Callable[[CountQuery], list[tuple[Any, int]]]


@pytest.fixture(scope="module")
def sources(
    postgres_server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Source]]:
    made: dict[str, Source] = {}

    def statements(engine: str) -> list[str]:
        price, time = TYPES[engine]
        columns = f'"user" TEXT, place TEXT, price {price}, n INTEGER, t {time}, d DATE, b BOOLEAN'
        rows = ", ".join(
            "(" + ", ".join(str(v).upper() if v in (True, False) else repr(v) for v in row) + ")"
            for row in ROWS
        )
        return [
            f"CREATE TABLE e ({columns})",
            f"INSERT INTO e VALUES {rows}".replace("\\x01", "\x01").replace("\\u2003", "\u2003"),
        ]

    connection = duckdb.connect()
    for sql in statements("duckdb"):
        connection.execute(sql)
    made["duckdb"] = OpenConnection(connection, "e")
    path = tmp_path_factory.mktemp("s") / "s.db"
    with sqlite3.connect(path) as raw:
        for sql in statements("sqlite"):
            raw.execute(sql)
    raw.close()
    made["sqlite"] = SqlSource(f"sqlite:///{path}", "e")
    name = postgres_server.create_database()
    engine = sqlalchemy.create_engine(postgres_server.url(name))
    with engine.begin() as opened:
        for sql in statements("postgresql"):
            opened.exec_driver_sql(sql)
    made["postgresql"] = SqlSource(engine, "e")
    yield made
    connection.close()
    engine.dispose()
    postgres_server.drop_database(name)


CONDITIONS: list[tuple[tuple[str, str, Any], set[str]]] = [
    (("t", ">=", "2024-05-01T18:00"), {"ÉCLAIR", "\u2003pie ", "Tea"}),
    (("t", "<", "2024-05-01 18:00"), {"Tea"}),
    (("t", ">=", datetime.datetime(2024, 5, 1, 18, 30)), {"ÉCLAIR", "\u2003pie "}),
    (("t", ">", "2024-05-01"), {"Tea", "ÉCLAIR", "\u2003pie "}),
    (("price", ">", "10"), {"ÉCLAIR", "\u2003pie "}),
    (("price", ">", 10), {"ÉCLAIR", "\u2003pie "}),
    (("n", ">", "9"), {"ÉCLAIR"}),
    (("d", "in", ["2024-05-02", "2024-05-03"]), {"ÉCLAIR", "\u2003pie "}),
    (("d", "<=", datetime.date(2024, 5, 1)), {"Tea"}),
    (("b", "=", "false"), {"ÉCLAIR"}),
]


@pytest.mark.parametrize(("condition", "kept"), CONDITIONS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_value_is_read_as_the_column(
    sources: dict[str, Source], engine: str, condition: Any, kept: set[str]
) -> None:
    found = sources[engine].leading_counts(CountQuery("place", "user", 9, where=[condition]))
    assert {item for item, _ in found} == kept


WRONG = [
    ("n", "=", "x"),
    ("t", ">", "yesterday"),
    ("price", "<", "cheap"),
    ("b", "=", "maybe"),
    ("t", ">", datetime.datetime(2024, 5, 1, 18, tzinfo=datetime.UTC)),
    ("t", ">", "2024-05-01T18:00+02:00"),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("condition", WRONG)
def test_a_typo_costs_nothing(
    sources: dict[str, Source], tmp_path: Path, engine: str, condition: Any
) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("x", Flexible.of(epsilon=4, delta=1e-5), person="user")
    asked: dict[str, Any] = {"person": "user", "k": 1, "epsilon": 0.5, "delta": 1e-7}
    wrong: list[dict[str, Any]] = [{"item": "place", "where": [condition]}]
    if condition is WRONG[0]:
        wrong.append({"item": Expression("CAST(n AS DATE)")})
    for one in wrong:
        with pytest.raises(InvalidParameter) as caught:
            top_k(sources[engine], ledger=ledger, dataset="x", **asked, **one)
        assert isinstance(caught.value, DataIndependentFailure)
        assert [entry.event for entry in ledger.history("x")][-1] == "opened"
    ledger.close()


def test_a_moment_is_compared_with_moments(postgres_url: str) -> None:
    plus_two = datetime.timezone(datetime.timedelta(hours=2))
    moment = datetime.datetime(2024, 5, 1, 18, tzinfo=plus_two)  # 16:00 UTC
    made = [
        'CREATE TABLE z ("user" TEXT, place TEXT, t TIMESTAMPTZ)',
        "INSERT INTO z VALUES ('a', 'before', '2024-05-01 15:59:00+00'), "
        "('b', 'after', '2024-05-01 16:01:00+00')",
    ]
    engine = sqlalchemy.create_engine(postgres_url)
    with engine.begin() as opened:
        for sql in made:
            opened.exec_driver_sql(sql)
    with duckdb.connect() as connection:
        for sql in made:
            connection.execute(sql)
        connection.execute("SET TimeZone = 'America/New_York'")
        for source in (SqlSource(engine, "z"), OpenConnection(connection, "z")):
            for value in (moment, "2024-05-01T18:00+02:00", "2024-05-01 16:00"):
                query = CountQuery("place", "user", 9, where=[("t", ">", value)])
                assert source.leading_counts(query) == [("after", 1)]
    engine.dispose()


EXPRESSIONS = {
    "LOWER(place)": {"tea", "éclair", "\u2003pie "},
    "UPPER(place)": {"TEA", "ÉCLAIR", "\u2003PIE "},
    "TRIM(place)": {"Tea", "ÉCLAIR", "\u2003pie"},
    "n > 5": {"true", "false"},
    "place = 'Tea'": {"true", "false"},
    "CASE WHEN t < '2024-05-01 18:30' THEN 'early' ELSE 'late' END": {"early", "late"},
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_agree(sources: dict[str, Source], text: str) -> None:
    for source in sources.values():
        found = source.leading_counts(CountQuery(Expression(text), "user", 9))
        assert {item for item, _ in found} == EXPRESSIONS[text]


@pytest.mark.parametrize("item", ["b", "place", ("b", "place")])
def test_engines_keep_the_same_items(sources: dict[str, Source], item: Any) -> None:
    """Truth values are truth values, and a person who begins with U+0001 has the same hash."""
    lists = [
        source.leading_counts(CountQuery(item, "user", 9, max_items=1, salt=bytes([salt]) * 16))
        for salt in range(3)
        for source in sources.values()
    ]
    for start in (0, 3, 6):
        assert lists[start] == lists[start + 1] == lists[start + 2]
    if item == "b":
        assert all(isinstance(value, bool) for value, _ in lists[1])
