"""A failure is free only if no row can have caused it: the ledger charges all others."""

import contextlib
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from topsecret import File, sql, top_k, top_k_by
from topsecret.errors import (
    DataIndependentFailure,
    InvalidParameter,
    NotInSchema,
    SourceError,
    UnknownColumn,
)
from topsecret.ledger import Flexible, Ledger
from topsecret.sources import CountQuery, Expression
from topsecret.sources.domains.counted_domain import domain_size
from topsecret.sources.domains.domain import FileColumn
from topsecret.sources.engines import duckdb_session
from topsecret.sources.engines.duckdb import FileSource, _text_statement
from topsecret.sources.engines.duckdb_tables import OpenConnection
from topsecret.sources.engines.sqlalchemy import SqlSession

QUERY = CountQuery("place", "user", rows=5)
GOOD = {
    "csv": "user,place,n\n" + "".join(f"u{n},tea,1\n" for n in range(300)),
    "json": "".join(f'{{"user": "u{n}", "place": "tea", "n": 1}}\n' for n in range(300)),
}
ASKED: dict[str, Any] = {"item": "place", "person": "user", "k": 1, "epsilon": 0.5, "delta": 1e-7}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(tmp_path / "ledger.db")
    opened.open_budget("x", Flexible.of(epsilon=4, delta=1e-5), person="user")
    yield opened
    opened.close()


def last(ledger: Ledger) -> str:
    return [entry.event for entry in ledger.history("x")][-1]


@pytest.mark.parametrize(
    ("form", "bad"),
    [("csv", b'zoe,"te\xff",1\n'), ("csv", b"zoe\n"), ("json", b'{"user": "zoe", "place":\n')],
)
def test_a_view_over_a_file_is_read_to_be_described(
    ledger: Ledger, tmp_path: Path, form: str, bad: bytes
) -> None:
    path = tmp_path / f"v.{form}"
    path.write_bytes(GOOD[form].encode() + bad)
    with duckdb.connect() as connection:
        try:
            connection.execute(f"CREATE VIEW t AS SELECT user, place FROM read_{form}('{path}')")
        except duckdb.Error:
            path.write_bytes(GOOD[form].encode())
            connection.execute(f"CREATE VIEW t AS SELECT user, place FROM read_{form}('{path}')")
            path.write_bytes(GOOD[form].encode() + bad)
        try:
            top_k(connection, table="t", trust_view=True, ledger=ledger, dataset="x", **ASKED)
        except SourceError:
            assert last(ledger) == "failed"
        else:
            assert last(ledger) == "settled"


@pytest.mark.parametrize("row", [b"zoe,tea,1\n", b"zoe,\x81,1\n"])  # cp1252 has no 0x81
def test_a_row_that_is_not_in_the_encoding_is_found_when_it_is_paid_for(
    ledger: Ledger, tmp_path: Path, row: bytes
) -> None:
    """The header says what a pasted query may read."""
    path = tmp_path / "e.csv"
    path.write_bytes(GOOD["csv"].encode() + row)
    text = "SELECT place, COUNT(DISTINCT user) AS c FROM e GROUP BY place ORDER BY c DESC LIMIT 1"
    paid: dict[str, Any] = {"ledger": ledger, "dataset": "x", "delta": 1e-7}
    with contextlib.suppress(SourceError):
        found = sql(text, File(path, encoding="cp1252"), person="user", epsilon=0.5, **paid)
        assert found.items == ("tea",)
    assert last(ledger) == ("settled" if b"tea" in row else "failed")
    utf16 = tmp_path / "w.csv"
    for encoding, mark in (("utf-16", ""), ("utf-16-le", "\ufeff"), ("gb18030", "\ufeff")):
        utf16.write_text(f"{mark}user,place\nann,tea\n", encoding=encoding)
        source = FileSource(File(utf16, encoding=encoding))
        assert source.leading_counts(QUERY) == [("tea", 1)]
        with pytest.raises(NotInSchema, match=r"w\.csv has no column"):
            source.leading_counts(CountQuery("shop", "user", rows=5))


