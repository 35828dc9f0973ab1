"""Fixtures that every part's tests may use, and which tests share a process."""

import os
from pathlib import PurePath
from typing import Any

import pytest

from postgres import postgres_server, postgres_url
from spark import spark

__all__ = ["postgres_server", "postgres_url", "spark"]

LONG = (
    "spark",
    "browser",
    "service",
    "test_packaging",
    "test_tutorials",
    "test_docs",
    "experiments",
    "typing",
    "relations",
)
"""Files, and folders of them, that take longest; they begin first, so that none is left alone."""


def shared(nodeid: str) -> str:
    """Which tests share a process, and with it what they make and what is cached for them.

    All tests on Spark share its cluster, all in a browser one service and Chromium. Otherwise a
    class of tests or the rest of a file; tests of a soak, which take minutes each, share nothing.
    """
    file, name = PurePath(nodeid.split("::")[0]), nodeid.split("[")[0]
    for one in ("spark", "browser"):
        if file.parts[0] == "tests" and one in name.removeprefix(str(file.parent)):
            return one
    return nodeid if file.stem.endswith("soak") else name.rpartition("::")[0]


def rank(nodeid: str) -> int:
    """The place in ``LONG`` of what a test belongs to."""
    scope = shared(nodeid)
    file = PurePath(scope.split("::")[0])
    names = (scope, file.stem, *file.parts)
    return next((place for place, long in enumerate(LONG) if long in names), len(LONG))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long comes first; whoever needs Spark is where its cluster is.

    What is marked ``soak`` says at length what another test says in short: ``make soak`` runs it.
    """
    if os.environ.get("TOPSECRET_SOAK") != "1":
        long = {item for item in items if item.get_closest_marker("soak")}
        config.hook.pytest_deselected(items=list(long))
        items[:] = [item for item in items if item not in long]
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and shared(item.nodeid) != "spark":
            raise pytest.UsageError(f"{item.nodeid} needs 'spark' in its name: it shares a cluster")
    items.sort(key=lambda item: rank(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """``-n auto`` is two more than there are cores: who starts a service or a notebook waits."""
    return len(os.sched_getaffinity(0)) + 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``-n``, tests that share a process (``shared``) go to one, in the order above.

    By name and not by ``xdist_group``, which groups nothing with pytest 9.2 (pytest-xdist #1386).
    """
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return shared(nodeid)

    config.option.loadscopereorder = False
    return Together(config, log) if config.getvalue("dist") == "load" else None
