"""Links, names and numbers of pasted queries that mean one thing at first and another later."""

from pathlib import Path
from typing import Any

import pytest
from test_sql_attacks import (
    END,
    LINES,
    PLACES,
    VISITS,
    counts,
    on_duckdb,
    on_postgres,
    refused,
)

import topsecret
from topsecret.errors import InvalidParameter
from topsecret.sources.relations.open_query import open_query
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.refusal import QueryRefused


def test_a_link_in_where_holds_to_the_end(tmp_path: Path) -> None:
    """When orders are joined the name means the link's column, in the end a public table's."""
    file = PrivacyFile.parse(
        '[tables.orders]\nperson = "who"\n[tables.lines]\nlink = "order_id -> orders.id"\n'
        "[tables.codes]\npublic = true"
    )
    source = on_duckdb(
        tmp_path,
        "CREATE TABLE orders(id INTEGER, who INTEGER); CREATE TABLE codes(id INTEGER); "
        "CREATE TABLE lines(order_id INTEGER, item TEXT); "
        "INSERT INTO orders VALUES (10, 1), (20, 2), (30, 3); "
        "INSERT INTO lines VALUES (10, 'tea'), (20, 'tea'), (30, 'gun'); "
        "INSERT INTO codes VALUES (10), (20), (30)",
    )
    query = (
        "SELECT l.item, COUNT(DISTINCT o.who) AS n FROM lines l CROSS JOIN orders o "
        'CROSS JOIN (SELECT id AS "ORDER_ID" FROM codes) x WHERE "ORDER_ID" = o.id GROUP BY l.item'
    )
    assert counts(query + END, source, file) == {"tea": 2, "gun": 1}
    twice = query.replace(") x WHERE", ") l WHERE l.")
    assert "two tables of one FROM are called 'l'" in str(refused(twice + END, source, file))


def test_a_link_leads_to_the_column_that_it_names(postgres_url: str) -> None:
    """Of two columns "id" and "ID" one is the person; one person has three keys."""
    source = on_postgres(
        postgres_url,
        'CREATE TABLE people(id INTEGER, "ID" INTEGER); CREATE TABLE lines(who INTEGER, item TEXT);'
        "INSERT INTO people VALUES (1, 7), (1, 8), (1, 9); "
        "INSERT INTO lines VALUES (7, 'tea'), (8, 'tea'), (9, 'tea')",
    )
    file = PrivacyFile.parse(
        '[tables.people]\nperson = "id"\n[tables.lines]\nlink = "who -> people.ID"'
    )
    assert counts(LINES, source, file) == {"tea": 1}


def test_amounts_beyond_64_bits_fail_no_statement(postgres_url: str) -> None:
    """A CAST of PostgreSQL's would: a one-row oracle."""
    source = on_postgres(
        postgres_url,
        "CREATE TABLE visits(who INTEGER, place TEXT, n BIGINT); INSERT INTO visits VALUES "
        "(1, 'a', 9223372036854775807), (1, 'a', 9223372036854775807), (2, 'a', 1)",
    )
    literal = f"CASE WHEN who = 1 THEN {'9' * 20} ELSE n END"
    summed = "(SELECT who, place, SUM(n) AS n FROM visits GROUP BY who, place) t"
    for amount, rows in ((literal, "visits"), ("n", summed)):
        query = f"SELECT place, SUM({amount}) AS n FROM {rows} GROUP BY place" + END
        # One of them adds the bound, the other 1: whatever is drawn, it was drawn.
        answer = topsecret.sql(query, source, privacy=VISITS, epsilon=1, max_per_item=5)
        assert answer.receipt


def test_whole_numbers_are_written_as_such(tmp_path: Path, postgres_url: str) -> None:
    """12, 12.0 and 12.000000 are equal and not one text: which stays would be the order's."""
    query = (
        "SELECT CAST(s AS VARCHAR) AS t, COUNT(DISTINCT who) AS n FROM (SELECT DISTINCT who, "
        "COALESCE({}, 12) AS s FROM visits) r GROUP BY 1"
    )
    table = "CREATE TABLE visits(who INTEGER, ts TIMESTAMP, n INTEGER); INSERT INTO visits VALUES "
    rows = "(1, '2024-05-01 00:00:12', NULL), (1, NULL, NULL), (2, '2024-05-01 00:00:12.5', 7)"
    for source in (on_postgres(postgres_url, table + rows), on_duckdb(tmp_path, table + rows)):
        assert counts(query.format("EXTRACT(SECOND FROM ts)") + END, source) == {"12": 2}
        both = (
            "SELECT CAST(s AS VARCHAR) AS t, COUNT(DISTINCT who) AS n FROM (SELECT who, 12.0 AS s "
            "FROM visits UNION SELECT who, n AS s FROM visits) r GROUP BY 1"
        )
        assert counts(both + END, source) == {"12": 2, "7": 1}


