"""R(D without p) is R(D) without p's rows: on every engine, for random nested queries."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from shop import PEOPLE, PRIVACY, Queries, database, difference, without
from shop_engines import DuckShop, PostgresShop, Shop, SqliteShop, catalogue

from topsecret.sources.relations import aggregates, from_clause, relation, tables
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.ranked_query import read
from topsecret.sources.relations.refusal import QueryRefused

FILE = PrivacyFile.parse(PRIVACY)
SHARE = 25
"""Accepted queries in this suite; ``make soak`` tries many more."""


def breaks(shop: Shop, unique: bool, seed: int, queries: int) -> Iterator[str]:
    """Queries that break the claim."""
    chance = random.Random(seed)
    known = catalogue(shop.dialect, unique)
    tried = 0
    while tried < queries:
        text = Queries(chance).query()
        try:
            sql = read(text, FILE, known, "duckdb").rows.sql(shop.dialect)
        except QueryRefused:
            continue
        tried += 1
        for _ in range(2):
            data = database(chance, unique)
            shop.fill(data)
            rows = shop.rows(sql)
            for person in PEOPLE:
                shop.fill(without(data, person))
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


def _no_ties(*arguments: Any) -> Any:
    node, expressions, own, _, dialect = arguments
    return NUMBERING(node, expressions, own, [], dialect)


NUMBERING = aggregates.numbering


def _one_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several owners of a key the least is chosen."""
    original = tables.projected

    def chosen(source: Any, shown: Any, own: Any) -> Any:
        return original(source, shown, own)

    monkeypatch.setattr(tables, "projected", chosen)


@pytest.mark.parametrize("wrong", ["no owner in joins", "no tie-breaks", "no owner in groups"])
def test_wrong_variants_are_found(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlglot import exp

    from topsecret.sources.relations import conditions, select_list

    always: Callable[..., Any] = lambda *_: exp.true()  # noqa: E731
    if wrong == "no owner in joins":
        monkeypatch.setattr(from_clause, "same_owner", always)
        monkeypatch.setattr(conditions, "same_owner", always)
        monkeypatch.setattr(from_clause, "_relates", lambda *_: True)
    elif wrong == "no tie-breaks":
        monkeypatch.setattr(select_list, "numbering", _no_ties)
    else:
        monkeypatch.setattr(relation.RelationColumn, "identity", relation.RelationColumn.at)
        monkeypatch.setattr(select_list, "PERSON", ("somebody",))
        monkeypatch.setattr(select_list, "tag_of", lambda *_: ("somebody",))
    shop = SqliteShop(True)
    try:
        assert next(breaks(shop, True, 4, 600), None) is not None
    finally:
        shop.close()
