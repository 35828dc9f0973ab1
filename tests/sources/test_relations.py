"""Views are analysed: what mixes persons is refused by the clause that mixes, on every engine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlalchemy

from topsecret import Column, top_k
from topsecret.errors import DataIndependentFailure, InvalidParameter, SourceError
from topsecret.sources import CountQuery
from topsecret.sources.engines.duckdb_tables import DatabaseFile, OpenConnection
from topsecret.sources.relations.engine_catalogue import DuckCatalogue
from topsecret.sources.relations.refusal import QueryRefused

QUERY = CountQuery("p", "u", rows=9)
TABLE = [
    "CREATE TABLE ev (u VARCHAR(9), p VARCHAR(9), n INTEGER)",
    "INSERT INTO ev VALUES ('ann', 'tea', 1), ('ann', 'milk', 2), ('bob', 'tea', 3)",
]
ALL = ("duckdb", "sqlite", "postgresql")
SIDES = "UNION takes several columns of one table for the person, so that a row counts for each"
# A definition, the engines that know it, and what the refusal names; empty where it is accepted.
VIEWS: list[tuple[str, tuple[str, ...], str]] = [
    ("SELECT u, p FROM ev", ALL, ""),
    ("SELECT * FROM ev", ALL, ""),
    ("SELECT u, p FROM ev WHERE p <> 'milk' AND n IN (1, 3)", ALL, ""),
    ("SELECT u, lower(p) AS p FROM ev", ALL, ""),
    ("SELECT u, CASE WHEN n > 1 THEN p ELSE 'x' END AS p FROM ev", ALL, ""),
    ("SELECT u, p FROM (SELECT u, p FROM ev WHERE n > 0) AS t", ALL, ""),
    ("WITH c AS (SELECT u, p FROM ev) SELECT u, p FROM c", ALL, ""),
    ("SELECT u, p FROM ev UNION ALL SELECT u, 'x' AS p FROM ev", ALL, ""),
    ("SELECT lower(u) AS u, p FROM ev UNION SELECT (lower(e.u)), 'x' FROM ev AS e", ALL, ""),
    # One row would count for several persons.
    ("SELECT u, p FROM ev UNION ALL SELECT p, u FROM ev", ALL, SIDES),
    ("SELECT u, p FROM ev UNION SELECT upper(u), p FROM ev", ALL, SIDES),
    ("SELECT u, p FROM (SELECT * FROM ev) AS t UNION ALL SELECT p, u FROM ev", ALL, SIDES),
    ("WITH c AS (SELECT p, u FROM ev) SELECT u, p FROM c UNION ALL SELECT p, u FROM c", ALL, SIDES),
    (
        "SELECT lower(u) AS u, p FROM (SELECT u, p FROM ev UNION ALL SELECT p, u FROM ev) AS t",
        ALL,
        SIDES,
    ),
    ("SELECT u, p FROM ev UNION ALL SELECT 'all' AS u, p FROM ev", ("duckdb", "sqlite"), SIDES),
    ("SELECT DISTINCT u, p FROM ev", ALL, ""),
    ("SELECT u, max(p) AS p FROM ev GROUP BY u", ALL, ""),
    ("SELECT u, p, count(*) AS c FROM ev GROUP BY u, p HAVING count(*) > 0", ALL, ""),
    ("SELECT u, p FROM ev ORDER BY n", ALL, ""),
    ("SELECT u, p FROM ev LIMIT 2", ALL, "LIMIT"),
    ("SELECT u, p FROM ev ORDER BY n LIMIT 2 OFFSET 1", ALL, "LIMIT"),
    ("SELECT u, p FROM (SELECT u, p FROM ev LIMIT 2) AS t", ALL, "LIMIT"),
    ("WITH c AS (SELECT u, p FROM ev LIMIT 1) SELECT u, p FROM c", ALL, "LIMIT"),
    ("SELECT max(u) AS u, p FROM ev GROUP BY p", ALL, "GROUP BY"),
    ("SELECT max(u) AS u, max(p) AS p FROM ev", ALL, "MAX("),
    ("SELECT DISTINCT p, 'ann' AS u FROM (SELECT p FROM ev) AS t", ALL, "DISTINCT"),
    ("SELECT u, p FROM ev WHERE n = (SELECT max(n) FROM ev)", ALL, "MAX("),
    ("SELECT u, p FROM ev WHERE EXISTS (SELECT 1 FROM ev AS e WHERE e.n = 3)", ALL, "SELECT 1"),
    ("SELECT u, p FROM ev WHERE u IN (SELECT u FROM ev)", ALL, "SELECT"),
    (
        "SELECT u, CASE WHEN (SELECT count(*) FROM ev) > 2 THEN 'B' ELSE 'A' END AS p FROM ev",
        ALL,
        "COUNT",
    ),
    ("SELECT a.u, b.p FROM ev AS a JOIN ev AS b ON a.p = b.p", ALL, "JOIN"),
    ("SELECT a.u, b.p FROM ev AS a, ev AS b", ALL, "JOIN"),
    ("SELECT u, first_value(p) OVER (ORDER BY n) AS p FROM ev", ALL, "OVER"),
    ("SELECT u, p FROM ev EXCEPT SELECT u, p FROM ev", ALL, "EXCEPT"),
    ("SELECT u, p FROM ev WHERE random() < 0.5", ALL, "RAN"),
    ("SELECT u, p FROM ev WHERE CURRENT_TIMESTAMP > '2020-01-01'", ALL, "CURRENT"),
    ("SELECT u, CAST(p AS INTEGER) AS p FROM ev", ALL, "may fail on one"),
    ("SELECT u, CAST(1 / n AS VARCHAR(9)) AS p FROM ev", ALL, "n"),
    ("SELECT DISTINCT ON (p) u, p FROM ev", ("duckdb", "postgresql"), "DISTINCT ON"),
    ("SELECT u, p FROM ev TABLESAMPLE SYSTEM (50)", ("postgresql",), "TABLESAMPLE"),
    ("SELECT u, p FROM ev USING SAMPLE 50%", ("duckdb",), "SAMPLE"),
    ("SELECT u, p FROM ev QUALIFY row_number() OVER (ORDER BY n) = 1", ("duckdb",), "QUALIFY"),
    ("SELECT u, unnest(['a', p]) AS p FROM ev", ("duckdb",), "EXPLODE"),
    ("SELECT 'u' AS u, 'p' AS p FROM range(3)", ("duckdb",), "(0, 3)"),
    ("SELECT u, p FROM ev GROUP BY u", ("sqlite",), "any row of its group"),
    ("SELECT u, p || '!' AS p FROM ev", ALL, "may make a text that is too long"),
    ("SELECT u, substr(p, 1, 9) || '!' AS p FROM ev", ALL, ""),
    ("SELECT u, p FROM (SELECT u, p, n AS m FROM ev) AS t WHERE m > 1", ALL, ""),
    ("SELECT u, coalesce(p, 'none') AS p FROM ev WHERE nullif(n, 3) >= 1", ALL, ""),
    # DuckDB would make a number, or a truth value, of every row.
    ("SELECT u, p FROM ev WHERE p = 1", ("duckdb",), "(p = 1) may fail on one person's row"),
    ("SELECT u, CASE WHEN p THEN 'a' END AS p FROM ev", ("duckdb",), "not a truth value"),
    ("SELECT u, p FROM (SELECT u, p AS q, p FROM ev) WHERE q IN (1, 2)", ("duckdb",), "may fail"),
    ("SELECT u, CASE WHEN p = 1 THEN 'a' END || 'x' AS p FROM ev", ("duckdb",), "may fail on"),
    ("SELECT u, CAST(p = 1 AS VARCHAR) AS p FROM ev", ("duckdb",), "may fail on one"),
    ("SELECT * REPLACE (CAST(p = 1 AS VARCHAR) AS p) FROM ev", ("duckdb",), "may fail on one"),
    ("SELECT u, count(p = 1)::VARCHAR AS p FROM ev GROUP BY u", ("duckdb",), "may fail on one"),
    ("SELECT u, p FROM ev WHERE TRY_CAST(p AS INTEGER) IS NULL", ("duckdb",), ""),
    ("SELECT * EXCLUDE (n) FROM ev WHERE p LIKE 't%' OR p LIKE 'm%'", ("duckdb",), ""),
    ("SELECT u, string_agg(p, ',') AS p FROM ev GROUP BY u", ("duckdb", "postgresql"), "p"),
]
CASES = [(engine, *case) for case in VIEWS for engine in case[1]]
Make = Callable[[list[str]], Any]


@pytest.mark.parametrize(("engine", "view", "_", "clause"), CASES)
def test_what_a_view_may_be(make: Any, engine: str, view: str, _: Any, clause: str) -> None:
    source = make(engine, [*TABLE, f"CREATE VIEW v AS {view}", "CREATE VIEW w AS SELECT * FROM v"])
    if not clause:
        for name in ("v", "w"):
            assert sum(count for _, count in source(name).leading_counts(QUERY)) > 0
        return
    for name in ("v", "w"):
        with pytest.raises(DataIndependentFailure, match="may mix people: ") as caught:
            source(name).leading_counts(QUERY)
        assert clause in str(caught.value)
        assert "trust_view=True" in str(caught.value)
        assert source(name, trust_view=True).assumes


def test_one_person_more_would_have_turned_all(make: Any) -> None:
    """A view that counts everybody: {A: 1000} became {B: 1001}."""
    view = "SELECT u, CASE WHEN (SELECT count(*) FROM ev) > 1000 THEN 'B' ELSE 'A' END AS p FROM ev"
    rows = "INSERT INTO ev SELECT 'u' || range, 'x', 0 FROM range(997)"
    source = make("duckdb", [*TABLE, rows, f"CREATE VIEW v AS {view}"])
    with pytest.raises(DataIndependentFailure, match="makes a row depend on other rows"):
        source("v").leading_counts(QUERY)
    believed = source("v", trust_view=True)
    assert believed.leading_counts(QUERY) == [("A", 999)]
    release = top_k(believed, item="p", person="u", k=1, epsilon=1)
    assert "declared by trust_view, not checked" in dict(release.receipt)["Assumes"]


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_grouping_by_a_collation_merges_persons(make: Any, engine: str) -> None:
    """Which of Ann and ann is kept depends on whether the other is there."""
    made = [
        "CREATE TABLE ev (u TEXT COLLATE NOCASE, p TEXT)",
        "INSERT INTO ev VALUES ('ann', 'tea'), ('Ann', 'tea')",
        "CREATE VIEW v AS SELECT DISTINCT u, p FROM ev",
        "CREATE VIEW w AS SELECT u, p FROM ev",
    ]
    source = make(engine, made)
    with pytest.raises(DataIndependentFailure, match="values of u for one that are not identical"):
        source("v").leading_counts(QUERY)
    assert source("w").leading_counts(QUERY) == [("tea", 2)]


# Two columns' types, an expression of them, and a value on which the engine fails.
FAILING: list[tuple[str, str, str, str, tuple[str, str]]] = [
    ("postgresql", "INT", "INT", "CAST(-a AS TEXT)", ("-2147483648", "0")),
    ("postgresql", "TEXT", "INT", "substr(a, 1, b)", ("'x'", "-1")),
    ("postgresql", "TEXT", "TEXT", "CASE WHEN a LIKE b THEN a END", ("'pq'", "'p\\'")),
    ("postgresql", "TEXT", "TIMESTAMP", "CAST(date_trunc(a, b) AS TEXT)", ("'x'", "'2024-01-01'")),
    ("postgresql", "TEXT", "TIMESTAMP", "CAST(date_part(a, b) AS TEXT)", ("'x'", "'2024-01-01'")),
    ("postgresql", "INT[]", "INT[]", "CAST(a || b AS TEXT)", ("'{{{1}}}'", "'{1}'")),
    ("sqlite", "TEXT", "TEXT", "CASE WHEN a LIKE b THEN a END", ("'x'", f"'{'x' * 60000}'")),
    ("duckdb", "DECIMAL(38,0)", "INT", "CAST(a > 1.5 AS TEXT)", (f"'{'9' * 38}'", "0")),
    ("duckdb", "DECIMAL(38,0)", "INT", "CAST(a IN (1, 0.25) AS TEXT)", (f"'{'9' * 38}'", "0")),
    ("duckdb", "HUGEINT", "INT", "CAST(a = 1.0 AS TEXT)", (str(2**127 - 1), "0")),
    ("duckdb", "TEXT", "INT", "CASE WHEN a = 'x' THEN CAST(5000 AS TINYINT) END", ("'x'", "0")),
    ("duckdb", "TEXT", "INT", "CASE WHEN a = 'x' THEN CAST('٥' AS INT) END", ("'x'", "0")),
    (
        "duckdb",
        "TEXT",
        "INT",
        "CASE WHEN a = 'x' THEN CAST('2024-W01-1' AS DATE) END",
        ("'x'", "0"),
    ),
    *(
        ("duckdb", "DATE", "INT", f"CAST(date_trunc('{unit}', a) AS TEXT)", (f"'{day}'", "0"))
        for unit, day in (
            ("quarter", "5881580-07-10"),
            ("week", "5877642-06-25 (BC)"),
            ("year", "5877642-06-25 (BC)"),
        )
    ),
]


@pytest.mark.parametrize(("engine", "a", "b", "expression", "row"), FAILING)
def test_no_row_decides_whether_a_view_fails(
    make: Any, engine: str, a: str, b: str, expression: str, row: tuple[str, str]
) -> None:
    """The engine fails on the row, so that the view is refused whether it is there or not."""
    table = [
        "DROP VIEW IF EXISTS v",
        "DROP TABLE IF EXISTS ev",
        f"CREATE TABLE ev (u TEXT, a {a}, b {b})",
        f"CREATE VIEW v AS SELECT u, {expression} AS p FROM ev",
    ]
    for more in ([], [f"INSERT INTO ev VALUES ('ann', {row[0]}, {row[1]})"]):
        source = make(engine, [*table, *more])
        with pytest.raises(DataIndependentFailure, match="may fail on one person's row"):
            source("v").leading_counts(QUERY)
    with pytest.raises(SourceError, match=r"could not|failed"):
        source("v", trust_view=True).leading_counts(QUERY)


@pytest.mark.parametrize(
    ("engine", "kind"),
    [
        *(("postgresql", kind) for kind in ("FLOAT8", "NUMERIC", "INTERVAL", 'TEXT COLLATE "ci"')),
        *(("sqlite", kind) for kind in ("REAL", "NUMERIC", "INTEGER", "TEXT COLLATE NOCASE")),
        *(("duckdb", kind) for kind in ("DOUBLE", "INTERVAL", "TEXT COLLATE NOCASE")),
    ],
)
def test_what_is_made_one_is_identical(make: Any, engine: str, kind: str) -> None:
    """Which of 0.0 and -0.0 stands for both is a matter of the plan, and so of other rows."""
    views = [
        "SELECT DISTINCT u, p FROM ev",
        "SELECT u, p FROM ev GROUP BY u, p",
        "SELECT u, p FROM ev UNION SELECT u, p FROM ev",
        "SELECT u, max(p) AS p FROM ev GROUP BY u",
        "SELECT u, 'x' AS p FROM ev GROUP BY u HAVING count(DISTINCT p) > 1",
    ]
    made = [f"CREATE TABLE ev (u TEXT, p {kind})"]
    if engine == "postgresql":
        made.insert(
            0, "CREATE COLLATION ci (provider = icu, locale = 'und', deterministic = false)"
        )
    made += [f"CREATE VIEW v{place} AS {view}" for place, view in enumerate(views)]
    source = make(
        engine, [*made, "CREATE VIEW w AS SELECT u, p FROM ev UNION ALL SELECT * FROM ev"]
    )
    for place in range(len(views)):
        with pytest.raises(DataIndependentFailure, match="for one that are not identical"):
            source(f"v{place}").leading_counts(QUERY)
    assert source("w").leading_counts(QUERY) == []


@pytest.mark.parametrize("engine", ALL)
def test_names_are_as_alike_as_the_engine_finds_them(make: Any, engine: str) -> None:
    """``casefold`` takes "straße" for "strasse": the wrong one of them would be judged."""
    one = 'CREATE VIEW "strasse" AS SELECT u, p FROM ev LIMIT 1'
    view = 'CREATE VIEW v AS WITH "straße" AS (SELECT u, p FROM ev) SELECT u, p FROM "strasse"'
    with pytest.raises(DataIndependentFailure, match="LIMIT"):
        make(engine, [*TABLE, one, view])("v").leading_counts(QUERY)


def test_a_column_that_is_computed_when_it_is_read_may_fail_on_a_row(make: Any) -> None:
    """SQLite does not look at the rows that are there when it is added, DuckDB at UPDATE."""
    late = [*TABLE, "ALTER TABLE ev ADD COLUMN q TEXT AS (json_extract(p, '$.a'))"]
    source = make("sqlite", late)("ev")
    with pytest.raises(DataIndependentFailure, match="a generated column cannot be"):
        source.leading_counts(CountQuery("q", "u", rows=9))
    made = "CREATE TABLE gen (u TEXT, r TEXT, p INTEGER GENERATED ALWAYS AS (CAST(r AS INTEGER)))"
    changed = ["INSERT INTO gen (u, r) VALUES ('ann', '7')", "UPDATE gen SET r = 'bad'"]
    with pytest.raises(DataIndependentFailure, match="a generated column cannot be"):
        make("duckdb", [made, *changed])("gen").leading_counts(QUERY)
    kept = "CREATE TABLE kept (u TEXT, p TEXT, q TEXT AS (upper(p)) STORED)"
    assert make("sqlite", [kept])("kept").leading_counts(CountQuery("q", "u", rows=9)) is not None


def test_the_person_of_a_view_is_one_column(make: Any) -> None:
    """DuckDB calls the second ``u`` another name: the first is of another person's row."""
    made = [
        "CREATE VIEW v AS SELECT *, p AS u FROM (SELECT p, max(u) AS u FROM ev GROUP BY p)",
        "CREATE VIEW w AS SELECT rowid AS p, u FROM ev",
        "CREATE VIEW x AS SELECT u, p FROM ev ORDER BY 1 // n",
    ]
    source = make("duckdb", [*TABLE, *made])
    for name in ("v", "w", "x"):
        with pytest.raises(DataIndependentFailure, match="may mix people"):
            source(name).leading_counts(QUERY)


