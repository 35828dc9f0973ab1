"""What goes wrong with a database ends in one line without data, and is free only if it must be."""

import traceback
from pathlib import Path

import duckdb
import pytest
import sqlalchemy

from postgres import Server
from topsecret import top_k
from topsecret.errors import (
    DataIndependentFailure,
    InvalidParameter,
    NotInSchema,
    SourceError,
    TopSecretError,
)
from topsecret.sources import CountQuery
from topsecret.sources.engines.duckdb_tables import OpenConnection
from topsecret.sources.engines.sqlalchemy import SqlSource
from topsecret.sources.session import statement

QUERY = CountQuery("place", "user", rows=5)


@pytest.fixture
def visits(postgres_url: str) -> str:
    engine = sqlalchemy.create_engine(postgres_url)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE SCHEMA shop; "
            'CREATE TABLE shop.visits ("user" BIGINT, place TEXT, age TEXT, at TIMESTAMP, '
            '"x""; drop table y; --" TEXT);'
            "INSERT INTO shop.visits SELECT n, 'park', 'CANARY', '2024-05-01 13:00', 'café' "
            "FROM generate_series(1, 1500) n;"
            "INSERT INTO shop.visits VALUES (1, 'pier', '30', '2024-05-01 08:30', 'b')"
        )
    engine.dispose()
    return postgres_url


def failure(source: SqlSource, query: CountQuery = QUERY) -> TopSecretError:
    with pytest.raises(TopSecretError) as caught:
        source.leading_counts(query)
    text = "".join(traceback.format_exception(caught.value))
    assert "\n" not in str(caught.value)
    assert "CANARY" not in text
    assert "sesame" not in text
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return caught.value


def test_end_to_end_by_url(visits: str) -> None:
    answer = {"item": "place", "person": "user", "k": 1, "epsilon": 1.0, "counts": True}
    release = top_k(visits, table="shop.visits", **answer)
    assert release.items == ("park",)
    assert "shop.visits of postgresql" in release.title
    assert release.counts is not None
    assert release.half_width is not None
    assert abs(release.counts[0] - 1500) < 10 * release.half_width


def test_end_to_end_by_engine(visits: str) -> None:
    engine = sqlalchemy.create_engine(visits)
    name = 'x"; drop table y; --'
    release = top_k(
        engine, table=("shop", "visits"), item=name, person="user", k=1, epsilon=1, max_items=1
    )
    assert release.items == ("café",)
    with engine.connect() as connection:  # the caller's engine goes on
        assert connection.exec_driver_sql("SELECT count(*) FROM shop.visits").scalar() == 1501
    engine.dispose()


def test_a_date_part(visits: str) -> None:
    from topsecret import Expression

    query = CountQuery(Expression("EXTRACT(HOUR FROM at)"), "user", rows=5)
    assert SqlSource(visits, "shop.visits").leading_counts(query) == [(13, 1500), (8, 1)]


def test_nothing_can_be_written(visits: str) -> None:
    source = SqlSource(visits, "shop.visits")
    with source.session(QUERY) as session, pytest.raises(sqlalchemy.exc.InternalError):
        session._connection.exec_driver_sql("DELETE FROM shop.visits")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://eve:sesame@127.0.0.1:1/none",
        "postgresql+psycopg://eve:sesame@/none?host=/nowhere",
    ],
)
def test_an_unreachable_server(url: str) -> None:
    error = failure(SqlSource(url, "visits"))
    assert isinstance(error, DataIndependentFailure)
    assert "cannot be reached; check its address, that it runs" in str(error)


def test_a_server_that_dies() -> None:
    """Not free: what was read before the end is not known."""
    server = Server()
    try:
        engine = sqlalchemy.create_engine(server.url(server.create_database()))
        with engine.begin() as connection:
            connection.exec_driver_sql('CREATE TABLE visits ("user" BIGINT, place TEXT)')
        with SqlSource(engine, "visits").session(QUERY) as session:
            select = statement(session, QUERY)
            server.kill()
            with pytest.raises(SourceError) as caught:
                session.run(select)
        assert not isinstance(caught.value, DataIndependentFailure)
        assert caught.value.__context__ is None
        engine.dispose()
    finally:
        server.stop()


