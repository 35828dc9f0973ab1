"""What is Spark's alone: its settings, its types, its errors, its several machines."""

import logging
import random
import re
import secrets
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from contract import SALT, UNICODE, by_hand, ranked
from events import write
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from spark import EXECUTORS, own_views
from topsecret import top_k
from topsecret.errors import (
    DataIndependentFailure,
    InvalidParameter,
    SourceError,
    UnknownColumn,
)
from topsecret.sources import CountQuery
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.engines.spark import SparkSource
from topsecret.sources.engines.spark_jobs import LOGGERS, finished, quiet, run
from topsecret.sources.engines.sqlalchemy import SqlSource

pytestmark = pytest.mark.spark

QUERY = CountQuery(item="place", person="user", rows=10)
SCHEMA = "user string, place string"


@pytest.fixture
def visits(spark: SparkSession) -> DataFrame:
    rows = [("ann", "park"), ("ann", "pier"), ("bob", "park"), ("cy", "zoo"), ("cy", "park")]
    return spark.createDataFrame(rows, SCHEMA)


@contextmanager
def setting(spark: SparkSession, **settings: str) -> Iterator[None]:
    names = {name.replace("__", "."): value for name, value in settings.items()}
    before = {name: spark.conf.get(name) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def events(number: int) -> list[tuple[str | None, str | None]]:
    """Random events with repetitions, ties and missing values, of all planes of Unicode."""
    draw = random.Random(5)
    places = [*UNICODE, "\U0001f468\u200d\U0001f469", "\U00010348", "\uffff", "o\u0308", "ö"]
    return [
        (draw.choice([None, *(f"ünser {n}" for n in range(99))]), draw.choice([None, *places]))
        for _ in range(number)
    ]


def told(spark: SparkSession) -> None:
    """Wait until Spark's lists know what has ended: they hear of it after the caller does."""
    context: Any = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty(600_000)


def executors(spark: SparkSession) -> dict[str, tuple[str, int, int]]:
    """Address, number of tasks and bytes read from a shuffle, of each executor so far."""
    told(spark)
    context: Any = spark.sparkContext
    found = context._jsc.sc().statusStore().executorList(True)
    return {
        one.id(): (one.hostPort(), one.totalTasks(), one.totalShuffleRead())
        for one in (found.apply(place) for place in range(found.size()))
        if one.id() != "driver"
    }


def test_several_executors_exchange_data(spark: SparkSession) -> None:
    frame = spark.createDataFrame(events(500), SCHEMA).repartition(6)
    deadline = time.monotonic() + 600
    while len(before := executors(spark)) < EXECUTORS:  # a job may begin with the first alone
        assert time.monotonic() < deadline
        time.sleep(0.05)
    SparkSource(frame).leading_counts(QUERY)
    after = executors(spark)
    assert len({address for address, _, _ in after.values()}) == EXECUTORS
    assert all(address.startswith("127.0.0.1:") for address, _, _ in after.values())
    assert all(after[one][1] > before[one][1] for one in after)
    assert all(after[one][2] > before[one][2] for one in after)


@pytest.mark.parametrize("cap", [None, 1, 3])
def test_the_same_histogram_as_duckdb_and_postgresql(
    spark: SparkSession, tmp_path: Path, postgres_url: str, cap: int | None
) -> None:
    rows = events(3000)
    query = CountQuery("place", "user", rows=50, max_items=cap, salt=SALT)
    frame = spark.createDataFrame(rows, SCHEMA).repartition(5)
    counted = SparkSource(frame).leading_counts(query)
    assert counted == ranked(by_hand(rows, cap), 50)
    assert counted == FileSource(write(tmp_path / "e.parquet", rows)).leading_counts(query)
    database = sqlalchemy.create_engine(postgres_url)
    with database.begin() as connection:
        connection.exec_driver_sql('CREATE TABLE visits ("user" text, place text)')
        connection.exec_driver_sql("INSERT INTO visits VALUES (%s, %s)", rows)
    assert counted == SqlSource(database, "visits").leading_counts(query)
    database.dispose()


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_settings_change_nothing(spark: SparkSession, ansi: str, adaptive: str) -> None:
    rows = events(500)
    query = CountQuery("place", "user", rows=9, max_items=2, salt=SALT)
    with setting(
        spark,
        spark__sql__ansi__enabled=ansi,
        spark__sql__adaptive__enabled=adaptive,
        spark__sql__ansi__doubleQuotedIdentifiers=ansi,
        spark__sql__shuffle__partitions="5",
        spark__sql__parser__quotedRegexColumnNames="true",
        spark__sql__parser__escapedStringLiterals="true",
    ):
        source = SparkSource(spark.createDataFrame(rows, SCHEMA))
        assert source.leading_counts(query) == ranked(by_hand(rows, 2), 9)


NASTY = "x`; drop table y; -- ${env:HOME}.*'\\"


def test_a_name_is_a_name_and_a_value_is_a_value(spark: SparkSession) -> None:
    rows = [("ann", NASTY), ("bob", "else"), ("cy", NASTY)]
    frame = spark.createDataFrame(rows, SCHEMA).withColumnRenamed("place", NASTY)
    query = CountQuery(NASTY, "user", rows=9, where=[(NASTY, "=", NASTY)], max_items=1)
    source = SparkSource(frame)
    assert source.leading_counts(query) == [(NASTY, 2)]
    assert "drop" not in source.sql(query)


def test_columns_may_differ_in_case_alone(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("ann", "a", "b")], "user string, place string, Place string")
    assert SparkSource(frame).leading_counts(QUERY) == [("a", 1)]
    query = CountQuery("Place", "user", rows=9)
    assert SparkSource(frame).leading_counts(query) == [("b", 1)]


