"""R(D without p) is R(D) without p's rows: on every engine, for random nested queries."""

from typing import Any

import pytest
from owned_rows_fuzz import FILE, FIRSTS, LINKS, MEMBERS, MIXING, OTHER_KEYS, SUMS, breaks
from shop_engines import DuckShop, PostgresShop, Shop, SqliteShop, catalogue
from sqlglot import exp

from topsecret.sources.relations import aggregates, conditions, from_clause, select_list, tables
from topsecret.sources.relations.ranked_query import read
from topsecret.sources.relations.refusal import QueryRefused
from topsecret.sources.relations.relation import Names, RelationColumn
from topsecret.sources.sql.dialects import as_text
from topsecret.sources.sql.operand_types import Typed
from topsecret.sources.sql.statements import column

SHARE = 6
"""Accepted queries in this suite; ``make soak`` tries many more."""


@pytest.mark.parametrize("unique", [True, False])
def test_one_person_less_on_duckdb(unique: bool) -> None:
    assert list(breaks(DuckShop(unique), unique, 1, SHARE)) == []


@pytest.mark.parametrize("unique", [True, False])
def test_one_person_less_on_sqlite(unique: bool) -> None:
    shop = SqliteShop(unique)
    try:
        assert list(breaks(shop, unique, 2, SHARE)) == []
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
AGGREGATE = aggregates.aggregate


def _no_ties(node: Any, expressions: Any, own: Any, _: Any, dialect: str) -> Any:
    return NUMBERING(node, expressions, own, [], dialect)


def _least_owner(parents: Any, key: Any, own: Any) -> Any:
    shown = [exp.alias_(key, "key", quoted=True), exp.alias_(exp.Min(this=own), "own", quoted=True)]
    return exp.select(*shown).from_(parents).group_by(key.copy())


def _single_owner(parents: Any, key: Any, own: Any) -> Any:
    one = exp.EQ(
        this=exp.Count(this=exp.Distinct(expressions=[own.copy()])),
        expression=exp.Literal.number(1),
    )
    return _least_owner(parents, key, own).having(one)


def _anybody(*_: Any) -> Any:
    return exp.EQ(this=exp.Literal.number(1), expression=exp.Literal.number(1))


def _any_sum(node: Any, expressions: Any, dialect: str) -> Any:
    if isinstance(node, exp.Sum):
        return Typed(exp.Sum(this=expressions.typed(node.this).node), "float")
    return AGGREGATE(node, expressions, dialect)


def _as_written(held: RelationColumn, alias: str, dialect: str) -> Any:
    return as_text(column(held.ident, alias), dialect)


WRONG: dict[str, tuple[str, list[tuple[Any, str, Any]]]] = {
    "owners not compared in joins": (
        MIXING,
        [(from_clause, "same_owner", _anybody), (from_clause, "_relates", lambda *_: True)],
    ),
    "owners not compared in sub-queries": (MEMBERS, [(conditions, "same_owner", _anybody)]),
    "an alias that captures the owner": (MEMBERS, [(Names, "alias", lambda _: "t1")]),
    "ties left to the engine": (FIRSTS, [(select_list, "numbering", _no_ties)]),
    "ties broken by fifteen digits": (FIRSTS, [(RelationColumn, "identity", _as_written)]),
    "a join taken for the link": (
        OTHER_KEYS,
        [(from_clause, "_by_link", lambda child, *_: child.relation.linked is not None)],
    ),
    "one of several owners chosen": (LINKS, [(tables, "owned_keys", _least_owner)]),
    "rows of several owners dropped": (LINKS, [(tables, "owned_keys", _single_owner)]),
    "sums of fractions": (SUMS, [(select_list, "aggregate", _any_sum)]),
}


@pytest.mark.parametrize("wrong", list(WRONG))
def test_wrong_variants_are_found(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query, changes = WRONG[wrong]
    # SQLite's statements have no nested names: an alias cannot capture there.
    nested = any(word in wrong for word in ("alias", "sums", "link"))
    shop: Shop = DuckShop(False) if nested else SqliteShop(False)
    try:
        if query not in (MIXING, OTHER_KEYS, SUMS):  # these are refused
            assert list(breaks(shop, False, 4, 10, query)) == []
        for module, name, value in changes:
            monkeypatch.setattr(module, name, value)
        assert next(breaks(shop, False, 4, 40, query), None) is not None
    finally:
        shop.close()


def test_public_rows_are_numbered_and_never_cut_by_the_engine() -> None:
    """DuckDB 2.0 finds no first row in a table whose older rows were deleted (seed 647625506)."""
    query = (
        "SELECT place, COUNT(DISTINCT user_id) AS n FROM checkins WHERE place IN (SELECT id FROM "
        "(SELECT city, id FROM venues ORDER BY city LIMIT 1) v) GROUP BY place ORDER BY n DESC "
        "LIMIT 3"
    )
    asked = read(query, FILE, catalogue("duckdb", unique=True), "duckdb", bounded=True)
    assert asked.rows.find(exp.RowNumber) is not None
    assert asked.rows.find(exp.Limit) is None


def test_public_rows_are_sorted_by_the_column_that_was_meant() -> None:
    """Not by another one that was given its name in the list."""
    query = (
        "SELECT place, COUNT(DISTINCT user_id) AS n FROM checkins WHERE place IN (SELECT city FROM "
        "(SELECT a.id AS city, a.city AS z FROM venues a ORDER BY a.city LIMIT 1) v) GROUP BY "
        "place ORDER BY n DESC LIMIT 3"
    )
    known = catalogue("duckdb", unique=True)
    asked = read(query, FILE, known, "duckdb", bounded=True)
    window = asked.rows.find(exp.Window)
    assert window is not None
    assert window.args["order"].expressions[0].find(exp.Column).name == "c2"
    with pytest.raises(QueryRefused, match="put it into the list"):
        read(query.replace("a.city AS z", "1 AS z"), FILE, known, "duckdb", bounded=True)
