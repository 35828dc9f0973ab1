"""R(D without p) is R(D) without p's rows: on every engine, for random nested queries."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from shop import PEOPLE, PRIVACY, Queries, database, difference, without
from shop_engines import DuckShop, PostgresShop, Shop, SqliteShop, catalogue
from sqlglot import exp

from topsecret.sources.relations import aggregates, conditions, from_clause, select_list, tables
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.ranked_query import read
from topsecret.sources.relations.refusal import QueryRefused

FILE = PrivacyFile.parse(PRIVACY)
SHARE = 8
"""Accepted queries in this suite; ``make soak`` tries many more."""


class Mixing(Queries):
    """Queries whose joins and sub-queries compare anything but the person."""

    def query(self) -> str:
        return self._chance.choice(
            [
                "SELECT a.place, COUNT(DISTINCT a.user_id) n FROM checkins a JOIN checkins b ON "
                "a.ts = b.ts GROUP BY a.place ORDER BY n DESC LIMIT 3",
                "SELECT a.place, COUNT(DISTINCT a.user_id) n FROM checkins a LEFT JOIN messages b "
                "ON a.place = b.topic GROUP BY a.place ORDER BY n DESC LIMIT 3",
                "SELECT l.qty, COUNT(DISTINCT person) n FROM order_lines l WHERE l.order_id IN "
                "(SELECT o.id FROM orders o WHERE o.day = 'mon') GROUP BY l.qty ORDER BY n DESC "
                "LIMIT 3",
            ]
        )


def breaks(
    shop: Shop, unique: bool, seed: int, queries: int, kind: type[Queries] = Queries
) -> Iterator[str]:
    """Queries that break the claim."""
    chance = random.Random(seed)
    known = catalogue(shop.dialect, unique)
    tried = 0
    for _ in range(20 * queries):
        if tried == queries:
            return
        text = kind(chance).query()
        try:
            sql = read(text, FILE, known, "duckdb").rows.sql(shop.dialect)
        except QueryRefused:
            continue
        tried += 1
        for _again in range(2):
            data = database(chance, unique)
            shop.fill(data)
            rows = shop.rows(sql)
            for person in PEOPLE:
                fewer = without(data, person)
                shop.fill({t: chance.sample(held, len(held)) for t, held in fewer.items()})
                if difference(rows, shop.rows(sql), person):
                    yield text
                    break


@pytest.mark.parametrize("unique", [True, False])
def test_one_person_less_on_duckdb(unique: bool) -> None:
    assert list(breaks(DuckShop(unique), unique, 1, SHARE)) == []


@pytest.mark.parametrize("unique", [True, False])
def test_one_person_less_on_sqlite(unique: bool) -> None:
    shop = SqliteShop(unique)
    try:
        assert list(breaks(shop, unique, 2, 2 * SHARE)) == []
    finally:
        shop.close()


@pytest.mark.parametrize("unique", [True, False])
def test_one_person_less_on_postgres(unique: bool, postgres_url: str) -> None:
    shop = PostgresShop(postgres_url, unique)
    try:
        assert list(breaks(shop, unique, 3, SHARE)) == []
    finally:
        shop.close()


NUMBERING = aggregates.numbering


def _no_ties(node: Any, expressions: Any, own: Any, _: Any, dialect: str) -> Any:
    return NUMBERING(node, expressions, own, [], dialect)


def _least_owner(parents: Any, key: Any, own: Any) -> Any:
    shown = [exp.alias_(key, "key", quoted=True), exp.alias_(exp.Min(this=own), "own", quoted=True)]
    return exp.select(*shown).from_(parents).group_by(key.copy())


def _anybody(*_: Any) -> Any:
    return exp.EQ(this=exp.Literal.number(1), expression=exp.Literal.number(1))


WRONG: dict[str, list[tuple[Any, str, Any]]] = {
    "owners not compared in joins": [
        (from_clause, "same_owner", _anybody),
        (from_clause, "_relates", lambda *_: True),
    ],
    "owners not compared in sub-queries": [(conditions, "same_owner", _anybody)],
    "ties left to the engine": [(select_list, "numbering", _no_ties)],
    "one of several owners chosen": [(tables, "owned_keys", _least_owner)],
}


@pytest.mark.parametrize("wrong", list(WRONG))
def test_wrong_variants_are_found(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in WRONG[wrong]:
        monkeypatch.setattr(module, name, value)
    queries = Mixing if wrong.startswith("owners") else Queries
    shop = SqliteShop(False)
    try:
        assert next(breaks(shop, False, 4, 150, queries), None) is not None
    finally:
        shop.close()
