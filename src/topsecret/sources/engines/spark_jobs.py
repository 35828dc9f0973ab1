"""Run work on Spark and let nothing of its errors out: they quote rows.

A failed cast says ``The value 'ann' of the type "STRING" cannot be cast``. PySpark puts such a
text into the exception and, besides, prints it through loggers of its own; both end here.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from topsecret.errors import TopSecretError
from topsecret.sources.running_statement import watch

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

T = TypeVar("T")

LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Through these PySpark prints every error of a query, whoever catches it."""

AGAIN = 0.2
"""Seconds after which jobs that were told to end are told again."""


@contextmanager
def quiet() -> Iterator[None]:
    """PySpark prints no error of this thread; the caller's other threads are left alone."""
    from pyspark.logger import PySparkLogger

    thread = threading.get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != thread

    loggers = [PySparkLogger.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addFilter(is_of_others)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_of_others)


def attempt(work: Callable[[], T], failure: TopSecretError) -> T:
    """What ``work`` gives, or ``failure`` in the place of any error of Spark's."""
    with quiet():
        try:
            return work()
        except TopSecretError:
            raise
        except Exception as error:  # of PySpark, Py4J or a socket to a driver that is gone
            interrupted = _interrupted(error)
    # Raised outside the handler, so that Spark's text is not even the error's context.
    if interrupted:
        raise KeyboardInterrupt
    raise failure


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is at the root of it: Py4J may fail over what the signal left behind."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def run(session: SparkSession, work: Callable[[], T], label: str) -> T:
    """Do ``work`` as a group of jobs called ``label``: shown while it lasts, ended by Ctrl-C."""
    from pyspark.util import inheritable_thread_target

    if type(session).__module__.startswith("pyspark.sql.connect"):
        return work()  # a remote session has no context; its client ends a query by itself
    context = session.sparkContext

    ended = threading.Event()

    def in_its_thread() -> T:
        context.setJobGroup(label, "topsecret: counting", interruptOnCancel=False)
        try:
            with quiet():
                return work()
        finally:
            ended.set()

    def end() -> None:
        while True:
            # The signal may have come before the job, or a command may fail: then ask again.
            with suppress(Exception):
                context.cancelJobGroup(label)
            if ended.wait(AGAIN):
                return

    # The settings of the caller's thread, such as its scheduler pool, go along.
    inheriting: Callable[[], T] = inheritable_thread_target(session)(in_its_thread)
    # Asked in a thread of its own: Ctrl-C, which the caller's thread gets, would cut the command to
    # the driver in two, and the session could fail over the rest of it later.
    with ThreadPoolExecutor(max_workers=1) as asking:
        return watch(
            inheriting,
            fraction=lambda: asking.submit(finished, context, label).result(),
            interrupt=end,
        )


def finished(context: SparkContext, group: str) -> float:
    """The share of a group's tasks that are done, of those that Spark has planned so far."""
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    planned = sum(stage.numTasks for stage in stages if stage)
    done = sum(stage.numCompletedTasks for stage in stages if stage)
    return done / planned if planned else 0.0
