"""Answers as tables for other tools, and the DB-API cursor that asks in SQL."""

import json
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pytest

import topsecret
from topsecret import dbapi
from topsecret.results.group_releases import Releases
from topsecret.results.release import Release

QUERY = (
    "SELECT place, day, COUNT(DISTINCT user) AS n FROM visits GROUP BY place, day ORDER BY n DESC "
    "LIMIT 2"
)


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    lines = [f"{user},tea,mon" for user in range(900)]
    lines += [f"{user},milk,mon" for user in range(600)]
    path.write_text("user,place,day\n" + "\n".join(lines))
    return path


@pytest.fixture
def release(visits: Path) -> Release:
    made = topsecret.sql(QUERY, visits, person="user", epsilon=8)
    assert isinstance(made, Release)
    return made


def rows(release: Release) -> list[tuple[Any, ...]]:
    assert release.counts is not None
    return [
        (1, "tea", "mon", release.counts[0], release.half_width),
        (2, "milk", "mon", release.counts[1], release.half_width),
    ]


NAMES = ["rank", "place", "day", "n", "plus_minus"]


def test_pandas_keeps_the_receipt(release: Release) -> None:
    frame: pandas.DataFrame = release.to_pandas()
    assert list(frame.columns) == NAMES
    assert [tuple(row) for row in frame.itertuples(index=False)] == rows(release)
    assert frame.attrs["topsecret"] == release.to_dict()


def test_polars(release: Release) -> None:
    frame: polars.DataFrame = release.to_polars()
    assert frame.columns == NAMES
    assert frame.rows() == rows(release)


def test_arrow_keeps_the_receipt(release: Release) -> None:
    table: pyarrow.Table = release.to_arrow()
    assert table.column_names == NAMES
    assert [tuple(row.values()) for row in table.to_pylist()] == rows(release)
    kept = json.loads(table.schema.metadata[b"topsecret"])
    assert kept["receipt"] == dict(release.receipt)


def test_a_list_without_counts_or_items_has_the_same_columns(visits: Path) -> None:
    bare = QUERY.replace(", COUNT(DISTINCT user) AS n", "").replace(
        "ORDER BY n", "ORDER BY COUNT(DISTINCT user)"
    )
    shown = topsecret.sql(bare, visits, person="user", epsilon=8)
    assert isinstance(shown, Release)
    assert shown.to_polars().rows() == [
        (1, "tea", "mon", None, None),
        (2, "milk", "mon", None, None),
    ]
    few = QUERY.replace("FROM visits", "FROM visits WHERE place = 'x'").replace(
        "place, day", "place"
    )
    empty = topsecret.sql(few, visits, person="user", epsilon=8)
    assert isinstance(empty, Release)
    names = ["rank", "place", "n", "plus_minus"]
    assert empty.to_arrow().column_names == list(empty.to_pandas().columns) == names
    assert empty.to_polars().columns == names


def test_having_without_a_limit_names_all_that_surely_have_so_many(visits: Path) -> None:
    query = (
        "SELECT place, COUNT(DISTINCT user) AS n FROM visits GROUP BY place HAVING n >= 500 ORDER "
        "BY n DESC"
    )
    shown = topsecret.sql(query, visits, person="user", epsilon=8)
    assert isinstance(shown, Release)
    assert shown.k == "all"
    assert shown.at_least is not None
    frame = shown.to_polars()
    assert frame.columns == ["rank", "place", "n", "plus_minus", "at_least"]
    assert sorted(frame["place"]) == ["milk", "tea"]
    assert all(500 <= number <= 900 for number in frame["at_least"])


def test_having_beside_a_limit_cuts_by_the_noisy_counts(visits: Path) -> None:
    query = QUERY.replace("ORDER BY", "HAVING COUNT(DISTINCT user) >= 750 ORDER BY")
    shown = topsecret.sql(query, visits, person="user", epsilon=8)
    assert isinstance(shown, Release)
    assert [row[1] for row in shown.to_polars().rows()] == ["tea"]
    assert "at least 750" in shown.ending
    cut = topsecret.sql(
        GROUPS.replace("QUALIFY", "HAVING COUNT(DISTINCT user) >= 5000 QUALIFY"),
        visits,
        person="user",
        epsilon=8,
    )
    assert isinstance(cut, Releases)
    assert cut["mon"].items == ()