def test_what_postgresql_knows_beside_views(make: Any, postgres: sqlalchemy.Engine) -> None:
    source = make(
        "postgresql",
        [
            *TABLE,
            "CREATE MATERIALIZED VIEW m AS SELECT u, p FROM ev",
            "CREATE MATERIALIZED VIEW last AS SELECT u, p FROM ev LIMIT 1",
            "CREATE TABLE secured (u TEXT, p TEXT)",
            "ALTER TABLE secured ENABLE ROW LEVEL SECURITY",
            "CREATE FUNCTION clean(text) RETURNS text AS 'SELECT $1' LANGUAGE sql",
            "CREATE VIEW f AS SELECT u, clean(p) AS p FROM ev",
            "CREATE FUNCTION lower(varchar) RETURNS text AS $$SELECT 'x'$$ LANGUAGE sql",
            "CREATE VIEW small AS SELECT u, lower(p) AS p FROM ev",
            "CREATE TABLE moments (u TEXT, p TEXT, at TIMESTAMPTZ, c FLOAT8, d NUMERIC(9, 2))",
            "CREATE VIEW recent AS SELECT u, p FROM moments WHERE at >= '2024-05-01 00:00:00+00' "
            "AND c > 1.5 AND d < -1 AND p NOT IN ('a', 'b') AND p NOT LIKE 'x%%' ORDER BY at",
            "CREATE TYPE mood AS ENUM ('ok', 'sad')",
            "CREATE DOMAIN feeling AS mood",
            "CREATE FUNCTION said(mood) RETURNS text AS $$SELECT max(u) FROM ev$$ LANGUAGE sql",
            "CREATE CAST (mood AS text) WITH FUNCTION said(mood)",
            "CREATE TABLE felt (u TEXT, p feeling)",
        ],
    )
    assert source("m").leading_counts(QUERY) == [("tea", 2), ("milk", 1)]
    assert source("recent").leading_counts(QUERY) == []
    refusals = {"last": "LIMIT", "secured": "its row security", "f": "CLEAN", "small": "LOWER"}
    refusals["felt"] = "a cast by a function"  # which PostgreSQL finds whatever the search path
    for name, clause in refusals.items():
        with pytest.raises(DataIndependentFailure, match="may mix people") as caught:
            source(name).leading_counts(QUERY)
        assert clause in str(caught.value).upper() or clause in str(caught.value)


