"""COUNT(*) and SUM of pasted queries: the same rows, values and bounds on every engine."""

import sqlite3
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import topsecret
from topsecret.errors import InvalidParameter
from topsecret.questions.sql import explain, question_of
from topsecret.results.release import Release
from topsecret.sources.relations.open_query import open_query
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.refusal import QueryRefused
from topsecret.sources.session import leading_counts

FILE = """
[tables.customers]
person = "id"
[tables.orders]
link = "customer_id -> customers.id"
[tables.order_lines]
link = "order_id -> orders.id"
[tables.products]
public = true
"""
BOUNDED = FILE + '[bounds]\nrows = 2\n[bounds.sums]\nqty = 4\nprice = { most = 6, unit = "0.1" }\n'
BOUNDED += '"l.qty * l.price" = { most = 6, unit = "0.1" }\n'
SCHEMA = """
CREATE TABLE customers(id INTEGER PRIMARY KEY);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer_id INTEGER, day VARCHAR(9));
CREATE TABLE order_lines(order_id INTEGER, product_id INTEGER, qty INTEGER, price DECIMAL(9, 2));
CREATE TABLE products(id INTEGER PRIMARY KEY, name VARCHAR(9));
INSERT INTO customers VALUES (1), (2), (3);
INSERT INTO orders VALUES (1, 1, 'mon'), (2, 1, 'tue'), (3, 2, 'mon'), (4, 3, 'wed'), (5, NULL, 'x')
"""
LINES: list[tuple[Any, ...]] = [
    (1, 1, 2, "1.25"),
    (1, 1, 3, "2.50"),
    (2, 1, 9, "0.04"),
    (2, 2, 1, "100.00"),
    (3, 1, 1, None),
    (3, 2, -7, "-3.10"),
    (3, 3, None, "1.05"),
    (4, 3, 2, "2.15"),
    (5, 3, 9, "9.00"),
    (9, 1, 9, "9.00"),
]
OWNERS = {1: 1, 2: 1, 3: 2, 4: 3}
DAYS = {1: "mon", 2: "tue", 3: "mon", 4: "wed"}
NAMES = {1: "tea", 2: "milk", 3: "salt"}


def statements() -> list[str]:
    rows = ", ".join(
        "(" + ", ".join("NULL" if value is None else str(value) for value in row) + ")"
        for row in LINES
    )
    names = ", ".join(f"({key}, '{name}')" for key, name in [*NAMES.items(), (4, "rice")])
    return [
        *SCHEMA.strip().split(";\n"),
        f"INSERT INTO order_lines VALUES {rows}",
        f"INSERT INTO products VALUES {names}",
    ]


@pytest.fixture
def on_duckdb(tmp_path: Path) -> str:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        for statement in statements():
            connection.execute(statement)
    return str(path)


@pytest.fixture
def on_sqlite(tmp_path: Path) -> str:
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as connection:
        for statement in statements():
            connection.execute(statement)
    connection.close()
    return f"sqlite:///{path}"


@pytest.fixture
def on_postgres(postgres_url: str) -> str:
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        for statement in statements():
            connection.execute(statement.encode())
    return postgres_url


ENGINES = ["on_duckdb", "on_sqlite", "on_postgres"]
END = " GROUP BY l.product_id ORDER BY n DESC LIMIT 3"
JOINED = "FROM order_lines l JOIN orders o ON o.id = l.order_id"


def tenths(price: str | None) -> int:
    """Multiples of 0.1, the half upwards, nothing below 0, at most 6."""
    if price is None or Decimal(price) <= 0:
        return 0
    return min(int(Decimal(price) * 10 + Decimal("0.5")), 60)


