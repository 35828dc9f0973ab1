"""SQLite keeps whatever is written into a column: persons stay apart, names can be read."""

import contextlib
import itertools
import math
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from contract import SALT, choice_key
from hypothesis import example, given, settings
from hypothesis import strategies as st

from topsecret.errors import DataIndependentFailure
from topsecret.sources import CountQuery
from topsecret.sources.engines.sqlalchemy import SqlSource
from topsecret.sources.source import GroupAssignment

TYPES = ["INTEGER", "TEXT COLLATE NOCASE", "REAL", "BOOLEAN", "DECIMAL", "BLOB", ""]
WRITTEN = [0, 1, 1.0, -0.0, 0.1, 0.1 + 2**-56, 1e300, 2.0**63, 2**63 - 1, math.inf, 5e-324]
WRITTEN += ["ann", "Ann", "bob", "0", "1", "1.0", " 1", "\1integer:1", "\1text:ann", "ä", ""]
WRITTEN += [b"ann", b"1", b"\xff", b"\xfe"]
values = st.sampled_from(WRITTEN)
people = st.lists(st.tuples(values, st.sampled_from("abcdef"), st.sampled_from("gh")), max_size=20)
numbers = itertools.count()
RELAXED = settings(max_examples=4)


def database(folder: Path, rows: Any, kind: str) -> str:
    path = folder / f"{next(numbers)}.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(f"CREATE TABLE t (user {kind}, place TEXT, area TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    connection.close()
    return f"sqlite:///{path}"


def without(rows: list[Any], who: Any, kind: str) -> list[Any]:
    """The rows of everybody else: a person is what the column keeps, and SQLite says what is equal.

    A column of texts keeps one text for two floats that differ in their last digit.
    """
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE t (user {kind}, row INTEGER)")
        kept = [(row[0], number) for number, row in enumerate(rows)]
        connection.executemany("INSERT INTO t VALUES (?, ?)", [*kept, (who, None)])
        other = connection.execute(
            "SELECT row FROM t WHERE user <> (SELECT user FROM t WHERE row IS NULL) COLLATE BINARY"
        ).fetchall()
    return [rows[number] for (number,) in sorted(other)]


def counts(url: str, **more: Any) -> dict[Any, int]:
    query = CountQuery("place", "user", 100, salt=SALT, **more)
    return dict(SqlSource(url, "t").leading_counts(query))


@pytest.mark.parametrize("kind", ["INTEGER", "TEXT", "REAL", ""])
@RELAXED
@given(rows=people, who=values, new=st.sets(st.sampled_from("abcdef"), min_size=1))
@example(rows=[(0.1 + 2**-56, "a", "g")], who=0.1, new={"b", "c", "d"})
@example(rows=[(0.1 + 2**-56, "a", "g"), ("0.1", "b", "h")], who=0.1, new={"a", "c", "d"})
def test_one_person_more_with_mixed_types(
    tmp_path: Path, kind: str, rows: list[Any], who: Any, new: set[str]
) -> None:
    """No count falls, none rises by more than 1, at most cap of them; one group alone changes."""
    others = without(rows, who, kind)
    more = others + [(who, item, area) for item in sorted(new) for area in "gh"]
    before, after = database(tmp_path, others, kind), database(tmp_path, more, kind)
    old, late = counts(before, max_items=2), counts(after, max_items=2)
    moved = {item: late.get(item, 0) - old.get(item, 0) for item in {*old, *late}}
    assert set(moved.values()) <= {0, 1}
    assert sum(moved.values()) <= 2
    homes = [GroupAssignment("area", ("g", "h"), group) for group in "gh"]
    changed = [counts(before, home=home) != counts(after, home=home) for home in homes]
    assert sum(changed) <= 1


@pytest.mark.parametrize("kind", TYPES)
def test_persons_are_as_many_as_the_column_holds(tmp_path: Path, kind: str) -> None:
    url = database(tmp_path, [(value, "x", "g") for value in WRITTEN], kind)
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        (stored,) = connection.execute("SELECT COUNT(DISTINCT user COLLATE BINARY) FROM t")
    connection.close()
    assert list(counts(url).values()) == [stored[0]]


def test_a_view_may_mix_what_its_first_part_names(tmp_path: Path) -> None:
    """The declared type of a view's column is that of its first part alone."""
    url = database(tmp_path, [("1", "x", "g"), ("ann", "x", "g")], "TEXT")
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("CREATE TABLE n (user, place)")
        connection.executemany("INSERT INTO n VALUES (?, 'x')", [(1,), (1.0,), (b"1",), (0.5,)])
        connection.execute("CREATE VIEW v AS SELECT user, place FROM t UNION ALL SELECT * FROM n")
    connection.close()
    query = CountQuery("place", "user", 9)
    assert SqlSource(url, "v").leading_counts(query) == [("x", 5)]


@pytest.mark.parametrize(
    ("kind", "person"), [("INTEGER", 12), ("TEXT", "12"), ("DECIMAL", 12), ("REAL", 12), ("", "ä")]
)
def test_the_cap_of_ordinary_persons_is_the_documented_one(
    tmp_path: Path, kind: str, person: Any
) -> None:
    chosen: dict[Any, int] = defaultdict(int)
    path = database(tmp_path, [(person, None, "g")], kind).removeprefix("sqlite:///")
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE e (user " + kind + ", place TEXT)")
        connection.executemany("INSERT INTO e VALUES (?, ?)", [(person, c) for c in "abcdefgh"])
    connection.close()
    for item in sorted("abcdefgh", key=lambda item: choice_key(SALT, person, item))[:3]:
        chosen[item] += 1
    query = CountQuery("place", "user", 100, max_items=3, salt=SALT)
    assert dict(SqlSource(f"sqlite:///{path}", "e").leading_counts(query)) == chosen


ODD = [b"\xffA", b"\xfeA", "caf\u00e9".encode(), b"caf\xe9", b"a\0b", b"a"]
ODD += ["\ufffd\\xff41".encode(), "\ufffd".encode(), b"\\xff41", b"\xed\xa0\x80"]


@pytest.mark.parametrize("cap", [None, 20])
def test_text_that_is_not_utf8_is_read_and_kept_apart(tmp_path: Path, cap: int | None) -> None:
    url = database(tmp_path, [], "TEXT")
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        for who in ODD:
            connection.executemany(
                "INSERT INTO t VALUES (CAST(? AS TEXT), CAST(? AS TEXT), 'g')",
                [(who, place) for place in ODD],
            )
    connection.close()
    found = counts(url, max_items=cap)
    assert len(found) == len(ODD)
    assert set(found.values()) == {len(ODD)}
    assert {"caf\u00e9", "a", "\ufffd", "\ufffd\\xff41", "\ufffd\\x636166e9"} <= set(found)


def test_the_callers_connection_reads_text_as_before(tmp_path: Path) -> None:
    url = database(tmp_path, [("ann", "x", "g")], "TEXT")
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.StaticPool)
    SqlSource(engine, "t").leading_counts(CountQuery("place", "user", 9))
    with engine.connect() as connection:
        raw: Any = connection.connection.dbapi_connection
        assert raw.text_factory is str
    engine.dispose()


