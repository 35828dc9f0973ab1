"""SQLAlchemy logs nothing while a statement of ours runs: its lines hold rows and parameters.

At DEBUG it logs every row that it fetches, at INFO every statement with its parameters, the salt
of a cap among them; ``echo=`` and ``logging.getLogger("sqlalchemy.engine")`` switch that on, for
engines of ours as for the caller's. Levels, handlers and ``echo`` are not touched: a filter drops
the lines of a thread within ``unlogged`` and lets all others pass.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import Engine


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.blocks: list[object] = []
        """One entry for each ``unlogged`` block that the thread is in."""


RUNNING = _OfThread()


def is_of_others(_record: logging.LogRecord) -> bool:
    """A filter, asked in the thread that logs: whether it runs no statement of ours."""
    return not RUNNING.blocks


@contextmanager
def unlogged(engine: Engine) -> Iterator[None]:
    """Nothing that this thread does with the engine is logged; what other threads do is."""
    for logger in (_plain(engine.logger), _plain(engine.pool.logger)):
        # Before the caller's filters, which would see the record. It stays there: to take one away
        # while another thread goes through the list would let that thread skip the next.
        if is_of_others not in logger.filters:
            logger.filters.insert(0, is_of_others)
    blocks = RUNNING.blocks  # of this thread, whichever ends the block
    blocks.append(engine)
    try:
        yield
    finally:
        blocks.pop()


def _plain(logger: Any) -> logging.Logger:
    """Python's logger; with ``echo=`` an engine has one of SQLAlchemy's around it."""
    plain: logging.Logger = logger if isinstance(logger, logging.Logger) else logger.logger
    return plain
