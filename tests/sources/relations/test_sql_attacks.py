"""Leaves, expressions and catalogues that tried to break the claim, each on a real engine."""

import random
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import topsecret
from topsecret.errors import InvalidParameter
from topsecret.questions.sql import explain
from topsecret.results.release import Release
from topsecret.sources.relations.open_query import open_query
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.proposal import checked
from topsecret.sources.relations.refusal import QueryRefused
from topsecret.sources.source import CountQuery

VISITS = PrivacyFile.parse('[tables.visits]\nperson = "who"')
END = " ORDER BY n DESC LIMIT 3"
LINKED = PrivacyFile.parse("""
[tables.orders]
person = "who"
[tables.lines]
link = "order_id -> orders.id"
""")
LINES = "SELECT item, COUNT(DISTINCT person) AS n FROM lines GROUP BY item" + END


def on_duckdb(folder: Path, statements: str) -> str:
    path = folder / "attack.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(statements)
    return str(path)


def on_sqlite(folder: Path, statements: str) -> str:
    path = folder / "attack.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(statements)
    connection.commit()
    connection.close()
    return f"sqlite:///{path}"


def on_postgres(url: str, statements: str) -> str:
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(statements.encode())
    return url


def counts(query: str, source: str, file: PrivacyFile = VISITS) -> dict[Any, int]:
    opened, _ = open_query(query, source, privacy=file)
    item: Any = opened.titles[0] if len(opened.titles) == 1 else opened.titles
    return dict(opened.leading_counts(CountQuery(item, opened.person, rows=99)))


def refused(query: str, source: str, file: PrivacyFile = VISITS) -> QueryRefused:
    with pytest.raises(QueryRefused) as caught:
        explain(query, source, privacy=file)
    return caught.value


TWO_SCHEMAS = """
CREATE TABLE visits(who INTEGER, place TEXT); CREATE SCHEMA other;
CREATE TABLE other.visits(who INTEGER, place TEXT, patient INTEGER);
INSERT INTO visits VALUES (1, 'a'); INSERT INTO other.visits VALUES (1, 'b', 2);
"""
PLACES = "SELECT place, COUNT(DISTINCT who) AS n FROM visits GROUP BY place" + END


def test_a_table_of_that_name_in_another_schema_is_another(
    tmp_path: Path, postgres_url: str
) -> None:
    for source in (on_duckdb(tmp_path, TWO_SCHEMAS), on_postgres(postgres_url, TWO_SCHEMAS)):
        assert counts(PLACES, source) == {"a": 1}
        assert refused(PLACES.replace("visits", "other.visits"), source).reason == "unknown-table"
        named = PrivacyFile.parse('[tables."other.visits"]\nperson = "who"')
        assert refused(PLACES, source, named).reason == "unknown-table"
        assert counts(PLACES.replace("visits", "other.visits"), source, named) == {"b": 1}


def test_a_table_of_that_name_in_other_letters_is_another(postgres_url: str) -> None:
    source = on_postgres(
        postgres_url,
        'CREATE TABLE visits(who INTEGER, place TEXT); CREATE TABLE "Visits"(who INTEGER, place '
        "TEXT, patient INTEGER)",
    )
    assert refused(PLACES.replace("visits", '"Visits"'), source).reason == "unknown-table"


def test_one_table_under_two_names_of_the_file(tmp_path: Path) -> None:
    source = on_duckdb(tmp_path, TWO_SCHEMAS)
    file = PrivacyFile.parse(
        '[tables.visits]\nperson = "who"\n[tables."main.visits"]\npublic = true'
    )
    assert "are one table" in str(refused(PLACES, source, file))


def test_a_view_of_another_schema_must_name_its_tables_in_full(tmp_path: Path) -> None:
    source = on_duckdb(
        tmp_path, TWO_SCHEMAS + "CREATE VIEW other.seen AS SELECT who, place FROM visits"
    )
    assert "another schema" in str(refused(PLACES.replace("visits", "other.seen"), source))