def test_utf16_is_refused_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "wide.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA encoding = 'UTF-16le'")
        connection.execute("CREATE TABLE t (user TEXT, place TEXT)")
    connection.close()
    source = SqlSource(f"sqlite:///{path}", "t")
    with pytest.raises(DataIndependentFailure, match="encoded in UTF-16le; copy it"):
        source.leading_counts(CountQuery("place", "user", 9))
    pool: Any = source._engine.pool
    assert pool.checkedin() == 0  # no connection is left open


def test_a_mistyped_path_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataIndependentFailure, match=r"there is no SQLite database .*; check the"):
        counts(f"sqlite:///{tmp_path}/evnts.db")
    assert not list(tmp_path.iterdir())


def test_one_file_of_sqlite_is_not_two_databases(tmp_path: Path) -> None:
    """The events would be a public table under the other name."""
    path, other = tmp_path / "e.db", tmp_path / "o.db"
    for place in (path, other):
        with contextlib.closing(sqlite3.connect(place)) as connection:
            connection.execute("CREATE TABLE ev (u TEXT, p TEXT)")
    engine = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.StaticPool)
    with engine.connect() as connection:
        connection.exec_driver_sql(f"ATTACH '{path}' AS a")
        connection.exec_driver_sql(f"ATTACH '{other}' AS c")
    assert SqlSource(engine, "a.ev").leading_counts(CountQuery("p", "u", rows=9)) == []
    with engine.connect() as connection:
        connection.exec_driver_sql(f"ATTACH '{path}' AS b")
    with pytest.raises(DataIndependentFailure, match="attached under two names"):
        SqlSource(engine, "a.ev").leading_counts(CountQuery("p", "u", rows=9))
    engine.dispose()
