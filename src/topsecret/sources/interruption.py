"""Ending a statement from another thread: a time limit, or somebody who no longer wants it.

>>> stop, ended = Stop(), []
>>> with stop.here(), interruptible(lambda: ended.append("interrupted")):
...     stop.now("it took too long")
>>> ended, stop.why
(['interrupted'], 'it took too long')
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Event, Lock

from topsecret.errors import SourceError

_current: ContextVar[Stop | None] = ContextVar("stop", default=None)


class Stop:
    """Whether a question is to end, and how its engine is told."""

    def __init__(self) -> None:
        self.asked, self.why = Event(), ""
        self._lock = Lock()
        self._interrupts: list[Callable[[], object]] = []

    @contextmanager
    def here(self) -> Iterator[None]:
        """What this thread asks an engine can be ended by this object."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def now(self, why: str) -> None:
        """End it; the first reason counts."""
        with self._lock:
            if not self.asked.is_set():
                self.why = why
                self.asked.set()
            for interrupt in self._interrupts:
                with suppress(Exception):  # the statement may have ended by itself
                    interrupt()

    @contextmanager
    def _during(self, interrupt: Callable[[], object]) -> Iterator[None]:
        with self._lock:
            self._interrupts.append(interrupt)
        try:
            if self.asked.is_set():
                raise SourceError("the question was ended while its data were read")
            yield
        finally:
            with self._lock:
                self._interrupts.remove(interrupt)


@contextmanager
def interruptible(interrupt: Callable[[], object]) -> Iterator[None]:
    """While an engine works: what tells it to end."""
    stop = _current.get()
    if stop is None:
        yield
    else:
        with stop._during(interrupt):
            yield
