"""One list per public group: parallel only because each person is kept in one group."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
import sqlalchemy
from hypothesis import given, settings
from hypothesis import strategies as st

from postgres import Server
from topsecret import top_k_by
from topsecret.errors import InvalidParameter, NotInSchema
from topsecret.exact.rounding import exact
from topsecret.ledger import Flexible, Ledger, Metered
from topsecret.results.group_releases import Releases
from topsecret.sources import CountQuery, GroupAssignment
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.engines.sqlalchemy import SqlSource
from topsecret.sources.session import Engine, leading_counts_of

GROUPS = ("DE", "FR", "IT")
Row = tuple[str, str, str]


def file_of(folder: Path, rows: Sequence[Row]) -> FileSource:
    path = folder / "visits.csv"
    lines = [",".join(row) for row in rows]
    path.write_text("\n".join(["user,country,place", *lines, ""]), encoding="utf-8")
    return FileSource(path)


def table_of(engine: sqlalchemy.Engine, rows: Sequence[Row]) -> SqlSource:
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE IF EXISTS visits")
        connection.exec_driver_sql('CREATE TABLE visits ("user" TEXT, country TEXT, place TEXT)')
        if rows:
            connection.execute(
                sqlalchemy.text("INSERT INTO visits VALUES (:u, :c, :p)"),
                [{"u": u, "c": c, "p": p} for u, c, p in rows],
            )
    return SqlSource(engine, "visits")


@pytest.fixture(scope="module")
def database(postgres_server: Server) -> Iterator[sqlalchemy.Engine]:
    name = postgres_server.create_database()
    engine = sqlalchemy.create_engine(postgres_server.url(name))
    yield engine
    engine.dispose()
    postgres_server.drop_database(name)


def at_home(source: Engine, max_items: int | None = None) -> dict[str, dict[str, int]]:
    query = CountQuery("place", "user", 99, max_items=max_items, salt=bytes(16))
    queries = [replace(query, home=GroupAssignment("country", GROUPS, group)) for group in GROUPS]
    counts = leading_counts_of(source, queries)
    return {
        group: {str(item): count for item, count in found}
        for group, found in zip(GROUPS, counts, strict=True)
    }


visits = st.tuples(
    st.sampled_from(["ann", "bob", "cy", "dé"]),
    st.sampled_from([*GROUPS, "XX"]),
    st.sampled_from(["park", "pier", "zoo", "Zoo"]),
)
RELAXED = settings(max_examples=12)


@RELAXED
@given(rows=st.lists(visits, max_size=20), new=st.lists(visits, min_size=1, max_size=6))
@pytest.mark.parametrize("cap", [None, 1])
def test_one_person_more_changes_one_group(
    tmp_path: Path,
    database: sqlalchemy.Engine,
    cap: int | None,
    rows: list[Row],
    new: list[Row],
) -> None:
    more = [*rows, *(("new", country, place) for _, country, place in new)]
    before = at_home(file_of(tmp_path, rows), cap)
    after = at_home(file_of(tmp_path, more), cap)
    moved = {group: Counter(after[group]) for group in GROUPS}
    for group in GROUPS:
        moved[group].subtract(before[group])
    changed = [group for group in GROUPS if any(moved[group].values())]
    assert len(changed) <= 1
    assert all(change in {0, 1} for group in GROUPS for change in moved[group].values())
    assert at_home(table_of(database, more), cap) == after


def busy(folder: Path) -> FileSource:
    rows = [
        (f"u{n}", country, place)
        for country, place in (("DE", "park"), ("FR", "pier"))
        for n in range(3000)
    ]
    return file_of(folder, rows)


def test_disjoint_groups_cost_one(tmp_path: Path) -> None:
    answer = top_k_by(
        busy(tmp_path),
        by="country",
        groups=GROUPS,
        disjoint=True,
        item="place",
        person="user",
        k=1,
        epsilon=1,
    )
    assert [answer[group].items for group in GROUPS] == [("park",), ("pier",), ()]
    assert answer.composition == "parallel"
    assert answer.epsilon == max(release.epsilon for release in answer.values()) <= 1
    assert "each person was kept in one group alone" in str(answer)
    assert "where country = DE" in answer["DE"].title


def test_other_groups_add_up(tmp_path: Path) -> None:
    answer = top_k_by(
        busy(tmp_path), by="country", groups=GROUPS, item="place", person="user", k=1, epsilon=1
    )
    assert [answer[group].items for group in GROUPS] == [("park",), ("pier",), ()]
    assert answer.composition == "sequential"
    one = max(release.epsilon for release in answer.values())
    assert one < answer.epsilon <= 1
    assert answer.delta == 1e-6
    assert sum(release.delta for release in answer.values()) <= 1e-6
    assert "a person may be in several, so that the prices of the groups add up" in str(answer)
    assert answer.to_csv().splitlines() == ["country,rank,place", "DE,1,park", "FR,1,pier"]


def test_a_public_domain_in_groups(tmp_path: Path) -> None:
    answer = top_k_by(
        busy(tmp_path),
        by="country",
        groups=["DE", "FR"],
        disjoint=True,
        item="place",
        person="user",
        k=1,
        epsilon=1,
        domain=["park", "pier", "zoo"],
        counts=True,
    )
    assert [release.items for release in answer.values()] == [("park",), ("pier",)]
    counts = [release.counts for release in answer.values()]
    # 3,000 persons have rows in both: the hash sends each to one of them.
    assert sum(found[0] for found in counts if found) == pytest.approx(3000, abs=200)


@pytest.mark.parametrize("disjoint", [True, False])
def test_groups_are_paid_for_together_and_once(tmp_path: Path, disjoint: bool) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("visits", Flexible.of(epsilon=4, delta=1e-5), person="user")
    source = busy(tmp_path)

    def asked(**more: object) -> Releases:
        return top_k_by(
            source,
            by="country",
            groups=GROUPS,
            disjoint=disjoint,
            item="place",
            person="user",
            k=2,
            epsilon=1,
            mechanism="limited-domain",
            ledger=ledger,
            dataset="visits",
            **more,  # type: ignore[arg-type]
        )

    first = asked(request_id="monday")
    spent = ledger.account("visits").spent
    settled = ledger.history("visits")[-1].record
    price = Fraction(str(dict(settled)["cost"]["rho"]))  # type: ignore[index]
    release = first["DE"]
    pick = exact(release.parameters["epsilon_per_pick"]) ** 2 / 8
    # One list in full, or the symbols of all three: 2 + 2 + 1, the last one a ⊥ alone.
    symbols = 2 if disjoint else sum(len(one.items) + (not one.complete) for one in first.values())
    assert price == pytest.approx(symbols * pick, rel=1e-9)
    assert spent["rho"] == price
    again, retried = asked(), asked(request_id="monday")
    assert again.to_dict()["groups"] != first.to_dict()["groups"]  # the charge is another
    assert {group: one.items for group, one in again.items()} == {
        group: one.items for group, one in first.items()
    }
    assert "nothing: this is the stored answer" in str(again)
    assert "% of the budget of dataset 'visits'" in str(first)
    assert retried["FR"].items == first["FR"].items
    assert retried.composition == first.composition
    assert ledger.account("visits").spent == spent
    assert ledger.check().faults == ()
    ledger.close()


def test_a_metered_budget_has_no_groups(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget(
        "visits", Metered.of(epsilon=1, delta=1e-6, queries=2, picks=9), person="user"
    )
    with pytest.raises(InvalidParameter, match="groups need a flexible one"):
        top_k_by(
            busy(tmp_path),
            by="country",
            groups=GROUPS,
            item="place",
            person="user",
            k=2,
            epsilon=1,
            ledger=ledger,
            dataset="visits",
        )
    assert [entry.event for entry in ledger.history("visits")] == ["opened"]
    ledger.close()


@pytest.mark.parametrize("groups", [[], ["DE", "DE"], "DE"])
def test_groups_are_named_by_the_caller(tmp_path: Path, groups: list[str]) -> None:
    with pytest.raises(InvalidParameter, match="the public values to answer for, each once"):
        top_k_by(
            busy(tmp_path), by="country", groups=groups, item="place", person="user", k=1, epsilon=1
        )


def test_a_wrong_column(tmp_path: Path) -> None:
    with pytest.raises(NotInSchema, match="has no column 'land'"):
        top_k_by(
            busy(tmp_path), by="land", groups=["DE"], item="place", person="user", k=1, epsilon=1
        )
