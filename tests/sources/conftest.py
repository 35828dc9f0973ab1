from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from events import SUFFIXES, Row, write


@pytest.fixture(scope="session")
def write_events() -> Callable[[Path, Sequence[Row]], Path]:
    """The writer itself, for a path of the test's choice."""
    return write


@pytest.fixture(params=SUFFIXES)
def events(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Sequence[Row]], Path]:
    """A writer of event files, once for every format."""
    return lambda rows: write(tmp_path / f"events{request.param}", rows)
