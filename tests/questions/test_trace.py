"""A reader's path: how many modules one question passes through, and how often it changes over.

Counted for calls alone, once everything is warm: what is remembered is not walked through again.
"""

import gc
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import FrameType

import pytest

import topsecret
from topsecret import top_k
from topsecret.sources.demo_data import write_checkins

PACKAGE = str(Path(topsecret.__file__).parent)
MOST_MODULES, MOST_CHANGES = 20, 200
"""Of the modules eight are the mechanism's and its noise."""
MOST_OF_TWO = 30
"""Where a choice stands between two mechanisms, whichever is drawn."""
TRIES = 8
"""The shortest counts: in one of 60, some noise needs more digits than its first."""


def modules_called(ask: Callable[[], object]) -> list[str]:
    """The module of every call within the package, in order."""
    called: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            called.append(frame.f_code.co_filename)

    gc.collect()
    gc.disable()  # what other tests left behind is not closed on the way
    sys.setprofile(note)
    try:
        ask()
    finally:
        sys.setprofile(None)
        gc.enable()
    return called


def changes_in(called: list[str]) -> int:
    """How often a call is in another module than the one before it."""
    return sum(one != other for one, other in pairwise(called))


def test_a_warm_question_of_a_file_takes_a_short_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOPSECRET_MEMORY", raising=False)  # a service in this process sets it
    path = write_checkins(tmp_path)

    def ask(choose: str | None) -> object:
        return top_k(path, item="place", person="user", k=10, epsilon=1.0, choose=choose)

    for choose, most in (("public", MOST_MODULES), (None, MOST_OF_TWO)):
        ask(choose)
        ways = [modules_called(partial(ask, choose)) for _ in range(TRIES)]
        called = min(ways, key=changes_in)
        modules = sorted({name.removeprefix(PACKAGE) for name in called})
        assert len(modules) <= most, f"{len(modules)}: {', '.join(modules)}"
        assert changes_in(called) <= MOST_CHANGES
