"""A session is told what counting rests on, whatever a role, a database or the caller has set."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlalchemy

from postgres import Server
from topsecret import top_k
from topsecret.errors import DataIndependentFailure, SourceError
from topsecret.sources import CountQuery
from topsecret.sources.domains.counted_domain import counted_domains
from topsecret.sources.domains.domain import domain_of
from topsecret.sources.domains.weighted_labels import (
    _counts_of_sums,
    _leading_items,
    weighted_labels,
)
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.engines.duckdb_session import closed_engine
from topsecret.sources.engines.duckdb_tables import OpenConnection
from topsecret.sources.engines.settings import DUCKDB, POSTGRES
from topsecret.sources.engines.sqlalchemy import SqlSource
from topsecret.sources.file_form import File

QUERY = CountQuery("place", "user", rows=9)
CAPPED = CountQuery("place", "user", rows=9, max_items=1, salt=bytes(16))

CAPPED_LATE = CountQuery("place", "user", rows=9, max_items=3, salt=bytes(16))


class Settled:
    """A database of PostgreSQL and a way to run statements in it."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name = server, name
        self.engine = sqlalchemy.create_engine(server.url(name))
        self.run(
            'CREATE TABLE visits ("user" TEXT, place TEXT)',
            "INSERT INTO visits VALUES ('ann', 'park'), ('ann', 'pier'), ('bob', 'park')",
        )

    def run(self, *statements: str) -> None:
        with self.engine.begin() as connection:
            for sql in statements:
                connection.exec_driver_sql(sql)

    def source(self, **query: str) -> SqlSource:
        self.engine.dispose()  # settings of a database reach new connections
        url = sqlalchemy.make_url(self.server.url(self.name)).update_query_dict(query)
        return SqlSource(url.render_as_string(hide_password=False), "visits")


@pytest.fixture
def settled(postgres_server: Server) -> Iterator[Settled]:
    name = postgres_server.create_database()
    made = Settled(postgres_server, name)
    yield made
    made.engine.dispose()
    postgres_server.drop_database(name)


def test_a_value_stays_a_value_whatever_backslashes_mean(settled: Settled) -> None:
    """With the old string syntax this value read a row of another table."""
    settled.run(
        f"ALTER DATABASE {settled.name} SET standard_conforming_strings = off",
        "CREATE TABLE secrets (word TEXT)",
        "INSERT INTO secrets VALUES ('CANARY')",
    )
    value = r"\') UNION SELECT word, 9 FROM secrets --"
    query = CountQuery("place", "user", rows=9, where=[("place", "in", [value, "park"])])
    assert settled.source().leading_counts(query) == [("park", 2)]


def test_no_function_of_others_is_called(settled: Settled) -> None:
    """It would be a better match for the arguments, and be given salt, person and item."""
    settled.run(
        "CREATE TABLE seen (word TEXT)",
        "CREATE FUNCTION public.convert_to(text, text) RETURNS bytea LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'CANARY'; END $$",
        "CREATE FUNCTION public.md5(text) RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$",
        "CREATE FUNCTION public.same(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$",
        "CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.same)",
        f"ALTER DATABASE {settled.name} SET search_path = public, pg_catalog",
    )
    found = settled.source().leading_counts(CAPPED)
    assert sum(count for _, count in found) == 2
    where = CountQuery("place", "user", rows=9, where=[("place", "=", "pier")])
    assert settled.source().leading_counts(where) == [("pier", 1)]


def test_a_character_that_the_client_lacks_does_not_fail_the_query(settled: Settled) -> None:
    settled.run("INSERT INTO visits VALUES ('zoe', 'café €')")
    for query in ({"client_encoding": "latin1"}, {"options": "-c client_encoding=latin1"}):
        assert ("café €", 1) in settled.source(**query).leading_counts(QUERY)


def test_sums_are_the_same_where_no_table_can_keep_them(settled: Settled) -> None:
    settled.run("INSERT INTO visits SELECT 'zoe', 'place ' || i FROM generate_series(1, 9) AS i")
    found = []
    for query in ({}, {"options": "-c default_transaction_read_only=on"}):
        before = _counts_of_sums.cache_info().misses, _leading_items.cache_info().misses
        with weighted_labels(settled.source(**query), [CAPPED_LATE], [1024, 724]) as [labels]:
            groups = labels.counts()
            places = [(total, place) for total, items in groups for place in range(items)]
            found.append((labels.items_at(places), labels.leading(9), labels._kept.expression.key))
        after = _counts_of_sums.cache_info().misses, _leading_items.cache_info().misses
    assert found[0][:2] == found[1][:2]
    assert (found[0][2], found[1][2]) == ("table", "subquery")
    assert after == before  # a statement in place of a table holds the question's salt