@pytest.mark.parametrize("name", ["md5", "MD5"])
def test_a_macro_does_not_stand_in_for_a_function(make: Any, name: str) -> None:
    source = make("duckdb", [*TABLE, f"CREATE MACRO {name}(x) AS (SELECT max(u) FROM ev)"])
    with pytest.raises(DataIndependentFailure, match="function 'md5' in the place of DuckDB's"):
        source("ev").leading_counts(QUERY)


def test_a_macro_in_a_view_is_not_taken_for_a_function_that_it_is_called_like(make: Any) -> None:
    """DuckDB has no nvl; sqlglot reads COALESCE."""
    made = [
        "CREATE MACRO nvl(x, y) AS (SELECT max(u) FROM ev)",
        "CREATE VIEW v AS SELECT u, nvl(p, 'x') AS p FROM ev",
    ]
    with pytest.raises(DataIndependentFailure, match="a macro cannot be looked into"):
        make("duckdb", [*TABLE, *made])("v").leading_counts(QUERY)


def test_a_function_of_python_for_other_types_is_not_taken_for_duckdbs() -> None:
    """It is called for whole numbers as they are written, and may fail on one value."""
    with duckdb.connect() as connection:
        kinds = ["VARCHAR", "INTEGER", "INTEGER"]
        connection.create_function("substr", lambda text, start, length: text, kinds, "VARCHAR")  # type: ignore[arg-type]
        for sql in (*TABLE, "CREATE VIEW v AS SELECT u, substr(p, 1, 1) AS p FROM ev"):
            connection.execute(sql)
        for name in ("v", "ev"):
            with pytest.raises(DataIndependentFailure, match="'substr' in the place of DuckDB's"):
                OpenConnection(connection, name).leading_counts(QUERY)
        with pytest.raises(QueryRefused, match="functions that have the names of DuckDB's own"):
            DuckCatalogue(lambda sql, _: connection.execute(sql).fetchall(), "memory", "main")


