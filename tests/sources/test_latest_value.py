"""A version is read from a public table: never from the events or a view of them."""

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


def latest(url: str, table: str, column: str, *, trusted: bool = False) -> str:
    told = {"private": ["visits", "gone"], "persons": ["who"]}
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