def test_a_collation_merges_nobody(spark: SparkSession) -> None:
    rows = [("ann", "Park"), ("Ann", "park"), ("ann", "park")]
    schema = "user string collate utf8_lcase, place string collate utf8_lcase"
    source = SparkSource(spark.createDataFrame(rows, schema))
    assert source.leading_counts(QUERY) == [("park", 2), ("Park", 1)]


def test_types_without_a_text_of_their_own(spark: SparkSession) -> None:
    frame = spark.sql(
        """SELECT * FROM VALUES
        (1, X'ff41', CAST(X'ff41' AS STRING), true, ARRAY(1, 2), DATE'2024-02-29'),
        (2, X'fe41', CAST(X'fe41' AS STRING), false, ARRAY(1, 2), DATE'2024-02-29'),
        (3, X'ff41', CAST(X'ff41' AS STRING), true, NULL, NULL)
        AS t (user, bytes, broken, flag, list, day)"""
    )

    def counts(item: str) -> object:
        return SparkSource(frame).leading_counts(CountQuery(item, "user", rows=9))

    assert counts("bytes") == [("\\xff41", 2), ("\\xfe41", 1)]
    assert counts("broken") == [("\ufffdA", 3)]  # not two items of one name
    assert counts("flag") == [(True, 2), (False, 1)]
    assert counts("list") == [("[1, 2]", 2)]
    assert counts("day") == [("2024-02-29", 2)]


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The name of the jobs, which otherwise nobody can guess; Spark remembers another test's."""
    monkeypatch.setattr(secrets, "token_hex", lambda size: request.node.name)
    return f"topsecret_{request.node.name}"


def test_the_driver_gets_the_leading_rows_and_no_others(spark: SparkSession, group: str) -> None:
    """Ranked on the executors: else the driver would get that many rows of each partition."""
    frame = spark.range(4000).selectExpr("id AS user", "id % 1000 AS place").repartition(8)
    with setting(spark, spark__sql__shuffle__partitions="8"):
        SparkSource(frame).leading_counts(CountQuery("place", "user", rows=500))
    told(spark)
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    last = tracker.getStageInfo(max(stage for job in jobs if job for stage in job.stageIds))
    assert last is not None
    assert last.numTasks == 1


def test_ctrl_c_ends_a_query(spark: SparkSession, group: str) -> None:
    """Its jobs end and its views are gone."""
    frame = spark.range(10**15).selectExpr("id AS user", "id % 3 AS place")
    tracker = spark.sparkContext.statusTracker()

    def press() -> None:
        while not tracker.getJobIdsForGroup(group):
            time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]

    pressing = threading.Thread(target=press)
    pressing.start()
    with pytest.raises(KeyboardInterrupt):
        SparkSource(frame).leading_counts(QUERY)
    pressing.join()
    deadline = time.monotonic() + 600
    while tracker.getActiveJobsIds():  # Spark's list follows what has ended
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not own_views(spark)


@pytest.mark.parametrize("item", ["place", "twice"])
def test_the_view_is_dropped(spark: SparkSession, visits: DataFrame, item: str) -> None:
    failing = visits.selectExpr("user", "place", "CAST(place AS int) AS twice")
    query = CountQuery(item, "user", rows=3)
    if item == "place":
        SparkSource(failing, trust_view=True).leading_counts(query)
    else:
        with pytest.raises(SourceError):
            SparkSource(failing, trust_view=True).leading_counts(query)
    assert not own_views(spark)


