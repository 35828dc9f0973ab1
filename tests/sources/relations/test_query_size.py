"""What a short text can cost: it is counted before it is written out, and work grows with it.

Work is counted in calls of functions, which are the same on every machine.
"""

import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from topsecret.sources.relations.open_query import open_query
from topsecret.sources.relations.privacy_file import PrivacyFile
from topsecret.sources.relations.query_size import MOST_JOINED, MOST_PARTS
from topsecret.sources.relations.refusal import QueryRefused

COUNTED = "SELECT place, COUNT(DISTINCT user) AS n FROM "
END = " GROUP BY place ORDER BY n DESC LIMIT 3"
MOST_CALLS = 5_000_000
"""Calls and returns; about half a second of one processor, where nobody counts them."""


def _all(number: int) -> str:
    return " AND ".join(["colour = 'a'"] * number)


def _doubling(times: int, number: int) -> str:
    """Each WITH joins the one before it with itself."""
    first = f"SELECT a.* FROM (SELECT * FROM t WHERE {_all(number)}) a JOIN t b ON a.user = b.user"
    more = "SELECT a.* FROM t{0} a JOIN t{0} b ON a.user = b.user"
    made = [first, *(more.format(place) for place in range(times - 1))]
    named = ", ".join(f"t{place} AS ({one})" for place, one in enumerate(made))
    return f"WITH {named} {COUNTED}t{times - 1}{END}"


def _calls(query: str, path: Path) -> tuple[int, str]:
    """How often functions were called or returned, and why the query is refused."""
    calls, why = 0, ""

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += 1

    open_query(COUNTED + "t" + END, str(path), person="user")  # modules are imported once
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        open_query(query, str(path), person="user")
    except QueryRefused as refused:
        why = str(refused)
    finally:
        sys.setprofile(before)
    return calls, why


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("size") / "events.csv"
    path.write_text("user,place,colour\nu1,a,red\n", "utf-8")
    return path


COLUMNS = ", ".join(f"colour AS c{place}" for place in range(500))
NUMBERS = ", ".join(f"ROW_NUMBER() OVER (PARTITION BY user ORDER BY place) r{n}" for n in range(99))
LISTED = ", ".join(["'a'"] * 2500)
ACCEPTED = {
    "doubling": _doubling(3, 280),
    "many conditions": f"{COUNTED}t WHERE {_all(600)}{END}",
    "conditions beside EXISTS": f"{COUNTED}t a WHERE EXISTS (SELECT 1 FROM t b WHERE a.user = "
    f"b.user) AND {_all(250)}{END}",
    "deep": COUNTED + "(SELECT * FROM " * 28 + f"t WHERE {_all(500)}" + ") AS t" * 28 + END,
    "wide": f"{COUNTED}(SELECT * FROM (SELECT user, place, {COLUMNS} FROM t) a) b{END}",
    "numbered": f"{COUNTED}(SELECT user, place, {NUMBERS} FROM t) a{END}",
    "layers": "SELECT place, n FROM "
    + "(SELECT place, n FROM " * 24
    + f"({COUNTED}t{END}) a"
    + ") AS b" * 24,
    "listed": f"{COUNTED}t WHERE colour IN ({LISTED}){END}",
}


@pytest.mark.parametrize("kind", ACCEPTED)
def test_what_is_accepted_takes_little_work(events: Path, kind: str) -> None:
    calls, why = _calls(ACCEPTED[kind], events)
    assert (why, calls < MOST_CALLS) == ("", True), calls


@pytest.mark.parametrize(
    "query",
    [
        _doubling(6, 400),
        _doubling(12, 1),
        f"{COUNTED}(SELECT user, place, CASE WHEN {_all(400)} THEN 1 END AS x FROM t "
        f"GROUP BY user, place, colour) a{END}",
    ],
)
def test_what_would_be_too_large_is_refused_before_it_is_made(events: Path, query: str) -> None:
    calls, why = _calls(query, events)
    assert why == (
        f"the query has more than {MOST_PARTS} parts, counting a WITH or view wherever it is "
        "read; shorten it, or read it fewer times"
    )
    assert calls < MOST_CALLS


def test_views_count_wherever_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "views.duckdb"
    file = PrivacyFile.parse('[tables.t]\nperson = "user"')
    with duckdb.connect(str(path)) as made:
        made.execute('CREATE TABLE t ("user" TEXT, place TEXT, colour TEXT)')
        made.execute("CREATE VIEW v0 AS SELECT * FROM t")
        for place in range(1, 16):
            made.execute(
                f'CREATE VIEW v{place} AS SELECT a."user", a.place FROM v{place - 1} a JOIN '
                f'v{place - 1} b ON a."user" = b."user"'
            )
    query = f"{COUNTED.replace('user', 'person')}v%d{END}"
    assert open_query(query % 3, str(path), privacy=file)[1].k == 3
    with pytest.raises(QueryRefused, match=f"more than {MOST_PARTS} parts"):
        open_query(query % 15, str(path), privacy=file)


def _joined(number: int) -> str:
    more = "".join(f" JOIN t t{place} ON t0.user = t{place}.user" for place in range(1, number))
    end = " GROUP BY t0.place ORDER BY n DESC LIMIT 3"
    return f"SELECT t0.place, COUNT(DISTINCT t0.user) AS n FROM t t0{more}{end}"


def _named(number: int) -> str:
    return f"WITH one AS (SELECT * FROM t) {_joined(number).replace(' t t', ' one t')}"


def _some(number: int) -> str:
    each = "EXISTS (SELECT 1 FROM t b WHERE a.user = b.user AND b.colour = 'red')"
    return f"{COUNTED}t a WHERE {' AND '.join([each] * (number - 1))}{END}"


@pytest.mark.parametrize("joined", [_joined, _named, _some])
def test_a_public_number_of_private_tables_is_joined(events: Path, joined: Any) -> None:
    """Twelve self-joins by the person make m rows of theirs m to the twelfth."""
    assert open_query(joined(MOST_JOINED), str(events), person="user")[1].k == 3
    for number in (MOST_JOINED + 1, 12):
        with pytest.raises(QueryRefused) as refused:
            open_query(joined(number), str(events), person="user")
        assert str(refused.value) == (
            f"the query joins {number} private tables, where a self-join, a sub-query and each "
            f"reading of a WITH or view count, and may join {MOST_JOINED}; join fewer of them"
        )


def test_what_stands_one_after_the_other_is_not_joined(events: Path) -> None:
    """A view of twelve months multiplies nobody's rows."""
    made = " UNION ALL ".join(["SELECT user, place FROM t"] * (MOST_JOINED + 4))
    assert open_query(f"{COUNTED}({made}) a{END}", str(events), person="user")[1].k == 3


def test_more_public_tables_may_be_joined(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    file = PrivacyFile.parse('[tables.t]\nperson = "person"\n[tables.p]\npublic = true')
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE t (person TEXT, place TEXT)")
        made.execute("CREATE TABLE p (place TEXT)")
    times = range(MOST_JOINED + 4)
    more = "".join(f" JOIN p p{place} ON t.place = p{place}.place" for place in times)
    query = "SELECT t.place, COUNT(DISTINCT t.person) AS n FROM t"
    query += f"{more} GROUP BY t.place ORDER BY n DESC LIMIT 3"
    assert open_query(query, str(path), privacy=file)[1].k == 3
