"""Where a ledger lives: one SQLite file, or a PostgreSQL database.

A commit is durable when it returns: SQLite runs in WAL mode with ``synchronous=FULL``, PostgreSQL
with ``synchronous_commit=on``. Writers are one after the other: on SQLite each takes the write
lock before it reads (``BEGIN IMMEDIATE``), on PostgreSQL the dataset's row (``FOR UPDATE``).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, make_url, text

from topsecret.errors import InvalidParameter, LedgerError, MissingExtra, Taken, TopSecretError
from topsecret.ledger import schema
from topsecret.logs.sqlalchemy import unlogged

PATIENCE = 60.0
"""Seconds that a writer waits for the others."""

MIGRATION_LOCK = 0x746F7073  # any constant: two clients must not migrate at once

_SQLITE: dict[str, str] = {
    "SQLITE_FULL": "its disk is full; free some space",
    "SQLITE_READONLY": "it may not be written; check the permissions of the file and its folder",
    "SQLITE_PERM": "it may not be written; check the permissions of the file and its folder",
    "SQLITE_CANTOPEN": "it cannot be opened; check the path and the permissions of its folder",
    "SQLITE_BUSY": "other programs kept it locked; try again",
    "SQLITE_LOCKED": "other programs kept it locked; try again",
    "SQLITE_NOTADB": "it is not a ledger; name another file",
    "SQLITE_CORRUPT": "the file is damaged; restore a backup",
    "SQLITE_IOERR": "its disk does not answer or is full; check the disk",
}
_TAKEN = ("SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE", "23505")
_POSTGRES: dict[str, str] = {
    "53100": "its disk is full; free some space",
    "25006": "it is read-only; connect to the primary server",
    "42501": "this user may not write it; grant SELECT, INSERT and UPDATE",
    "40P01": "other clients kept it locked; try again",
    "55P03": "other clients kept it locked; try again",
    "57014": "other clients kept it locked; try again",
}


class Store:
    """Transactions on one ledger, from any thread; a child process connects anew."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self._url = _address(place)
        self.sqlite = self._url.get_backend_name() == "sqlite"
        self._engine: Engine | None = None
        self._pid = 0
        self._opening = threading.Lock()
        self._writers = threading.Lock()

    @property
    def name(self) -> str:
        """The path or address, without a password."""
        if self.sqlite:
            return str(self._url.database)
        return self._url.render_as_string(hide_password=True)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the ledger and changes nothing."""
        with self._translated(), self._connected() as engine, engine.connect() as connection:
            if not self.sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is durable once the block has ended, or never happened."""
        with (
            self._translated(),
            self._connected() as engine,
            # Threads of one process queue here, which is kinder than SQLite's busy waiting.
            self._writers if self.sqlite else nullcontext(),
            engine.connect() as connection,
            connection.execution_options(topsecret_writes=True).begin(),
        ):
            yield connection

    @contextmanager
    def _connected(self) -> Iterator[Engine]:
        with self._opening:
            if self._engine is None or self._pid != os.getpid():
                if self._engine is not None:
                    self._engine.dispose(close=False)  # the parent's connections stay its own
                    self._writers = threading.Lock()
                self._engine, self._pid = self._open(), os.getpid()
            engine = self._engine
        with unlogged(engine):  # stored sums and answers, the latter before they are settled
            yield engine

    def _open(self) -> Engine:
        if self.sqlite:
            path = Path(str(self._url.database))
            _create_private(path)
            engine = create_engine(
                self._url,
                connect_args={"timeout": PATIENCE},
                hide_parameters=True,
                pool_size=4,
                max_overflow=60,
            )
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
        else:
            engine = create_engine(
                self._url,
                hide_parameters=True,
                pool_size=4,
                max_overflow=60,
                pool_pre_ping=True,
                connect_args={"connect_timeout": 10},
            )
            event.listen(engine, "connect", _prepare_postgres)
        # A ledger that nobody closes is closed when nobody has it any more.
        self._closing = weakref.finalize(self, _dispose, engine, os.getpid())
        try:
            with unlogged(engine):
                self._migrate(engine)
        except BaseException:
            self._closing()
            raise
        return engine

    def _migrate(self, engine: Engine) -> None:
        with engine.connect() as connection:
            if schema.version_of(connection) == schema.CURRENT:
                return
        with (
            engine.connect() as connection,
            connection.execution_options(topsecret_writes=True).begin(),
        ):
            if not self.sqlite:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
            schema.migrate(connection)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of the database in our words; its own texts may quote what is stored.

        Its errors hold the parameters too, an unsettled answer among them: they must not even be
        the context of ours.
        """
        try:
            yield
        except (exc.SQLAlchemyError, OSError) as error:
            if isinstance(error, TopSecretError):
                raise
            told = self._told(error)
        else:
            return
        try:
            raise told
        except LedgerError:
            # Python has set it: a block that ends in an error is left while that is handled.
            told.__context__ = None
            raise

    def _told(self, error: Exception) -> LedgerError:
        if _is_taken(error):
            return Taken(f"the ledger {self.name} has a row with this key already")
        return LedgerError(f"the ledger {self.name} failed: {_reason(error)}")

    def close(self) -> None:
        """Close all connections."""
        with self._opening:
            if self._engine is not None:
                self._closing()
            self._engine = None


def _dispose(engine: Engine, process: int) -> None:
    engine.dispose(close=process == os.getpid())  # a forked child's are its parent's


def default_place() -> str:
    """The ledger named by TOPSECRET_LEDGER, or a file in the platform's data directory."""
    named = os.environ.get("TOPSECRET_LEDGER")
    if named:
        return named
    try:
        import platformdirs
    except ImportError:
        raise MissingExtra(
            "the ledger needs platformdirs: pip install '.[ledger]' in the checkout"
        ) from None
    return str(platformdirs.user_data_path("topsecret", appauthor=False) / "ledger.db")


