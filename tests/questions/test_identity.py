"""Which questions a ledger takes for the same: never two about different data."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
import sqlalchemy

from postgres import Server
from topsecret import top_k
from topsecret.ledger import Flexible, Ledger
from topsecret.results.release import Release
from topsecret.sources.engines.sqlalchemy import SqlSource
from topsecret.sources.open_source import open_source
from topsecret.sources.source import source_fingerprint


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(tmp_path / "ledger.db")
    opened.open_budget("d", Flexible.of(epsilon=50, delta=1e-3), person="user")
    yield opened
    opened.close()


def ask(ledger: Ledger, source: Any, **more: Any) -> Release:
    asked: dict[str, Any] = {"item": "place", "person": "user", "k": 1, "epsilon": 2.0} | more
    return top_k(source, mechanism="limited-domain", ledger=ledger, dataset="d", **asked)


def stored(release: Release) -> bool:
    assert release.charge is not None
    return release.charge.stored


def month(place: str) -> pd.DataFrame:
    return pd.DataFrame({"user": [f"u{n}" for n in range(300)], "place": [place] * 300}, dtype=str)


def test_two_data_frames_are_two_questions(ledger: Ledger) -> None:
    assert ask(ledger, month("park")).items == ("park",)
    february = ask(ledger, month("pier"))
    assert (february.items, stored(february)) == (("pier",), False)


def test_a_version_names_a_data_frame(ledger: Ledger) -> None:
    frame = month("park")
    assert not stored(ask(ledger, frame, version="2026-01"))
    assert stored(ask(ledger, frame, version="2026-01"))
    assert not stored(ask(ledger, frame, version="2026-02"))
    assert not stored(ask(ledger, frame))


def test_a_request_id_makes_a_retry_about_a_data_frame_free(ledger: Ledger) -> None:
    frame = month("park")
    assert not stored(ask(ledger, frame, request_id="r"))
    assert stored(ask(ledger, frame, request_id="r"))


def test_two_connections_in_memory_are_two_questions(ledger: Ledger) -> None:
    for place in ("park", "pier"):
        connection = duckdb.connect()
        rows = f"SELECT 'u' || range AS \"user\", '{place}' AS place FROM range(300)"
        connection.execute(f"CREATE TABLE visits AS {rows}")
        release = ask(ledger, connection, table="visits")
        assert (release.items, stored(release)) == ((place,), False)
        connection.close()


def test_files_of_one_name_and_time_in_two_folders_are_two_questions(
    ledger: Ledger, tmp_path: Path
) -> None:
    for place in ("park", "pier"):
        folder = tmp_path / place
        folder.mkdir()
        month(place).to_csv(folder / "visits.csv", index=False)
        os.utime(folder / "visits.csv", ns=(10**18, 10**18))
        release = ask(ledger, folder / "visits.csv")
        assert (release.items, stored(release)) == ((place,), False)
        assert stored(ask(ledger, folder / "visits.csv"))


def test_two_users_of_postgresql_are_two_questions(ledger: Ledger, postgres_server: Server) -> None:
    name = postgres_server.create_database()
    engine = sqlalchemy.create_engine(postgres_server.url(name))
    owned = [("one", "park"), ("two", "pier")]
    with engine.begin() as connection:
        run = connection.exec_driver_sql
        run('CREATE TABLE visits (owner TEXT, "user" TEXT, place TEXT)')
        run("ALTER TABLE visits ENABLE ROW LEVEL SECURITY")
        run("CREATE POLICY mine ON visits USING (owner = current_user)")
        for owner, place in owned:
            run(f"CREATE ROLE {owner} LOGIN")
            run(f"GRANT SELECT ON visits TO {owner}")
            users = "SELECT 'u' || generate_series(1, 300)"
            run(f"INSERT INTO visits SELECT '{owner}', users.u, '{place}' FROM ({users}) users (u)")
    for owner, place in owned:
        url = engine.url.set(username=owner).render_as_string(hide_password=False)
        release = ask(ledger, url, table="visits", trust_view=True)
        assert (release.items, stored(release)) == ((place,), False)
        assert stored(ask(ledger, url, table="visits", trust_view=True))
    with engine.begin() as connection:
        for owner, _ in owned:
            connection.exec_driver_sql(f"DROP OWNED BY {owner}; DROP ROLE {owner}")
    engine.dispose()
    postgres_server.drop_database(name)


def test_a_databases_fingerprint_is_its_whole_address_but_the_password() -> None:
    url = "postgresql+psycopg://ann:secret@host:{}/shop?options=-csearch_path%3Da&sslpassword=hush"
    told = SqlSource(url.format(5433), "visits").fingerprint()
    assert told == {
        "kind": "postgresql",
        "host": "host",
        "port": 5433,
        "database": "shop",
        "user": "ann",
        "options": [["options", "-csearch_path=a"]],
        "table": ["visits"],
        "version": "",
    }
    assert told != SqlSource(url.format(5434), "visits").fingerprint()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_a_database_in_memory_is_not_recognised(url: str) -> None:
    assert source_fingerprint(open_source(url, "visits"))[1] is False
    assert source_fingerprint(open_source(url, "visits"), "1")[1] is True
