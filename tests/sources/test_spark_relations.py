"""Spark: plans are analysed, groups are read once, and persons are told apart exactly."""

import datetime
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from topsecret import Column, Expression
from topsecret.errors import DataIndependentFailure, InvalidParameter
from topsecret.sources import CountQuery, GroupAssignment
from topsecret.sources.domains.counted_domain import domain_size
from topsecret.sources.engines.spark import SparkSource
from topsecret.sources.engines.spark_plans import check_plan, total_text
from topsecret.sources.relations.open_query import open_query
from topsecret.sources.session import check, leading_counts_of

pytestmark = pytest.mark.spark

QUERY = CountQuery("p", "u", rows=9)
GROUPS = tuple(f"g{n}" for n in range(6))


def schema_only(frame: DataFrame, query: CountQuery = QUERY) -> None:
    """Everything that is refused without a row."""
    with SparkSource(frame).session(query) as session:
        check(session, query)


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(
        [("ann", "tea", 1), ("bob", "tea", 2)], "u string, p string, n int"
    )


def test_what_a_plan_may_be(spark: SparkSession, events: DataFrame) -> None:
    events.createOrReplaceTempView("ev")
    accepted = [
        events.filter("n > 0").select("u", f.upper("p").alias("p")),
        events.union(events),
        events.select("u", "p").distinct(),
        events.groupBy("u").agg(f.max("p").alias("p")),
        spark.sql("SELECT u, p FROM (SELECT * FROM ev WHERE n > 0)"),
    ]
    for frame in accepted:
        schema_only(frame)
    refused = {
        "Limit": events.limit(1),
        "Sample": events.sample(0.5),
        "Join": events.join(events.select("p"), "p"),
        "Aggregate": events.groupBy("p").agg(f.max("u").alias("u")),
        "Deduplicate": events.dropDuplicates(["p"]),
        "run to run": events.filter(f.rand() < 0.5),
        "sub-query": spark.sql("SELECT u, p FROM ev WHERE n = (SELECT max(n) FROM ev)"),
        "Window": spark.sql("SELECT u, first(p) OVER (ORDER BY n) AS p FROM ev"),
        "Deduplicate may take": events.select("u", "p", events.n.cast("double")).distinct(),
        "Max may take": events.groupBy("u").agg(f.max(events.n.cast("float")).alias("p")),
        "CollectList": events.groupBy("u").agg(f.collect_list("p").cast("string").alias("p")),
    }
    for clause, frame in refused.items():
        with pytest.raises(DataIndependentFailure, match="may mix people") as caught:
            schema_only(frame)
        assert clause in str(caught.value)
    assert SparkSource(events.limit(2), trust_view=True).assumes


def test_no_row_makes_a_plan_fail(spark: SparkSession, events: DataFrame) -> None:
    """Under ANSI mode, which is Spark's default, one row's cast or sum fails the whole question."""
    events.createOrReplaceTempView("ev")
    dated = events.select("u", "p", "n", f.lit("2024-05-01").cast("date").alias("d"))
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        legacy = events.select("u", f.col("p").cast("int").alias("p"))
        zones = events.selectExpr("u", "CAST(CAST(p AS DATE) AS TIMESTAMP) AS p")
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
    accepted = [
        legacy,
        events.filter(
            "n % 5 = 1 AND n BETWEEN 1 AND 3 AND p LIKE 't%' AND n > 1.5 AND n IN (1, 2)"
        ),
        events.selectExpr("u", "CAST(n AS STRING) AS p"),
        events.selectExpr("u", "TRY_CAST(p AS INT) AS p"),
        events.selectExpr("u", "CAST(n AS BIGINT) AS p"),
        events.selectExpr("u", "CASE WHEN n > 1 THEN TRIM(p) ELSE SUBSTRING(p, 1, 2) END AS p"),
        dated.filter("d >= '2024-01-01'"),
    ]
    for frame in accepted:
        schema_only(frame)
    refused = {
        "a cast in Project": events.select("u", f.col("p").cast("int").alias("p")),
        "a cast in Filter": events.filter("p > 1"),
        "Add in Project": events.selectExpr("u", "n + 1 AS p"),
        "Divide in Filter": events.filter("1 / n > 0"),
        "Remainder in Filter": events.filter("5 % n = 1"),
        "UnaryMinus in Project": events.selectExpr("u", "-n AS p"),
        "ElementAt in Project": events.selectExpr("u", "element_at(array(n), n) AS p"),
        "RaiseError": events.filter("n = 1 OR raise_error('x') IS NULL"),
        "Like in Filter": events.filter("n = 1 OR p LIKE 'a/b' ESCAPE '/'"),
        "a cast in": dated.selectExpr("u", "TRY_CAST(d AS TIMESTAMP) AS p"),  # a day of no time
    }
    days = dated.filter("d < TIMESTAMP'2024-06-01 00:00:00'")
    for clause, frame in [*refused.items(), ("a cast in Project", zones), ("a cast", days)]:
        with pytest.raises(DataIndependentFailure, match="may fail on one person's row") as caught:
            schema_only(frame)
        assert clause in str(caught.value)
        assert "trust_view=True" in str(caught.value)


