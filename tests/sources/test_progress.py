import _thread
import threading
import time

import pytest

from topsecret.sources.progress import watch


def test_the_result_comes_back() -> None:
    assert watch(lambda: 7, fraction=lambda: 0.0, interrupt=lambda: None) == 7


def test_a_failure_comes_back() -> None:
    def fail() -> None:
        raise LookupError("as it was")

    with pytest.raises(LookupError, match="as it was"):
        watch(fail, fraction=lambda: 0.0, interrupt=lambda: None)


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
