"""Public domains on Spark: the groups and names that counting by hand gives."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from contract import SALT, UNICODE, Row, by_hand, ranked
from pyspark.sql import SparkSession

from spark import own_views
from topsecret.errors import DataIndependentFailure, InvalidParameter
from topsecret.sources import CountQuery
from topsecret.sources.domains.counted_domain import counted_domains, domain_size
from topsecret.sources.domains.domain import Column, FileColumn, domain_of
from topsecret.sources.engines.spark import SparkSource
from topsecret.sources.session import Engine

pytestmark = pytest.mark.spark

EVENTS = [(f"person {n}", UNICODE[n * m % 15]) for n in range(60) for m in range(1, n % 9)]


def groups_and_names(engine: Engine, query: CountQuery) -> tuple[Any, ...]:
    """All that a mechanism can ask of a counted domain."""
    with counted_domains(engine, [query]) as [domain]:
        groups = domain.counts()
        places = [(count, place) for count, items in groups for place in range(min(items, 3))]
        return domain.size, groups, domain.items_at(places), domain.leading(7)


def expected(rows: Sequence[Row], items: Sequence[Any], cap: int | None = None) -> tuple[Any, ...]:
    """The same, counted by hand: items outside the domain are left out before the cap."""
    counts = by_hand([row for row in rows if row[1] in items], cap)
    groups = sorted(Counter(counts[item] for item in items).items())
    names = [
        sorted(item for item in items if counts[item] == count)[place]
        for count, size in groups
        for place in range(min(size, 3))
    ]
    return len(items), groups, names, ranked(counts, 7)


def ask(domain: Any, cap: int | None = None) -> CountQuery:
    return CountQuery("place", "user", rows=9, max_items=cap, salt=SALT, domain=domain_of(domain))


@pytest.mark.parametrize("cap", [None, 2])
def test_a_listed_domain(spark: SparkSession, cap: int | None) -> None:
    items = ["none", "😀", "e\u0301", "a", "A", "10", "x'\\${env:HOME}"]
    source = SparkSource(spark.createDataFrame(EVENTS, "user string, place string"))
    assert groups_and_names(source, ask(items, cap)) == expected(EVENTS, items, cap)


@pytest.mark.parametrize("kind", ["string", "int"])
def test_an_interval_of_numbers(spark: SparkSession, kind: str) -> None:
    """Text counts if it is the number's usual text; so do 10**15 numbers that nobody has."""
    rows = [(f"p{n}", n % 7 * 3) for n in range(40)]
    texts = [(person, str(number)) for person, number in rows]
    if kind == "string":
        texts += [("p", "no number"), ("p", "03"), ("p", " 3")]
    texts += [("p", "-3"), ("p", "4")]  # outside
    frame = spark.createDataFrame(texts, "user string, place string")
    source = SparkSource(frame.withColumn("place", frame["place"].try_cast(kind)))
    near = expected(rows, range(0, 30, 3))
    size, groups, names, leading = groups_and_names(source, ask(range(0, 3 * 10**15, 3)))
    assert size == 10**15
    assert groups == [(0, 10**15 - 7), *near[1][1:]]
    assert (names, leading) == near[2:]


def test_a_table_of_the_session_and_a_file(spark: SparkSession, tmp_path: Path) -> None:
    source = SparkSource(spark.createDataFrame(EVENTS, "user string, place string"))
    items = ["a", "A", "none"]
    spark.createDataFrame(
        [(item,) for item in [*items, "a", None]], "`Na me` string"
    ).createTempView("menu")
    try:
        wanted = groups_and_names(source, ask(items))
        assert groups_and_names(source, ask(Column("menu", "Na me"))) == wanted
        assert groups_and_names(source, ask(Column(("menu",), "Na me"))) == wanted
        assert domain_size(source, ask(Column("menu", "Na me"))) == 3
    finally:
        spark.catalog.dropTempView("menu")
    listed = tmp_path / "items.txt"
    listed.write_text("".join(f"{item}\n" for item in items))
    assert groups_and_names(source, ask(FileColumn(listed))) == wanted
    with pytest.raises(DataIndependentFailure) as caught:
        domain_size(source, ask(Column("menu", "Na me")))
    assert str(caught.value) == "Spark has no table 'menu' that it can read; check the name"


def test_numbers_beyond_sparks_integers(spark: SparkSession) -> None:
    source = SparkSource(spark.createDataFrame([(1, 2)], "user int, place int"))
    with pytest.raises(InvalidParameter) as caught:
        groups_and_names(source, ask([1, 2**70]))
    assert str(caught.value) == (
        "an item of the domain is no value that Spark can hold; leave it out"
    )


def test_nothing_is_kept_afterwards(spark: SparkSession) -> None:
    source = SparkSource(spark.createDataFrame(EVENTS, "user string, place string"))
    with counted_domains(source, [ask(["a", "A"])]) as [domain]:
        domain.counts()
        assert own_views(spark)
    assert not own_views(spark)
