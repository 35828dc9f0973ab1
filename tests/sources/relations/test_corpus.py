"""Queries to accept, with what they ask and what they count, and queries to refuse, with why.

On DuckDB, SQLite and PostgreSQL alike. The right counts are those of the query as it was written,
asked of DuckDB.
"""

import json
import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import duckdb
import psycopg
import pytest
import sqlglot
from sqlglot import exp

from postgres import Server
from topsecret.questions.sql import question_of
from topsecret.sources.engines.sqlite import give_functions
from topsecret.sources.relations.catalogue import Catalogue
from topsecret.sources.relations.open_query import catalogue_of, opened_database
from topsecret.sources.relations.privacy_clause import cut
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.query_source import QuerySource
from topsecret.sources.relations.ranked_query import RankedQuery, read
from topsecret.sources.relations.refusal import QueryRefused
from topsecret.sources.session import Engine

FOLDER = Path(__file__).parent
CORPUS = json.loads((FOLDER / "queries.json").read_text("utf-8"))
OWN = json.loads((FOLDER / "own_queries.json").read_text("utf-8"))
ACCEPTED = [*CORPUS["accepted"], *OWN["accepted"]]
REFUSED = [*CORPUS["refused"], *OWN["refused"]]
FILE = PrivacyFile.parse(CORPUS["privacy_file"])
PLAIN = {
    "siblings": "SELECT s.carrier, COUNT(DISTINCT o.customer_id) FROM shipments s JOIN order_lines "
    "l ON l.order_id = s.order_id JOIN orders o ON o.id = s.order_id WHERE l.qty >= 2 GROUP BY 1",
    # Which of several favourites a person has is left open by the text.
    "favourite": "SELECT place, COUNT(*) FROM (SELECT user_id, place FROM checkins WHERE user_id "
    "IS NOT NULL GROUP BY 1, 2 QUALIFY ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY COUNT(*) "
    "DESC, place NULLS LAST) = 1) GROUP BY 1",
    "outer-sort": "SELECT place, COUNT(DISTINCT user_id) FROM checkins GROUP BY 1",
    "having-all": "SELECT place, COUNT(DISTINCT user_id) FROM checkins GROUP BY 1",
    "per-day-subquery": "SELECT day, place, COUNT(DISTINCT user_id) FROM checkins WHERE day IN "
    "('mon', 'tue') GROUP BY 1, 2",
}
"""What counts the same where the text itself cannot be asked, or shows less."""

SAYS = {
    "view-limit": "'v_limit' cannot be read: LIMIT",
    "view-nested-limit": "'v_limit' cannot be read: LIMIT",
    "view-window": "ROW_NUMBER() OVER (PARTITION BY",
    "view-sample": "TABLESAMPLE",
    "sub-limit": "LIMIT in a sub-query",
    "tablesample": "checkins TABLESAMPLE",
    "co-visits": "the join on a.place = b.place mixes people",
    "receiver-join": "the join on m.receiver = r.id mixes people",
    "exists-uncorrelated": "EXISTS(SELECT 1 FROM customers",
    "exists-by-place": "EXISTS(SELECT 1 FROM checkins",
    "item-is-receiver": "receiver names a person",
    "item-hides-person": "LOWER(CAST(user_id AS TEXT)) names a person",
    "wrong-unit": "privacy_unit_column = order_id",
    "count-orders": "COUNT(DISTINCT order_id)",
    "average": "AVG(rating) cannot be ranked by",
    "two-measures": "COUNT(DISTINCT user_id) and COUNT(*)",
    "rows-where": "SELECT place FROM checkins WHERE user_id = 7",
    "total": "COUNT(DISTINCT user_id) without GROUP BY",
    "unknown-table": "'secrets'",
    "information-schema": "'information_schema.tables'",
    "file-name": "'x.csv'",
    "rowid": "rowid",
    "today": "CURRENT_DATE changes from run to run",
    "division": "1 / ts",
    "two-statements": "DROP TABLE checkins",
    "delete": "DELETE FROM checkins",
    "offset": "OFFSET",
    "limit-no-order": "LIMIT without ORDER BY",
    "with-ties": "WITH TIES",
    "rollup": "ROLLUP",
    "recursive": "WITH RECURSIVE",
    "mode": "MODE(place)",
    "except-no-person": "EXCEPT without the person",
    "union-public": "UNION of private and public rows",
    "lateral": "LATERAL",
    "pivot": "PIVOT",
    "having-other": "HAVING: MAX(ts)",
    "shadow-cte": "LIMIT in a sub-query",
    "options-twice": "WITH DIFFERENTIAL_PRIVACY stands twice",
    "left-join-other": "the join on m.receiver = r.id mixes people",
    "union-final": "UNION of counted lists",
    "cross-private": "the join with customers AS c mixes people",
    "bare-column": "place is neither grouped by nor aggregated",
    "rows-frame": "SUM(ts) OVER (PARTITION BY user_id",
    "deep": "the query is nested too deeply",
    "inner-clause": "WITH DIFFERENTIAL_PRIVACY in a sub-query",
    "placeholder": "? has no value",
    "select-into": "INTO is not supported",
    "limit-from-data": "LIMIT (SELECT COUNT(*) FROM checkins)",
    "join-after-counts": "JOIN venues AS v ON v.id = c.place",
    "values-random": "VALUES (RAND())",
    "union-kinds": "two kinds in 'x'",
}
"""The clause that each refusal of the shared corpus must name."""

