import io
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from topsecret.sources import running_statement as progress
from topsecret.sources.running_statement import watch


def test_the_result_comes_back() -> None:
    assert watch(lambda: 7, fraction=lambda: 0.0, interrupt=lambda: None) == 7


def test_a_failure_comes_back() -> None:
    def fail() -> None:
        raise LookupError("as it was")

    with pytest.raises(LookupError, match="as it was"):
        watch(fail, fraction=lambda: 0.0, interrupt=lambda: None)


@pytest.fixture
def usual_ctrl_c() -> Iterator[None]:
    """Python's own handler: others, such as Spark's, may have put theirs in this process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("usual_ctrl_c")
def test_ctrl_c_stops_the_query_and_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, stop, stopped = threading.Event(), threading.Event(), threading.Event()
    wait = progress.wait

    def announced(*arguments: Any, **more: Any) -> Any:
        waiting.set()
        return wait(*arguments, **more)

    monkeypatch.setattr(progress, "wait", announced)

    def query() -> None:
        waiting.wait(600)
        # A real signal: _thread.interrupt_main wakes nobody who waits without a time limit.
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]
        stop.wait(600)
        stopped.set()

    with pytest.raises(KeyboardInterrupt):
        watch(query, fraction=lambda: 0.0, interrupt=stop.set)
    assert stopped.is_set()


@pytest.mark.usefixtures("usual_ctrl_c")
def test_an_engine_that_misses_the_first_interrupt_is_told_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DuckDB forgets an interrupt that comes before its statement has begun."""
    monkeypatch.setattr(progress, "AGAIN", 0.01)
    told: list[str] = []
    second = threading.Event()

    def interrupt() -> None:
        told.append("interrupted")
        if len(told) == 2:
            second.set()

    def query() -> bool:
        # At once: the caller may not even have begun to wait.
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]
        return second.wait(600)

    with pytest.raises(KeyboardInterrupt):
        watch(query, fraction=lambda: 0.0, interrupt=interrupt)
    assert second.is_set()


def test_the_bar_is_drawn_beside_the_thread_that_ctrl_c_interrupts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr("sys.stderr", Terminal())
    asked, drawn_by = threading.Event(), []

    def fraction() -> float:
        drawn_by.append(threading.current_thread())
        asked.set()
        return 0.5

    assert watch(lambda: asked.wait(600), fraction=fraction, interrupt=lambda: None)
    assert threading.main_thread() not in drawn_by


@pytest.mark.usefixtures("usual_ctrl_c")
def test_ctrl_c_before_the_query_has_begun_means_that_it_never_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    submit = ThreadPoolExecutor.submit

    def interrupted(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return submit(*arguments)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    begun: list[str] = []

    def query() -> None:
        begun.append("begun")

    with pytest.raises(KeyboardInterrupt):
        watch(query, fraction=lambda: 0.0, interrupt=lambda: None)
    assert begun == []
