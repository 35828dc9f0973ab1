"""The tests' own server survives what the ledger's tests do to it."""

import psycopg

from postgres import Server


def test_each_test_has_its_own_database(postgres_server: Server, postgres_url: str) -> None:
    name = postgres_url.partition("@/")[2].partition("?")[0]
    with psycopg.connect(postgres_server.conninfo(name)) as connection:
        tables = connection.execute(
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"
        ).fetchone()
    assert tables == (0,)


def test_a_killed_server_starts_again_with_what_was_committed() -> None:
    server = Server()
    try:
        with psycopg.connect(server.conninfo("postgres")) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS value")
        server.kill()
        server.start()
        with psycopg.connect(server.conninfo("postgres")) as connection:
            assert connection.execute("SELECT value FROM kept").fetchone() == (7,)
    finally:
        server.stop()
