"""Counts of an answer: their intervals, the number of persons, and how they are stored."""

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from topsecret import top_k, top_k_by
from topsecret.errors import InvalidParameter
from topsecret.ledger import Flexible, Ledger
from topsecret.questions.answer import counted
from topsecret.sources import CountQuery
from topsecret.sources.domains.domain import Listed
from topsecret.sources.open_source import open_source
from topsecret.sources.session import Engine, leading_counts_and_persons
from topsecret.sources.source import GroupAssignment

PERSONS = 400
ROWS = [
    (f"u{user}", f"p{place}", "FR" if user % 2 else "DE")
    for user in range(PERSONS)
    for place in range(5)
    if user % (place + 1) == 0
] + [("nobody's", "", "FR"), ("", "p0", "FR")]


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("user", "place", "country"), *ROWS])
    return path


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = tmp_path / "events.sqlite"
    with closing(sqlite3.connect(path)) as opened:
        # Persons that differ in case alone are two, whatever the column's collation.
        opened.execute("CREATE TABLE events (user TEXT COLLATE NOCASE, place TEXT, country TEXT)")
        opened.executemany("INSERT INTO events VALUES (?, ?, ?)", [*ROWS, ("U1", "p0", "FR")])
        opened.commit()
    return f"sqlite:///{path}"


ASKED = {"item": "place", "person": "user", "k": 3, "epsilon": 4}


def number(source: object, table: str | None = None, **more: object) -> int:
    opened = open_source(source, table)
    assert isinstance(opened, Engine)
    query = CountQuery("place", "user", 10, **more)
    [leading], [persons] = leading_counts_and_persons(opened, [query])
    assert max(count for _, count in leading) <= persons
    return persons


def test_all_persons_with_an_item_are_counted(events: Path, database: str) -> None:
    """A row without person or item belongs to nobody; in SQLite an empty text is a name."""
    assert number(events) == PERSONS
    assert number(events, where=[("country", "=", "DE")]) == PERSONS // 2
    assert number(events, max_items=1) == PERSONS
    assert number(database, "events") == PERSONS + 3


def test_the_number_moves_with_every_count(events: Path) -> None:
    """One person less: every count that moves takes the number of persons with it."""
    with events.open(newline="") as file:
        rows = list(csv.reader(file))
    asked = [CountQuery("place", "user", 10)]
    [before], [persons] = leading_counts_and_persons(open_source(events), asked)
    for gone in ("u0", "u1", "u4"):
        with events.open("w", newline="") as file:
            csv.writer(file).writerows(row for row in rows if row[0] != gone)
        [after], [fewer] = leading_counts_and_persons(open_source(events), asked)
        counts = dict(after)
        assert any(counts.get(item, 0) == count - 1 for item, count in before)
        assert fewer == persons - 1


def test_an_answer_tells_persons_and_shares(events: Path) -> None:
    release = top_k(events, **ASKED, counts=True, count_persons=True)
    assert release.counts is not None
    assert release.persons is not None
    assert abs(release.persons - PERSONS) < 80
    low, high = release.share(0)
    assert 0.5 < low < high <= 1.0
    told = json.loads(release.to_json())
    assert told["persons"] == release.persons
    assert len(told["intervals"]["shares"]) == len(release.counts)
    assert "in all, within" in dict(release.receipt)["Persons"]
    head = "rank,place,persons,within,share from,share to,smoothed,before next"
    assert release.to_csv().splitlines()[0] == head


def test_intervals_of_one_two_and_all(events: Path) -> None:
    release = top_k(events, **ASKED, counts=True, domain=[f"p{i}" for i in range(5)])
    assert release.counts is not None
    assert release.intervals is not None
    low, high = release.interval(0)
    assert low <= release.counts[0] <= high
    low, high = release.difference(0, 1)
    assert low < release.counts[0] - release.counts[1] < high
    assert 0 <= release.order(0) <= 1
    assert release.intervals.list_half_width() >= release.half_width
    assert release.smoothed is not None
    assert release.orders == tuple(release.order(place) for place in range(2))
    assert json.loads(release.to_json())["orders"] == list(release.orders)
    assert "with a probability of " in dict(release.receipt)["Order"]
    assert [row[4:] for row in release.rows()[1:]] == [
        [guess, sure] for guess, sure in zip(release.smoothed, (*release.orders, None), strict=True)
    ]
    with pytest.raises(InvalidParameter, match="must have an item after it"):
        release.order(2)
    with pytest.raises(InvalidParameter, match="ask with count_persons=True"):
        release.share(0)
    with pytest.raises(InvalidParameter, match="ask with counts=True"):
        top_k(events, **ASKED).interval(0)