def test_the_columns_of_a_view_may_be_a_persons_row(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("zoe,CANARY,x\n1,2,3\n")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW t AS SELECT * FROM read_csv('{path}')")
        with pytest.raises(UnknownColumn) as caught:
            OpenConnection(connection, "t", trust_view=True).leading_counts(QUERY)
    assert not isinstance(caught.value, DataIndependentFailure)
    assert "CANARY" not in str(caught.value)


def test_what_the_catalogue_says_is_free() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (user VARCHAR)")
        with pytest.raises(NotInSchema):
            OpenConnection(connection, "t").leading_counts(QUERY)
        with pytest.raises(DataIndependentFailure):
            OpenConnection(connection, "none").leading_counts(QUERY)


def test_a_connection_lost_between_groups_is_charged(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (user TEXT, place TEXT, g TEXT)")
        connection.execute("INSERT INTO t VALUES ('ann', 'tea', 'a')")
    connection.close()
    run = SqlSession.run

    def run_and_lose(self: SqlSession, select: Any) -> Any:
        rows = run(self, select)
        raw: Any = self._connection.connection.dbapi_connection
        raw.close()
        return rows

    monkeypatch.setattr(SqlSession, "run", run_and_lose)
    groups = {"by": "g", "groups": ["a", "b"], "table": "t"}
    with pytest.raises(SourceError):
        top_k_by(f"sqlite:///{path}", ledger=ledger, dataset="x", **groups, **ASKED)
    assert last(ledger) == "failed"


def test_a_group_after_rows_is_never_free(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (user TEXT, place TEXT, g TEXT)")
    connection.close()
    events, run, asked = SqlSession.events, SqlSession.run, []

    def counted(self: SqlSession, select: Any) -> Any:
        asked.append(1)
        return run(self, select)

    def gone(self: SqlSession, columns: Any) -> Any:
        if asked:  # after the first group's rows
            raise DataIndependentFailure("the table is gone")
        return events(self, columns)

    monkeypatch.setattr(SqlSession, "run", counted)
    monkeypatch.setattr(SqlSession, "events", gone)
    groups = {"by": "g", "groups": ["a", "b"], "table": "t"}
    with pytest.raises(SourceError):
        top_k_by(f"sqlite:///{path}", ledger=ledger, dataset="x", **groups, **ASKED)
    assert last(ledger) == "failed"


@pytest.mark.parametrize(
    ("name", "content", "event"),
    [
        ("e.csv", b"user,place\nann,tea\nzoe,caf\xe9\n", "failed"),
        ("e.csv.gz", b"user,place\nann,tea\n", "failed"),  # not gzip at all
        ("e.jsonl", b'{"user": "ann"}\n', "settled"),
        ("e.jsonl", b"CANARY\n", "failed"),
        ("e.jsonl", b'{"user": "ann", "place": "tea"}\n', "settled"),
        ("e.csv", b"user,town\nann,tea\n", "released"),
    ],
)
@pytest.mark.parametrize("domain", [["tea", "milk"], "items.txt"])
def test_no_row_is_read_before_a_domain_is_paid_for(
    ledger: Ledger, tmp_path: Path, name: str, content: bytes, event: str, domain: Any
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    if isinstance(domain, str):
        domain = tmp_path / domain
        domain.write_text("tea\nmilk\n")
    with contextlib.suppress(SourceError):
        top_k(path, domain=domain, ledger=ledger, dataset="x", **ASKED)
    assert last(ledger) == event


def test_the_private_file_is_not_even_measured_before_a_domain_is_paid_for(
    ledger: Ledger, tmp_path: Path
) -> None:
    path, domain = tmp_path / "e.csv", tmp_path / "items.csv"
    # A row that is not in the encoding cannot be copied.
    path.write_bytes("user,place\nann,tea\n".encode("utf-16") + b"\x00\xd8a\x00\n\x00")
    domain.write_text("place\ntea\nmilk\n")
    source = File(path, encoding="utf-16")
    query = CountQuery("place", "user", rows=5, domain=FileColumn(domain))
    assert domain_size(FileSource(source), query) == 2
    with pytest.raises(SourceError):
        top_k(source, domain=domain, ledger=ledger, dataset="x", **ASKED)
    assert last(ledger) == "failed"


def test_a_public_list_is_read_alike_whatever_the_size_of_the_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, domain = tmp_path / "e.csv", tmp_path / "items.csv"
    path.write_text(GOOD["csv"])
    domain.write_text("place\n" + "".join(f"item {n}\n" for n in range(300_000)))
    query = CountQuery("place", "user", rows=5, domain=FileColumn(domain))
    monkeypatch.setattr(duckdb_session, "MARGIN", 1)  # the private file's size is no buffer for it
    assert domain_size(FileSource(path), query) == 300_000
    sizes = re.findall(r"buffer_size = (\d+)", _said_to(domain_size, path, query, monkeypatch))
    assert sizes == [str(domain.stat().st_size + 1)]


def _said_to(ask: Any, path: Path, query: CountQuery, monkeypatch: pytest.MonkeyPatch) -> str:
    said: list[str] = []
    attempt = duckdb_session.DuckSession._attempt

    def heard(self: Any, text: str, values: Any) -> Any:
        said.append(text)
        return attempt(self, text, values)

    monkeypatch.setattr(duckdb_session.DuckSession, "_attempt", heard)
    ask(FileSource(path), query)
    return "\n".join(said)


def test_a_view_with_listed_items_is_paid_for_before_it_is_described(
    ledger: Ledger, tmp_path: Path
) -> None:
    path = tmp_path / "v.json"
    path.write_text(GOOD["json"])
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW t AS SELECT user, place FROM read_json('{path}')")
        path.write_text(GOOD["json"] + '{"user": "zoe", "place":\n')
        asked = {"table": "t", "trust_view": True, "domain": ["tea"]} | ASKED
        with pytest.raises(SourceError):
            top_k(connection, ledger=ledger, dataset="x", **asked)
    assert last(ledger) == "failed"


def test_a_header_is_read_without_the_rows_after_it(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_bytes('\ufeffuser,"plä,ce"\r\n'.encode() + b"zoe,caf\xe9\r\n")
    assert FileSource(path).columns() == ("user", "plä,ce")
    path.write_bytes(b"user,pl\xe4ce\nann,tea\n")
    with pytest.raises(SourceError, match="not well-formed CSV"):
        FileSource(path).columns()


WRONG: list[dict[str, Any]] = [
    {"where": [("n", "=", "x")]},
    {"item": Expression("LOWER(n)")},
    {"by": "n", "groups": [1, "x"]},
    {"by": "n", "groups": [1, "x"], "disjoint": True},
]


@pytest.mark.parametrize("asked", WRONG, ids=str)
def test_what_the_schema_shows_to_be_wrong_is_never_reserved(ledger: Ledger, asked: Any) -> None:
    ask = top_k_by if "by" in asked else top_k
    budget: dict[str, Any] = {"ledger": ledger, "dataset": "x"}
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 'ann' AS user, 'tea' AS place, 1 AS n")
        with pytest.raises(InvalidParameter):
            ask(connection, table="t", **budget, **(ASKED | asked))
    assert last(ledger) == "opened"


def test_another_failure_is_left_to_the_paid_question(ledger: Ledger, tmp_path: Path) -> None:
    missing = tmp_path / "none.parquet"
    with pytest.raises(SourceError):
        top_k(missing, where=[("n", "=", "x")], ledger=ledger, dataset="x", **ASKED)
    assert last(ledger) in {"opened", "released"}


@pytest.mark.parametrize("more", ["", 'u301,"never closed,1\n'])
def test_an_engine_that_fails_after_rows_were_read_is_charged(
    more: str, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether there is a second engine depends on a row: what befalls it is not free."""
    (tmp_path / "e.csv").write_text(GOOD["csv"] + more)
    real, begun = tempfile.TemporaryDirectory, []

    def second_fails(*words: Any, **named: Any) -> Any:
        begun.append(1)
        if len(begun) > 1:
            raise PermissionError
        return real(*words, **named)

    monkeypatch.setattr(duckdb_session.tempfile, "TemporaryDirectory", second_fails)
    with contextlib.suppress(SourceError):
        top_k(tmp_path / "e.csv", **ASKED, choose="public", ledger=ledger, dataset="x")
    ended = ledger.history("x")[-1].event
    assert (len(begun), ended) == ((2, "failed") if more else (1, "settled"))


def test_statements_that_are_kept_hold_no_salt(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text(GOOD["csv"])
    source = FileSource(tmp_path / "e.csv")
    before = _text_statement.cache_info().currsize
    for cap, more in ((1, 0), (None, 1)):
        source.leading_counts(CountQuery("place", "user", rows=5, max_items=cap))
        assert _text_statement.cache_info().currsize == min(64, before + more)
