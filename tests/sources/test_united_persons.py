"""A view that unites two columns of one table has rows that count for several persons."""

from typing import Any

import pytest

from topsecret.errors import DataIndependentFailure
from topsecret.sources import CountQuery

QUERY = CountQuery("p", "u", rows=9)
ALL = ("duckdb", "sqlite", "postgresql")
SIDES = "UNION takes several columns of one table for the person, so that a row counts for each"
MESSAGES = [
    "CREATE TABLE messages (sender VARCHAR(9), receiver VARCHAR(9), place VARCHAR(9))",
    "CREATE TABLE letters (sender VARCHAR(9), receiver VARCHAR(9), place VARCHAR(9))",
    "INSERT INTO messages VALUES ('ann', 'bob', 'clinic'), ('ann', 'zoe', 'clinic')",
    "INSERT INTO letters VALUES ('ann', 'bob', 'clinic')",
]


def both(sender: str, receiver: str) -> str:
    """A view in which one table's senders and another's receivers are the persons."""
    return (
        f"CREATE VIEW v AS SELECT sender AS u, place AS p FROM {sender} UNION ALL "
        f"SELECT receiver AS u, place AS p FROM {receiver}"
    )


@pytest.mark.parametrize("engine", ALL)
def test_a_row_of_a_table_has_one_person(make: Any, engine: str) -> None:
    """Ann's messages moved the count of a place by the number of those whom she wrote to."""
    source = make(engine, [*MESSAGES, both("messages", "messages")])
    with pytest.raises(DataIndependentFailure) as refused:
        source("v").leading_counts(QUERY)
    assert str(refused.value).endswith(
        f"v may mix people: {SIDES} of them (a privacy file for topsecret.sql says whose it is); "
        "pass its table with where= and an item= expression, or the query to topsecret.sql, or "
        "pass trust_view=True if you know that each row depends on its own person alone and none "
        "can fail"
    )


@pytest.mark.parametrize("engine", ALL)
def test_rows_of_two_tables_may_have_their_persons_in_two_columns(make: Any, engine: str) -> None:
    source = make(engine, [*MESSAGES, both("messages", "letters")])
    assert source("v").leading_counts(QUERY) == [("clinic", 2)]


def test_a_partition_has_the_rows_of_its_table(make: Any) -> None:
    parts = [
        "CREATE TABLE posts (sender TEXT, receiver TEXT, place TEXT) PARTITION BY LIST (place)",
        "CREATE TABLE clinics PARTITION OF posts FOR VALUES IN ('clinic')",
        "INSERT INTO posts VALUES ('ann', 'bob', 'clinic')",
        both("posts", "clinics"),
    ]
    with pytest.raises(DataIndependentFailure, match="UNION takes several columns of one table"):
        make("postgresql", parts)("v").leading_counts(QUERY)