def test_persons_and_items_of_other_letters_stay_apart_on_sqlite(tmp_path: Path) -> None:
    source = on_sqlite(
        tmp_path,
        "CREATE TABLE visits(who TEXT COLLATE NOCASE, place TEXT COLLATE NOCASE, ts INTEGER);"
        "INSERT INTO visits VALUES ('p1', 'a', 1), ('P1', 'a', 2), ('p1', 'A', 3), ('q', 'A', 4)",
    )
    assert counts(PLACES, source) == {"a": 2, "A": 2}
    pairs = (
        "SELECT place, COUNT(*) AS n FROM (SELECT DISTINCT who, place FROM visits) t GROUP BY place"
    )
    assert counts(pairs + END, source) == {"a": 2, "A": 2}
    last = (
        "SELECT place, COUNT(*) AS n FROM (SELECT who, place FROM visits GROUP BY who, place) t "
        "GROUP BY place"
    )
    assert counts(last + END, source) == {"a": 2, "A": 2}
    same = (
        "SELECT a.place, COUNT(DISTINCT a.who) AS n FROM visits a JOIN visits b ON a.who = b.who "
        "WHERE a.place = 'A' AND b.ts = 2 GROUP BY a.place"
    )
    assert counts(same + END, source) == {}, "p1 does not meet P1"


def test_keys_of_sqlite_that_are_no_numbers_stay_apart(tmp_path: Path) -> None:
    source = on_sqlite(
        tmp_path,
        "CREATE TABLE orders(id INTEGER UNIQUE, who INTEGER); "
        "CREATE TABLE lines(order_id INTEGER, item TEXT);"
        "INSERT INTO orders VALUES ('x', 1), ('y', 2); INSERT INTO lines VALUES ('x', 'tea')",
    )
    assert counts(LINES, source, LINKED) == {"tea": 1}


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgres"])
def test_a_composite_key_is_not_unique(kind: str, tmp_path: Path, postgres_url: str) -> None:
    statements = (
        "CREATE TABLE orders(id INTEGER, shop INTEGER, who INTEGER, PRIMARY KEY (id, shop)); "
        "CREATE TABLE lines(order_id INTEGER, item TEXT);"
        "INSERT INTO orders VALUES (1, 1, 7), (1, 2, 8); INSERT INTO lines VALUES (1, 'tea')"
    )
    if kind == "postgres":
        source = on_postgres(postgres_url, statements)
    else:
        source = (on_duckdb if kind == "duckdb" else on_sqlite)(tmp_path, statements)
    assert any("not unique" in line for line in checked(source, LINKED))
    assert counts(LINES, source, LINKED) == {"tea": 2}, "the row is of both"
    release = topsecret.sql(LINES, source, privacy=LINKED, epsilon=1)
    assert isinstance(release, Release)
    assert release.assumes == ("a key that is not unique: rows shared with others stay theirs",)


def orders_of(rows: Sequence[Any]) -> Iterator[list[Any]]:
    """The rows in every order that matters: as they are and the other way round."""
    yield list(rows)
    yield list(reversed(rows))


def test_floats_that_are_written_alike_do_not_leave_the_choice_to_the_engine(
    tmp_path: Path,
) -> None:
    # 15 digits make one text of the first two; 0.0 and -0.0 are equal.
    for values in ((0.3, 0.1 + 0.2), (0.0, -0.0)):
        for text, source_of in (
            ("DOUBLE", on_duckdb),
            ("REAL", on_sqlite),
        ):
            seen = set()
            for place, held in enumerate(orders_of(values)):
                rows = ", ".join(f"(1, CAST('{value!r}' AS {text}))" for value in held)
                folder = tmp_path / f"{values}{text}{place}"
                folder.mkdir()
                source = source_of(
                    folder,
                    f"CREATE TABLE visits(who INTEGER, x {text}); INSERT INTO visits VALUES {rows}",
                )
                opened, _ = open_query(
                    "SELECT y, COUNT(DISTINCT who) AS n FROM (SELECT who, x > 0.3 AS y, "
                    "ROW_NUMBER() OVER (PARTITION BY who ORDER BY who) AS r FROM visits) t WHERE "
                    "r = 1 GROUP BY y" + END,
                    source,
                    privacy=VISITS,
                )
                seen.add(str(dict(opened.leading_counts(CountQuery("y", opened.person, rows=9)))))
            assert len(seen) == 1, (text, values)


