"""Whatever a filter or an item's expression is: it is refused, or no row can make it fail."""

import contextlib
import datetime
import os
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlalchemy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postgres import Server
from topsecret.errors import InvalidParameter
from topsecret.sources import CountQuery, Expression
from topsecret.sources.engines.duckdb_tables import OpenConnection
from topsecret.sources.engines.sqlalchemy import SqlSource

# A column's name, its kind in the grammar, its type and values that engines have trouble with.
TEXTS = [
    *("''", "'5'", "'abc'", "'1e999'", "'a\\'", "'%'", "'true'", "'2020-02-30'", "'İß😀'", "' '"),
    *("'infinity'", "'5881580-07-11'", "'290309-12-21 (BC)'", "'99999999999-01-01'", "'nan'"),
    *("'9223372036854775808'", "'-0'", "'2020-01-01 25:00'", "'2020-01-01 10:00+99'", "'‮﻿'"),
]
DATES = ["'2020-01-01'", "'infinity'", "'-infinity'", "'9999-12-31'", "'0001-01-01'"]
FLOATS = ["0", "'nan'", "'inf'", "'-inf'", "1e300", "-1e-300", "0.1"]
BIG, BIGGER = 2**63 - 1, 2**127 - 1
COMMON: list[tuple[str, str, str, list[str]]] = [
    ("t", "text", "TEXT", TEXTS),
    ("t2", "text", "TEXT", TEXTS[::-1]),
    ("n", "integer", "BIGINT", ["0", str(BIG), str(-BIG - 1), "-1", "5"]),
    ("i", "integer", "SMALLINT", ["0", "32767", "-32768"]),
    ("b", "boolean", "BOOLEAN", ["TRUE", "FALSE"]),
]
DUCKDB = [
    *COMMON,
    ("u", "integer", "UBIGINT", ["0", str(2**64 - 1)]),
    ("h", "integer", "HUGEINT", ["0", str(BIGGER), str(-BIGGER - 1)]),
    ("uh", "integer", "UHUGEINT", ["0", str(2**128 - 1)]),
    ("f", "float", "DOUBLE", FLOATS),
    ("f4", "float", "FLOAT", ["0", "'nan'", "'inf'", "3e38"]),
    ("dc", "float", "DECIMAL(38,0)", ["0", "9" * 38, "-" + "9" * 38]),
    ("d2", "float", "DECIMAL(38,37)", ["0", "9." + "9" * 37]),
    ("d", "date", "DATE", [*DATES, "'5877642-06-25 (BC)'", "'5881580-07-10'"]),
    ("s", "time", "TIMESTAMP", [*DATES, "'290309-12-22 (BC)'", "'294247-01-10 04:00:54.775806'"]),
    ("z", "time", "TIMESTAMPTZ", [*DATES, "'290309-12-22 (BC)'", "'294247-01-10 04:00:54+00'"]),
    ("ns", "time", "TIMESTAMP_NS", ["'2020-01-01'", "'1677-09-22'", "'2262-04-11'", "'infinity'"]),
    ("ms", "time", "TIMESTAMP_MS", DATES),
    ("ss", "time", "TIMESTAMP_S", DATES),
    ("e", "text", "ENUM('1', 'x', '')", ["'1'", "'x'", "''"]),
    ("j", "text", "JSON", ["'1'", "'\"x\"'", "'{}'"]),
    ("bl", "text", "BLOB", ["'a'::BLOB", "'\\xFF'::BLOB"]),
    ("l", "text", "INTEGER[]", ["[1]", "[]"]),
    ("iv", "text", "INTERVAL", ["INTERVAL 1 DAY"]),
    ("tm", "text", "TIME", ["'23:59:59'"]),
]
POSTGRES = [
    *COMMON,
    ("i4", "integer", "INTEGER", ["0", "2147483647", "-2147483648"]),
    ("f", "float", "FLOAT8", FLOATS),
    ("f4", "float", "REAL", ["0", "'nan'", "'inf'", "3e38"]),
    ("dc", "decimal", "NUMERIC", ["0", "'nan'", "'infinity'", "1e400", "1e-400", "9.99"]),
    ("d", "date", "DATE", [*DATES, "'4713-01-01 BC'", "'5874897-12-31'"]),
    ("s", "time", "TIMESTAMP", [*DATES, "'4713-11-24 BC'", "'294276-12-31 23:59:59'"]),
    ("z", "time", "TIMESTAMPTZ", [*DATES, "'4713-11-25 BC'", "'294276-12-31 00:00:00+00'"]),
    ("j", "text", "JSONB", ["'1'", "'\"x\"'", "'{}'"]),
    ("bl", "text", "BYTEA", ["'a'", "'\\xff'"]),
    ("l", "text", "INTEGER[]", ["'{1}'", "'{}'"]),
    ("iv", "text", "INTERVAL", ["'1 day'"]),
    ("tm", "text", "TIME", ["'23:59:59'"]),
    ("ch", "text", "CHAR(3)", ["'a'", "''"]),
]
# SQLite keeps whatever was written, in a column of any type.
ANYTHING = [*TEXTS, "1e300", "-1", str(BIG), "9e999", "x'ff00'"]
SQLITE = [
    *((name, kind, type_, ANYTHING) for name, kind, type_, _ in COMMON),
    ("f", "float", "REAL", ANYTHING),
    ("dc", "decimal", "NUMERIC", ANYTHING),
    ("d", "date", "DATE", ANYTHING),
    ("s", "time", "DATETIME", ANYTHING),
]
LITERALS = {
    "text": ["'a'", "'5'", "''", "'2020-01-01'", "NULL"],
    "integer": ["5", "-1", "0", "99999999999999999999", str(BIG), "NULL"],
    "float": ["0.5", "-1e-20", "1e300", "5", "1e-25"],
    "decimal": ["0.5", "-1", "1e-25", "99999999999999999999.5"],
    "boolean": ["TRUE", "FALSE", "NULL"],
    "date": ["DATE '2020-01-01'", "'2020-01-01'"],
    "time": ["TIMESTAMP '2020-01-01 10:00:00'", "'2020-01-01'", "DATE '2020-01-01'"],
}
KINDS = list(LITERALS)
# Holes are <kind>; <same> stands for one kind, drawn once for all of a template.
TEMPLATES = {
    "boolean": [
        *("<same> = <same>", "<same> < <same>", "<same> <> <same>", "<same> >= <same>"),
        *("<same> IN (<same>, <same>)", "<same> BETWEEN <same> AND <same>", "<any> IS NULL"),
        *("<same> NOT IN (<same>)", "NOT <boolean>", "(<boolean> AND <boolean>)"),
        *("(<boolean> OR <boolean>)", "<boolean> IS TRUE", "<boolean> IS NOT FALSE"),
        *("<text> LIKE 'a%'", "<text> NOT LIKE '_'", "<text> LIKE 'a\\'", "<text> LIKE <text>"),
        *("<text> = 5", "<text> IN (0.5, 1)", "<text> BETWEEN -1 AND 1e300", "<date> < <time>"),
        *("<float> > <integer>", "<decimal> = <integer>"),
    ],
    "text": [
        *("LOWER(<text>)", "UPPER(<text>)", "TRIM(<text>)", "SUBSTRING(<text>, 2, 3)"),
        *("TRIM(BOTH 'a' FROM <text>)", "SUBSTRING(<text>, <integer>)", "SUBSTRING(<text>, 0)"),
        "CAST(<any> AS TEXT)",
    ],
    "integer": [
        *("LENGTH(<text>)", "EXTRACT(YEAR FROM <date>)", "EXTRACT(WEEK FROM <time>)"),
        *("EXTRACT(HOUR FROM <time>)", "EXTRACT(HOUR FROM <date>)", "YEAR(<date>)", "-<integer>"),
        *("QUARTER(<time>)", "WEEK(<date>)", "DAYOFWEEK(<date>)", "DAYOFYEAR(<time>)"),
        *("CAST(<any> AS INT)", "CAST(<any> AS BIGINT)"),
    ],
    "float": ["CAST(<any> AS DOUBLE)", "-<float>"],
    "decimal": [],
    "date": ["CAST(<any> AS DATE)"],
    "time": [
        *("CAST(<any> AS TIMESTAMP)", "DATE_TRUNC('month', <date>)", "DATE_TRUNC('week', <time>)"),
        *("DATE_TRUNC('year', <time>)", "DATE_TRUNC('hour', <time>)"),
    ],
}
ALWAYS = ["(<this>)", "COALESCE(<this>, <this>)", "CASE WHEN <boolean> THEN <this> END"]
MORE = ["CASE <same> WHEN <same> THEN <this> ELSE <this> END", "IF(<boolean>, <this>, <this>)"]


