"""Services for the tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import Here, here


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    """A service in this process with an owner, two analysts and two data sets."""
    with here(tmp_path_factory.mktemp("service")) as made:
        yield made


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Here]:
    """As ``service``, for one test alone."""
    with here(tmp_path) as made:
        yield made