def test_the_search_path_of_the_caller_finds_the_table(settled: Settled) -> None:
    settled.run(
        "CREATE SCHEMA shop",
        'CREATE TABLE shop.visits ("user" TEXT, place TEXT)',
        "INSERT INTO shop.visits VALUES ('zoe', 'zoo')",
        f"ALTER DATABASE {settled.name} SET search_path = shop, public",
    )
    assert settled.source().leading_counts(QUERY) == [("zoo", 1)]


def test_types_are_known_whatever_is_quoted(settled: Settled) -> None:
    """Persons of text were refused, and days were compared as text."""
    settled.run(
        "ALTER TABLE visits ADD day DATE",
        "INSERT INTO visits VALUES ('zoe', 'zoo', '0044-03-15 BC')",
        f"ALTER DATABASE {settled.name} SET quote_all_identifiers = on",
    )
    late = CountQuery("place", "user", rows=9, where=[("day", ">=", "0001-01-01")])
    assert settled.source().leading_counts(late) == []


def test_the_callers_connection_is_as_it_was(settled: Settled) -> None:
    names = [*POSTGRES, "search_path"]
    settled.run(f"ALTER DATABASE {settled.name} SET TimeZone = 'Europe/Berlin'")
    settled.engine.dispose()
    engine = sqlalchemy.create_engine(
        settled.server.url(settled.name), poolclass=sqlalchemy.pool.StaticPool
    )

    def said() -> list[str]:
        with engine.connect() as connection:
            return [str(connection.exec_driver_sql(f"SHOW {name}").scalar()) for name in names]

    before = said()
    assert SqlSource(engine, "visits").leading_counts(CAPPED)
    assert said() == before
    engine.dispose()


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        opened.execute('CREATE TABLE visits ("user" VARCHAR, place VARCHAR)')
        rows = [[f"u{n}", f"p{m}"] for n in range(9) for m in range(n)]
        opened.executemany("INSERT INTO visits VALUES (?, ?)", rows)
        yield opened


def test_the_order_that_is_not_written(connection: duckdb.DuckDBPyConnection) -> None:
    usual = OpenConnection(connection, "visits").leading_counts(CAPPED)
    connection.execute("SET GLOBAL default_order = 'DESC'")
    connection.execute("SET GLOBAL default_collation = 'NOCASE'")
    assert OpenConnection(connection, "visits").leading_counts(CAPPED) == usual
    settings = connection.execute("SELECT current_setting('default_order')").fetchall()
    assert settings == [("DESC",)]