Counts = dict[tuple[Any, ...], int]
Run = Callable[[str], list[tuple[Any, ...]]]
Shop = tuple[Catalogue, Run]


def rows() -> dict[str, list[tuple[Any, ...]]]:
    """A few persons, ownerless rows, rows that meet nothing, values in two cases, NULLs."""
    chance = random.Random(7)

    def maybe(*values: Any) -> Any:
        return chance.choice(values)

    persons = [*range(1, 9), None]
    orders = [
        (n, maybe(*persons), maybe("mon", "tue", "wed"), maybe(5, 10, 20, None), maybe(0.0, -0.0))
        for n in range(1, 25)
    ]
    return {
        "customers": [(n, maybe("FR", "fr", None), maybe(True, False, None)) for n in range(1, 8)],
        "orders": orders,
        "order_lines": [
            (maybe(*range(1, 30), None), maybe(1, 2, 3), maybe(1, 2)) for _ in persons * 5
        ],
        "shipments": [(maybe(*range(1, 30)), maybe("dhl", "ups")) for _ in persons * 2],
        "products": [(1, "A"), (2, "a"), (3, "B"), (3, "B")],
        "venues": [("p1", "A"), ("p2", "B"), ("P1", "A"), ("z", "A")],
        "checkins": [
            (
                maybe(*persons),
                maybe("p1", "P1", "p2", "x", None),
                maybe("mon", "tue", "wed"),
                n,
                1.5,
            )
            for n in chance.sample(range(60), 60)
        ],
        "messages": [(maybe(*persons), maybe(*persons), maybe("p1", "t")) for _ in persons * 2],
    }


def statements(dialect: str) -> Iterator[str]:
    """The corpus's schema in an engine's dialect, and rows of which some break its references."""
    schema = re.sub(r" REFERENCES \w+\(id\)", "", CORPUS["schema"])
    for tree in sqlglot.parse(schema, dialect="duckdb"):
        assert tree is not None
        sampled = any(True for _ in tree.find_all(exp.TableSample)) or "SAMPLE" in tree.sql()
        if not sampled:  # sqlglot takes SQLite's BOOLEAN for INTEGER
            yield tree.sql(dialect).replace("vip INTEGER", "vip BOOLEAN")
        elif dialect != "sqlite":
            yield (
                "CREATE VIEW v_sample AS SELECT * FROM checkins TABLESAMPLE "
                + ("50 PERCENT" if dialect == "duckdb" else "BERNOULLI (50)")
            )
    for table, held in rows().items():
        values = ", ".join(
            "(" + ", ".join(exp.convert(value).sql(dialect) for value in row) + ")" for row in held
        )
        yield f"INSERT INTO {table} VALUES {values}"


