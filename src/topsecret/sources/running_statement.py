"""While a statement runs: progress on a terminal, Ctrl-C at any time, an end from another thread.

A service ends one for its time limit, or for somebody who no longer wants it.

>>> stop, ended = Stop(), []
>>> with stop.here(), interruptible(lambda: ended.append("interrupted")):
...     stop.now("it took too long")
>>> ended, stop.why
(['interrupted'], 'it took too long')
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Event, Lock
from typing import TypeVar

from topsecret.errors import SourceError

T = TypeVar("T")

PATIENCE = 0.5
"""Seconds before a progress bar appears: shorter queries stay quiet."""

AGAIN = 1.0
"""Seconds after which a statement that goes on in spite of Ctrl-C is told again."""

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


def watch(
    run: Callable[[], T], *, fraction: Callable[[], float], interrupt: Callable[[], None]
) -> T:
    """Run ``run`` in a thread, draw ``fraction`` (0 to 1) on a terminal, stop it on Ctrl-C.

    The bar has a thread of its own: Ctrl-C, which the caller's thread gets, could otherwise come
    while a lock of the bar is taken, and the bar would wait for that lock for ever.
    """
    future: Future[T] = Future()  # made before anything runs: Ctrl-C finds it at any time
    with ThreadPoolExecutor(max_workers=2) as pool:
        try:
            pool.submit(_fulfil, future, run)
            wait([future], timeout=PATIENCE)
            if not future.done() and sys.stderr.isatty():
                pool.submit(_draw, future, fraction)  # a bar that fails fails nothing else
            return future.result()
        except KeyboardInterrupt:
            future.cancel()  # never begins, if it has not begun
            while not future.done():  # an engine forgets what comes before its statement has begun
                interrupt()
                wait([future], timeout=AGAIN)
            raise


def _fulfil(future: Future[T], run: Callable[[], T]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(run())
        except BaseException as error:
            future.set_exception(error)


def _draw(future: Future[T], fraction: Callable[[], float]) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("counting"),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("counting", total=1.0)
        while wait([future], timeout=0.1).not_done:
            progress.update(task, completed=min(max(fraction(), 0.0), 1.0))