def test_a_day_without_a_time_has_none(spark: SparkSession) -> None:
    """Even a cast of Spark's that tries fails on the last days."""
    days = [("ann", datetime.date(2024, 5, 1), "x"), ("bob", None, "x")]
    frame = spark.createDataFrame(days, "u string, d date, p string").localCheckpoint()
    last = spark.sql("SELECT 'zoe' AS u, date'+5881580-07-11' AS d, 'x' AS p").localCheckpoint()
    time, day = Expression("CAST(d AS TIMESTAMP)"), datetime.datetime(2024, 1, 1)
    for query in (replace(QUERY, item=time), replace(QUERY, where=(("d", ">", day),))):
        found = SparkSource(frame.union(last)).leading_counts(query)
        assert found == SparkSource(frame).leading_counts(query)
        assert len(found) == 1


@pytest.mark.parametrize(
    ("held", "more", "operator", "value"), [(math.nan, 1.0, ">", 2.0), (-0.0, 0.0, "=", 0)]
)
def test_one_number_does_not_decide_which_rows_are_read(
    spark: SparkSession, tmp_path: Path, held: float, more: float, operator: str, value: float
) -> None:
    """By the least and largest number of others Spark skipped NaN, and -0.0 where 0.0 is asked."""
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    pyarrow: Any = pytest.importorskip("pyarrow")
    where = (("n", operator, value),)
    for numbers in ([held, held], [held, held, more]):  # one person more
        users, places = ["ann", "bob", "cy"][: len(numbers)], ["tea", "tea", "cake"]
        path = tmp_path / f"{len(numbers)}.parquet"
        columns = {"u": users, "p": places[: len(numbers)], "n": numbers}
        parquet.write_table(pyarrow.table(columns), path)
        frame = spark.read.parquet(str(path))
        for one in (frame, spark.createDataFrame(frame.collect(), frame.schema).cache()):
            found = SparkSource(one).leading_counts(replace(QUERY, where=where))
            assert ("tea", 2) in found
            for own in (
                one.filter(f"n {operator} {value}D"),
                one.selectExpr("u", f"CASE WHEN n BETWEEN {value}D AND 5D THEN p END AS p"),
            ):
                with pytest.raises(DataIndependentFailure, match="a comparison of floats in"):
                    schema_only(own)
            schema_only(one.filter("n IS NOT NULL").select("u", "p", "n"))


