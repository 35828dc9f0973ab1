"""Every run draws the same cases and the same noise: green is no luck, red can be repeated.

``--hypothesis-seed=N`` draws others (``make soak`` chooses N at random and prints it), for
hypothesis and for the noise alike. ``--hypothesis-profile=shrink`` makes a failure small.
"""

import gc
import hashlib
import os
import random
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings

import topsecret.noise.bits as bits
import topsecret.sources.source as source

FIND = (Phase.explicit, Phase.generate, Phase.target)
REPEATABLE = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=FIND,  # shrinking a case that asks a database may take minutes
    report_multiple_bugs=False,
    print_blob=True,
    # The first depends on how busy the machine is. The second: what an example shares with the
    # next is a folder or a database, which the tests themselves keep apart.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("repeatable", REPEATABLE)
settings.register_profile("shrink", REPEATABLE, phases=tuple(Phase))
settings.register_profile("soak", REPEATABLE, derandomize=False)


class Stream:
    """What stands in for the operating system's randomness: bytes that repeat for the same seed.

    Its methods are those by which hypothesis begins each of its examples at the same place. A
    forked process draws from the system: it would repeat what its parent draws.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.seed(0)

    def seed(self, seed: object) -> None:
        self._process = os.getpid()
        self._state = (str(seed).encode(), 0)

    def getstate(self) -> tuple[bytes, int]:
        return self._state

    def setstate(self, state: tuple[bytes, int]) -> None:
        self._state = state

    def urandom(self, size: int) -> bytes:
        if os.getpid() != self._process:
            return os.urandom(size)
        with self._lock:
            seed, draws = self._state
            self._state = (seed, draws + 1)
        return hashlib.shake_256(b"%d %s" % (draws, seed)).digest(size)


STREAM = Stream()
hypothesis.register_random(STREAM)


def pytest_configure(config: pytest.Config) -> None:
    """A seed that is given is used; without one, cases follow from each test's name."""
    if config.getoption("--hypothesis-profile") is None:
        given = config.getoption("--hypothesis-seed") is not None
        settings.load_profile("soak" if given else "repeatable")


def pytest_collection_finish() -> None:
    """What was imported stays: no collection of garbage looks through it again."""
    gc.freeze()


@pytest.fixture(autouse=True)
def repeatable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Noise, salts and ``random`` follow from the test's name and the seed."""
    if request.node.get_closest_marker("system_randomness"):
        yield
        return
    given: Any = request.config.getoption("--hypothesis-seed")
    seed = f"{request.node.nodeid} {given}"
    before = random.getstate()
    random.seed(seed)
    STREAM.seed(seed)
    monkeypatch.setattr(bits, "os", SimpleNamespace(urandom=STREAM.urandom))
    monkeypatch.setattr(source, "secrets", SimpleNamespace(token_bytes=STREAM.urandom))
    yield
    random.setstate(before)