@st.composite
def expressions(draw: st.DrawFn, table: Any, kind: str, depth: int = 3) -> str:
    if draw(st.integers(0, 30)) == 0:
        kind = draw(st.sampled_from(KINDS))  # a part of the wrong kind
    columns = [name for name, of, _, _ in table if of == kind]
    if not depth or draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from([*columns, *columns, *LITERALS[kind]]))
    template = draw(st.sampled_from([*TEMPLATES[kind], *TEMPLATES[kind], *ALWAYS, *MORE]))
    same = draw(st.sampled_from(KINDS))
    while "<" in template.replace(" < ", "").replace(" <> ", ""):
        start = next(i for i, c in enumerate(template) if c == "<" and template[i + 1].isalpha())
        hole = template[start + 1 : template.index(">", start)]
        wanted = {"same": same, "this": kind}.get(hole, hole)
        if wanted == "any":
            wanted = draw(st.sampled_from(KINDS))
        # Marked, so that a "<" of what is put in is not taken for a hole.
        part = draw(expressions(table, wanted, depth - 1)).replace("<", "\x01")
        template = template[:start] + part + template[start + len(hole) + 2 :]
    return template.replace("\x01", "<")


VALUES = st.one_of(
    st.sampled_from([0, -1, 2**63, -(2**63), 10**25, 10**60, True]),
    st.sampled_from([0.5, 1e-20, 1e-25, -1e300, 5e-324, 1.0]),
    st.sampled_from([Decimal("0.1"), Decimal("1e-500"), Decimal(7)]),
    st.sampled_from(["", "1", "x", "a\\", "2020-01-01", "😀"]),
    st.sampled_from([datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 10)]),
)
EXAMPLES = int(os.environ.get("EXAMPLES", "25"))
OPERATORS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])


