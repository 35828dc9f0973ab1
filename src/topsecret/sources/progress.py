"""Run a long query without going silent: progress on a terminal, Ctrl-C at any time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 0.5
"""Seconds before a progress bar appears: shorter queries stay quiet."""


def watch(
    run: Callable[[], T], *, fraction: Callable[[], float], interrupt: Callable[[], None]
) -> T:
    """Run ``run`` in a thread, draw ``fraction`` (0 to 1) on a terminal, stop it on Ctrl-C."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        try:
            future = pool.submit(run)
            wait([future], timeout=PATIENCE)
            if not future.done() and sys.stderr.isatty():
                with suppress(Exception):  # a bar that fails must not fail what was paid for
                    _draw(future.done, fraction)
            return future.result()
        except KeyboardInterrupt:
            interrupt()
            raise


def _draw(done: Callable[[], bool], fraction: Callable[[], float]) -> None:
    import time

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
        while not done():
            progress.update(task, completed=min(max(fraction(), 0.0), 1.0))
            time.sleep(0.1)
