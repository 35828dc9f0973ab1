"""Databases of earlier services get the columns and the indexes that they lack."""

from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from topsecret.ledger.store import Store
from topsecret.service import schema

LATER = {
    "service_datasets": {"table", "delta_rate", "filters", "state", "version", "sql"},
    "service_keys": {"scope", "expires", "parent"},
    "service_jobs": {"cancelled", "cause", "held", "entry"},
    "service_users": {"first"},
    "service_sessions": {"begun", "agent"},
}

INDEXES = {"service_jobs_by_end", "service_jobs_by_entry", "service_jobs_by_age"}


@pytest.mark.parametrize("place", ["sqlite", "postgres"])
def test_columns_and_indexes_are_added(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = str(tmp_path / "service.db")
    store = Store(where if place == "sqlite" else request.getfixturevalue("postgres_url"))
    schema.create(store)
    with store.writing() as connection:
        for index in INDEXES:
            connection.execute(text(f"DROP INDEX {index}"))
        for table, columns in LATER.items():
            for column in columns:
                connection.execute(text(f'ALTER TABLE {table} DROP COLUMN "{column}"'))
    schema.create(store)
    with store.reading() as connection:
        for table, columns in LATER.items():
            assert columns <= {one["name"] for one in inspect(connection).get_columns(table)}
        assert {one["name"] for one in inspect(connection).get_indexes("service_jobs")} >= INDEXES
    store.close()
