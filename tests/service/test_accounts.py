"""Who may come in: what ends a session, a key and an account."""

import time
from pathlib import Path

import pytest

from topsecret.ledger.store import Store
from topsecret.service import schema
from topsecret.service.auth import credentials
from topsecret.service.auth.accounts import SESSION_SECONDS, Accounts
from topsecret.service.auth.identities import Identities
from topsecret.service.jobs.release_schedule import Turns

PASSWORD = "correct horse battery"


@pytest.fixture
def accounts(tmp_path: Path) -> Accounts:
    store = Store(str(tmp_path / "service.db"))
    schema.create(store)
    opened = Accounts(store)
    opened.add("olga", "owner", PASSWORD)
    opened.add("ann", "analyst", PASSWORD)
    return opened


def test_a_session_ends_at_its_time(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    token = accounts.log_in("ann", PASSWORD)
    assert token is not None
    assert accounts.by_session(token) is not None
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + SESSION_SECONDS - 1)
    assert accounts.by_session(token) is not None
    monkeypatch.setattr(time, "time", lambda: now + SESSION_SECONDS + 1)
    assert accounts.by_session(token) is None


def test_the_key_of_a_removed_analyst_opens_nothing(accounts: Accounts) -> None:
    key = accounts.new_key("ann", "laptop")
    assert accounts.by_key(key) is not None
    accounts.deactivate("ann")
    assert accounts.by_key(key) is None
    assert accounts.recognised.by("key", key) is None


def test_an_account_without_a_password_has_not_the_one_that_unknown_names_are_compared_with(
    accounts: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_NOBODY", credentials.hash_password(PASSWORD))
    Identities(accounts._store).invite("frida", "owner")
    for name in ("frida", "gerd"):  # the second is unknown
        assert accounts.log_in(name, PASSWORD) is None


@pytest.mark.parametrize("late", [0.0, 0.01, 0.4, 0.99, 1.01, 2.6])
def test_the_next_tick_is_a_whole_number_of_ticks_and_never_past(
    monkeypatch: pytest.MonkeyPatch, late: float
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.0 + late)
    tick = Turns(engines=1, tick=1.0).next_tick(1000.0)
    assert tick >= 1000.0 + late
    assert tick - 1000.0 == max(1, int(late) + (late > int(late)))