def test_intervals_that_are_equal_are_two_items(postgres_url: str) -> None:
    source = on_postgres(
        postgres_url,
        "CREATE TABLE visits(who INTEGER, place INTERVAL); INSERT INTO visits VALUES "
        "(1, '1 month'), (1, '30 days'), (2, '30 days')",
    )
    assert counts(PLACES, source) == {"1 mon": 1, "30 days": 2}
    each = (
        "SELECT place, COUNT(*) AS n FROM (SELECT DISTINCT who, place FROM visits) t GROUP BY place"
    )
    assert counts(each + END, source) == {"1 mon": 1, "30 days": 2}


SUMS = (
    "SELECT s, COUNT(DISTINCT who) AS n FROM (SELECT who, SUM({}) AS s FROM visits GROUP BY who) t "
    "GROUP BY s"
)


def test_sums_do_not_overflow(tmp_path: Path) -> None:
    source = on_duckdb(
        tmp_path,
        "CREATE TABLE visits(who INTEGER, d DECIMAL(38, 0), h HUGEINT, b BIGINT); "
        "INSERT INTO visits SELECT 1, 9e37::DECIMAL(38, 0), 17e37::HUGEINT, 9223372036854775807 "
        "FROM range(3)",
    )
    assert refused(SUMS.format("d") + END, source).reason == "unstable"
    assert counts(SUMS.format("h") + END, source) == {}, "too large for the sum: left out"
    assert counts(SUMS.format("b") + END, source) == {3 * 9223372036854775807: 1}


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


def test_sums_do_not_overflow_on_sqlite(tmp_path: Path) -> None:
    source = on_sqlite(
        tmp_path,
        "CREATE TABLE visits(who INTEGER, b INTEGER); INSERT INTO visits VALUES "
        "(1, 9223372036854775807), (1, 9223372036854775807), (1, 'x')",
    )
    assert counts(SUMS.format("b") + END, source) == {2 * (2**31 - 1): 1}


MIXED = "CREATE TABLE visits(who INTEGER, place TEXT); INSERT INTO visits VALUES (1, '1'), (2, 'x')"


def test_text_beside_a_number_fails_on_no_row(tmp_path: Path, postgres_url: str) -> None:
    query = PLACES.replace(" GROUP", " WHERE place = 1 GROUP")
    assert counts(query, on_duckdb(tmp_path, MIXED)) == {"1": 1}
    assert refused(query, on_sqlite(tmp_path, MIXED)).reason == "expression"
    assert refused(query, on_postgres(postgres_url, MIXED)).reason == "expression"


def test_the_owner_is_of_its_own_kind(tmp_path: Path, postgres_url: str) -> None:
    query = PLACES.replace(" GROUP", " WHERE person = place GROUP")
    for source in (on_duckdb(tmp_path, MIXED), on_postgres(postgres_url, MIXED)):
        assert "one kind" in str(refused(query, source))
        assert counts(query.replace("person = place", "person = who"), source) == {"1": 1, "x": 1}


