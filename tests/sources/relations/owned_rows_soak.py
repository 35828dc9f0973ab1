"""``make soak``: 20,000 pairs of neighbours on each engine, with a fresh seed each time.

``TOPSECRET_SEED`` repeats a run that found something.
"""

import os
import secrets
import sys

import pytest
from owned_rows_fuzz import breaks
from shop import PEOPLE
from shop_engines import DuckShop, PostgresShop, SqliteShop

DATABASES = 6
"""For each query: to rebuild it takes longer than to run it."""
QUERIES = -(-int(os.environ.get("TOPSECRET_PAIRS", "20000")) // (2 * DATABASES * len(PEOPLE)))
SEED = int(os.environ.get("TOPSECRET_SEED") or secrets.randbits(32))
TURN = 250
"""Queries for one connection: a database that was filled thousands of times is slow."""


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("engine", ["duckdb", "sqlite", "postgres"])
def test_one_person_less(engine: str, unique: bool, postgres_url: str) -> None:
    for start in range(0, QUERIES, TURN):
        shop = (
            DuckShop(unique)
            if engine == "duckdb"
            else SqliteShop(unique)
            if engine == "sqlite"
            else PostgresShop(postgres_url, unique)
        )
        try:
            queries = min(TURN, QUERIES - start)
            found = list(breaks(shop, unique, SEED + start, queries, databases=DATABASES))
            assert found == [], SEED
        finally:
            shop.close()
    pairs = QUERIES * DATABASES * len(PEOPLE)
    sys.stderr.write(f"{engine}, unique {unique}: {pairs} pairs, {QUERIES} queries, seed {SEED}\n")
