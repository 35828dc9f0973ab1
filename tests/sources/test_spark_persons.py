"""Spark: a stored row counts for one person, whatever is united or exploded."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from topsecret.errors import DataIndependentFailure
from topsecret.sources import CountQuery
from topsecret.sources.engines.spark import SparkSource
from topsecret.sources.engines.spark_persons import check_text_of_one_person
from topsecret.sources.session import check
from topsecret.sources.sql.stored_definitions import Stored

pytestmark = pytest.mark.spark

QUERY = CountQuery("p", "u", rows=9)


def schema_only(frame: DataFrame) -> None:
    """Everything that is refused without a row."""
    with SparkSource(frame).session(QUERY) as session:
        check(session, QUERY)


@pytest.fixture(scope="module")
def messages(spark: SparkSession) -> DataFrame:
    rows = [("ann", "bob", "clinic", ["x", "y"]), ("ann", "zoe", "clinic", ["z"])]
    return spark.createDataFrame(rows, "s string, r string, p string, l array<string>")


def test_a_row_of_a_frame_has_one_person(
    spark: SparkSession, messages: DataFrame, tmp_path: Path
) -> None:
    """Ann's messages moved the count of a place by the number of those whom she wrote to."""
    messages.createOrReplaceTempView("messages")
    place = str(tmp_path / "messages")
    messages.write.parquet(place)
    one, other = spark.read.parquet(place), spark.read.parquet(place)
    sent, got = messages.selectExpr("s AS u", "p"), messages.selectExpr("r AS u", "p")
    texts = "SELECT s AS u, p FROM messages UNION ALL SELECT r AS u, p FROM messages"
    ways = messages.selectExpr("s", "r", "p", "0 AS w")
    both = ways.union(messages.selectExpr("s", "r", "p", "1 AS w"))
    refused = {
        "frames": sent.union(got),
        "text": spark.sql(f"SELECT * FROM ({texts}) WHERE u IS NOT NULL"),
        "files": one.selectExpr("s AS u", "p").union(other.selectExpr("r AS u", "p")).distinct(),
        "places": one.select("s", "r", "p").toDF("u", "v", "p").union(one.select("r", "s", "p")),
        "names": one.selectExpr("s AS u", "p").unionByName(one.selectExpr("p", "r AS u")),
        "changed": sent.union(got).selectExpr("upper(u) AS u", "p"),
        "chosen": both.selectExpr("CASE WHEN w = 0 THEN s ELSE r END AS u", "p"),
        "a word": sent.union(messages.selectExpr("'all' AS u", "p")),
        "grouped": sent.union(got).groupBy("u").agg(f.max("p").alias("p")),
    }
    for way, frame in refused.items():
        with pytest.raises(DataIndependentFailure) as caught:
            schema_only(frame)
        assert "Union takes several columns of one table for the person" in str(caught.value), way


def test_one_file_that_is_read_in_two_ways_is_one_table(
    messages: DataFrame, tmp_path: Path
) -> None:
    """A CSV file's columns go by their order: under one name both senders and receivers stood."""
    place = str(tmp_path / "messages.csv")
    messages.select("s", "r", "p").write.csv(place)
    read = messages.sparkSession.read
    sent = read.schema("u string, v string, p string").csv(place).select("u", "p")
    got = read.schema("v string, u string, p string").csv(place).select("u", "p")
    whole = read.schema("u string, p string").csv(place).select("u", "p")
    parts = read.schema("u string, p string").csv(place, sep="i").select("u", "p")
    word, value = messages.selectExpr("upper('s') AS u", "p"), messages.selectExpr("upper(s)", "p")
    for frame in (sent.union(got), whole.union(parts), word.union(value)):
        with pytest.raises(DataIndependentFailure, match="Union takes several columns of one"):
            schema_only(frame)
    schema_only(sent.union(sent.filter("p > 'd'")))


def test_long_chains_of_expressions_are_compared_by_their_hashes(messages: DataFrame) -> None:
    """Their texts would grow eightfold with every step: to a gigabyte here."""
    both = messages.selectExpr("s AS u", "p").union(messages.select("s", "p"))
    for _ in range(10):
        both = both.selectExpr("coalesce(u, u, u, u, u, u, u, u) AS u", "p")
    schema_only(both)


def test_what_is_exploded_is_no_person(messages: DataFrame) -> None:
    refused = [
        messages.select(f.explode("l").alias("u"), "p"),
        messages.select(f.explode("l").alias("v"), "p").selectExpr("lower(v) AS u", "p"),
        messages.select("s", "r", "p", f.posexplode("l")).selectExpr(
            "CASE WHEN pos = 0 THEN s ELSE r END AS u", "p"
        ),
    ]
    for frame in refused:
        with pytest.raises(DataIndependentFailure, match="explode makes several rows of one"):
            schema_only(frame)
    schema_only(messages.select(messages.s.alias("u"), f.explode("l").alias("p")))


def test_sides_of_a_union_may_take_the_same_column(messages: DataFrame, tmp_path: Path) -> None:
    sent = messages.selectExpr("s AS u", "p")
    messages.write.parquet(str(tmp_path / "letters"))
    letters = messages.sparkSession.read.parquet(str(tmp_path / "letters"))
    accepted = [
        sent.union(messages.filter("p > 'd'").select("s", "p")),
        sent.selectExpr("lower(u) AS u", "p").union(messages.selectExpr("lower(s) AS v", "p")),
        sent.union(letters.select("r", "p")),
        sent.union(sent).groupBy("u").agg(f.max("p").alias("p")),
    ]
    for frame in accepted:
        schema_only(frame)


UNION = """\
Union false, false
:- {one}Relation [u#1,p#2] parquet
+- {one}Relation [u#3,p#4] parquet
"""
EXPLODED = """\
Project [{u}, p#2]
+- Generate explode(l#3), false, [{made}]
   +- Relation [s#0,p#2,l#3] parquet
"""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (UNION.format(one=""), None),
        (UNION.format(one="Project [u#1, p#2]\n:  +- "), "Union of projections, or"),
        (UNION.format(one="").replace("u#3,p#4", "p#3,u#4"), "tables with other columns, hides"),
        (UNION.format(one="Generate explode(l#5), false, [v#6]\n:  +- "), "Union of projections"),
        (EXPLODED.format(u="u#0", made="t#5"), None),
        (EXPLODED.format(u="u#5", made="u#5"), "explode makes several rows"),
        (EXPLODED.format(u="t#5 AS u#6", made="t#5"), "explode makes several rows"),
    ],
)
def test_the_plan_of_a_remote_session_tells_less(text: str, why: Any) -> None:
    if why is None:
        check_text_of_one_person(text, "u", Stored(("ev",)))
        return
    with pytest.raises(DataIndependentFailure, match=why):
        check_text_of_one_person(text, "u", Stored(("ev",)))