def test_a_function_of_python_is_not_taken_for_one_that_it_is_called_like() -> None:
    with duckdb.connect() as connection:
        connection.create_function("nvl", lambda one, other: one, ["VARCHAR"] * 2, "VARCHAR")  # type: ignore[list-item, arg-type]
        for sql in (*TABLE, "CREATE VIEW v AS SELECT u, nvl(p, 'x') AS p FROM ev"):
            connection.execute(sql)
        with pytest.raises(DataIndependentFailure, match="a macro"):
            OpenConnection(connection, "v").leading_counts(QUERY)


def test_a_part_of_a_value_is_not_taken_for_a_column(make: Any) -> None:
    table = "CREATE TABLE ev (u VARCHAR, ev STRUCT(p INTEGER), p VARCHAR, q VARCHAR)"
    view = "CREATE VIEW v AS SELECT u, CAST(ev.ev.p = q AS VARCHAR) AS p FROM ev"
    with pytest.raises(DataIndependentFailure, match="is no column of its table"):
        make("duckdb", [table, view])("v").leading_counts(QUERY)


def test_a_collation_does_not_go_along_with_joined_text(make: Any) -> None:
    view = "CREATE VIEW v AS SELECT DISTINCT (substr(u, 1, 9) COLLATE NOCASE) || '' AS u, p FROM ev"
    with pytest.raises(DataIndependentFailure, match="may take different texts for one"):
        make("sqlite", [*TABLE, view])("v").leading_counts(QUERY)


