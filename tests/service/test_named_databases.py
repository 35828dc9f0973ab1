"""Datasets in databases that the operator named: asked like files, and their address is secret."""

import contextlib
import sqlite3
from pathlib import Path

import httpx
import pytest
from serving import (
    BRIEF,
    PASSWORD,
    PATIENCE,
    PLACES,
    SHOP,
    Here,
    Server,
    here,
    settings,
    write_table,
)
from sqlalchemy import create_engine, inspect, text

from topsecret.errors import InvalidParameter
from topsecret.service.databases import Databases, named
from topsecret.service.datasets import NewDataset
from topsecret.service.state import Parts

SECRET = "hunter2-of-the-database"


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with a table ``visits``; where it has passwords, the address holds one."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/{SECRET}.db"
    else:
        # The tests' server trusts everybody: any password will do.
        url = request.getfixturevalue("postgres_url").replace("tests@", f"tests:{SECRET}@")
    write_table(url, PLACES)
    return url


REGISTER = {
    "name": "stored",
    "title": "Stored visits",
    "source": "shop",
    "table": "visits",
    "person": "who",
    "columns": ["place"],
    "epsilon": 8,
    "delta": 1e-5,
}


def test_a_table_is_registered_and_asked_and_its_address_is_nowhere(
    tmp_path: Path, address: str
) -> None:
    parts = Parts(settings(tmp_path))
    parts.accounts.add("olga", "owner", PASSWORD)
    parts.accounts.add("ann", "analyst", PASSWORD)
    keys = {name: parts.accounts.new_key(name, "tests") for name in ("olga", "ann")}
    environment = {"TOPSECRET_SOURCES": f"shop={address}\n gone=sqlite:////none/{SECRET}/x"}
    server = Server(tmp_path, "--tick", "0.1", environment=environment)
    seen = []
    try:
        with httpx.Client(base_url=server.address, timeout=PATIENCE, limits=BRIEF) as client:
            service = Here(client, parts, keys)

            def call(who: str, method: str, path: str, body: object = None) -> httpx.Response:
                answer = service.call(who, method, path, body)
                seen.append(answer.text + str(answer.headers))
                return answer

            assert call("olga", "GET", "/api/sources").json() == [
                {"name": "gone"},
                {"name": "shop"},
            ]
            assert call("olga", "GET", "/api/sources/shop").json()["tables"] == ["visits"]
            for name in ("gone", "other"):
                assert call("olga", "GET", f"/api/sources/{name}").status_code == 400
            for path in ("", "?source=shop", "?source=shop&table=visits", "?source=gone"):
                page = call("olga", "GET", f"/owner/new{path}")
                assert page.status_code == (400 if "gone" in path else 200)
            for wrong in ({"table": "none"}, {"source": "gone"}, {"columns": ["none"]}):
                assert call("olga", "POST", "/api/datasets", REGISTER | wrong).status_code == 400
            assert call("olga", "POST", "/api/datasets", REGISTER).status_code == 201
            share = {"analyst": "ann", "epsilon": 8}
            call("olga", "POST", "/api/datasets/stored/allowances", share)
            question = {"column": "place", "k": 3, "epsilon": 1.0}
            job = service.answered("ann", "/api/datasets/stored/ask", question)
            assert job["answer"]["items"] == ["Harbour", "Market", "Library"]
            for who in ("ann", "olga"):
                for path in ("", "/csv"):
                    call(who, "GET", f"/api/answers/{job['id']}{path}")
                call(who, "GET", f"/answers/{job['id']}")
                call(who, "GET", "/answers")
            assert "visits of shop" in call("olga", "GET", "/owner/datasets/stored").text

            # The table disappears: a failure that no row can influence costs nothing.
            engine = create_engine(address)
            with engine.begin() as connection:
                connection.execute(text("DROP TABLE visits"))
            engine.dispose()
            spent = parts.ledger.account("stored").spent
            failed = service.answered("ann", "/api/datasets/stored/ask", question | {"k": 2})
            assert (failed["state"], failed["error"]) == ("failed", "source_failed")
            seen.append(str(failed))
            assert parts.ledger.account("stored").spent == spent
    finally:
        server.stop()
    parts.store.close()
    parts.ledger.close()
    with contextlib.closing(sqlite3.connect(parts.settings.place)) as kept:
        jobs = kept.execute("SELECT * FROM service_jobs").fetchall()
        registered = kept.execute("SELECT * FROM service_datasets").fetchall()
    for found in (*seen, server.log.read_text(encoding="utf-8"), str(jobs), str(registered)):
        assert SECRET not in found
        assert "://" not in found.replace("http://", "")


