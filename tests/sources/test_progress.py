import signal
import threading
from collections.abc import Iterator
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
