"""A version is read from a public table: never from the events or a view of them."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from topsecret.errors import DataIndependentFailure, SourceError
from topsecret.sources import latest_value as module
from topsecret.sources.latest_value import latest_value

SCHEMA = (
    "CREATE TABLE visits (who TEXT, place TEXT, at TEXT)",
    "INSERT INTO visits VALUES ('ann', 'Harbour', '2026-11-16')",
    "CREATE TABLE runs (job TEXT, number INTEGER, finished TIMESTAMP)",
    "INSERT INTO runs VALUES ('visits', 7, '2026-11-15 03:00:00'), ('other', 9, NULL)",
    "CREATE VIEW of_visits AS SELECT number FROM runs WHERE job = 'visits'",
    "CREATE VIEW last_visit AS SELECT at, who FROM visits",
    "CREATE VIEW deeper AS SELECT r.number, (SELECT MAX(v.at) FROM last_visit v) AS at FROM runs r",
    "CREATE TABLE logins (who TEXT, at TEXT)",
    "INSERT INTO logins VALUES ('ann', '1')",
    "CREATE TABLE empty_runs (number INTEGER)",
)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        found = f"sqlite:///{tmp_path}/shop.db"
    else:
        found = str(request.getfixturevalue("postgres_url"))
    engine = create_engine(found)
    with engine.begin() as connection:
        for statement in SCHEMA:
            connection.execute(text(statement))
    engine.dispose()
    return found


def latest(
    url: str, table: str, column: str, *, trusted: bool = False, elsewhere: Sequence[str] = ()
) -> str:
    told = {"private": ["visits", "gone"], "persons": ["who"], "elsewhere": elsewhere}
    return latest_value(url, table, column, trusted=trusted, **told)


def test_what_is_made_of_the_events_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert latest(url, "runs", "number") == "9"
    assert latest(url, "runs", "finished").startswith("2026-11-15 03:00:00")
    assert latest(url, "of_visits", "number", trusted=True) == "7"
    assert latest(url, "logins", "at", trusted=True) == "1"
    for table, column in (("of_visits", "number"), ("logins", "at")):
        with pytest.raises(DataIndependentFailure, match="say that you answer"):
            latest(url, table, column)
    for table, column in (("visits", "at"), ("last_visit", "at"), ("deeper", "number")):
        for trusted in (False, True):
            with pytest.raises(DataIndependentFailure, match="would be data"):
                latest(url, table, column, trusted=trusted)
    upper = "VISITS" if url.startswith("sqlite") else "public.visits"
    with pytest.raises(DataIndependentFailure, match="would be data"):
        latest(url, upper, "at", trusted=True)
    with pytest.raises(DataIndependentFailure, match="it needs a row"):
        latest(url, "empty_runs", "number")
    for table, column in (("runs", "none"), ("none", "number"), ('runs"; --', "number")):
        with pytest.raises(SourceError):
            latest(url, table, column)
    with pytest.raises(DataIndependentFailure, match="would be data"):  # of any schema
        latest(url, "runs", "number", trusted=True, elsewhere=["other.runs"])
    if url.startswith("postgresql"):  # a table that is being filled holds nobody up
        monkeypatch.setattr(module, "SECONDS", 0.05)
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE visits_of_may () INHERITS (visits)"))
        with pytest.raises(DataIndependentFailure, match="would be data"):
            latest(url, "visits_of_may", "at", trusted=True)
        with engine.begin() as connection:
            connection.execute(text("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE"))
            with pytest.raises(DataIndependentFailure, match="locked"):
                latest(url, "runs", "number")
        engine.dispose()


OWN = {
    "sqlite": (
        "CREATE TABLE ticks (id INTEGER PRIMARY KEY AUTOINCREMENT, x TEXT)",
        "INSERT INTO ticks (x) VALUES ('a')",
        "CREATE INDEX by_number ON runs (number)",
        "ANALYZE",
        "CREATE VIRTUAL TABLE notes USING fts5(body)",
        "INSERT INTO notes VALUES ('a')",
        "CREATE VIEW sold AS SELECT seq FROM sqlite_sequence",
        "CREATE VIEW slow AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c "
        "WHERE x < 1000000) SELECT x FROM c",
    ),
    "postgresql": (
        "CREATE SEQUENCE tickets",
        "CREATE VIEW sold AS SELECT last_value AS seq FROM tickets",
        "CREATE VIEW sizes AS SELECT reltuples FROM pg_catalog.pg_class",
    ),
}
OF_THE_SYSTEM = {
    "sqlite": (
        ("sqlite_sequence", "seq"),
        ("main.SQLITE_sequence", "seq"),
        ("sqlite_stat1", "stat"),
        ("notes_content", "id"),
        ("Notes_docsize", "id"),
        ("sold", "seq"),
    ),
    "postgresql": (
        ("tickets", "last_value"),
        ("sold", "seq"),
        ("sizes", "reltuples"),
        ("pg_catalog.pg_description", "objsubid"),
        ("pg_stat_user_tables", "n_tup_ins"),
        ("information_schema.tables", "table_name"),
    ),
}


def test_what_the_database_keeps_for_itself_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = url.partition(":")[0].partition("+")[0]
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in OWN[kind]:
            connection.execute(text(statement))
    engine.dispose()
    for table, column in OF_THE_SYSTEM[kind]:
        for trusted in (False, True):
            with pytest.raises(DataIndependentFailure, match=r"would be data|does not exist"):
                latest(url, table, column, trusted=trusted)
    assert latest(url, "runs", "number") == "9"
    if kind == "sqlite":
        monkeypatch.setattr(module, "SECONDS", 0.0)
        with pytest.raises(DataIndependentFailure, match="an end within 0 s"):
            latest(url, "slow", "x", trusted=True)