def test_a_cap_and_a_fixed_price_hold_for_a_table(tmp_path: Path) -> None:
    with here(tmp_path) as service:
        body = REGISTER | {"cap": 1, "queries": 3, "picks": 10}
        assert service.call("olga", "POST", "/api/datasets", body).status_code == 201
        share = {"analyst": "ann", "queries": 3, "picks": 10}
        service.call("olga", "POST", "/api/datasets/stored/allowances", share)
        job = service.answered("ann", "/api/datasets/stored/ask", {"column": "place", "k": 2})
        assert job["answer"]["max_items"] == 1
        assert len(job["answer"]["items"]) == 2


def test_an_owner_answers_for_a_view_and_the_receipt_says_so(tmp_path: Path) -> None:
    with here(tmp_path) as service:
        with contextlib.closing(sqlite3.connect(tmp_path / SHOP)) as shop:
            shop.execute("CREATE VIEW many AS SELECT * FROM visits LIMIT 1000")
            shop.commit()
        question = {"column": "place", "k": 2, "epsilon": 1.0}
        found = {}
        for name, trust in (("doubted", False), ("trusted", True)):
            body = REGISTER | {"name": name, "table": "many", "trust_view": trust}
            assert service.call("olga", "POST", "/api/datasets", body).status_code == 201
            share = {"analyst": "ann", "epsilon": 8}
            service.call("olga", "POST", f"/api/datasets/{name}/allowances", share)
            found[name] = service.answered("ann", f"/api/datasets/{name}/ask", question)
        assert [job["state"] == "answered" for job in found.values()] == [False, True]
        assert found["doubted"]["answer"] is None
        said = "each row of trusted depends on its own person alone: declared by trust_view, not"
        assert said in str(found["trusted"]["answer"])
        assert not any(place in str(found["trusted"]) for place in (SHOP, "many of"))
        # It is the owner's word: an analyst cannot give it, nor is it one about a file or SQL.
        asked = service.call(
            "ann", "POST", "/api/datasets/doubted/ask", question | {"trust_view": True}
        )
        assert asked.status_code in (400, 422)
        for wrong in ({"sql": True}, {"source": "", "table": "", "file": "events.csv"}):
            body = REGISTER | {"name": "wrong", "trust_view": True} | wrong
            assert service.call("olga", "POST", "/api/datasets", body).status_code == 400
        edit = {"source": "shop", "table": "many"}
        service.call("olga", "PATCH", "/api/datasets/trusted", edit)
        assert not service.parts.datasets.get("trusted").trust_view


def test_a_view_is_not_registered_for_sql_that_would_always_be_refused(tmp_path: Path) -> None:
    with here(tmp_path) as service:
        with contextlib.closing(sqlite3.connect(tmp_path / SHOP)) as shop:
            shop.execute("CREATE VIEW many AS SELECT * FROM visits")
            shop.commit()
        body = REGISTER | {"name": "viewed", "table": "many", "sql": True}
        refused = service.call("olga", "POST", "/api/datasets", body)
        assert refused.status_code == 400
        assert "an ordinary one of PostgreSQL or SQLite, not a view" in refused.json()["message"]
        assert service.call("olga", "POST", "/api/datasets", body | {"sql": False}).is_success
        body |= {"name": "tabled", "table": "visits"}
        assert service.call("olga", "POST", "/api/datasets", body).status_code == 201
        # Nor is a table that may be asked in SQL pointed to one.
        edit = {"source": "shop", "table": "many"}
        moved = service.call("olga", "PATCH", "/api/datasets/tabled", edit)
        assert (moved.status_code, service.parts.datasets.get("tabled").table) == (400, "visits")


def test_tables_of_other_schemas_and_views_are_listed_and_the_systems_are_not(
    postgres_url: str,
) -> None:
    engine = create_engine(postgres_url)
    with engine.begin() as connection:
        for statement in (
            "CREATE TABLE visits (who TEXT)",
            "CREATE SCHEMA shop",
            "CREATE TABLE shop.orders (who TEXT, item TEXT)",
            "CREATE VIEW recent AS SELECT * FROM visits",
            "CREATE MATERIALIZED VIEW kept AS SELECT * FROM visits",
            'CREATE TABLE "a.b" (who TEXT)',
        ):
            connection.execute(text(statement))
    engine.dispose()
    databases = Databases(named([f"shop={postgres_url}"]))
    assert databases.tables("shop") == ("kept", "recent", "shop.orders", "visits")
    assert databases.columns("shop", "shop.orders") == ("who", "item")
    assert databases.columns("shop", "kept") == ("who",)
    for table in ("pg_catalog.pg_authid", "information_schema.tables", "a.b", ""):
        with pytest.raises(InvalidParameter, match="database; choose one that is listed"):
            databases.columns("shop", table)