def test_columns_of_one_name_stay_apart(release: Release) -> None:
    from dataclasses import replace

    from topsecret.results.frames import table_of

    assert table_of(replace(release, item="n, rank"))[0] == (
        "rank",
        "n_",
        "rank_",
        "n",
        "plus_minus",
    )
    assert table_of(replace(release, item="a, b, c"))[0] == (
        *("rank", "item_1", "item_2"),
        *("n", "plus_minus"),
    )


GROUPS = (
    "SELECT day, place, COUNT(DISTINCT user) AS n FROM visits WHERE day IN ('mon', 'tue') GROUP BY "
    "day, place QUALIFY ROW_NUMBER() OVER (PARTITION BY day ORDER BY COUNT(DISTINCT user) DESC) "
    "<= 1"
)


def test_groups_have_a_column_of_their_own(visits: Path) -> None:
    releases = topsecret.sql(GROUPS, visits, person="user", epsilon=8)
    assert isinstance(releases, Releases)
    frame = releases.to_pandas()
    assert list(frame.columns) == ["day", "rank", "place", "n", "plus_minus"]
    assert frame["place"].tolist() == ["tea"]
    assert releases.to_arrow().num_rows == releases.to_polars().height == 1


def test_a_cursor_asks_and_hands_rows_out(visits: Path) -> None:
    with dbapi.connect(visits, person="user", epsilon=8) as connection:
        cursor = connection.cursor()
        assert cursor.rowcount == -1
        assert cursor.execute(QUERY).rowcount == 2
        assert cursor.description is not None
        assert [(one[0], one[1]) for one in cursor.description] == [
            ("rank", "NUMBER"),
            ("place", "STRING"),
            ("day", "STRING"),
            ("n", "NUMBER"),
            ("plus_minus", "NUMBER"),
        ]
        assert cursor.receipt["Protected"].startswith("each person")
        first = cursor.fetchone()
        assert first is not None
        assert first[:3] == (1, "tea", "mon")
        assert [row[1] for row in cursor] == ["milk"]
        assert cursor.fetchone() is None
        assert cursor.fetchall() == []
        assert cursor.execute(GROUPS).fetchmany(5)[0][:3] == ("mon", 1, "tea")
        assert "epsilon" in cursor.receipt["Together"]


def test_explain_costs_nothing(visits: Path) -> None:
    cursor = dbapi.connect(visits, person="user").cursor()
    shown = dict(cursor.execute(f"EXPLAIN {QUERY}").fetchall())
    assert (shown["k"], shown["items"]) == ("2", "['place', 'day']")
    assert cursor.answer is None


def test_errors_are_those_of_the_interface(visits: Path) -> None:
    connection = dbapi.connect(visits, person="user", epsilon=8)
    cursor = connection.cursor()
    with pytest.raises(dbapi.InterfaceError, match="no query was asked yet"):
        cursor.fetchall()
    with pytest.raises(dbapi.ProgrammingError, match="needs GROUP BY"):
        cursor.execute("SELECT place FROM visits")
    with pytest.raises(dbapi.NotSupportedError, match="has no parameters"):
        cursor.execute(QUERY, ["x"])
    with pytest.raises(dbapi.NotSupportedError, match="has no parameters"):
        cursor.executemany(QUERY, [])
    with pytest.raises(dbapi.NotSupportedError, match="cannot be taken back"):
        connection.rollback()
    connection.commit()
    connection.close()
    with pytest.raises(dbapi.InterfaceError, match="the connection is closed"):
        connection.cursor()
    assert issubclass(dbapi.ProgrammingError, dbapi.Error)
    assert issubclass(dbapi.OperationalError, dbapi.DatabaseError)
    assert (dbapi.apilevel, dbapi.threadsafety) == ("2.0", 1)
