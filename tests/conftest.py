"""Fixtures that every part's tests may use, and which tests share a process."""

import os
from pathlib import PurePath
from typing import Any

import pytest

from postgres import postgres_server, postgres_url
from spark import spark

__all__ = ["postgres_server", "postgres_url", "spark"]

ONE_PROCESS = {"test_packaging"}
"""Files whose tests share what takes long to make."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """``-n auto`` is one more than there are cores: who starts a service or a notebook waits."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``-n``, all tests on Spark go to one process and share its cluster, and all in a browser
    to one that shares a service; so do the tests of a file that share a service or the wheel.
    Others go anywhere.

    By file and not by ``xdist_group``, which groups nothing with pytest 9.2 (pytest-xdist #1386).
    """
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = PurePath(nodeid.split("::")[0])
            for shared in ("spark", "browser"):
                if file.name.startswith("test_") and shared in file.stem:
                    return shared
            return str(file) if "service" in file.parts or file.stem in ONE_PROCESS else nodeid

    return Together(config, log) if config.getvalue("dist") == "load" else None