def test_json_lines_tell_persons_of_two_types_apart(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text('{"who": 1, "place": "A"}\n{"who": "1", "place": "B"}\n')
    last = (
        "SELECT place, COUNT(DISTINCT who) AS n FROM (SELECT who, place, ROW_NUMBER() OVER "
        "(PARTITION BY who ORDER BY place) AS r FROM visits) v WHERE r = 1 GROUP BY place" + END
    )
    declared: Any = topsecret.File(path, header=["who", "place"])
    assert counts(last, declared) == {"A": 1, "B": 1}
    other = '[tables.visits]\nperson = "WHO"\n[tables.places]\npublic = true'
    assert counts(last, declared, PrivacyFile.parse(other)) == {"A": 1, "B": 1}
    with pytest.raises(InvalidParameter, match="names its own fields"):
        open_query(last, path, person="who")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT WITH DIFFERENTIAL_PRIVACY",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=abc) " + PLACES.removeprefix("SELECT "),
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, max_groups_contributed=²) "
        + PLACES.removeprefix("SELECT "),
        PLACES.replace("GROUP BY place", "GROUP BY 1e999999999"),
        "SELECT place, SUM(n * " + "9" * 38 + ") AS n FROM visits GROUP BY place" + END,
    ],
)
def test_no_text_gets_a_raw_error(tmp_path: Path, query: str) -> None:
    source = on_duckdb(tmp_path, "CREATE TABLE visits(who INTEGER, place TEXT, n INTEGER)")
    with pytest.raises((QueryRefused, InvalidParameter)):
        topsecret.sql(query, source, privacy=VISITS, epsilon=None if "eps" in query else 1)


MANY = "9" * 5000
FIRST = "(SELECT place FROM places ORDER BY place LIMIT 2)"
RANKED = (
    "SELECT day, place, COUNT(DISTINCT who) AS n FROM visits WHERE day IN ('mon') "
    "GROUP BY day, place QUALIFY ROW_NUMBER() OVER (PARTITION BY day ORDER BY n DESC) <= 2"
)


@pytest.mark.parametrize(
    "query",
    [
        PLACES.replace("LIMIT 3", f"LIMIT {MANY}"),
        PLACES.replace("LIMIT 3", f"FETCH FIRST {MANY} ROWS ONLY"),
        "SELECT COUNT(DISTINCT who) AS n, place FROM visits GROUP BY place"
        + END.replace("BY n", f"BY {MANY}"),
        PLACES.replace("ORDER", f"HAVING n >= {MANY} ORDER"),
        PLACES.replace("ORDER", f"HAVING n > {MANY} ORDER"),
        PLACES.replace("GROUP", f"WHERE place IN {FIRST.replace('2', MANY)} GROUP"),
        PLACES.replace("GROUP", f"WHERE place IN {FIRST.replace('BY place', f'BY {MANY}')} GROUP"),
        RANKED.replace("<= 2", f"<= {MANY}"),
    ],
    ids=["limit", "fetch", "order", "at least", "more than", "public", "public order", "qualify"],
)
def test_a_number_of_5000_digits_is_refused_in_words(tmp_path: Path, query: str) -> None:
    tables = (
        "CREATE TABLE visits(who INTEGER, place TEXT, day TEXT); CREATE TABLE places(place TEXT)"
    )
    source = on_duckdb(tmp_path, tables)
    file = PrivacyFile.parse('[tables.visits]\nperson = "who"\n[tables.places]\npublic = true')
    assert open_query(query.replace(MANY, "1"), source, privacy=file)
    with pytest.raises(QueryRefused, match=r"9… has more than 18 digits; write a smaller number"):
        open_query(query, source, privacy=file)


def test_a_partition_is_not_public(postgres_url: str) -> None:
    source = on_postgres(
        postgres_url,
        "CREATE TABLE visits(who INTEGER, place TEXT) PARTITION BY LIST (place); "
        "CREATE TABLE seen PARTITION OF visits DEFAULT; INSERT INTO visits VALUES (1, 'a')",
    )
    file = PrivacyFile.parse('[tables.visits]\nperson = "who"\n[tables.seen]\npublic = true')
    query = (
        "SELECT s.place, COUNT(DISTINCT v.who) AS n FROM visits v JOIN seen s ON s.place = v.place "
        "GROUP BY s.place" + END
    )
    assert "share no rows" in str(refused(query, source, file))
