"""Nothing of rows, parameters or salts is in Python's log, whatever the caller switched on."""

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from topsecret import top_k
from topsecret.logs.sqlalchemy import unlogged
from topsecret.sources import CountQuery
from topsecret.sources.engines.sqlalchemy import SqlSource

SALT = bytes(range(200, 216))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "visits.db"
    with sqlite3.connect(made) as connection:
        connection.execute('CREATE TABLE visits ("user" TEXT, place TEXT)')
        rows = [(f"u{number}", "home") for number in range(500)] + [("ann", "clinic")]
        connection.executemany("INSERT INTO visits VALUES (?, ?)", rows)
    connection.close()
    return made


class Lines(logging.Handler):
    """The lines that reach a handler."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@pytest.fixture
def logged() -> Iterator[list[str]]:
    handler, logger = Lines(), logging.getLogger("sqlalchemy")
    logger.addHandler(handler)
    yield handler.texts
    logger.removeHandler(handler)


@pytest.fixture
def at_debug() -> Iterator[None]:
    loggers = [logging.getLogger(f"sqlalchemy.{name}") for name in ("engine", "pool")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def address(path: Path) -> str:
    return f"sqlite:///{path}"


def echoing(path: Path) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(address(path), echo="debug", poolclass=sqlalchemy.NullPool)


def echoing_by_name(path: Path) -> sqlalchemy.Engine:
    pool = sqlalchemy.NullPool(lambda: sqlite3.connect(path), echo="debug", logging_name="mine")
    return sqlalchemy.create_engine("sqlite://", pool=pool, echo="debug", logging_name="mine")


def with_options(path: Path) -> sqlalchemy.Engine:
    return echoing(path).execution_options(logging_token="mine")


MADE: list[Callable[[Path], Any]] = [address, echoing, echoing_by_name, with_options]


@pytest.mark.parametrize("make", MADE)
@pytest.mark.usefixtures("at_debug")
def test_no_row_is_logged(make: Callable[[Path], Any], path: Path, logged: list[str]) -> None:
    asked = {"item": "place", "person": "user", "k": 2, "epsilon": 1.0}
    top_k(make(path), table="visits", mechanism="limited-domain", **asked)
    assert logged == []


@pytest.mark.parametrize("make", MADE)
def test_no_salt_is_logged(
    make: Callable[[Path], Any], path: Path, logged: list[str], at_debug: None
) -> None:
    capped = CountQuery("place", "user", rows=9, max_items=1, salt=SALT)
    source = SqlSource(make(path), "visits")
    assert SALT.hex() in source.sql(capped).lower()
    assert dict(source.leading_counts(capped))["home"] == 500
    assert logged == []


def test_the_callers_own_statements_are_logged_as_before(path: Path, logged: list[str]) -> None:
    """Afterwards, and in other threads meanwhile."""
    engine = echoing(path)
    handlers = list(logging.getLogger("sqlalchemy.engine.Engine").handlers)

    def ask(word: str) -> None:
        with engine.connect() as connection:
            connection.exec_driver_sql(f"SELECT '{word}'").fetchall()

    ask("earlier")
    with unlogged(engine):
        other = threading.Thread(target=ask, args=["theirs"])
        other.start()
        other.join()
        ask("ours")
    SqlSource(engine, "visits").leading_counts(CountQuery("place", "user", rows=9))
    ask("later")
    rows = [line for line in logged if line.startswith("Row")]
    assert rows == ["Row ('earlier',)", "Row ('theirs',)", "Row ('later',)"]
    assert engine.echo == "debug"
    assert logging.getLogger("sqlalchemy.engine.Engine").handlers == handlers