CASES: dict[str, tuple[str, int, Any]] = {
    "rows": ("COUNT(*) AS n FROM order_lines l", 2, lambda row: 1),
    "rows-of-a-join": (f"COUNT(*) AS n {JOINED}", 2, lambda row: 1),
    "rows-with-a-value": ("COUNT(l.price) AS n FROM order_lines l", 2, lambda r: r[3] is not None),
    "ones": (f"SUM(1) AS n {JOINED}", 2, lambda row: 1),
    "ones-of-some": (
        f"SUM(CASE WHEN o.day = 'mon' THEN 1 ELSE 0 END) AS n {JOINED}",
        2,
        lambda row: DAYS[row[0]] == "mon",
    ),
    "rows-of-a-case": (
        f"COUNT(CASE WHEN o.day = 'mon' THEN l.qty END) AS n {JOINED}",
        2,
        lambda row: DAYS[row[0]] == "mon" and row[2] is not None,
    ),
    "sum": ("SUM(l.qty) AS n FROM order_lines l", 4, lambda row: min(max(row[2] or 0, 0), 4)),
    "sum-of-some": (
        f"SUM(l.qty) FILTER (WHERE o.day <> 'tue') AS n {JOINED}",
        4,
        lambda row: min(max(row[2] or 0, 0), 4) if DAYS[row[0]] != "tue" else 0,
    ),
    "sum-of-decimals": (
        "SUM(l.price) AS n FROM order_lines l",
        60,
        lambda row: tenths(row[3]),
    ),
    "sum-of-a-product": (
        "SUM(l.qty * l.price) AS n FROM order_lines l",
        60,
        lambda row: tenths(None if None in row else str(row[2] * Decimal(row[3]))),
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_scores_are_those_of_counting_by_hand(engine: str, request: pytest.FixtureRequest) -> None:
    source = request.getfixturevalue(engine)
    file = PrivacyFile.parse(BOUNDED)
    for name, (written, most, adds) in CASES.items():
        parts: Counter[tuple[int, int]] = Counter()
        for row in LINES:
            if row[0] in OWNERS:
                parts[row[1], OWNERS[row[0]]] += int(adds(row))
        right: Counter[int] = Counter()
        for (product, _), part in parts.items():
            right[product] += min(part, most)
        query = f"SELECT l.product_id, {written}{END}"
        opened, asked = open_query(query, source, privacy=file)
        question = question_of(opened, asked, epsilon=1)
        measure = question.counted.measure
        assert measure is not None
        assert measure.sensitivity == most, name
        found = dict(leading_counts(opened, question.queries(9)[0]))
        assert {item: n for item, n in found.items() if n} == +right, name


def test_a_sum_over_public_names_has_their_domain(on_duckdb: str) -> None:
    query = (
        "SELECT p.name, SUM(l.qty) AS n FROM order_lines l JOIN products p ON p.id = l.product_id "
        "GROUP BY p.name ORDER BY n {} LIMIT 1"
    )
    file = PrivacyFile.parse(FILE)
    most = topsecret.sql(query.format("DESC"), on_duckdb, privacy=file, epsilon=10, max_per_item=9)
    least = topsecret.sql(query.format("ASC"), on_duckdb, privacy=file, epsilon=10, max_per_item=9)
    assert isinstance(most, Release)
    assert isinstance(least, Release)
    assert most.items == ("tea",)
    assert least.items != ("tea",)
    assert explain(query.format("ASC"), on_duckdb, privacy=file, max_per_item=9)["order"] == "least"
    assert most.domain == "column name of the table products"
    assert "sum of 'qty'" in most.title


def test_where_a_bound_may_stand(on_duckdb: str) -> None:
    rows, qty = (f"SELECT l.product_id, {CASES[name][0]}{END}" for name in ("rows", "sum"))
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, max_sum_per_item=7, unit=0.1)"
    price = qty.replace("l.qty", "l.price")
    plain, bounded = PrivacyFile.parse(FILE), PrivacyFile.parse(BOUNDED)

    def bound(query: str, file: PrivacyFile, **more: Any) -> tuple[Any, Any]:
        told = explain(query, on_duckdb, privacy=file, **more)
        return told["max_per_item"], told["unit"]

    assert bound(rows, bounded) == ("2", None)
    assert bound(qty, bounded) == ("4", "1")
    assert bound(price, bounded) == ("6", "0.1")
    assert bound(price, bounded, max_per_item=8, unit="0.01") == ("8", "0.01")
    assert bound(price.replace("SELECT", clause), bounded, dialect="bigquery") == ("7", "0.1")
    with pytest.raises(QueryRefused, match=r"SUM\(l.qty\) needs a bound") as refused:
        bound(qty, plain)
    assert refused.value.reason == "sum"
    with pytest.raises(QueryRefused, match=r"unit does not bound COUNT\(\*\)"):
        bound(rows.replace("SELECT", clause.replace("sum", "rows")), plain, dialect="bigquery")
    with pytest.raises(QueryRefused, match="max_sum_per_item does not bound"):
        bound(rows.replace("SELECT", clause), plain, dialect="bigquery")
    with pytest.raises(InvalidParameter, match="given twice"):
        bound(price.replace("SELECT", clause), plain, dialect="bigquery", max_per_item=1)
    with pytest.raises(InvalidParameter, match=r"unit=0.1 rounds what is summed; leave it out"):
        topsecret.sql(rows, on_duckdb, privacy=plain, epsilon=1, max_per_item=1, unit=0.1)
    with pytest.raises(InvalidParameter, match="pass max_per_item with it"):
        topsecret.sql(price, on_duckdb, privacy=bounded, epsilon=1, unit=0.1)
    with pytest.raises(InvalidParameter, match="whole multiple of the unit"):
        topsecret.sql(price, on_duckdb, privacy=bounded, epsilon=1, max_per_item=0.05, unit=0.1)


@pytest.mark.parametrize(
    ("measure", "says"),
    [
        ("SUM(DISTINCT l.qty)", "SUM(DISTINCT l.qty) cannot be ranked by"),
        ("SUM(l.qty / l.price)", "arithmetic may overflow"),
        ("SUM(l.qty * 1.5)", "SUM(l.qty * 1.5) must add a column of numbers"),
        ("SUM(7)", "SUM(7) must add a column of numbers"),
        ("SUM(o.day)", "SUM(o.day) must add a column of numbers"),
        ("COUNT(CASE WHEN o.day = 'mon' THEN 1 ELSE 2 END)", "CASE WHEN … THEN value END alone"),
    ],
)
def test_measures_that_cannot_be_bounded(measure: str, says: str, on_duckdb: str) -> None:
    query = f"SELECT l.product_id, {measure} AS n {JOINED}{END}"
    with pytest.raises(QueryRefused) as refused:
        explain(query, on_duckdb, privacy=PrivacyFile.parse(FILE), max_per_item=5)
    assert says in str(refused.value)


def test_having_beside_a_sum_is_refused_by_name(on_duckdb: str) -> None:
    query = f"SELECT l.product_id, SUM(l.qty) AS n {JOINED}{END}"
    query = query.replace("ORDER", "HAVING SUM(l.qty) >= 5 ORDER")
    with pytest.raises(QueryRefused, match=r"HAVING cuts by a noisy number of people.*SUM\(l.qty"):
        explain(query, on_duckdb, privacy=PrivacyFile.parse(FILE), max_per_item=5)


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ("bounds = 5", "may have rows = NUMBER"),
        ("[bounds]\ncolumns = 5", "may have rows = NUMBER"),
        ("[bounds]\nrows = 0", "max_per_item=0"),
        ("[bounds]\nsums.qty = 'many'", "must be a number"),
        ("[bounds]\nsums.qty = { unit = 1 }", "bounds.sums.qty must be a number"),
    ],
)
def test_bounds_of_a_file_are_checked(bounds: str, says: str) -> None:
    text = bounds + FILE if bounds.startswith("bounds") else FILE + bounds
    with pytest.raises(InvalidParameter) as refused:
        PrivacyFile.parse(text)
    assert says in str(refused.value)