def test_database_files_have_views_too(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        for sql in [
            *TABLE,
            "CREATE VIEW v AS SELECT u, p FROM ev",
            "CREATE VIEW w AS FROM v LIMIT 1",
        ]:
            connection.execute(sql)
    assert DatabaseFile(path, "v").leading_counts(QUERY) == [("tea", 2), ("milk", 1)]
    with pytest.raises(DataIndependentFailure, match="LIMIT makes a row depend"):
        DatabaseFile(path, "w").leading_counts(QUERY)


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # ibis's own call
def test_ibis_is_analysed(make: Any) -> None:
    ibis = pytest.importorskip("ibis")
    with duckdb.connect() as connection:
        for sql in TABLE:
            connection.execute(sql)
        table = ibis.duckdb.from_connection(connection).table("ev")
        kept = table.filter(table.n > 1).mutate(p=table.p.upper())
        assert OpenConnection.of_ibis(kept).leading_counts(QUERY) == [("MILK", 1), ("TEA", 1)]
        for mixed in (table.limit(2), table.filter(table.n == table.n.max()), table.sample(0.5)):
            with pytest.raises(DataIndependentFailure, match="may mix people"):
                OpenConnection.of_ibis(mixed).leading_counts(QUERY)


@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option:")  # ibis's own setting
def test_memtables_of_ibis_are_refused() -> None:
    """Its conversion quotes the value that does not suit, and happens before anything is paid."""
    ibis = pytest.importorskip("ibis")
    frame = pytest.importorskip("pandas").DataFrame({"u": ["ann"], "p": ["tea"]})
    with pytest.raises(DataIndependentFailure, match="pass the data frame"):
        top_k(ibis.memtable(frame), **ASKED)


ASKED: dict[str, Any] = {"item": "p", "person": "u", "k": 1, "epsilon": 1}


@pytest.mark.parametrize("engine", ALL)
@pytest.mark.parametrize("domain", ["ev", "v"])
def test_a_domain_is_not_made_of_the_events(make: Any, engine: str, domain: str) -> None:
    source = make(
        engine,
        [
            *TABLE,
            "CREATE VIEW v AS SELECT DISTINCT p FROM ev",
            "CREATE TABLE items (p VARCHAR(9))",
            "INSERT INTO items VALUES ('tea'), ('milk')",
        ],
    )
    with pytest.raises(InvalidParameter, match="is made of the events themselves"):
        top_k(source("ev"), domain=Column(domain, "p"), **ASKED)
    assert len(top_k(source("ev"), domain=Column("items", "p"), **ASKED).items) == 1


@pytest.mark.parametrize("read", ["query_table('ev')", "query('FROM ev')", "made()"])
def test_a_domain_of_functions_may_be_made_of_the_events(make: Any, read: str) -> None:
    made = [
        "CREATE MACRO made() AS TABLE SELECT * FROM ev",
        f"CREATE VIEW d AS SELECT DISTINCT p FROM {read}",
    ]
    with pytest.raises(InvalidParameter, match="or may be by functions"):
        top_k(make("duckdb", [*TABLE, *made])("ev"), domain=Column("d", "p"), **ASKED)


@pytest.mark.filterwarnings("ignore:Did not recognize type")  # PostgreSQL's own
@pytest.mark.parametrize("domain", ["part", "whole", "heir", "pg_catalog.pg_class"])
def test_a_domain_is_no_table_that_holds_rows_of_the_events(make: Any, domain: str) -> None:
    source = make(
        "postgresql",
        [
            *TABLE,
            "CREATE TABLE whole (u TEXT, p TEXT) PARTITION BY LIST (p)",
            "CREATE TABLE part PARTITION OF whole DEFAULT",
            "CREATE TABLE heir () INHERITS (ev)",
        ],
    )
    events = {"part": "whole", "whole": "part"}.get(domain, "ev")
    column = "relname" if "pg_" in domain else "p"
    with pytest.raises(InvalidParameter, match="is made of the events themselves"):
        top_k(source(events), domain=Column(domain, column), **ASKED)


@pytest.mark.parametrize("domain", ["sqlite_sequence", "words", "found", "found_data"])
def test_a_domain_is_none_of_sqlites_own_tables(make: Any, domain: str) -> None:
    source = make(
        "sqlite",
        [
            "CREATE TABLE ev (id INTEGER PRIMARY KEY AUTOINCREMENT, u TEXT, p TEXT)",
            "INSERT INTO ev (u, p) VALUES ('ann', 'tea')",
            "CREATE VIRTUAL TABLE found USING fts5(p, content='ev')",
            "CREATE VIRTUAL TABLE words USING fts5vocab(found, row)",
        ],
    )
    column = {"sqlite_sequence": "seq", "words": "term", "found_data": "id"}.get(domain, "p")
    with pytest.raises(InvalidParameter, match="is made of the events themselves"):
        top_k(source("ev"), domain=Column(domain, column), **ASKED)


def test_one_file_of_duckdb_is_not_two_databases(tmp_path: Path) -> None:
    path, link = tmp_path / "e.duckdb", tmp_path / "l.duckdb"
    with duckdb.connect(path) as made:
        made.execute("CREATE TABLE ev (u TEXT, p TEXT)")
    link.symlink_to(path)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS a (READ_ONLY)")
        assert OpenConnection(connection, ("a", "main", "ev")).leading_counts(QUERY) == []
        connection.execute(f"ATTACH '{link}' AS b (READ_ONLY)")
        with pytest.raises(DataIndependentFailure, match="attached under two names"):
            OpenConnection(connection, ("a", "main", "ev")).leading_counts(QUERY)


def test_a_domain_is_not_the_events_file(tmp_path: Path) -> None:
    path = tmp_path / "ev.csv"
    path.write_text("u,p\nann,tea\n", encoding="utf-8")
    (tmp_path / "link.csv").hardlink_to(path)
    for domain in (path, tmp_path / "link.csv", tmp_path / "*.csv"):
        with pytest.raises(InvalidParameter, match="is made of the events themselves"):
            top_k(path, domain=domain, **ASKED)
