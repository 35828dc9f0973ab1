"""Services for the tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from argon2 import PasswordHasher
from serving import Here, here

import topsecret.service.auth.credentials as credentials

AS_IN_USE = {"_PASSWORDS": credentials._PASSWORDS, "_NOBODY": credentials._NOBODY}


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    """Passwords are hashed with less work: hundreds of accounts are made here."""
    quick = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(credentials, "_PASSWORDS", quick)
        patch.setattr(credentials, "_NOBODY", quick.hash("nobody has it"))
        yield


@pytest.fixture
def slow_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords are hashed with as much work as in use."""
    for name, value in AS_IN_USE.items():
        monkeypatch.setattr(credentials, name, value)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    """A service in this process with an owner, two analysts and two datasets."""
    with here(tmp_path_factory.mktemp("service")) as made:
        yield made


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Here]:
    """As ``service``, for one test alone."""
    with here(tmp_path) as made:
        yield made
