"""Pasted SQL about data frames of pandas, polars, pyarrow and Spark, each of which is one table."""

import os
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pytest
import sqlglot
from pyspark.sql import SparkSession
from sqlglot import exp
from test_corpus import ACCEPTED, REFUSED, SAYS, expected, rows, statements

import topsecret
from topsecret.errors import InvalidParameter
from topsecret.questions.sql import question_of
from topsecret.results.release import Release
from topsecret.sources.relations.open_query import open_query
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.refusal import QueryRefused
from topsecret.sources.session import leading_counts

SOAK = os.environ.get("TOPSECRET_SOAK") == "1"
CHECKINS = PrivacyFile.parse(
    '[tables.checkins]\nperson = "user_id"\n[tables.checkins.values]\nday = ["mon", "tue", "wed"]'
)
NAMES = ["user_id", "place", "day", "ts", "rating"]
VISITS = [(f"u{n}", place, n % 3) for n in range(400) for place in "ab" if place == "a" or n % 2]
QUERY = (
    "SELECT place, COUNT(DISTINCT who) AS n FROM visits WHERE k >= 0 GROUP BY place "
    "ORDER BY n DESC LIMIT 2"
)


def of_checkins(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cases that read nothing but that table and parse in Spark's words."""
    found = []
    for case in cases:
        try:
            tree = sqlglot.parse_one(case["query"], case["dialect"])
        except (sqlglot.errors.SqlglotError, RecursionError):
            continue
        own = {one.alias for one in tree.find_all(exp.CTE)}
        if {one.name for one in tree.find_all(exp.Table)} - own == {"checkins"}:
            found.append(case)
    return found


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_a_frame_is_one_table(package: str) -> None:
    columns = list(zip(*VISITS, strict=True))
    frame: Any = {
        "pandas": lambda: pandas.DataFrame(VISITS, columns=["who", "place", "k"]),
        "polars": lambda: polars.DataFrame(VISITS, schema=["who", "place", "k"], orient="row"),
        "pyarrow": lambda: pyarrow.table(dict(zip(["who", "place", "k"], columns, strict=True))),
    }[package]()
    release = topsecret.sql(QUERY, frame, person="who", epsilon=8)
    assert isinstance(release, Release)
    assert release.items == ("a", "b")
    opened, asked = open_query(
        QUERY.replace("COUNT(DISTINCT who)", "SUM(k)"), frame, person="who", bounded=True
    )
    question = question_of(opened, asked, bound=topsecret.sources.measures.Bound("1"), epsilon=1)
    assert dict(leading_counts(opened, question.queries(9)[0])) == {"a": 266, "b": 133}
    with pytest.raises(InvalidParameter, match="no person's column 'WHO'"):
        topsecret.sql(QUERY, frame, person="WHO", epsilon=8)
    with pytest.raises(QueryRefused, match="LIMIT in a sub-query"):
        topsecret.sql(
            QUERY.replace("visits", "(SELECT * FROM visits LIMIT 9) t"),
            frame,
            person="who",
            epsilon=8,
        )


def test_objects_that_are_written_alike_stay_two_persons() -> None:
    frame = pandas.DataFrame({"who": [1, "1", "1"], "place": ["a", "a", "b"], "k": [0, 0, 0]})
    opened, asked = open_query(QUERY, frame, person="who")
    question = question_of(opened, asked, epsilon=1)
    assert dict(leading_counts(opened, question.queries(9)[0])) == {"a": 2, "b": 1}


@pytest.mark.spark
def test_the_corpus_on_spark(spark: SparkSession) -> None:
    held = rows()["checkins"]
    schema = "user_id int, place string, day string, ts int, rating double"
    frame = spark.createDataFrame(held, schema)
    with duckdb.connect() as engine:
        for statement in statements("duckdb"):
            engine.execute(statement)
        right = {
            case["name"]: expected(case, lambda sql: engine.execute(sql).fetchall())
            for case in of_checkins(ACCEPTED)
        }
    parts: list[Any] = []
    ran = list(of_checkins(ACCEPTED))[:: 1 if SOAK else 3]  # planning so many takes half a minute
    for case in of_checkins(ACCEPTED):
        _, asked = open_query(case["query"], frame, privacy=CHECKINS, dialect=case["dialect"])
        assert asked.dialect == "spark"
        name = exp.alias_(exp.Literal.string(case["name"]), "name")
        items = [exp.cast(exp.column(one.ident, quoted=True), "TEXT") for one in asked.items]
        items += [exp.Literal.string("")] * (2 - len(items))
        persons = exp.Count(this=exp.Distinct(expressions=[exp.column("own", quoted=True)]))
        select = exp.select(name, *items, persons).from_(asked.rows.subquery("rows"))
        if case in ran:
            parts.append(select.group_by(*(one.copy() for one in items if one.find(exp.Column))))
    assert len(parts) >= 9
    # Read from Python once, not by every query; what they mean does not depend on partitions.
    frame.coalesce(1).cache().createOrReplaceTempView("corpus")
    statement = " UNION ALL ".join(one.sql("spark") for one in parts)
    found: dict[str, dict[tuple[str, ...], int]] = {}
    for name, *item, count in spark.sql(statement.replace("`topsecret frame`", "corpus")).collect():
        key = tuple(part for part in item if part != "")
        if None not in key and count:
            found.setdefault(name, {})[key] = count
    for name, counts in ((case["name"], right[case["name"]]) for case in ran):
        shown = {
            tuple(str(part).lower() if isinstance(part, bool) else str(part) for part in item): n
            for item, n in counts.items()
        }
        assert found[name] == shown, name
    for case in of_checkins(REFUSED):
        with pytest.raises(QueryRefused) as refused:
            open_query(case["query"], frame, privacy=CHECKINS, dialect=case["dialect"])
        assert (case.get("says") or SAYS[case["name"]]) in str(refused.value)


@pytest.mark.spark
def test_spark_is_asked(spark: SparkSession) -> None:
    frame = spark.createDataFrame(VISITS, "who string, place string, k int")
    frame.createOrReplaceTempView("visits")
    for source in (frame, spark):
        release = topsecret.sql(QUERY, source, person="who", epsilon=8)
        assert isinstance(release, Release)
        assert release.items == ("a", "b")
