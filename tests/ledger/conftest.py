"""Every ledger test runs on SQLite and on a real PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from topsecret.ledger import Ledger


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def ledger(place: str) -> Iterator[Ledger]:
    opened = Ledger(place)
    yield opened
    opened.close()
