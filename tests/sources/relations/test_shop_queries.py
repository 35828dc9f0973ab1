"""Queries as an analyst at a shop writes them: what they ask, or what to write instead."""

from collections.abc import Iterator

import duckdb
import pytest

from topsecret.questions.sql import explain
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.refusal import QueryRefused

SCHEMA = """
CREATE TABLE customers(id INTEGER PRIMARY KEY, country VARCHAR, email VARCHAR);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer_id INTEGER, placed TIMESTAMP, status VARCHAR,
  total DECIMAL(10, 2));
CREATE TABLE order_lines(order_id INTEGER, product_id INTEGER, quantity INTEGER,
  unit_price DECIMAL(8, 2));
CREATE TABLE products(id INTEGER PRIMARY KEY, name VARCHAR, category VARCHAR)
"""
FILE = PrivacyFile.parse("""
[tables.customers]
person = "id"
[tables.orders]
link = "customer_id -> customers.id"
[tables.order_lines]
link = "order_id -> orders.id"
[tables.products]
public = true
[bounds]
rows = 5
[bounds.sums]
quantity = 20
"l.quantity * l.unit_price" = { most = 200, unit = "0.01" }
""")
LINES = (
    "FROM orders o JOIN order_lines l ON l.order_id = o.id JOIN products p ON p.id = l.product_id"
)
END = "GROUP BY 1 ORDER BY 2 DESC LIMIT 5"
ACCEPTED = [
    (
        f"SELECT p.category, COUNT(DISTINCT o.customer_id) {LINES} WHERE o.placed >= '2024-01-01' "
        f"AND o.placed < '2025-01-01' AND o.status IN ('paid', 'sent') {END}",
        "persons",
    ),
    (f"SELECT p.name, SUM(l.quantity * l.unit_price) AS revenue {LINES} {END}", "sum of"),
    (
        f"SELECT DATE_TRUNC('month', placed), COUNT(DISTINCT customer_id) FROM orders {END}",
        "persons",
    ),
    (
        "WITH sizes AS (SELECT o.customer_id AS who, CASE WHEN l.quantity > 5 THEN 'bulk' ELSE "
        "'single' END AS size FROM orders o JOIN order_lines l ON o.id = l.order_id) SELECT size, "
        f"COUNT(DISTINCT who) FROM sizes {END}",
        "persons",
    ),
    # One row for each customer: the engine keeps the key unique.
    (f"SELECT COALESCE(country, 'unknown'), COUNT(*) FROM customers {END}", "persons"),
    (
        "SELECT a.product_id, b.product_id, COUNT(DISTINCT person) AS n FROM order_lines a JOIN "
        "order_lines b ON a.order_id = b.order_id AND a.product_id < b.product_id GROUP BY 1, 2 "
        "ORDER BY n DESC LIMIT 5",
        "persons",
    ),
    (f"SELECT EXTRACT(hour FROM placed), COUNT(*) FROM orders {END}", "rows"),
    (
        "SELECT o.placed::date AS day, COUNT(DISTINCT o.customer_id) FROM orders o WHERE o.total "
        f"BETWEEN 10 AND 99.99 AND YEAR(o.placed) = 2024 {END}",
        "persons",
    ),
    (
        f"SELECT p.name, COUNT(DISTINCT o.customer_id) {LINES} WHERE LOWER(p.name) LIKE '%tea%' OR "
        f"p.name ILIKE 'Coffee%' {END}",
        "persons",
    ),
    (
        "SELECT c.country, COUNT(DISTINCT c.id) FROM customers c LEFT JOIN orders o ON "
        f"o.customer_id = c.id WHERE o.id IS NULL {END}",
        "persons",
    ),
    (
        "SELECT country || '/' || status, COUNT(DISTINCT c.id) FROM customers c JOIN orders o ON "
        f"o.customer_id = c.id {END}",
        "persons",
    ),
    (
        f"SELECT product_id, COUNT(DISTINCT customer_id) {LINES} WHERE customer_id IN (SELECT "
        f"customer_id FROM orders GROUP BY customer_id HAVING COUNT(*) >= 3) {END};",
        "persons",
    ),
]
REFUSED = [
    (
        "SELECT status, COUNT(DISTINCT customer_id) FROM orders WHERE placed > CURRENT_DATE - "
        f"INTERVAL 30 DAY {END}",
        "CURRENT_DATE changes from run to run; write the value itself",
    ),
    (
        f"SELECT strftime(placed, '%Y-%m'), COUNT(DISTINCT customer_id) FROM orders {END}",
        "write DATE_TRUNC('month', …)",
    ),
    (
        f"SELECT p.name, COUNT(DISTINCT o.id) {LINES} {END}",
        "write COUNT(DISTINCT person), or COUNT(*) for rows",
    ),
    (
        "SELECT country, COUNT(DISTINCT id) * 100 FROM customers GROUP BY 1 ORDER BY 2 DESC",
        "show that, and compute with the answer",
    ),
    (
        f"SELECT status, COUNT(DISTINCT customer_id) FROM orders WHERE total * 2 > 9 {END}",
        "SUM(a * b) alone may multiply",
    ),
    (
        f"SELECT p.name, SUM(l.quantity) {LINES} GROUP BY 1 HAVING SUM(l.quantity) > 9 ORDER BY 2 "
        "DESC",
        "HAVING cuts by a noisy number of people; leave it out beside SUM(l.quantity)",
    ),
]


@pytest.fixture(scope="module")
def shop() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(SCHEMA)
        yield connection


@pytest.mark.parametrize(("query", "measure"), ACCEPTED)
def test_accepted(query: str, measure: str, shop: duckdb.DuckDBPyConnection) -> None:
    told = explain(query, shop, privacy=FILE)
    assert str(told["measure"]).startswith(measure)
    shop.execute(str(told["rows"])).fetchall()


@pytest.mark.parametrize(("query", "says"), REFUSED)
def test_refused(query: str, says: str, shop: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(QueryRefused) as refused:
        explain(query, shop, privacy=FILE)
    assert says in str(refused.value)