def test_what_code_or_a_query_makes(spark: SparkSession, events: DataFrame) -> None:
    """The rows of an RDD run Python, which is said; a JDBC "table" may be any query."""
    assert "code that made" in SparkSource(events.filter("n > 0")).assumes[0]
    assert SparkSource(events.localCheckpoint()).assumes == ()
    assert SparkSource(spark.range(3)).assumes == ()
    url = "jdbc:derby:memory:events;create=true"
    driver = {"driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}
    query = '(SELECT TABLENAME AS "u", MIN(TABLEID) AS "p" FROM SYS.SYSTABLES GROUP BY TABLENAME) t'
    table = spark.read.jdbc(url, query, properties=driver)
    with pytest.raises(DataIndependentFailure, match="LogicalRelation reads may be a query"):
        schema_only(table)
    table.createOrReplaceTempView("of_jdbc")
    believed = SparkSource(table, trust_view=True)
    with pytest.raises(InvalidParameter, match="made of the events"):
        domain_size(believed, replace(QUERY, domain=Column("of_jdbc", "p")))


def test_no_row_makes_a_pasted_query_fail(spark: SparkSession) -> None:
    """A person's sum beyond 64 bits has no value; all others are as they would be alone."""
    query = (
        "SELECT p, COUNT(DISTINCT u) AS n FROM (SELECT u, p, SUM(v) AS s, "
        "SUM(v) FILTER (WHERE v > 1) AS t, MAX(d) AS d, MAX(w) AS w FROM ev GROUP BY u, p) x "
        "WHERE s > 0 AND (t IS NULL OR t > 1) AND (d < w OR d > DATE '9999-01-01') "
        "GROUP BY p ORDER BY n DESC LIMIT 1"
    )
    frame = spark.createDataFrame(
        [
            *(("a", "i", 1, 0), ("b", "i", 3, 0), ("b", "i", -1, 0), ("c", "i", -3, 0)),
            *(("p", "i", 2**63 - 1, 0), ("p", "i", 1, 0), ("q", "i", 1, 2**31 - 1)),
        ],
        "u string, p string, v bigint, k int",
    ).selectExpr(
        "u", "p", "v", "date_from_unix_date(k) AS d", "TIMESTAMP_NTZ'2024-05-01 00:00:00' AS w"
    )
    source, _ = open_query(query, frame.localCheckpoint(), person="u")
    assert source.leading_counts(QUERY) == [("i", 3)]  # a, b, and q, whose day has no time


def test_the_text_of_a_plan() -> None:
    """Of a remote session: what is neither a column, a comparison nor a condition is refused."""
    for text in (
        " [u#1, upper(p#2) AS p#3L]",
        " ((p#1 = tea) AND NOT (n#2 IN (-5,3)))",
        " [CASE WHEN (d#1 > 2024-05-01) THEN tea ELSE no END AS p#2]",
    ):
        assert total_text(text)
    for text in (
        " [cast(p#2 as int) AS p#3]",
        " (n#2 div 0)",
        " (5 div n#1)",
        " (tea RLIKE p#1)",
        " (CASE WHEN (n#1 > 0) THEN 1 END div 2)",
        " [(n#1 + 1) AS n#2]",
        " [a#1[0] AS x#2]",
        " [-n#1 AS x#2]",
    ):
        assert not total_text(text)


def test_the_text_of_a_plan_that_may_compare_floats() -> None:
    """It does not say what a column holds: a number with a point is refused."""

    def frame(condition: str) -> Any:
        class Frame:
            __module__ = "pyspark.sql.connect.dataframe"

            def _explain_string(self, *, extended: bool) -> str:
                read = "+- Relation [u#0,p#1,n#2] parquet"
                plan = f"u: string, p: string\nFilter ({condition})\n{read}"
                return f"== Analyzed Logical Plan ==\n{plan}\n== Optimized Logical Plan ==\n"

        return Frame()

    check_plan(frame("n#2 > 2"), "u", "visits")
    for condition in ("n#2 > 2.5", "n#2 IN (-0.0,1.0)", "n#2 = NaN", "n#2 < Infinity"):
        with pytest.raises(DataIndependentFailure, match="a number with a point in Filter may"):
            check_plan(frame(condition), "u", "visits")


def test_one_person_is_in_one_list(spark: SparkSession) -> None:
    """A frame that gives other rows each time, and that its owner trusts."""
    rows = spark.createDataFrame(
        [("ann", "tea", group) for group in GROUPS], "u string, p string, g string"
    )
    source = SparkSource(rows.filter(f.rand() < 0.5), trust_view=True)
    queries = [replace(QUERY, home=GroupAssignment("g", GROUPS, group)) for group in GROUPS]
    for _ in range(3):
        assert sum(bool(found) for found in leading_counts_of(source, queries)) <= 1


def test_numbers_as_groups_over_text(spark: SparkSession) -> None:
    rows = [("ann", "tea", "1"), ("bob", "tea", "1.0"), ("cy", "tea", "x")]
    source = SparkSource(spark.createDataFrame(rows, "u string, p string, g string"))
    queries = [replace(QUERY, home=GroupAssignment("g", (1, 2), group)) for group in (1, 2)]
    assert leading_counts_of(source, queries) == [[("tea", 2)], []]


@pytest.mark.parametrize("kind", ["array<string>", "timestamp", "double", "map<string,int>"])
def test_types_that_merge_or_split_persons_are_refused(spark: SparkSession, kind: str) -> None:
    frame = spark.createDataFrame([], f"u {kind}, p string")
    with pytest.raises(DataIndependentFailure, match="cannot identify people"):
        schema_only(frame)


def test_variants_are_refused(spark: SparkSession) -> None:
    frame = spark.sql("SELECT parse_json('1') AS u, 'tea' AS p")
    with pytest.raises(DataIndependentFailure):
        schema_only(frame)


def test_a_domain_is_not_made_of_the_events(spark: SparkSession, events: DataFrame) -> None:
    events.createOrReplaceTempView("ev")
    spark.createDataFrame([("tea",)], "p string").createOrReplaceTempView("items")
    source = SparkSource(events)
    with pytest.raises(InvalidParameter, match="is made of the events themselves"):
        domain_size(source, replace(QUERY, domain=Column("ev", "p")))
    assert domain_size(source, replace(QUERY, domain=Column("items", "p"))) == 1


def test_a_moment_is_compared_in_utc(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT 'a' AS u, 'before' AS p, timestamp'2024-05-01 15:59:00+00:00' AS t UNION ALL "
        "SELECT 'b', 'after', timestamp'2024-05-01 16:01:00+00:00'"
    )
    moment: Any = datetime.datetime(2024, 5, 1, 16, tzinfo=datetime.UTC)
    query = CountQuery("p", "u", 9, where=[("t", ">", moment)])
    assert SparkSource(frame, trust_view=True).leading_counts(query) == [("after", 1)]
