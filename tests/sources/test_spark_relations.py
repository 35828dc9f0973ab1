"""Spark: plans are analysed, groups are read once, and persons are told apart exactly."""

import datetime
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from topsecret import Column
from topsecret.errors import DataIndependentFailure, InvalidParameter
from topsecret.sources import CountQuery, GroupAssignment
from topsecret.sources.domains.counted_domain import domain_size
from topsecret.sources.engines.spark import SparkSource
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
        with pytest.raises(DataIndependentFailure, match="may mix persons") as caught:
            schema_only(frame)
        assert clause in str(caught.value)
    assert SparkSource(events.limit(2), trust_view=True).assumes


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
    with pytest.raises(DataIndependentFailure, match="cannot identify persons"):
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