def test_ties_under_a_limit_of_public_rows(tmp_path: Path) -> None:
    file = PrivacyFile.parse('[tables.visits]\nperson = "who"\n[tables.shops]\npublic = true')
    query = (
        "SELECT v.place, COUNT(DISTINCT v.who) AS n FROM visits v WHERE v.place IN (SELECT id FROM "
        "(SELECT city, id FROM shops ORDER BY city LIMIT 2) s) GROUP BY v.place" + END
    )
    shops, seen = [("x", "'a'"), ("x", "'b'"), ("x", "'c'"), ("y", "NULL")], set()
    for seed in range(3):
        chosen = random.Random(seed).sample(shops, 4)
        folder = tmp_path / str(seed)
        folder.mkdir()
        source = on_sqlite(
            folder,
            "CREATE TABLE visits(who INTEGER, place TEXT); CREATE TABLE shops(city TEXT, id TEXT);"
            "INSERT INTO visits VALUES (1, 'a'), (2, 'b'), (3, 'c'); INSERT INTO shops VALUES "
            + ", ".join(f"('{city}', {name})" for city, name in chosen),
        )
        seen.add(str(sorted(counts(query, source, file).items())))
    assert seen == {"[('a', 1), ('b', 1)]"}


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


def test_what_people_have_of_a_public_table_is_not_public(tmp_path: Path) -> None:
    file = PrivacyFile.parse('[tables.visits]\nperson = "who"\n[tables.shops]\npublic = true')
    source = on_duckdb(
        tmp_path,
        "CREATE TABLE visits(who INTEGER, place TEXT); CREATE TABLE shops(id TEXT); "
        "INSERT INTO visits VALUES (1, 'a'); INSERT INTO shops VALUES ('a'), ('b')",
    )
    joined = "FROM visits v JOIN shops s ON s.id = v.place"
    of_shops = f"SELECT s.id, COUNT(DISTINCT v.who) AS n {joined} GROUP BY s.id" + END
    of_visits = (
        f"SELECT t.id, COUNT(DISTINCT t.who) AS n FROM (SELECT v.who, s.id {joined}) t GROUP BY "
        "t.id" + END
    )
    assert open_query(of_shops, source, privacy=file)[1].domain is not None
    assert open_query(of_visits, source, privacy=file)[1].domain is None
    assert refused(of_visits.replace("DESC", "ASC"), source, file).reason == "smallest"