def test_a_wrong_table(visits: str) -> None:
    error = failure(SqlSource(visits, "shop.visit"))
    assert isinstance(error, DataIndependentFailure)
    assert str(error) == "the table shop.visit does not exist or may not be read; check its name"


def test_a_wrong_column(visits: str) -> None:
    error = failure(SqlSource(visits, "shop.visits"), CountQuery("venue", "user", rows=5))
    assert isinstance(error, NotInSchema)
    assert str(error).startswith(
        "shop.visits has no column 'venue'; choose from: user, place, age, at, "
    )


@pytest.mark.parametrize("where", [[("age", ">", 18)], "age > 18", "age BETWEEN 1 AND 9"])
def test_text_is_not_compared_with_numbers(visits: str, where: object) -> None:
    """The database would cast every row and fail on the first that is no number."""
    query = CountQuery("place", "user", rows=5, where=where)
    error = failure(SqlSource(visits, "shop.visits"), query)
    assert isinstance(error, InvalidParameter)
    assert "'age' is text and cannot be compared with a number" in str(error)


def test_a_cast_that_a_row_could_fail_is_refused(visits: str) -> None:
    query = CountQuery("place", "user", rows=5, where="CAST(age AS INT) = 30")
    error = failure(SqlSource(visits, "shop.visits"), query)
    assert isinstance(error, InvalidParameter)
    assert "would fail on a row that cannot be cast, and postgres has no cast" in str(error)


@pytest.mark.parametrize(
    ("source", "table", "message"),
    [
        ("postgresql+psycopg://host/db", None, "a database needs the name of a table"),
        ("nonsense://eve:sesame@host/db", "t", "not one that SQLAlchemy knows"),
        ("postgresql://eve:sesame@host:port/db", "t", "not one that SQLAlchemy knows"),
        ("oracle://host/db", "t", "needs the Python package"),
        ("sqlite://", "a.b.c.d", "must be the name of a table"),
        ("shop.duckdb", None, "a database needs the name of a table"),
        ("events.csv", "t", "table='t' must be left out: a file has no tables"),
    ],
)
def test_mistakes(source: str, table: str | None, message: str) -> None:
    with pytest.raises(TopSecretError, match=message) as caught:
        top_k(source, table=table, item="a", person="b", k=1, epsilon=1)
    assert "sesame" not in "".join(traceback.format_exception(caught.value))


def test_a_broken_database_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    path.write_bytes(b"CANARY" * 1000)
    with pytest.raises(DataIndependentFailure, match=r"shop\.duckdb cannot be opened") as caught:
        top_k(path, table="t", item="a", person="b", k=1, epsilon=1)
    assert "CANARY" not in "".join(traceback.format_exception(caught.value))


def test_globs(tmp_path: Path) -> None:
    for part in range(3):
        rows = [f"u{n},park" for n in range(part * 500, part * 500 + 700)]
        path = tmp_path / f"part-{part}.csv"
        path.write_text("\n".join(["user,place", *rows]) + "\n", encoding="utf-8")
    release = top_k(
        tmp_path / "part-*.csv", item="place", person="user", k=1, epsilon=1, counts=True
    )
    assert release.source == "part-*.csv"
    assert release.counts is not None
    assert release.half_width is not None
    assert abs(release.counts[0] - 1700) < 10 * release.half_width
    with pytest.raises(DataIndependentFailure, match="matches no file; check the pattern"):
        top_k(tmp_path / "none-*.csv", item="place", person="user", k=1, epsilon=1)
    (tmp_path / "part-9.csv").write_text("place,user\n", encoding="utf-8")
    with pytest.raises(SourceError, match="has another header than"):
        top_k(tmp_path / "part-*.csv", item="place", person="user", k=1, epsilon=1)


def test_pandas_types_do_not_depend_on_the_rows() -> None:
    """DuckDB would guess the type of a column of objects from a sample of the rows."""
    pandas = pytest.importorskip("pandas")
    from topsecret.sources.engines.duckdb_tables import FrameSource

    few = [("ann", 1), ("bob", 1)]
    for rows in (few, [*few, ("cy", "01")], [*few, ("cy", 1.5)]):
        frame = pandas.DataFrame(rows, columns=["user", "place"], dtype=object)
        assert FrameSource(frame).leading_counts(QUERY)[0] == ("1", 2)