def test_a_table_that_the_user_may_not_read_is_not_registered(postgres_url: str) -> None:
    write_table(postgres_url, {"Harbour": 3})
    engine = create_engine(postgres_url)
    reader = f"reader_{engine.url.database}"
    with engine.begin() as connection:
        connection.execute(text(f"CREATE ROLE {reader} LOGIN"))
    databases = Databases(named([f"shop={postgres_url.replace('tests@', f'{reader}@')}"]))
    try:
        assert databases.tables("shop") == ("visits",)
        with pytest.raises(InvalidParameter, match="cannot be read at present"):
            databases.columns("shop", "visits")
        with engine.begin() as connection:
            connection.execute(text(f"GRANT SELECT ON visits TO {reader}"))
        assert databases.columns("shop", "visits") == ("who", "place")
    finally:
        with engine.begin() as connection:
            connection.execute(text(f"DROP OWNED BY {reader}; DROP ROLE {reader}"))
        engine.dispose()


def test_an_address_is_in_no_repr(tmp_path: Path) -> None:
    secret = f"postgresql://ann:{SECRET}@host/db"
    sources = named([f"shop={secret}"])
    made = settings(tmp_path, sources=sources, database=secret)
    for thing in (made, Databases(sources)):
        assert SECRET not in repr(thing)
    assert type(made).from_json(made.to_json()) == made


def test_bare_postgresql_uses_the_driver_that_is_installed() -> None:
    ((_, url),) = named([], "shop=postgresql://ann@host/db")
    assert url == "postgresql+psycopg://ann@host/db?connect_timeout=10"


def test_a_database_that_is_named_no_more_fails_without_cost(tmp_path: Path) -> None:
    with here(tmp_path) as service:
        assert service.parts.datasets.get("visits").source == "shop"
    later = Parts(settings(tmp_path, sources=()))
    from topsecret.service.jobs.job import Asked

    job, _ = later.jobs.ask("bob", "visits", Asked("place", 2, 1.0), "later", "")
    assert later.jobs.run(job.id) == "failed"
    assert later.ledger.account("visits").left == later.ledger.account("visits").budget.limits
    later.ledger.close()
    later.store.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_store_from_before_databases_is_opened(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    place = "" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    with here(tmp_path, database=place) as service:
        url = place or f"sqlite:///{service.parts.settings.place}"
    engine = create_engine(url)
    with engine.begin() as connection:  # as the first services made it
        connection.execute(text("DELETE FROM service_datasets WHERE name = 'visits'"))
        connection.execute(text('ALTER TABLE service_datasets DROP COLUMN "table"'))
    columns = {column["name"] for column in inspect(engine).get_columns("service_datasets")}
    engine.dispose()
    assert "table" not in columns
    for _ in range(2):
        parts = Parts(settings(tmp_path, database=place))
        old = parts.datasets.get("events")
        assert (old.table, old.place) == (None, "events.csv")
        parts.store.close()
        parts.ledger.close()


def test_a_registration_that_was_cut_short_can_be_repeated(tmp_path: Path) -> None:
    parts = Parts(settings(tmp_path))
    write_table(f"sqlite:///{tmp_path / SHOP}", PLACES)
    new = NewDataset(
        "cut", "Cut", "", "who", ("place",), None, 4.0, 1e-5, source="shop", table="visits"
    )
    other = NewDataset(
        "cut", "Cut", "", "who", ("place",), None, 5.0, 1e-5, source="shop", table="visits"
    )
    with parts.store.writing() as connection:  # between the two records, the disk is full
        connection.execute(
            text(
                "CREATE TRIGGER full BEFORE INSERT ON service_datasets "
                "BEGIN SELECT RAISE(ROLLBACK, 'full'); END"
            )
        )
    with pytest.raises(Exception):  # noqa: B017, PT011  # whatever it is: it was cut short
        parts.datasets.register(new)
    with parts.store.writing() as connection:
        connection.execute(text("DROP TRIGGER full"))
    assert parts.ledger.datasets() == ["cut"]
    assert parts.datasets.all() == []

    with pytest.raises(InvalidParameter, match="with other terms or used"):
        parts.datasets.register(other)
    parts.datasets.register(new)
    assert [one.name for one in parts.datasets.all()] == ["cut"]
    with pytest.raises(InvalidParameter, match="has a budget already"):
        parts.datasets.register(new)
    parts.store.close()
    parts.ledger.close()


def test_a_budget_that_was_used_elsewhere_is_not_taken(tmp_path: Path) -> None:
    from topsecret import top_k
    from topsecret.ledger import Flexible

    parts = Parts(settings(tmp_path))
    url = f"sqlite:///{tmp_path / SHOP}"
    write_table(url, PLACES)
    parts.ledger.open_budget("used", Flexible.of(epsilon=4.0, delta=1e-5), person="who")
    top_k(
        url,
        table="visits",
        item="place",
        person="who",
        k=2,
        epsilon=1,
        delta=1e-7,
        ledger=parts.ledger,
        dataset="used",
    )
    new = NewDataset(
        "used", "Used", "", "who", ("place",), None, 4.0, 1e-5, source="shop", table="visits"
    )
    with pytest.raises(InvalidParameter, match="with other terms or used"):
        parts.datasets.register(new)
    parts.store.close()
    parts.ledger.close()