def _address(place: str | os.PathLike[str]) -> URL:
    given = os.fspath(place)
    if "://" not in given:
        if not given:
            raise InvalidParameter("the ledger's path is empty; name a file or leave it out")
        return URL.create("sqlite", database=str(Path(given).expanduser().absolute()))
    try:
        url = make_url(given)
        backend = url.get_backend_name()
    except exc.SQLAlchemyError:
        backend = ""
    if backend not in ("postgresql", "postgres"):
        raise InvalidParameter(
            "a ledger is a file's path or an address postgresql://user@host/database"
        )
    try:
        import psycopg  # noqa: F401  # asked for here, so that the error names the extra
    except ImportError:
        raise MissingExtra(
            "a ledger on PostgreSQL needs psycopg: pip install '.[postgres]' in the checkout"
        ) from None
    return url.set(drivername="postgresql+psycopg")


def _create_private(path: Path) -> None:
    """The file with access for its owner alone: it holds who asked what."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions begin and end where this module says
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout={int(PATIENCE * 1000)}",
        "journal_mode=WAL",
        "synchronous=FULL",
        "fullfsync=ON",
        "wal_autocheckpoint=4000",  # pages: fewer, larger moves from the log to the file
        "foreign_keys=ON",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("topsecret_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _prepare_postgres(connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit TO on")
        cursor.execute(f"SET lock_timeout TO '{int(PATIENCE)}s'")
    connection.commit()


def _is_taken(error: BaseException) -> bool:
    """Whether a primary key or another key is there already, and nothing else is wrong."""
    cause = getattr(error, "orig", None)
    name = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None)
    return isinstance(error, exc.IntegrityError) and name in _TAKEN


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError):
        return "it cannot be opened; check the path and the permissions of its folder"
    cause = getattr(error, "orig", None)
    name = getattr(cause, "sqlite_errorname", None)
    if name is not None:
        for start, reason in _SQLITE.items():
            if name.startswith(start):
                return reason
    known = _POSTGRES.get(getattr(cause, "sqlstate", None) or "")
    if known is not None:
        return known
    if isinstance(error, exc.OperationalError | exc.InterfaceError):
        return "it cannot be reached or the connection was lost; check the server"
    return "the database refused; run topsecret ledger check"