@st.composite
def conditions(draw: st.DrawFn, table: Any) -> tuple[str, str, Any]:
    column = draw(st.sampled_from([name for name, *_ in table]))
    if draw(st.booleans()):
        return column, draw(OPERATORS), draw(VALUES)
    values = draw(st.lists(VALUES, min_size=1, max_size=2))
    return column, draw(st.sampled_from(["in", "not in"])), values


def rows(table: Sequence[tuple[str, str, str, list[str]]], number: int = 70) -> Iterator[str]:
    """Every value of every column, in changing company."""
    columns = [list(islice(cycle([*values, "NULL"]), number)) for *_, values in table]
    for place in range(number):
        yield ", ".join([f"'p{place}'", *(column[place] for column in columns)])


def statements(table: Any) -> Iterator[str]:
    columns = ", ".join(["who TEXT", *(f"{name} {type_}" for name, _, type_, _ in table)])
    for name in ("empty", "hostile"):
        yield f"CREATE TABLE {name} ({columns})"
    for row in rows(table):
        yield f"INSERT INTO hostile VALUES ({row})"


def never_fails(sources: Sequence[Any], query: CountQuery) -> bool:
    """It is refused, whatever the rows, or it answers; True if it answers."""
    outcomes = []
    for source in sources:
        try:
            source.leading_counts(query)
            outcomes.append(True)
        except InvalidParameter:
            outcomes.append(False)
    assert len(set(outcomes)) == 1
    return outcomes[0]


def check(table: Any, sources: Sequence[Any], examples: int) -> None:
    answered = []

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        which = data.draw(st.sampled_from(["condition", "expression", "expression", "item"]))
        item: Any = "t"
        where: Any = ()
        if which == "condition":
            where = [data.draw(conditions(table))]
        elif which == "expression":
            where = data.draw(expressions(table, "boolean"))
        else:
            item = data.draw(st.sampled_from(KINDS).flatmap(lambda kind: expressions(table, kind)))
            with contextlib.suppress(InvalidParameter):
                item = Expression(item)
        with contextlib.suppress(InvalidParameter):
            if which == "item" and not isinstance(item, Expression):
                return
            query = CountQuery(item, "who", rows=3, where=where)
            answered.append(never_fails(sources, query))

    run()
    assert sum(answered) > examples / 10, "almost everything was refused: nothing was tested"


