"""Who guesses at a name keeps nobody else out; owners get back in."""

import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from serving import PASSWORD, PATIENCE, Here, here, settings
from test_coming_in import form_token, log_in

from topsecret.service.auth import credentials, rate_limits
from topsecret.service.auth.accounts import Accounts
from topsecret.service.state import Parts


@pytest.fixture
def _stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """No token comes back while a test is slow."""
    monkeypatch.setattr(rate_limits, "time", SimpleNamespace(monotonic=lambda: 0.0))


def from_address(address: str, service: Here) -> httpx.Client:
    headers = {"x-forwarded-for": address}
    return httpx.Client(base_url=service.client.base_url, timeout=PATIENCE, headers=headers)


@pytest.mark.usefixtures("_stopped")
def test_wrong_log_ins_lock_nobody_out(tmp_path: Path) -> None:
    with here(tmp_path, tries_per_minute=2) as service:
        home, away = from_address("192.0.2.1", service), from_address("192.0.2.2", service)
        assert log_in(home, "olga", PASSWORD).status_code == 303
        with from_address("198.51.100.1", service) as guesser:
            guessed = [log_in(guesser, "olga", "wrong").status_code for _ in range(4)]
            assert guessed == [401, 401, 429, 429]
        # One address does not keep the name from another, even from a new browser.
        assert log_in(away, "olga", PASSWORD).status_code == 303
        # Many addresses do, but not a browser from which the person came in before.
        for number in range(6):
            with from_address(f"203.0.113.{number}", service) as guesser:
                codes = [log_in(guesser, "olga", "wrong").status_code for _ in range(2)]
        assert codes == [429, 429]
        with from_address("192.0.2.3", service) as stranger:
            assert log_in(stranger, "olga", PASSWORD).status_code == 429
        home.cookies.delete("topsecret_session")
        assert log_in(home, "olga", PASSWORD).status_code == 303
        # What a browser keeps is for one name, and its own tries are counted.
        home.cookies.delete("topsecret_session")
        assert [log_in(home, "olga", "wrong").status_code for _ in range(3)] == [401, 401, 429]
        forged = "x." + "0" * 64
        assert not service.parts.devices.knows(forged, "olga")
        assert not service.parts.devices.knows(away.cookies["topsecret_device"], "ann")
        home.close()
        away.close()


@pytest.mark.usefixtures("_stopped")
def test_right_log_ins_are_limited_for_one_address_alone(tmp_path: Path) -> None:
    with here(tmp_path, tries_per_minute=2) as service:
        with from_address("192.0.2.1", service) as home:
            codes = []
            for _ in range(7):
                home.cookies.delete("topsecret_session")
                codes.append(log_in(home, "ann", PASSWORD).status_code)
            assert codes == [303] * 6 + [429]
            assert log_in(home, "bob", PASSWORD).status_code == 303
        with from_address("192.0.2.2", service) as away:
            # Wrong passwords use nothing of it up.
            assert [log_in(away, "ann", "wrong").status_code for _ in range(3)] == [401, 401, 429]
            assert service.parts.limits._buckets["accepted", "ann from 192.0.2.2"] == (
                6.0,
                0.0,
            )
        with from_address("192.0.2.3", service) as elsewhere:
            assert log_in(elsewhere, "ann", PASSWORD).status_code == 303


def test_who_waits_for_a_password_holds_no_thread(
    fresh: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, arrived, crowd = threading.Event(), list[str](), 40  # as many as there are threads
    hasher, wait = credentials._PASSWORDS, fresh.parts.limits.wait

    def verify(*given: str) -> bool:
        assert go_on.wait(PATIENCE)
        return hasher.verify(*given)

    def counted(kind: str, who: str, number: int = 1) -> int:
        arrived.extend([who] if who.startswith("log-in from") else [])
        return wait(kind, who, number)

    visit = form_token(fresh.client.get("/login").text, "visit")
    form = {"name": "ann", "password": PASSWORD, "visit": visit}
    headers = {"cookie": f"topsecret_visit={visit}"}

    def come(_: int) -> int:
        url = f"{fresh.client.base_url}/login"
        return httpx.post(url, data=form, headers=headers, timeout=PATIENCE).status_code

    monkeypatch.setattr(credentials, "_PASSWORDS", SimpleNamespace(verify=verify))
    monkeypatch.setattr(fresh.parts.limits, "wait", counted)
    with ThreadPoolExecutor(crowd) as pool:
        coming = [pool.submit(come, number) for number in range(crowd)]
        try:
            deadline = time.monotonic() + PATIENCE
            while len(arrived) < crowd:
                assert time.monotonic() < deadline, "they did not come"
                time.sleep(0.02)
            assert fresh.call(None, "GET", "/api/v1/health").status_code == 200
            assert fresh.call("bob", "GET", "/api/v1/datasets").status_code == 200
        finally:
            go_on.set()
        assert {one.result() for one in coming} == {303}


def test_two_owners_and_one_always_stays(service: Here) -> None:
    made = service.call("olga", "POST", "/api/analysts", {"name": "otto", "role": "owner"}).json()
    with httpx.Client(base_url=service.client.base_url, timeout=PATIENCE) as visitor:
        assert log_in(visitor, "otto", made["password"]).status_code == 303
        csrf = form_token(visitor.get("/account/password").text, "csrf")
        own = {"csrf": csrf, "old": made["password"], "new": PASSWORD}
        assert visitor.post("/account/password", data=own).status_code == 303
        assert visitor.get("/owner").status_code == 200
        csrf = form_token(visitor.get("/owner/analysts").text, "csrf")
        form = {"csrf": csrf, "name": "olga"}
        assert visitor.post("/owner/analysts/remove", data=form).status_code == 303
        last = visitor.post("/owner/analysts/remove", data=form | {"name": "otto"})
        assert last.status_code == 400
        assert "The last owner stays" in last.text
        assert visitor.get("/owner").status_code == 200


def test_an_owner_who_is_locked_out_gets_back_in(tmp_path: Path) -> None:
    parts = Parts(settings(tmp_path))
    parts.accounts.add("olga", "owner", PASSWORD)
    parts.accounts.add("otto", "owner", PASSWORD)
    key = parts.accounts.new_key("olga", "old")

    def reset(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "topsecret", "service", "reset-owner", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    unclear = reset("--home", str(tmp_path))
    assert (unclear.returncode, "name one of the owners: olga, otto" in unclear.stderr) == (2, True)
    done = reset("olga", "--home", str(tmp_path))
    found = re.fullmatch(r"log in as olga with (\S+)\n", done.stdout)
    assert found
    assert Accounts(parts.store).check_password("olga", found[1])
    assert not parts.accounts.check_password("olga", PASSWORD)
    assert parts.accounts.by_key(key) is None
    nowhere = reset("--home", str(tmp_path / "nothing"))
    assert (nowhere.returncode, "there is no service in" in nowhere.stderr) == (2, True)
    missing = reset("--database", str(tmp_path / "nothing.db"))
    assert (missing.returncode, "there is no file" in missing.stderr) == (2, True)
    assert not (tmp_path / "nothing.db").exists()
    parts.close()