def test_a_file_is_one_table_whatever_it_is_called(tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    events.write_text("who,place\n1,a\n")
    file = PrivacyFile.parse('[tables.ev]\nperson = "who"\n[tables.places]\npublic = true')
    query = (
        "SELECT p.place, COUNT(DISTINCT e.who) AS n FROM ev e JOIN places p ON p.place = e.place "
        "GROUP BY p.place" + END
    )
    with pytest.raises(InvalidParameter, match="one table; this one reads ev, places"):
        open_query(query, events, privacy=file)
    own = "WITH places AS (SELECT place FROM ev) "
    with pytest.raises(InvalidParameter, match=r"one table; this one reads ev, s\.places"):
        open_query(own + query.replace("JOIN places", "JOIN s.places"), events, privacy=file)
    further_in = query.replace(" GROUP", f" AND e.who IN ({own}SELECT e.who FROM ev e) GROUP")
    with pytest.raises(QueryRefused, match="there is no table 'places'"):
        open_query(further_in, events, privacy=file)


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


def test_the_filter_of_a_materialised_view_is_read_not_its_rows(postgres_url: str) -> None:
    source = on_postgres(
        postgres_url,
        TWO_SCHEMAS + "CREATE MATERIALIZED VIEW kept AS SELECT who, place FROM visits; "
        "CREATE MATERIALIZED VIEW cut AS SELECT who, place FROM visits LIMIT 1; "
        "INSERT INTO visits VALUES (2, 'a')",
    )
    assert counts(PLACES.replace("visits", "kept"), source) == {"a": 2}
    assert refused(PLACES.replace("visits", "cut"), source).reason == "limit"
    declared = PrivacyFile.parse('[tables.cut]\nperson = "who"')
    assert "not a table" in str(refused(PLACES.replace("visits", "cut"), source, declared))


def test_functions_and_operators_of_users_do_not_stand_in(postgres_url: str) -> None:
    source = on_postgres(
        postgres_url,
        "CREATE TABLE visits(who INTEGER, place VARCHAR); INSERT INTO visits VALUES (1, 'A'); "
        "CREATE FUNCTION public.lower(varchar) RETURNS text LANGUAGE sql AS 'SELECT ''stolen'''; "
        "CREATE FUNCTION public.differ(varchar, varchar) RETURNS boolean LANGUAGE sql AS "
        "'SELECT false'; CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = varchar, "
        "FUNCTION = public.differ)",
    )
    query = (
        "SELECT LOWER(place) AS x, COUNT(DISTINCT who) AS n FROM visits WHERE place = 'A' "
        "GROUP BY x"
    )
    assert counts(query + END, source) == {"a": 1}


def test_a_foreign_partition_is_refused(postgres_url: str) -> None:
    source = on_postgres(
        postgres_url,
        "CREATE TABLE visits(who INTEGER, place TEXT) PARTITION BY LIST (place); "
        "CREATE TABLE here PARTITION OF visits FOR VALUES IN ('a'); "
        "INSERT INTO visits VALUES (1, 'a')",
    )
    assert counts(PLACES, source) == {"a": 1}
    on_postgres(
        postgres_url,
        "CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER away FOREIGN DATA WRAPPER nothing; "
        "CREATE FOREIGN TABLE there PARTITION OF visits FOR VALUES IN ('b') SERVER away",
    )
    assert "not an ordinary table" in str(refused(PLACES, source))


def test_other_persons_are_found_whatever_their_letters(tmp_path: Path) -> None:
    source = on_duckdb(tmp_path, "CREATE TABLE visits(who INTEGER, Doctor INTEGER)")
    query = "SELECT doctor, COUNT(DISTINCT who) AS n FROM visits GROUP BY doctor" + END
    file = PrivacyFile.parse('[tables.visits]\nperson = "who"\nother_persons = ["DOCTOR"]')
    assert refused(query, source, file).reason == "person-item"
    wrong = PrivacyFile.parse('[tables.visits]\nperson = "who"\nother_persons = ["doktor"]')
    assert "visits.doktor, which does not exist" in str(refused(query, source, wrong))


def test_links_compare_keys_of_one_type(tmp_path: Path) -> None:
    source = on_duckdb(
        tmp_path,
        "CREATE TABLE orders(id DOUBLE, who INTEGER); "
        "CREATE TABLE lines(order_id INTEGER, item TEXT)",
    )
    assert refused(LINES, source, LINKED).reason == "link"


def test_columns_and_views_that_are_not_for_the_query(tmp_path: Path) -> None:
    made = (
        "CREATE TABLE visits(who INTEGER, place TEXT, illness TEXT); INSERT INTO visits VALUES "
        "(1, 'a', 'x'); CREATE TABLE others(who INTEGER, place TEXT); "
        "CREATE VIEW seen AS SELECT who, illness AS place FROM visits"
    )
    only = {"who", "place"}
    for source in (on_duckdb(tmp_path, made), on_sqlite(tmp_path, made)):
        opened, _ = open_query(PLACES, source, privacy=VISITS, only=only)
        assert dict(opened.leading_counts(CountQuery("place", "who", rows=9))) == {"a": 1}
        for query, reason in (
            (PLACES.replace("place", "illness"), "column"),
            (PLACES.replace(" GROUP", " WHERE illness = 'x' GROUP"), "column"),
            (PLACES.replace("visits", "others"), "unknown-table"),
            (PLACES.replace("visits", "seen"), "unknown-table"),
        ):
            with pytest.raises(QueryRefused) as refused:
                open_query(query, source, privacy=VISITS, only=only)
            assert refused.value.reason == reason