class Printed(logging.Handler):
    """What PySpark would print through its loggers."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@pytest.fixture
def printed() -> Iterator[list[str]]:
    handler = Printed()
    loggers = [PySparkLogger.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logging.Logger.addHandler(logger, handler)
    yield handler.texts
    for logger in loggers:
        logger.removeHandler(handler)


def test_no_error_carries_a_value(
    spark: SparkSession, capfd: pytest.CaptureFixture[str], printed: list[str]
) -> None:
    """Spark says "The value 'ann' cannot be cast"; PySpark also prints it by itself."""
    frame = spark.createDataFrame([("u", "ann")], SCHEMA).selectExpr(
        "user", "CAST(place AS int) AS place"
    )
    with pytest.raises(SourceError) as caught:
        SparkSource(frame, trust_view=True).leading_counts(QUERY)
    assert str(caught.value) == (
        "Spark data frame could not be counted by Spark; the log of its driver says why"
    )
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    shown = capfd.readouterr()
    assert "ann" not in "".join([*traceback.format_exception(caught.value), *shown, *printed])


def test_other_threads_keep_their_messages(spark: SparkSession, printed: list[str]) -> None:
    def fail(value: str) -> None:
        with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
            spark.sql(f"SELECT CAST('{value}' AS int)").collect()

    with quiet():
        other = threading.Thread(target=fail, args=["theirs"])
        other.start()
        other.join()
        fail("ours")
    fail("later")
    assert ["theirs" in text or "later" in text for text in printed] == [True, True]


def test_a_missing_column(visits: DataFrame) -> None:
    with pytest.raises(UnknownColumn) as caught:
        SparkSource(visits).leading_counts(CountQuery("plaice", "user", rows=3))
    assert str(caught.value) == "Spark data frame has no column 'plaice'; check its schema"


def test_a_column_that_is_there_twice(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 'ann' AS user, 'park' AS place, 'pier' AS place")
    with pytest.raises(SourceError) as caught:
        SparkSource(frame, trust_view=True).leading_counts(QUERY)
    assert str(caught.value) == (
        "Spark data frame has more than one column 'place'; rename one of them"
    )


def test_a_table_by_its_name(spark: SparkSession, visits: DataFrame) -> None:
    visits.createOrReplaceTempView("visits")
    source = SparkSource("visits", spark)
    assert source.leading_counts(QUERY) == [("park", 3), ("pier", 1), ("zoo", 1)]
    assert (source.name, repr(source)) == ("visits", "SparkSource('visits')")
    spark.catalog.dropTempView("visits")
    with pytest.raises(DataIndependentFailure) as caught:
        SparkSource("visits", spark)
    assert str(caught.value) == "Spark has no table 'visits' that it can read; check the name"
    assert caught.value.__context__ is None


def test_a_stream_has_no_end(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(InvalidParameter) as caught:
        SparkSource(stream)
    assert str(caught.value) == (
        "Spark data frame is a stream, which has no end to count to; "
        "write it to a table and pass that"
    )


def test_the_callers_settings_go_along(spark: SparkSession, visits: DataFrame) -> None:
    """Jobs keep the caller's scheduler pool, and the caller's own job group is left alone."""
    context = spark.sparkContext
    context.setJobGroup("mine", "my jobs")
    SparkSource(visits).leading_counts(QUERY)
    assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


def test_progress_is_a_share(spark: SparkSession) -> None:
    context = spark.sparkContext
    assert finished(context, "nobody's") == 0.0
    run(spark, spark.range(10).repartition(3).count, "counted")
    told(spark)
    assert finished(context, "counted") == 1.0


def test_top_k_takes_a_data_frame(spark: SparkSession) -> None:
    frame = spark.range(1500).selectExpr(
        "id % 900 AS user", "IF(id < 900, 'park', 'pier') AS place"
    )
    release = top_k(frame, item="place", person="user", k=2, epsilon=1.0, delta=1e-6)
    # The gaps of 300 and more are over 50 times the noise's scale.
    assert release.items == ("park", "pier")
    assert release.source == "Spark data frame"


def test_the_documentation_runs(spark: SparkSession, visits: DataFrame) -> None:
    page = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    spark.sql("CREATE DATABASE sales")
    visits.write.saveAsTable("sales.visits")
    try:
        exec(code, {"visits": visits, "spark": spark})
    finally:
        spark.sql("DROP DATABASE sales CASCADE")


def test_what_is_neither_frame_nor_session(spark: SparkSession) -> None:
    with pytest.raises(InvalidParameter, match=r"or Spark; found a SparkContext$"):
        top_k(spark.sparkContext, item="place", person="user", k=2, epsilon=1.0)
    with pytest.raises(InvalidParameter) as caught:
        SparkSource(42)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "events must be a Spark data frame or the name of a table; found a int"
    )
