import _thread
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from topsecret.sources.progress import watch


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
def test_ctrl_c_stops_the_query_and_waits_for_it() -> None:
    stop, stopped = threading.Event(), threading.Event()

    def query() -> None:
        time.sleep(0.1)  # the main thread waits by now
        _thread.interrupt_main()
        stop.wait(60)
        stopped.set()

    with pytest.raises(KeyboardInterrupt):
        watch(query, fraction=lambda: 0.0, interrupt=stop.set)
    assert stopped.is_set()