def test_no_row_fails_duckdb() -> None:
    connection = duckdb.connect()
    for statement in statements(DUCKDB):
        connection.execute(statement)
    check(DUCKDB, [OpenConnection(connection, name) for name in ("empty", "hostile")], EXAMPLES)


def test_no_row_fails_sqlite(tmp_path: Path) -> None:
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/events.db")
    with engine.begin() as connection:
        for statement in statements(SQLITE):
            connection.exec_driver_sql(statement)
    check(SQLITE, [SqlSource(engine, name) for name in ("empty", "hostile")], EXAMPLES)
    engine.dispose()


@pytest.fixture
def hostile(postgres_server: Server, postgres_url: str) -> Iterator[sqlalchemy.Engine]:
    engine = sqlalchemy.create_engine(postgres_url)
    with engine.begin() as connection:
        for statement in statements(POSTGRES):
            connection.exec_driver_sql(statement.replace("%", "%%"))
    yield engine
    engine.dispose()


def test_no_row_fails_postgres(hostile: sqlalchemy.Engine) -> None:
    check(POSTGRES, [SqlSource(hostile, name) for name in ("empty", "hostile")], EXAMPLES)


ZOE = ("zoe", "abc", -(2**63), "maybe")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("(place) = 5", ["5"]),
        ("COALESCE(place, '1') = 5", ["5"]),
        ("LOWER(place) IN (5, 6)", ["5"]),
        ("CASE WHEN who = 'zoe' THEN (place) = 5 ELSE TRUE END", ["5"]),
        ("UPPER(place) BETWEEN 1 AND 6", ["5"]),
        ("CAST(CAST(place AS INT) AS TEXT) = '5'", ["5"]),
        ("CAST(CASE WHEN CAST(place AS INT) = 5 THEN 1 ELSE 0 END AS INT) = 0", ["abc"]),
        ("CAST(flag AS BOOLEAN)", ["5"]),
        ("flag", "flag is text and not a truth value; compare it"),
        ("NOT flag", "flag is text and not a truth value; compare it"),
        ("place = n", "place = n needs operands of one kind; found text and a whole number"),
        ("place = TRUE", "needs operands of one kind; found text and a truth value"),
        ("n = '5'", "needs operands of one kind; found a whole number and text"),
        ("n > 0.5", "compares whole numbers with a fraction; write a whole number"),
        ("n > " + "9" * 39, "must have at most 38 digits"),
        ("SUBSTRING(place, n) = 'x'", "its places must be literals, 0 or more"),
        ("SUBSTRING(place) = 'x'", "needs the place where it starts"),
        ("place BETWEEN place AND LOWER(place)", ["5", "abc"]),
        ("SUBSTRING(place, -1) = 'x'", "its places must be literals, 0 or more"),
        ("-n > 5", "-n may overflow; only a literal may have a minus"),
        ("place LIKE 'a\\'", "LIKE needs a literal pattern without a backslash"),
        ("'xyz' LIKE place", "LIKE needs a literal pattern without a backslash"),
        ("EXTRACT(YEAR FROM place) = 5", "needs a date or a time, and place is text"),
        ("LENGTH(n) = 5", "n is a whole number and must be text; cast it to TEXT"),
        ("CAST('never' AS DATE) = CAST(place AS DATE)", "is not one; write, say: DATE"),
        ("COALESCE(NULL, NULL) IS NULL", "never has a value; leave it out"),
        ("place IN (5, 'x')", "column 'place' is text and cannot be compared with a number"),
        (" OR ".join(["n = 1"] * 900), ["5"]),
        ("(" * 32 + "n = 1" + ")" * 32, ["5"]),
        ("(" * 33 + "n = 1" + ")" * 33, "nested too deeply"),
    ],
)
def test_one_row_more_does_not_fail_an_expression(where: str, expected: Any) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (who TEXT, place TEXT, n BIGINT, flag TEXT)")
    for row in (("ann", "5", 1, "true"), ZOE):
        connection.execute("INSERT INTO t VALUES (?, ?, ?, ?)", row)
    source = OpenConnection(connection, "t")
    if isinstance(expected, str):
        with pytest.raises(InvalidParameter, match=expected) as caught:
            source.leading_counts(CountQuery("place", "who", rows=5, where=where))
        assert "\n" not in str(caught.value)
        return
    found = source.leading_counts(CountQuery("place", "who", rows=5, where=where))
    assert [item for item, _ in found] == expected