def test_a_lazy_frame_is_refused() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.LazyFrame({"user": ["a"], "place": ["b"]})
    with pytest.raises(InvalidParameter, match=r"pass frame\.collect\(\)"):
        top_k(frame, item="place", person="user", k=1, epsilon=1)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_session_sees_one_moment(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A domain is counted by one statement and named by another: nothing may change between."""
    url = f"sqlite:///{tmp_path}/shop.db" if kind == "sqlite" else ""
    engine = sqlalchemy.create_engine(url or request.getfixturevalue("postgres_url"))
    with engine.begin() as connection:
        if kind == "sqlite":
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        connection.exec_driver_sql('CREATE TABLE visits ("user" TEXT, place TEXT)')
        connection.exec_driver_sql("INSERT INTO visits VALUES ('ann', 'park')")
    source = SqlSource(engine, "visits")
    with source.session(QUERY) as session:
        select = statement(session, QUERY)
        before = session.run(select)
        with engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO visits VALUES ('bob', 'park')")
        assert session.run(select) == before == [("park", 1)]
    assert source.leading_counts(QUERY) == [("park", 2)]
    engine.dispose()


@pytest.mark.parametrize(
    ("kind", "one", "same"),
    [
        ("NUMERIC", "1.0", "1.00"),
        ("NUMERIC(9, 2)", "1.0", "1.00"),
        ("CHAR(5)", "'a'", "'a '"),
        ("UUID", *["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"] * 2),
        ("TIMESTAMPTZ", "'2024-01-01 12:00+00'", "'2024-01-01 13:00+01'"),
        ("FLOAT8", "0", "'-0'"),
        ("INTERVAL", "'1 mon'", "'30 days'"),
        ("JSONB", "'1.0'", "'1.00'"),
        ("NUMERIC[]", "'{1.0}'", "'{1.00}'"),
    ],
)
def test_a_person_whose_values_are_equal_is_one(
    postgres_url: str, kind: str, one: str, same: str
) -> None:
    engine = sqlalchemy.create_engine(postgres_url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f'CREATE TABLE t ("user" {kind}, place TEXT)')
        connection.exec_driver_sql(f"INSERT INTO t VALUES ({one}, 'tea'), ({same}, 'tea')")
    engine.dispose()
    source = SqlSource(postgres_url, "t")
    if kind in {"FLOAT8", "INTERVAL", "JSONB", "NUMERIC[]"}:
        with pytest.raises(DataIndependentFailure, match="cannot identify people"):
            source.leading_counts(QUERY)
        return
    assert source.leading_counts(QUERY) == [("tea", 1)]


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_equal_floats_are_one_person_in_duckdb(kind: str) -> None:
    """Whatever their signs: nan and -nan are equal there, too, and have two texts."""
    with duckdb.connect() as connection:
        connection.execute(f'CREATE TABLE t ("user" {kind}, place VARCHAR)')
        nans = f"('nan', 'jam'), (-('nan'::{kind}), 'jam')"
        connection.execute(f"INSERT INTO t VALUES {nans}, (0.1, 'jam'), (0, 'tea'), (-0.0, 'tea')")
        texts = connection.execute('SELECT DISTINCT "user"::TEXT FROM t ORDER BY 1').fetchall()
        assert [texts[0], texts[2], texts[3]] == [("-nan",), ("0.1",), ("nan",)]
        assert OpenConnection(connection, "t").leading_counts(QUERY) == [("jam", 2), ("tea", 1)]


def test_zero_is_one_person_in_duckdb() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (user DOUBLE, place VARCHAR, long INTERVAL)")
        connection.execute("INSERT INTO t VALUES (0.0, 'tea', '1 day'), (-0.0, 'tea', '24 hours')")
        source = OpenConnection(connection, "t")
        assert source.leading_counts(QUERY) == [("tea", 1)]
        with pytest.raises(DataIndependentFailure, match="cannot identify people"):
            source.leading_counts(CountQuery("place", "long", rows=5))