def test_every_unseen_item_of_a_range_can_be_named(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SET GLOBAL default_order = 'DESC'")
    connection.execute('CREATE TABLE n ("user" VARCHAR, place INTEGER)')
    connection.execute("INSERT INTO n VALUES ('ann', 2), ('ann', 5), ('bob', 7)")
    query = CountQuery("place", "user", 9, domain=domain_of(range(10)))
    with counted_domains(OpenConnection(connection, "n"), [query]) as [domain]:
        unseen = domain.items_at([(0, place) for place in range(7)])
    assert unseen == [0, 1, 3, 4, 6, 8, 9]


def test_the_callers_own_connection_is_asked(connection: duckdb.DuckDBPyConnection) -> None:
    """Another connection to the same database would not know any of this."""
    connection.execute("CREATE SCHEMA shop")
    connection.execute('CREATE TABLE shop.visits ("user" VARCHAR, place VARCHAR)')
    connection.execute("INSERT INTO shop.visits VALUES ('zoe', 'shop')")
    connection.execute("USE shop")
    assert OpenConnection(connection, "visits").leading_counts(QUERY) == [("shop", 1)]
    connection.execute("CREATE TEMP TABLE visits AS SELECT 'zoe' AS \"user\", 'temp' AS place")
    assert OpenConnection(connection, "visits").leading_counts(QUERY) == [("temp", 1)]
    connection.execute("BEGIN TRANSACTION")
    connection.execute("INSERT INTO temp.main.visits VALUES ('ann', 'temp')")
    assert OpenConnection(connection, "visits").leading_counts(QUERY) == [("temp", 2)]
    assert top_k(
        connection, table="visits", item="place", person="user", k=1, epsilon=1, domain=["temp"]
    )
    connection.execute("COMMIT")  # the caller's transaction is still theirs
    made = "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'topsecret%'"
    assert connection.execute(made).fetchall() == []
    assert {
        name: connection.execute(f"SELECT current_setting('{name}')").fetchall()[0][0]
        for name in ("python_enable_replacements", "enable_progress_bar_print")
    } == {"python_enable_replacements": True, "enable_progress_bar_print": True}


class Noted:
    """An engine whose statements are noted before they are run."""

    def __init__(self, engine: duckdb.DuckDBPyConnection, noted: list[str]) -> None:
        self._engine, self._noted = engine, noted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def execute(self, statement: str, *more: Any) -> Any:
        self._noted.append(statement)
        return self._engine.execute(statement, *more)


def test_no_bar_is_drawn_while_a_file_is_attached(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nor of anything else: a worker of the service has a bar of DuckDB's until it is told."""
    path, noted = tmp_path / "shop.db", list[str]()
    duckdb.connect(path).close()
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda **more: Noted(connect(**more), noted))
    with closed_engine("some.csv", attached=path):
        pass
    assert noted[0] == "SET enable_progress_bar_print = false"
    assert noted[1].startswith("SET enable_progress_bar = ")
    assert [one for one in noted[2:] if one.startswith("ATTACH ")]


@pytest.mark.parametrize("kind", ["query_tree", "json", "query_tree_optimizer"])
def test_no_profile_shows_how_many_rows_there_are(
    connection: duckdb.DuckDBPyConnection, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    connection.execute("SET profiling_coverage = 'ALL'")
    connection.execute(f"SET enable_profiling = '{kind}'")
    capfd.readouterr()
    source = OpenConnection(connection, "visits")
    assert source.leading_counts(CAPPED)
    assert "visits" not in "".join(capfd.readouterr())
    connection.execute("SELECT place FROM visits").fetchall()
    assert "visits" in "".join(capfd.readouterr())  # the caller's own are profiled as before
    found = connection.execute("SELECT current_setting('enable_profiling')").fetchall()
    assert found == [(kind,)]


def test_a_connection_that_logs_its_statements_is_refused(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """The log would keep the salt; it is that of all connections to the database."""
    connection.execute("CALL enable_logging(storage = 'memory')")
    connection.execute("SET enable_profiling = 'no_output'")
    with pytest.raises(DataIndependentFailure) as refused:
        OpenConnection(connection.cursor(), "visits").leading_counts(CAPPED)
    assert str(refused.value) == (
        "the database of the DuckDB connection logs statements, which would keep the salt of the "
        "cap and may keep numbers of rows; CALL disable_logging() before you ask"
    )
    found = connection.execute("SELECT current_setting('enable_profiling')").fetchall()
    assert found == [("no_output",)]
    connection.execute("CALL disable_logging()")
    assert OpenConnection(connection, "visits").leading_counts(CAPPED)
    connection.execute(f"SET log_query_path = '{tmp_path}/statements.sql'")
    with pytest.raises(DataIndependentFailure) as refused:
        OpenConnection(connection, "visits").leading_counts(CAPPED)
    assert str(refused.value) == (
        "the DuckDB connection writes its statements to a file, which would keep the salt of the "
        "cap; SET log_query_path = '' before you ask"
    )
    connection.execute("SET log_query_path = ''")
    assert OpenConnection(connection, "visits").leading_counts(CAPPED)


def test_a_registered_frame_is_passed_itself(connection: duckdb.DuckDBPyConnection) -> None:
    """DuckDB would guess the types of its columns from the rows."""
    pandas = pytest.importorskip("pandas")
    frame: Any = pandas.DataFrame({"user": ["ann"], "place": ["park"]})
    connection.register("registered", frame)
    with pytest.raises(DataIndependentFailure, match="is no table of the database"):
        OpenConnection(connection, "registered").leading_counts(QUERY)
    with pytest.raises(DataIndependentFailure, match="does not exist"):
        OpenConnection(connection, "frame").leading_counts(QUERY)  # a variable of this test


def test_locked_settings_are_refused_or_right() -> None:
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE visits ("user" VARCHAR, place VARCHAR)')
        connection.execute("SET lock_configuration = true")
        with pytest.raises(DataIndependentFailure, match="free to change its settings"):
            OpenConnection(connection, "visits").leading_counts(QUERY)
    assert set(DUCKDB) > {"default_order", "TimeZone"}


def test_a_quoted_field_across_pieces(tmp_path: Path) -> None:
    """A field of many lines that look like rows: read again in one piece where several fail."""
    path = tmp_path / "e.csv"
    field = "x,y\n" * 375_000
    rows = "".join(f'u{n},"{field}"\n' for n in range(12))
    path.write_text(f"user,place\n{rows}", encoding="utf-8")
    assert FileSource(File(path, multiline=True)).leading_counts(QUERY) == [(field, 12)]
    with path.open("a", encoding="utf-8") as file:
        file.write('zoe,"never closed\nann,park\n')
    with pytest.raises(SourceError, match="not well-formed"):
        FileSource(File(path, multiline=True)).leading_counts(QUERY)


def test_a_long_field_of_a_packed_file(tmp_path: Path) -> None:
    """It fails nobody's question: what is read in one piece is the file unpacked."""
    path = tmp_path / "e.csv.gz"
    path.write_bytes(gzip.compress(b"user,place,note\nann,tea,\nzoe,tea," + b"a" * 3_000_000, 1))
    assert FileSource(path).leading_counts(QUERY) == [("tea", 2)]