@pytest.mark.parametrize(
    ("type_", "values", "condition", "expected"),
    [
        ("BIGINT", ["1", str(BIG), "0"], (">", 1e-20), 2),
        ("BIGINT", ["1", str(BIG), "0"], (">=", Decimal("0.5")), 2),
        ("BIGINT", ["1", str(BIG), "0"], ("<", 0.5), 1),
        ("BIGINT", ["1", str(-BIG - 1), "0"], ("<=", -0.5), 1),
        ("BIGINT", ["1", "2", "NULL"], ("=", 1.0), 1),
        ("BIGINT", ["1", "2", "NULL"], ("=", 1.5), 0),
        ("BIGINT", ["1", "2", "NULL"], ("!=", 1.5), 2),
        ("BIGINT", ["1", "2", "NULL"], ("in", [1.5, 2]), 1),
        ("BIGINT", ["1", "2", "NULL"], ("not in", [1.5]), 2),
        ("HUGEINT", ["1", str(BIGGER)], (">", 0.5), 2),
        ("UBIGINT", ["1", str(2**64 - 1)], (">", 1e-25), 2),
        ("UHUGEINT", ["1", str(2**128 - 1)], (">", -1), 2),
        ("DECIMAL(38,0)", ["1", "9" * 38], (">", 0.5), 2),
        ("DOUBLE", ["1", "'inf'", "-1"], (">", 1e-20), 2),
        ("ENUM('1', 'x')", ["'1'", "'x'"], ("=", 1), 1),
        ("JSON", ["'1'", "'\"x\"'"], ("=", 1), 1),
        ("DATE", ["'2021-01-01'", "'5000000-01-01'"], (">", datetime.date(2020, 1, 1)), 2),
        ("TIMESTAMP_NS", ["'2021-01-01'"], (">", datetime.datetime(2020, 1, 1)), 1),
    ],
)
def test_conditions_on_every_value_of_a_type(
    type_: str, values: list[str], condition: tuple[str, Any], expected: int
) -> None:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (who TEXT, place TEXT, n {type_})")
    for place, value in enumerate(values):
        connection.execute(f"INSERT INTO t VALUES ('p{place}', 'park', {value})")
    query = CountQuery("place", "who", rows=5, where=[("n", *condition)])
    found = OpenConnection(connection, "t").leading_counts(query)
    assert found == ([("park", expected)] if expected else [])


@pytest.mark.parametrize("part", ["EXTRACT(YEAR FROM d)", "EXTRACT(YEAR FROM s)", "YEAR(z)"])
def test_an_infinite_date_has_no_year(hostile: sqlalchemy.Engine, part: str) -> None:
    found = SqlSource(hostile, "hostile").leading_counts(
        CountQuery(Expression(part), "who", rows=9)
    )
    assert sorted(item for item, _ in found) == [1, 2020, 9999]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("CAST(t AS DATE) > DATE '2019-01-01'", "postgres has no cast that leaves it out"),
        ("CAST(f AS INT) = 1", "postgres has no cast that leaves it out"),
        ("CAST(n AS INT) = 1", "postgres has no cast that leaves it out"),
        ("EXTRACT(HOUR FROM d) = 1", "needs a time, and d is a date"),
        ("dc = f", "needs operands of one kind; found a decimal and a float"),
        ("COALESCE(s, z) IS NULL", "needs operands of one kind"),
    ],
)
def test_what_postgres_could_fail_on_is_refused(
    hostile: sqlalchemy.Engine, where: str, message: str
) -> None:
    with pytest.raises(InvalidParameter, match=message):
        SqlSource(hostile, "empty").leading_counts(CountQuery("t", "who", rows=5, where=where))


def test_postgres_reads_text_between_text(hostile: sqlalchemy.Engine) -> None:
    query = CountQuery("t", "who", rows=99, where="t BETWEEN t AND t")
    plain = CountQuery("t", "who", rows=99)
    source = SqlSource(hostile, "hostile")
    assert source.leading_counts(query) == source.leading_counts(plain)
