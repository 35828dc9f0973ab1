"""A reader's path: how many modules a question to the service passes through.

Counted from the route to the stored answer, in whichever thread, once everything is warm: the
frame around every route (middleware, sessions, the log) and what tends the service are not on it.
"""

import gc
import os
import threading
import time
from pathlib import Path
from types import FrameType

import pytest
from serving import PATIENCE, Here, here

import topsecret

PACKAGE = str(Path(topsecret.__file__).parent)
ROUTE, LAST = ("/service/api.py", "ask"), ("/service/jobs/queue.py", "Jobs.run")
ASIDE = {"heart", "limits", "schedules"}
"""Threads that look after the service, whatever is asked."""
MOST_MODULES = {2: 46, 10: 58}
"""By the length of the list: ten items come by a choice between two mechanisms."""
ASKED = 6
"""The shortest of so many ways counts: what else a pool of threads does meanwhile is on some."""


class Way:
    """Which modules were called between the route and the stored answer."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self._on = False

    def begin(self) -> None:
        self.modules.clear()
        self._on = True

    def note(self, frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if not self._on or not file.startswith(PACKAGE):
            return
        name = (file.removeprefix(PACKAGE), frame.f_code.co_qualname)
        if event == "return" and name == LAST:
            self._on = False
        elif event == "call" and self._is_on_the_way(frame):
            self.modules.add(name[0])

    def _is_on_the_way(self, frame: FrameType | None) -> bool:
        thread = threading.current_thread().name
        if thread in ASIDE:
            return False
        if not thread.startswith("Thread-"):  # all others work for the question alone
            return True
        while frame is not None:  # the server's own thread: what the route itself calls
            code = frame.f_code
            if (code.co_filename.removeprefix(PACKAGE), code.co_qualname) == ROUTE:
                return True
            frame = frame.f_back
        return False


@pytest.mark.soak  # on a busy machine a pool's other work is on all ways
@pytest.mark.parametrize("k", MOST_MODULES)
def test_a_warm_question_to_the_service_takes_a_short_way(tmp_path: Path, k: int) -> None:
    path = Way()
    ways = []
    threading.setprofile(path.note)
    try:
        with here(tmp_path) as service:
            for hour in range(ASKED):  # new data each time, so that no answer is repeated
                os.utime(tmp_path / "files" / "events.csv", (3600.0 * hour, 3600.0 * hour))
                gc.collect()
                gc.disable()  # what other tests left behind is not closed on the way
                path.begin()
                _ask(service, k)
                gc.enable()
                ways.append(sorted(path.modules))
    finally:
        threading.setprofile(None)
        gc.enable()
    shortest = min(ways, key=len)
    assert len(shortest) <= MOST_MODULES[k], f"{len(shortest)}: {shortest}"


def _ask(service: Here, k: int) -> None:
    """Ask, and wait without asking the service anything more."""
    body = {"column": "place", "k": k, "epsilon": 0.1}
    asked = service.call("ann", "POST", "/api/v1/datasets/events/ask", body)
    assert asked.status_code in (200, 202), asked.text
    deadline = time.monotonic() + PATIENCE
    while (job := service.parts.jobs.find(asked.json()["id"])).state == "working":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert job.state == "answered"
