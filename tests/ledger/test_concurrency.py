"""32 clients in 4 processes, killed at random: the short version of ``make soak``."""

from pathlib import Path

import crowd

from postgres import Server

REQUESTS = 60


def some_were_answered(outcome: crowd.Outcome) -> None:
    """How many depends on what the kills left in doubt; that every sum is exact does not."""
    assert outcome.settled > 0


def test_a_crowd_on_sqlite(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger.db")
    some_were_answered(crowd.run(place, tmp_path, REQUESTS, kills=3, processes=4))


def test_a_crowd_on_postgres(tmp_path: Path) -> None:
    server = Server()
    try:
        place = server.url(server.create_database())
        kills = {"kills": 2, "server": server, "server_kills": 2}
        some_were_answered(crowd.run(place, tmp_path, REQUESTS, processes=4, **kills))
    finally:
        server.stop()
