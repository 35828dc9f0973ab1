"""What goes wrong below the ledger: a clear error, nothing unrecorded, no answer shown."""

import contextlib
import gc
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import metered, request
from sqlalchemy import event, text
from sqlalchemy.pool import Pool

from postgres import Server
from topsecret.errors import InvalidParameter, LedgerError, Taken
from topsecret.ledger import Ledger, Reservation, Stored, paid
from topsecret.ledger.schema import CURRENT, METADATA, MIGRATIONS, version_of
from topsecret.ledger.store import Store, default_place

ANSWER = {"items": ["park" * 2000]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def on_file(path: Path) -> Iterator[Ledger]:
    ledger = Ledger(path)
    ledger.open_budget("d", metered(), person="user")
    yield ledger
    ledger.close()


def pragma(ledger: Ledger, command: str) -> Any:
    """Set something of the one connection that a single thread uses."""
    with ledger._store._connected() as engine:
        connection = engine.raw_connection()
        try:
            return connection.cursor().execute(f"PRAGMA {command}").fetchone()
        finally:
            connection.close()


def fill(ledger: Ledger) -> None:
    """The file cannot grow any more, as on a full disk."""
    pragma(ledger, "wal_checkpoint(TRUNCATE)")
    (pages,) = pragma(ledger, "page_count")
    pragma(ledger, f"max_page_count={pages}")


def hold(ledger: Ledger, **more: Any) -> Reservation:
    held = ledger.reserve(request(**more))
    assert isinstance(held, Reservation)
    return held


def must_not_run() -> Any:
    raise AssertionError("the data were read without a reservation")


def test_a_full_disk_before_the_reservation(on_file: Ledger) -> None:
    fill(on_file)
    with pytest.raises(LedgerError, match=r"ledger\.db failed: its disk is full; free some space"):
        paid(on_file, request(question="y" * 50_000), must_not_run)
    assert on_file.account("d").left == {"picks": 20, "queries": 4}
    assert on_file.check().faults == ()


def test_a_full_disk_before_the_settlement(on_file: Ledger) -> None:
    held = hold(on_file)
    fill(on_file)
    with pytest.raises(LedgerError, match="its disk is full"):
        on_file.settle(held, ANSWER, symbols=1)
    account = on_file.account("d")
    assert [one.id for one in account.pending] == [held.id]
    assert account.left == {"picks": 17, "queries": 3}
    assert on_file.check().faults == ()


def test_a_read_only_file(on_file: Ledger, path: Path) -> None:
    held = hold(on_file)
    if os.geteuid() == 0:  # permissions do not bind root; SQLite's own refusal is the same error
        pragma(on_file, "query_only=ON")
    else:
        on_file.close()
        path.chmod(stat.S_IRUSR)
    with pytest.raises(LedgerError, match=r"ledger\.db failed: it may not be written; check the p"):
        paid(on_file, request(question=2), must_not_run)
    with pytest.raises(LedgerError, match="it may not be written"):
        on_file.settle(held, ANSWER, symbols=1)
    assert len(on_file.history("d")) == 2


def test_the_ledger_is_its_owners_alone(on_file: Ledger, path: Path) -> None:
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_commits_are_durable(on_file: Ledger, postgres_url: str) -> None:
    assert pragma(on_file, "journal_mode") == ("wal",)
    assert pragma(on_file, "synchronous") == (2,)
    store = Store(postgres_url)
    with store.writing() as connection:
        assert connection.execute(text("SHOW synchronous_commit")).scalar() == "on"
    store.close()


def test_a_file_that_is_no_ledger(path: Path) -> None:
    path.write_text("user,place\n" * 100)
    with pytest.raises(LedgerError, match=r"ledger\.db failed: it is not a ledger; name another"):
        Ledger(path).datasets()
    assert path.read_text() == "user,place\n" * 100


def test_a_path_that_cannot_be(path: Path) -> None:
    path.write_text("a file, not a folder")
    with pytest.raises(LedgerError, match="it cannot be opened; check the path"):
        Ledger(path / "ledger.db").datasets()
    with pytest.raises(InvalidParameter, match="the ledger's path is empty"):
        Ledger("")
    with pytest.raises(InvalidParameter, match="a ledger is a file's path or an address postgres"):
        Ledger("mysql://localhost/ledger")


def test_a_server_that_is_not_there_and_a_password_that_is_not_shown() -> None:
    ledger = Ledger("postgresql://me:hunter2@127.0.0.1:1/none")
    with pytest.raises(LedgerError, match="it cannot be reached or the connection was lost") as no:
        ledger.datasets()
    assert "hunter2" not in str(no.value) + repr(ledger)
    assert no.value.__context__ is None
    ledger.close()


TRIGGERS = {
    "aborts": "BEGIN SELECT RAISE(ABORT, 'no'); END",
    "fails": "BEGIN INSERT INTO nowhere VALUES (1); END",
}


@pytest.mark.parametrize("body", TRIGGERS.values(), ids=TRIGGERS)
def test_an_answer_that_was_not_settled_does_not_travel_in_the_error(
    on_file: Ledger, path: Path, body: str
) -> None:
    held = hold(on_file)
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TRIGGER x BEFORE INSERT ON answers {body}")
    connection.close()
    with pytest.raises(LedgerError, match=r"ledger\.db failed: ") as caught:
        on_file.settle(held, {"items": ["canary"]}, symbols=1)
    assert not isinstance(caught.value, Taken)
    assert chain(caught.value) == [caught.value]
    assert "canary" not in repr(vars(caught.value)) + str(caught.value)
    # While another error is handled, too.
    try:
        raise KeyError("other")
    except KeyError:
        with pytest.raises(LedgerError) as again:
            on_file.settle(held, {"items": ["canary"]}, symbols=1)
    assert not any("canary" in repr(getattr(one, "params", "")) for one in chain(again.value))


def test_a_key_that_is_there_already_is_said_without_its_row(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(), person="user")
    with pytest.raises(InvalidParameter, match="has a budget already") as caught:
        ledger.open_budget("d", metered(), person="user")
    error, taken = chain(caught.value)
    assert isinstance(taken, Taken)
    assert "params" not in vars(taken)
    assert error.__suppress_context__


def chain(error: BaseException | None) -> list[BaseException]:
    """An error and all that it carries."""
    found = []
    while error is not None:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def test_a_lost_server() -> None:
    server = Server()
    try:
        ledger = Ledger(server.url("postgres"))
        ledger.open_budget("d", metered(), person="user")
        held = hold(ledger)
        server.kill()
        with pytest.raises(LedgerError, match="cannot be reached or the connection was lost"):
            ledger.settle(held, ANSWER, symbols=1)
        with pytest.raises(LedgerError, match="cannot be reached or the connection was lost"):
            paid(ledger, request(question=2), must_not_run)
        server.start()
        account = ledger.account("d")
        assert [one.id for one in account.pending] == [held.id]
        assert account.left == {"picks": 17, "queries": 3}
        assert isinstance(ledger.settle(held, ANSWER, symbols=1), Stored)
        assert ledger.check().faults == ()
        ledger.close()
    finally:
        server.stop()


def test_an_old_ledger_is_migrated(place: str) -> None:
    store = Store(place)
    with store.writing() as connection:  # as version 1 left it
        for table in reversed(METADATA.sorted_tables):
            table.drop(connection)
        if not store.sqlite:
            connection.execute(text("DROP FUNCTION entries_are_append_only CASCADE"))
        MIGRATIONS[0](connection)
        assert version_of(connection) == 1
    store.close()
    ledger = Ledger(place)
    ledger.open_budget("d", metered(), person="user")
    with ledger._store.reading() as connection:
        assert version_of(connection) == CURRENT
    with (
        pytest.raises(LedgerError, match="the database refused"),
        ledger._store.writing() as connection,
    ):
        connection.execute(text("DELETE FROM entries"))
    assert ledger.check().faults == ()
    ledger.close()


def test_a_younger_ledger_is_left_alone(place: str) -> None:
    store = Store(place)
    with store.writing() as connection:
        connection.execute(text("UPDATE topsecret_ledger SET version = 99"))
    store.close()
    ledger = Ledger(place)
    with pytest.raises(LedgerError, match="has version 99 and this topsecret knows versions up to"):
        ledger.datasets()


def test_the_default_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOPSECRET_LEDGER", str(tmp_path / "named.db"))
    assert default_place() == str(tmp_path / "named.db")
    monkeypatch.delenv("TOPSECRET_LEDGER")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert Path(default_place()).name == "ledger.db"
    assert "topsecret" in default_place()


def test_a_forked_child_connects_anew(on_file: Ledger) -> None:
    hold(on_file, question="parent")
    child = os.fork()
    if child == 0:
        try:
            hold(on_file, question="child")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert len(on_file.account("d").pending) == 2


@pytest.mark.parametrize(
    ("missing", "code", "message"),
    [
        (
            "sqlalchemy",
            "import topsecret.ledger",
            "the ledger needs SQLAlchemy: pip install '.[ledger]' in the checkout",
        ),
        (
            "psycopg",
            "import topsecret.ledger; topsecret.ledger.Ledger('postgresql://localhost/x')",
            "a ledger on PostgreSQL needs psycopg: pip install '.[postgres]' in the checkout",
        ),
    ],
)
def test_a_missing_extra_is_one_line(missing: str, code: str, message: str) -> None:
    hidden = f"""
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] == {missing!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
from topsecret.errors import MissingExtra
try:
    {code}
except MissingExtra as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", hidden], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{message}\n"


def test_a_ledger_that_nobody_closes_leaves_no_file_open(tmp_path: Path) -> None:
    place = tmp_path / "dropped.db"
    told: dict[str, list[object]] = {"connect": [], "close": []}
    hear = {name: lambda one, _, name=name: told[name].append(one) for name in told}
    for name, heard in hear.items():
        event.listen(Pool, name, heard)
    try:
        ledger = Ledger(place)
        ledger.open_budget("d", metered(), person="user")
        assert opened(place)
        del ledger
        gc.collect()
    finally:
        for name, heard in hear.items():
            event.remove(Pool, name, heard)
    assert not opened(place)
    # Closed, not merely collected with the ledger, of which Python 3.13 warns.
    # Ledgers of other tests may be closed here, too.
    assert told["connect"]
    assert all(any(one is ended for ended in told["close"]) for one in told["connect"])


def opened(place: Path) -> list[str]:
    """Which files of this name this process holds."""
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            links.append(os.readlink(entry))
    return [link for link in links if link.startswith(str(place))]


def test_no_row_of_a_ledger_is_logged(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    """SQLAlchemy logs rows at DEBUG and parameters at INFO, an unsettled answer among them."""
    for name in ("sqlalchemy.engine", "sqlalchemy.pool"):
        caplog.set_level("DEBUG", logger=name)
    ledger.open_budget("d", metered(), person="user")
    ledger.settle(hold(ledger), {"items": ["canary"]}, symbols=1)
    assert isinstance(ledger.reserve(request()), Stored)
    assert [one.name for one in caplog.records if one.name.startswith("sqlalchemy")] == []