@pytest.fixture(scope="module")
def shops(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: Server
) -> Iterator[dict[str, Shop]]:
    folder = tmp_path_factory.mktemp("corpus")
    with duckdb.connect(str(folder / "shop.duckdb")) as made:
        for statement in statements("duckdb"):
            made.execute(statement)
    lite = sqlite3.connect(folder / "shop.sqlite", isolation_level=None)
    give_functions(lite)
    for statement in statements("sqlite"):
        lite.execute(statement)
    name = postgres_server.create_database()
    post = psycopg.connect(postgres_server.conninfo(name), autocommit=True)
    for statement in statements("postgres"):
        post.execute(statement.encode())
    duck = duckdb.connect()
    duck.execute(f"ATTACH '{folder / 'shop.duckdb'}' AS source (READ_ONLY); USE source")
    databases = [
        opened_database(where)
        for where in (
            duck,
            f"sqlite:///{folder / 'shop.sqlite'}",
            postgres_server.url(name),
        )
    ]
    with (
        catalogue_of(databases[0]) as a,
        catalogue_of(databases[1]) as b,
        catalogue_of(databases[2]) as c,
    ):
        yield {
            "duckdb": (a, lambda sql: duck.execute(sql).fetchall()),
            "sqlite": (b, lambda sql: lite.execute(sql).fetchall()),
            "postgres": (c, lambda sql: post.execute(sql.encode()).fetchall()),
        }
    lite.close()
    post.close()
    postgres_server.drop_database(name)


def asked(query: RankedQuery) -> dict[str, Any]:
    """The fields of the question itself, the one that ``top_k`` would ask."""
    source = QuerySource(cast(Engine, None), query, FILE.person)
    given = None if query.epsilon is not None else 1
    question = question_of(source, query, epsilon=given)
    numbers, groups = question.numbers, question.groups
    least = query.at_least if numbers.k != "all" else numbers.at_least
    assert numbers.k == query.k
    assert question.counted.person == source.person
    return {
        "k": numbers.k,
        "counts": question.counts is not None,
        "item": list(question.counted.item_columns),
        "by": None if groups is None else groups.by,
        "groups": [] if groups is None else list(groups.values),
        "domain": question.counted.domain,
        "at_least": least,
        "smallest": question.fingerprint().get("order") == "least",
        "max_items": question.counted.max_items,
        "measure": "persons" if question.counted.measure is None else "rows or a sum",
    }


def counted(query: RankedQuery, run: Run) -> Counts:
    """Persons of each item in the rebuilt rows."""
    held = [exp.column(one.ident, quoted=True) for one in query.items]
    persons = exp.Count(this=exp.Distinct(expressions=[exp.column("own", quoted=True)]))
    rebuilt = query.rows.subquery("rows")
    select = exp.select(*held, persons).from_(rebuilt).group_by(*(one.copy() for one in held))
    return _counts(run(select.sql(query.dialect)))


def expected(case: dict[str, Any], run: Run) -> Counts:
    """Persons of each item by the query as it was written, without its end."""
    text = case.get("plain") or PLAIN.get(case["name"])
    if text is None:
        tree: Any = sqlglot.parse_one(cut(case["query"], case["dialect"])[0], case["dialect"])
        for clause in ("order", "limit", "having", "qualify"):
            tree.set(clause, None)
        text = tree.sql("duckdb")
    return _counts(run(text))


def _counts(found: list[tuple[Any, ...]]) -> Counts:
    return {row[:-1]: row[-1] for row in found if None not in row and row[-1]}


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case["name"])
def test_accepted(case: dict[str, Any], shops: dict[str, Shop]) -> None:
    right = expected(case, shops["duckdb"][1])
    assert right
    for engine, (catalogue, run) in shops.items():
        query = read(case["query"], FILE, catalogue, case["dialect"])
        got = asked(query)
        for name, wanted in case["question"].items():
            if wanted == "…":
                assert got[name] is not None, (engine, name)
            else:
                assert got[name] == (wanted.rstrip("!") if name == "measure" else wanted), engine
        assert counted(query, run) == right, engine
        if query.domain is not None:
            items = {row for row in run(query.domain.sql(query.dialect)) if None not in row}
            assert items >= set(right), engine


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["name"])
def test_refused(case: dict[str, Any], shops: dict[str, Shop]) -> None:
    for engine, (catalogue, _) in shops.items():
        with pytest.raises(QueryRefused) as refused:
            read(case["query"], FILE, catalogue, case["dialect"])
        missing = engine == "sqlite" and case["name"] == "view-sample"  # it knows no samples
        assert refused.value.reason in case["reason"].split("|") or missing, engine
        says = case.get("says") or SAYS[case["name"]]
        assert says in str(refused.value) or missing, engine
        assert len(str(refused.value)) > len(says) + 10, "a sentence, not a code"