def test_a_ledger_keeps_the_law_of_the_noise(events: Path, tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "ledger.db")) as ledger:
        ledger.open_budget("events", Flexible.of(epsilon=50, delta=1e-4), person="user")
        paid = {"ledger": ledger, "dataset": "events", "counts": True}
        first = top_k(events, **ASKED, **paid, count_persons=True)
        again = top_k(events, **ASKED, **paid, count_persons=True)
        assert again.charge is not None
        assert again.charge.stored
        assert (again.counts, again.persons) == (first.counts, first.persons)
        assert again.intervals == first.intervals
        other = top_k(events, **ASKED, **paid)
        assert other.charge is not None
        assert not other.charge.stored


def test_the_older_share_of_epsilon_warns(events: Path) -> None:
    with pytest.warns(DeprecationWarning, match="counts_share, a share of epsilon"):
        release = top_k(events, **ASKED, counts=True, counts_share=0.25)
    assert release.parameters["counts_share"] == 0.25
    with pytest.raises(InvalidParameter, match="pass counts_part alone"):
        top_k(events, **ASKED, counts=True, counts_share=0.25, counts_part=0.2)


def test_persons_are_refused_where_they_may_be_weighted(events: Path, tmp_path: Path) -> None:
    """They were left out of the answer, without a word."""
    asked = ASKED | {"mechanism": "tested-or-weighted", "counts": True, "count_persons": True}
    with closing(Ledger(tmp_path / "ledger.db")) as ledger:
        ledger.open_budget("events", Flexible.of(epsilon=50, delta=1e-4), person="user")
        with pytest.raises(InvalidParameter, match="pass mechanism='tested'"):
            top_k(events, **asked, ledger=ledger, dataset="events")
        assert not any(ledger.account("events").spent.values())


def test_persons_come_with_counts(events: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"count_persons=True needs .* add counts=True"):
        top_k(events, **ASKED, count_persons=True)


@pytest.mark.parametrize("domain", [None, [f"p{i}" for i in range(1, 5)]])
@pytest.mark.parametrize("disjoint", [False, True])
def test_every_group_has_its_persons(
    events: Path, disjoint: bool, domain: list[str] | None
) -> None:
    """People of both countries, who are in both lists, or in one of them by their hash."""
    with events.open("a", newline="") as file:
        csv.writer(file).writerows((f"u{user}", "p1", "FR") for user in range(0, 200, 2))
    asked = ASKED | {"epsilon": 40, "by": "country", "groups": ["FR", "DE", "IT"]}
    found = top_k_by(
        events, **asked, domain=domain, disjoint=disjoint, counts=True, count_persons=True
    )
    persons = {group: release.persons for group, release in found.items()}
    assert persons["FR"] is not None
    assert persons["DE"] is not None
    both = persons["FR"] + persons["DE"]
    if not disjoint:  # nobody is left out for a domain that lacks their item
        assert abs(both - PERSONS - 100) < 40
    elif domain is None:
        assert abs(both - PERSONS) < 40
    assert dict(found["FR"].receipt)["Persons"]


def test_a_group_of_one_person_each_moves_with_its_counts(tmp_path: Path) -> None:
    """Without one person, the number of the group that they were kept in is one less."""
    rows = [(f"u{n}", f"p{n % 3}", "FR" if place else "DE") for n in range(30) for place in (0, 1)]
    path = tmp_path / "events.csv"

    def exact(without: str, domain: Listed | None) -> list[tuple[dict[object, int], int]]:
        with path.open("w", newline="") as file:
            kept = [row for row in rows if row[0] != without]
            csv.writer(file).writerows([("user", "place", "country"), *kept])
        homes = [GroupAssignment("country", ("FR", "DE"), group) for group in ("FR", "DE")]
        queries = [
            CountQuery("place", "user", 10, domain=domain, home=home, salt=b"s" * 16)
            for home in homes
        ]
        with counted(open_source(path), queries, count_persons=True) as (histograms, persons):
            assert persons is not None
            lists = [dict(histogram.ranked(10)) for histogram in histograms]
            return list(zip(lists, persons, strict=True))

    for domain in (None, Listed(("p0", "p1"))):
        whole = exact("", domain)
        assert sum(number for _, number in whole) == (30 if domain is None else 20)
        for gone in ("u0", "u1", "u7"):
            for (before, many), (after, fewer) in zip(whole, exact(gone, domain), strict=True):
                moved = sum(before.values()) - sum(after.values())
                assert moved == many - fewer
                assert 0 <= moved <= 1
