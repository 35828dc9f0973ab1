"""Pasted queries answered on real engines, their catalogues read and their tricks refused."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import topsecret
from topsecret.errors import InvalidParameter
from topsecret.questions.sql import explain
from topsecret.results.release import Release
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.proposal import checked, proposed
from topsecret.sources.relations.refusal import QueryRefused

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
SCHEMA = """
CREATE TABLE customers(id INTEGER PRIMARY KEY, country VARCHAR(2));
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id));
CREATE TABLE order_lines(order_id INTEGER REFERENCES orders(id), product_id INTEGER);
CREATE TABLE products(id INTEGER PRIMARY KEY, name VARCHAR(20));
CREATE VIEW bought AS SELECT o.customer_id AS who, l.product_id AS product FROM orders o
  JOIN order_lines l ON l.order_id = o.id WHERE l.product_id IN (1, 2, 3);
CREATE VIEW popular AS SELECT l.product_id AS product, o.customer_id AS who FROM orders o
  JOIN order_lines l ON l.order_id = o.id
  WHERE l.product_id IN (SELECT product_id FROM order_lines GROUP BY product_id HAVING COUNT(*) > 2)
"""
PEOPLE = 300


def rows() -> Iterator[str]:
    """Everybody buys product 1, every second person product 2, every third product 3."""
    yield "INSERT INTO customers VALUES " + ", ".join(f"({n}, 'FR')" for n in range(PEOPLE))
    yield "INSERT INTO orders VALUES " + ", ".join(f"({n}, {n})" for n in range(PEOPLE))
    lines = [f"({n}, {p})" for n in range(PEOPLE) for p in (1, 2, 3) if n % p == 0]
    yield "INSERT INTO order_lines VALUES " + ", ".join(lines)
    yield "INSERT INTO products VALUES (1, 'tea'), (2, 'milk'), (3, 'salt'), (4, 'rice')"


@pytest.fixture
def on_duckdb(tmp_path: Path) -> str:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(SCHEMA)
        for statement in rows():
            connection.execute(statement)
    return str(path)


@pytest.fixture
def on_sqlite(tmp_path: Path) -> str:
    path = tmp_path / "shop.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    for statement in rows():
        connection.execute(statement)
    connection.commit()
    connection.close()
    return f"sqlite:///{path}"


@pytest.fixture
def on_postgres(postgres_url: str) -> str:
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(SCHEMA.encode())
        for statement in rows():
            connection.execute(statement.encode())
    return postgres_url


ENGINES = ["on_duckdb", "on_sqlite", "on_postgres"]
TWO_LINKS = (
    "SELECT l.product_id, COUNT(DISTINCT person) AS n FROM order_lines l GROUP BY l.product_id "
    "ORDER BY n DESC LIMIT 2"
)


def asked(source: Any, query: str, **more: Any) -> Release:
    release = topsecret.sql(query, source, privacy=FILE, epsilon=8, **more)
    assert isinstance(release, Release)
    return release


@pytest.mark.parametrize("engine", ENGINES)
def test_a_person_two_links_away(engine: str, request: pytest.FixtureRequest) -> None:
    release = asked(request.getfixturevalue(engine), TWO_LINKS)
    assert release.items == (1, 2)
    assert release.counts is not None
    assert abs(release.counts[0] - PEOPLE) < 60


@pytest.mark.parametrize("engine", ENGINES)
def test_a_public_table_is_the_domain(engine: str, request: pytest.FixtureRequest) -> None:
    release = asked(
        request.getfixturevalue(engine),
        "SELECT p.name, COUNT(DISTINCT person) AS n FROM order_lines l JOIN products p ON p.id = "
        "l.product_id GROUP BY p.name ORDER BY n DESC LIMIT 2",
    )
    assert release.items == ("tea", "milk")
    assert release.domain == "column name of the table products"


@pytest.mark.parametrize("engine", ENGINES)
def test_views_are_read_and_judged(engine: str, request: pytest.FixtureRequest) -> None:
    source = request.getfixturevalue(engine)
    good = (
        "SELECT product, COUNT(DISTINCT who) n FROM bought GROUP BY product ORDER BY n DESC LIMIT 1"
    )
    assert asked(source, good).items == (1,)
    with pytest.raises(
        QueryRefused, match="the view 'popular' cannot be read: GROUP BY"
    ) as refused:
        asked(source, good.replace("bought", "popular"))
    assert refused.value.reason == "group"


def test_a_file_is_one_table(tmp_path: Path) -> None:
    path = tmp_path / "checkins.csv"
    lines = [f"{user},{place}" for user in range(200) for place in "ab" if user % 3 or place == "a"]
    path.write_text("user,place\n" + "\n".join(lines))
    query = (
        "SELECT place, COUNT(DISTINCT user) n FROM checkins GROUP BY place ORDER BY n DESC LIMIT 1"
    )
    release = topsecret.sql(query, path, person="user", epsilon=4)
    assert isinstance(release, Release)
    assert release.items == ("a",)


def test_groups_come_from_the_query(on_duckdb: str) -> None:
    releases = topsecret.sql(
        "SELECT c.country, l.product_id, COUNT(DISTINCT c.id) n FROM customers c JOIN orders o ON "
        "o.customer_id = c.id JOIN order_lines l ON l.order_id = o.id WHERE c.country IN ('FR', "
        "'DE') GROUP BY c.country, l.product_id QUALIFY ROW_NUMBER() OVER (PARTITION BY c.country "
        "ORDER BY COUNT(DISTINCT c.id) DESC) <= 1",
        on_duckdb,
        privacy=FILE,
        epsilon=8,
    )
    assert isinstance(releases, topsecret.results.group_releases.Releases)
    assert releases["FR"].items == (1,)
    assert releases["DE"].items == ()


def test_a_stored_answer_is_free(on_duckdb: str, tmp_path: Path) -> None:
    from topsecret.ledger import Flexible, Ledger

    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.open_budget("shop", Flexible.of(epsilon=20, delta=1e-5), person="customers.id")
    first = asked(on_duckdb, TWO_LINKS, ledger=ledger, dataset="shop")
    spelled = TWO_LINKS.replace("order_lines l", "order_lines AS Lines").replace("l.p", "Lines.p")
    assert asked(on_duckdb, spelled, ledger=ledger, dataset="shop").items == first.items
    assert [entry.event for entry in ledger.history("shop")].count("reserved") == 1
    ledger.close()


def test_explain_reads_no_row(on_duckdb: str) -> None:
    told = explain(TWO_LINKS, on_duckdb, privacy=FILE)
    assert (told["k"], told["counts"], told["items"]) == (2, True, ["product_id"])
    assert "own" in str(told["rows"])


def test_the_privacy_clause_sets_the_budget(on_duckdb: str) -> None:
    query = TWO_LINKS.replace(
        "SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=8, max_groups_contributed=2)"
    )
    release = topsecret.sql(query, on_duckdb, privacy=FILE, dialect="bigquery")
    assert isinstance(release, Release)
    assert release.unit.max_items == 2
    with pytest.raises(InvalidParameter, match="epsilon is given twice"):
        topsecret.sql(query, on_duckdb, privacy=FILE, dialect="bigquery", epsilon=1)


ROWS = (
    "SELECT l.product_id, COUNT(*) AS n FROM orders o JOIN order_lines l ON l.order_id = o.id "
    "GROUP BY l.product_id ORDER BY n DESC LIMIT 1"
)


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_are_counted_within_a_bound(engine: str, request: pytest.FixtureRequest) -> None:
    source = request.getfixturevalue(engine)
    release = asked(source, ROWS, max_per_item=2)
    assert release.items == (1,)
    assert release.counts is None
    assert "rows" in release.title
    with pytest.raises(QueryRefused, match="pass max_per_item"):
        asked(source, ROWS)


def test_the_bound_of_rows_is_one_persons(on_duckdb: str) -> None:
    from topsecret.sources.measures import measure_of
    from topsecret.sources.relations.open_query import open_query
    from topsecret.sources.source import CountQuery

    run(on_duckdb, "INSERT INTO order_lines SELECT 7, 3 FROM range(1000)")
    source, _ = open_query(ROWS, on_duckdb, privacy=FILE, bounded=True)
    query = CountQuery("product_id", source.person, rows=9, measure=measure_of("rows", 2))
    assert dict(source.leading_counts(query)) == {1: 300, 2: 150, 3: 102}


def test_a_bound_is_for_rows_alone(on_duckdb: str) -> None:
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=8, max_rows_per_item=2)"
    bounded = ROWS.replace("SELECT", clause)
    release = topsecret.sql(bounded, on_duckdb, privacy=FILE, dialect="bigquery")
    assert isinstance(release, Release)
    assert release.items == (1,)
    with pytest.raises(QueryRefused, match="does not bound COUNT"):
        topsecret.sql(
            TWO_LINKS.replace("SELECT", clause), on_duckdb, privacy=FILE, dialect="bigquery"
        )
    with pytest.raises(InvalidParameter, match="max_per_item is given twice"):
        topsecret.sql(bounded, on_duckdb, privacy=FILE, dialect="bigquery", max_per_item=2)
    with pytest.raises(InvalidParameter, match="a person counts once"):
        asked(on_duckdb, TWO_LINKS, max_per_item=2)
    with pytest.raises(QueryRefused, match="leave it out beside COUNT"):
        asked(on_duckdb, ROWS.replace("ORDER", "HAVING COUNT(*) >= 5 ORDER"), max_per_item=2)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_is_proposed_from_foreign_keys(engine: str, request: pytest.FixtureRequest) -> None:
    source = request.getfixturevalue(engine)
    file = PrivacyFile.parse(proposed(source, "customers.id"))
    assert {name: file.tables[name] for name in ("customers", "orders", "order_lines")} == {
        name: FILE.tables[name] for name in ("customers", "orders", "order_lines")
    }
    assert len(list(checked(source, FILE))) == 4


# -- tricks


def run(source: str, statement: str) -> None:
    with duckdb.connect(source) as connection:
        connection.execute(statement)


def test_a_function_that_shadows_the_engines_own_is_refused(on_duckdb: str) -> None:
    run(on_duckdb, "CREATE MACRO lower(x) AS 'a'")
    with pytest.raises(QueryRefused, match="functions that have the names of DuckDB's own"):
        asked(on_duckdb, TWO_LINKS)


def postgres(url: str, statement: str) -> None:
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(statement.encode())


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("ALTER TABLE order_lines ENABLE ROW LEVEL SECURITY", "row-level security"),
        ("CREATE TABLE more() INHERITS (order_lines)", "inherit from it"),
    ],
)
def test_tables_of_postgres_that_are_more_than_tables(
    statement: str, why: str, on_postgres: str
) -> None:
    postgres(on_postgres, statement)
    with pytest.raises(QueryRefused, match=why):
        asked(on_postgres, TWO_LINKS)


def test_a_partial_index_makes_no_key(on_postgres: str) -> None:
    postgres(
        on_postgres,
        "ALTER TABLE order_lines DROP CONSTRAINT order_lines_order_id_fkey; "
        "ALTER TABLE orders DROP CONSTRAINT orders_pkey; "
        "CREATE UNIQUE INDEX one ON orders(id) WHERE id > 5",
    )
    assert any("not unique" in line for line in checked(on_postgres, FILE))


REFUSED: dict[str, tuple[str, str]] = {
    "quoted name in EXTRACT": (
        'SELECT EXTRACT("x; DROP TABLE orders" FROM o.id) AS y, COUNT(DISTINCT person) n FROM '
        "orders o GROUP BY y ORDER BY n DESC LIMIT 1",
        "expression|syntax",
    ),
    "sum of fractions": (
        "SELECT s, COUNT(DISTINCT id) n FROM (SELECT id, SUM(CAST(country AS DOUBLE)) AS s FROM "
        "customers GROUP BY id) t GROUP BY s ORDER BY n DESC LIMIT 1",
        "unstable",
    ),
    "random": (
        "SELECT country, COUNT(DISTINCT id) n FROM customers WHERE random() < 0.5 GROUP BY country "
        "ORDER BY n DESC LIMIT 1",
        "clock|expression",
    ),
    "person behind a LEFT JOIN": (
        "SELECT x, COUNT(DISTINCT who) n FROM (SELECT o.customer_id AS who, c.id AS x FROM orders "
        "o LEFT JOIN customers c ON c.id = o.customer_id) t GROUP BY x ORDER BY n DESC LIMIT 1",
        "person-item",
    ),
    "person on one side of a UNION": (
        "SELECT x, COUNT(DISTINCT who) n FROM (SELECT customer_id AS who, id AS x FROM orders "
        "UNION ALL SELECT id, id FROM customers) t GROUP BY x ORDER BY n DESC LIMIT 1",
        "person-item",
    ),
    "two columns of one table as the person": (
        "SELECT x, COUNT(DISTINCT who) n FROM (SELECT customer_id AS who, 'x' AS x FROM orders "
        "UNION ALL SELECT id, 'x' FROM orders) t GROUP BY x ORDER BY n DESC LIMIT 1",
        "not-person",
    ),
    "another schema": (
        "SELECT country, COUNT(DISTINCT id) n FROM other.customers GROUP BY country ORDER BY n "
        "DESC LIMIT 1",
        "unknown-table",
    ),
    "catalogue": (
        "SELECT table_name, COUNT(*) n FROM duckdb_tables() GROUP BY 1 ORDER BY n DESC LIMIT 1",
        "table-function|unknown-table|public",
    ),
    "place in DISTINCT ON": (
        "SELECT country, COUNT(DISTINCT id) n FROM (SELECT DISTINCT ON (1) id, country FROM "
        "customers) t GROUP BY country ORDER BY n DESC LIMIT 1",
        "distinct",
    ),
    "constant key": (
        "SELECT country, COUNT(DISTINCT id) n FROM (SELECT id, country FROM customers GROUP BY id, "
        "country, 'x') t GROUP BY country ORDER BY n DESC LIMIT 1",
        "group",
    ),
    "aggregate over all": (
        "SELECT o.id, COUNT(DISTINCT o.customer_id) n FROM orders o JOIN (SELECT MAX(id) AS m FROM "
        "orders) x ON o.id = x.m GROUP BY o.id ORDER BY n DESC LIMIT 1",
        "group",
    ),
    "scalar sub-query": (
        "SELECT country, COUNT(DISTINCT id) n FROM customers WHERE id = (SELECT MAX(id) FROM "
        "customers) GROUP BY country ORDER BY n DESC LIMIT 1",
        "subquery",
    ),
    "natural join": (
        "SELECT country, COUNT(DISTINCT id) n FROM customers NATURAL JOIN orders GROUP BY country "
        "ORDER BY n DESC LIMIT 1",
        "join",
    ),
    "full join": (
        "SELECT c.country, COUNT(DISTINCT c.id) n FROM customers c FULL JOIN orders o ON "
        "o.customer_id = c.id GROUP BY c.country ORDER BY n DESC LIMIT 1",
        "join",
    ),
    "lag": (
        "SELECT p, COUNT(DISTINCT who) n FROM (SELECT customer_id AS who, LAG(id) OVER (PARTITION "
        "BY customer_id ORDER BY id) AS p FROM orders) t GROUP BY p ORDER BY n DESC LIMIT 1",
        "window",
    ),
    "negated condition inside OR under NOT": (
        "SELECT country, COUNT(DISTINCT id) n FROM customers WHERE NOT (country = 'FR' OR id IN "
        "(SELECT customer_id FROM orders)) GROUP BY country ORDER BY n DESC LIMIT 1",
        "subquery|expression",
    ),
    "case over a sub-query": (
        "SELECT country, COUNT(DISTINCT id) n FROM customers WHERE CASE WHEN EXISTS (SELECT 1 FROM "
        "orders) THEN TRUE ELSE FALSE END GROUP BY country ORDER BY n DESC LIMIT 1",
        "subquery",
    ),
    "public rows chosen by persons": (
        "SELECT o.id, COUNT(DISTINCT o.customer_id) n FROM orders o JOIN (SELECT id FROM products "
        "WHERE id IN (SELECT product_id FROM order_lines)) p ON p.id = o.id GROUP BY o.id ORDER BY "
        "n DESC LIMIT 1",
        "subquery",
    ),
    "values": (
        "SELECT c.country, COUNT(DISTINCT c.id) n FROM customers c JOIN (VALUES (1)) v(x) ON v.x = "
        "c.id GROUP BY c.country ORDER BY n DESC LIMIT 1",
        "values|table-function|from",
    ),
    "limit per person written wrongly": (
        "SELECT id, COUNT(DISTINCT who) n FROM (SELECT customer_id AS who, id, ROW_NUMBER() OVER "
        "(ORDER BY id) AS r FROM orders) t WHERE r <= 3 GROUP BY id ORDER BY n DESC LIMIT 1",
        "window",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_hostile_queries_are_refused(name: str, on_duckdb: str) -> None:
    query, reasons = REFUSED[name]
    with pytest.raises(QueryRefused) as refused:
        explain(query, on_duckdb, privacy=FILE)
    assert refused.value.reason in reasons.split("|")


COUNTED: dict[str, tuple[str, dict[Any, int]]] = {
    "not in with nulls": (
        "SELECT l.product_id, COUNT(DISTINCT person) n FROM order_lines l WHERE l.order_id NOT IN "
        "(SELECT o.id FROM orders o WHERE o.id < 100) GROUP BY l.product_id ORDER BY n DESC "
        "LIMIT 3",
        {1: 200, 2: 100, 3: 66},
    ),
    "persons with two products": (
        "SELECT l.product_id, COUNT(DISTINCT person) n FROM order_lines l JOIN orders o ON o.id = "
        "l.order_id WHERE o.customer_id IN (SELECT p.customer_id FROM orders p JOIN order_lines m "
        "ON m.order_id = p.id GROUP BY p.customer_id HAVING COUNT(*) >= 2) GROUP BY l.product_id "
        "ORDER BY n DESC LIMIT 3",
        {1: 200, 2: 150, 3: 100},
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", list(COUNTED))
def test_rebuilt_rows_mean_what_was_written(
    name: str, engine: str, request: pytest.FixtureRequest
) -> None:
    from topsecret.sources.relations.open_query import open_query
    from topsecret.sources.source import CountQuery

    query, expected = COUNTED[name]
    source, _ = open_query(query, request.getfixturevalue(engine), privacy=FILE)
    counts = source.leading_counts(CountQuery("product_id", source.person, rows=9))
    assert dict(counts) == expected


@pytest.mark.parametrize("options", ["", "WITH DIFFERENTIAL_PRIVACY OPTIONS(delta = 0) "])
def test_a_delta_of_zero_is_not_taken_for_one_left_out(on_duckdb: str, options: str) -> None:
    """It became the default, 1e-6: a weaker guarantee than was asked for."""
    query = f"SELECT {options}product, COUNT(DISTINCT who) AS n FROM bought GROUP BY product"
    beside = {} if options else {"delta": 0}
    with pytest.raises(InvalidParameter, match="delta"):
        topsecret.sql(
            f"{query} ORDER BY n DESC LIMIT 2", on_duckdb, privacy=FILE, epsilon=1, **beside
        )
