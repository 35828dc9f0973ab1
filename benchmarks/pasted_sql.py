"""A pasted query whose persons are two links away, against the same joins written by hand."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import duckdb

from benchmarks.row import Row, interleaved
from topsecret import sql
from topsecret.sources.relations.privacy_file import PrivacyFile

PERSONS, ORDERS, LINES = 200_000, 1_000_000, 3_000_000
FILE = PrivacyFile.parse("""
[tables.customers]
person = "id"
[tables.orders]
link = "customer_id -> customers.id"
[tables.order_lines]
link = "order_id -> orders.id"
[tables.products]
public = true
""")
SHOP = f"""
CREATE TABLE customers AS SELECT range AS id FROM range({PERSONS});
CREATE TABLE orders(id BIGINT PRIMARY KEY, customer_id BIGINT);
INSERT INTO orders SELECT range, (random() * {PERSONS})::BIGINT FROM range({ORDERS});
CREATE TABLE order_lines AS SELECT (random() * {ORDERS})::BIGINT AS order_id,
  (power(random(), 3) * 20000)::BIGINT AS product_id FROM range({LINES});
CREATE TABLE products AS SELECT range AS id, 'product ' || range AS name FROM range(20001);
"""
QUERIES = {
    "two links away": "SELECT l.product_id, COUNT(DISTINCT o.customer_id) AS n "
    "FROM order_lines l JOIN orders o ON o.id = l.order_id GROUP BY l.product_id",
    "two links away, public domain": "SELECT p.name, COUNT(DISTINCT o.customer_id) AS n "
    "FROM order_lines l JOIN orders o ON o.id = l.order_id JOIN products p ON p.id = l.product_id "
    "GROUP BY p.name",
}


def run(rounds: int = 3) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.duckdb"
        with duckdb.connect(str(path)) as engine:
            engine.execute(SHOP)
        return [_against(name, query, path, rounds) for name, query in QUERIES.items()]


def _against(name: str, query: str, path: Path, rounds: int) -> Row:
    def by_hand() -> object:
        with duckdb.connect(str(path), read_only=True) as engine:
            return engine.execute(f"{query} ORDER BY n DESC LIMIT 201").fetchall()

    def ours() -> object:
        return sql(f"{query} ORDER BY n DESC LIMIT 10", str(path), privacy=FILE, epsilon=1)

    clock = time.process_time
    return Row(f"pasted SQL, {name}, by hand", *interleaved(ours, by_hand, rounds, clock), 1.3)
