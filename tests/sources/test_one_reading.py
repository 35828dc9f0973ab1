"""A question reads its rows once: no person is in two groups that are called disjoint."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlalchemy
from sqlalchemy import event

from postgres import Server
from topsecret import top_k_by
from topsecret.errors import DataIndependentFailure, InvalidParameter, WrongForSchema
from topsecret.questions.answer import counted
from topsecret.sources import CountQuery, GroupAssignment
from topsecret.sources.domains.counted_domain import counted_domains
from topsecret.sources.domains.domain import domain_of
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.engines.duckdb_tables import OpenConnection
from topsecret.sources.engines.sqlalchemy import SqlSource
from topsecret.sources.session import Engine, leading_counts_of

GROUPS = tuple(f"g{n}" for n in range(10))
QUERY = CountQuery("place", "user", 99, salt=bytes(16))
# One person, in another half of the groups each time it is read.
CHANGING = "CREATE VIEW v AS SELECT * FROM t WHERE random() {least}"


def of_groups(query: CountQuery = QUERY, groups: tuple[Any, ...] = GROUPS) -> list[CountQuery]:
    return [replace(query, home=GroupAssignment("g", groups, group)) for group in groups]


def lists_with_somebody(source: Engine, domain: bool) -> int:
    """How many groups have a count."""
    if not domain:
        return sum(bool(rows) for rows in leading_counts_of(source, of_groups()))
    query = replace(QUERY, domain=domain_of(["park", "pier"]))
    with counted_domains(source, of_groups(query)) as domains:
        return sum(max(count for count, _ in one.counts()) > 0 for one in domains)


@pytest.fixture(scope="module")
def database(postgres_server: Server) -> Iterator[sqlalchemy.Engine]:
    name = postgres_server.create_database()
    engine = sqlalchemy.create_engine(postgres_server.url(name))
    yield engine
    engine.dispose()
    postgres_server.drop_database(name)


@pytest.fixture(params=["duckdb", "sqlite", "postgresql"])
def changing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """A view that gives other rows each time, and that its owner trusts."""
    rows = ", ".join(f"('ann', '{group}', 'park')" for group in GROUPS)
    made = ['CREATE TABLE t ("user" TEXT, g TEXT, place TEXT)', f"INSERT INTO t VALUES {rows}"]
    if request.param == "duckdb":
        with duckdb.connect() as connection:
            for sql in [*made, CHANGING.format(least="< 0.5")]:
                connection.execute(sql)
            yield OpenConnection(connection, "v", trust_view=True)
        return
    engine = (
        sqlalchemy.create_engine(f"sqlite:///{tmp_path}/s.db")
        if request.param == "sqlite"
        else request.getfixturevalue("database")
    )
    with engine.begin() as connection:
        if request.param == "postgresql":
            connection.exec_driver_sql("DROP TABLE IF EXISTS t CASCADE")
        least = "< 0.5" if request.param == "postgresql" else "> 0"
        for sql in [*made, CHANGING.format(least=least)]:
            connection.exec_driver_sql(sql)
    yield SqlSource(engine, "v", trust_view=True)
    if request.param == "sqlite":
        engine.dispose()


@pytest.mark.parametrize("domain", [False, True])
def test_one_person_is_in_one_list(changing: Engine, domain: bool) -> None:
    assert {lists_with_somebody(changing, domain) for _ in range(6)} <= {0, 1}


def test_a_file_that_grows_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from topsecret.sources.engines.duckdb_session import DuckSession

    path = tmp_path / "e.csv"
    path.write_text("user,g,place\nann,g0,park\n", encoding="utf-8")
    attempt = DuckSession._attempt

    def attempt_and_grow(self: Any, sql: str, values: Any) -> Any:
        rows = attempt(self, sql, values)
        if "READ_CSV" in sql:
            text = "user,g,place\n" + "".join(f"ann,{group},park\n" for group in GROUPS[1:])
            path.write_text(text, encoding="utf-8")
        return rows

    monkeypatch.setattr(DuckSession, "_attempt", attempt_and_grow)
    assert lists_with_somebody(FileSource(path), False) <= 1
    path.write_text("user,g,place\nann,g0,park\n", encoding="utf-8")
    assert lists_with_somebody(FileSource(path), True) <= 1


def groups_with_somebody(source: Any, domain: bool) -> int:
    """How many groups have a count, or a person in their number of persons."""
    query = replace(QUERY, domain=domain_of(["park", "pier"]) if domain else None)
    with counted(source, of_groups(query), count_persons=True) as (found, persons):
        counts = [sum(count for _, count in one.ranked(2)) for one in found]
    assert persons is not None
    return sum(bool(count or number) for count, number in zip(counts, persons, strict=True))


@pytest.mark.parametrize("domain", [False, True])
def test_one_person_is_in_one_list_and_its_number_of_persons(
    changing: Engine, domain: bool
) -> None:
    assert {groups_with_somebody(changing, domain) for _ in range(6)} <= {0, 1}


@pytest.mark.parametrize("domain", [False, True])
def test_all_groups_are_one_statement_about_events(
    database: sqlalchemy.Engine, domain: bool
) -> None:
    with database.begin() as connection:
        connection.exec_driver_sql("DROP TABLE IF EXISTS t CASCADE")
        connection.exec_driver_sql('CREATE TABLE t ("user" TEXT, g TEXT, place TEXT)')
    said: list[str] = []
    event.listen(database, "before_cursor_execute", lambda *a: said.append(a[2]))
    lists_with_somebody(SqlSource(database, "t"), domain)
    assert sum('"public"."t"' in sql for sql in said) == 1


def test_without_the_right_to_temporary_tables(database: sqlalchemy.Engine) -> None:
    """A table is the same whenever it is read; a trusted view is not, and is refused."""
    with database.begin() as connection:
        connection.exec_driver_sql("DROP TABLE IF EXISTS t CASCADE")
        connection.exec_driver_sql('CREATE TABLE t ("user" TEXT, g TEXT, place TEXT)')
        connection.exec_driver_sql("INSERT INTO t VALUES ('ann', 'g1', 'park')")
        connection.exec_driver_sql(CHANGING.format(least="< 2"))
    url = database.url.update_query_dict({"options": "-c default_transaction_read_only=on"})
    engine = sqlalchemy.create_engine(url)
    assert lists_with_somebody(SqlSource(engine, "t"), True) == 1
    with pytest.raises(DataIndependentFailure, match="must be read once"):
        lists_with_somebody(SqlSource(engine, "v", trust_view=True), True)
    engine.dispose()


ROWS: dict[str, tuple[tuple[Any, ...], list[str]]] = {
    "TEXT": ((1, 2), ["'1'", "'2'", "'100000000000000000000e-20'", "'1.0'", "'x'"]),
    "DOUBLE PRECISION": ((1, 2), ["1", "2", "'NaN'", "1e300"]),
    "NUMERIC(9, 2)": ((1, 2), ["1", "2", "1.5"]),
    "DATE": (("2024-05-01", "2024-05-02"), ["'2024-05-01'", "'2024-05-02'", "'2024-05-03'"]),
    "BOOLEAN": ((True, False), ["TRUE", "FALSE"]),
    "BIGINT": ((1, 2), ["1", "2", "3"]),
}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("engine", ["duckdb", "postgresql"])
def test_groups_of_any_type(kind: str, engine: str, request: pytest.FixtureRequest) -> None:
    """Compared as the column's type demands: no row decides whether the question fails."""
    groups, values = ROWS[kind]
    made = [f'CREATE TABLE t ("user" TEXT, g {kind}, place TEXT)']
    made += [f"INSERT INTO t VALUES ('u{n}', {v}, 'park')" for n, v in enumerate(values)]
    if engine == "postgresql":
        database = request.getfixturevalue("database")
        with database.begin() as connection:
            for sql in ["DROP TABLE IF EXISTS t CASCADE", *made]:
                connection.exec_driver_sql(sql)
        source: Engine = SqlSource(database, "t")
        if kind == "TEXT":
            with pytest.raises(WrongForSchema, match="cannot be compared with a number"):
                leading_counts_of(source, of_groups(groups=groups))
            return
        assert [
            sum(n for _, n in rows) for rows in leading_counts_of(source, of_groups(groups=groups))
        ] == [1, 1]
        return
    with duckdb.connect() as opened:
        for sql in made:
            opened.execute(sql)
        found = leading_counts_of(OpenConnection(opened, "t"), of_groups(groups=groups))
        expected = [3, 1] if kind == "TEXT" else [1, 1]  # 1, 1.0 and 1e20e-20 are one number
        assert [sum(n for _, n in rows) for rows in found] == expected


def test_groups_are_of_one_kind(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("user,g,place\nann,1,park\n", encoding="utf-8")
    asked: dict[str, Any] = {"item": "place", "person": "user", "k": 1, "epsilon": 1}
    with pytest.raises(InvalidParameter, match="groups must be all text"):
        top_k_by(path, by="g", groups=[1, "1"], disjoint=True, **asked)
