"""``make soak``: 2,000 requests of 64 clients with random kills, on SQLite and on PostgreSQL."""

import sys
from pathlib import Path

import crowd
import pytest

from postgres import Server

REQUESTS = 2000


def test_soak_on_sqlite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = crowd.run(str(tmp_path / "ledger.db"), tmp_path, REQUESTS, kills=40)
    with capsys.disabled():
        sys.stdout.write(f"\nSQLite: {outcome}\n")


def test_soak_on_postgres(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = Server()
    try:
        place = server.url(server.create_database())
        outcome = crowd.run(place, tmp_path, REQUESTS, kills=30, server=server, server_kills=12)
    finally:
        server.stop()
    with capsys.disabled():
        sys.stdout.write(f"\nPostgreSQL: {outcome}\n")
