"""Sessions, forms, limits and headers."""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from serving import PASSWORD, PATIENCE, Here, here

from topsecret.service.auth import credentials, rate_limits


def form_token(page: str, name: str) -> str:
    found = re.search(f'name="{name}" value="([^"]+)"', page)
    assert found
    return found[1]


@pytest.fixture
def visitor(service: Here) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.client.base_url, timeout=PATIENCE) as client:
        yield client


def log_in(visitor: httpx.Client, name: str, password: str) -> httpx.Response:
    visit = form_token(visitor.get("/login").text, "visit")
    return visitor.post("/login", data={"name": name, "password": password, "visit": visit})


def test_a_session_opens_the_door_and_logging_out_closes_it(visitor: httpx.Client) -> None:
    assert log_in(visitor, "ann", PASSWORD).status_code == 303
    assert visitor.get("/api/me").json() == {"name": "ann", "role": "analyst"}
    csrf = form_token(visitor.get("/account").text, "csrf")
    token = visitor.cookies["topsecret_session"]
    assert visitor.post("/logout", data={"csrf": csrf}).status_code == 303
    visitor.cookies.set("topsecret_session", token)
    assert visitor.get("/api/me").status_code == 401


@pytest.mark.parametrize(("name", "password"), [("ann", "wrong"), ("nobody", PASSWORD)])
def test_a_wrong_name_or_password_says_the_same(
    visitor: httpx.Client, name: str, password: str
) -> None:
    answer = log_in(visitor, name, password)
    assert answer.status_code == 401
    assert "Name and password do not match" in answer.text


@pytest.mark.usefixtures("slow_passwords")
def test_an_unknown_name_takes_as_long_as_a_wrong_password(service: Here) -> None:
    # Without the dummy hash an unknown name takes a hundredth of the time.
    service.parts.accounts.add("kim", "analyst", PASSWORD)
    took: dict[str, list[float]] = {"kim": [], "nobody": []}
    for _ in range(3):
        for name, times in took.items():
            begun = time.thread_time()  # of this thread alone: others do not slow it
            assert not service.parts.accounts.check_password(name, "wrong password")
            times.append(time.thread_time() - begun)
    assert min(took["nobody"]) > 0.1 * min(took["kim"])


@pytest.mark.usefixtures("slow_passwords")
def test_a_password_takes_the_work_that_the_rfc_recommends() -> None:
    # argon2id, 64 MiB, 3 passes (RFC 9106 where memory is short), also for an unknown name.
    for kept in (credentials.hash_password(PASSWORD), credentials._NOBODY):
        assert kept.startswith("$argon2id$v=19$m=65536,t=3,p=1$")
        assert not credentials._PASSWORDS.check_needs_rehash(kept)


def test_a_change_needs_the_forms_token(visitor: httpx.Client) -> None:
    log_in(visitor, "ann", PASSWORD)
    for path, data in (("/account/keys", {"label": "x"}), ("/logout", {})):
        answer = visitor.post(path, data=data)
        assert answer.status_code == 403
        assert answer.json()["error"] == "form_expired"
    assert visitor.post("/api/keys", json={"label": "x"}).status_code == 403
    csrf = form_token(visitor.get("/account").text, "csrf")
    foreign = {"x-csrf-token": csrf, "origin": "http://elsewhere.example"}
    answer = visitor.post("/api/keys", json={"label": "x"}, headers=foreign)
    assert answer.json()["error"] == "foreign_page"
    good = {"x-csrf-token": csrf}
    assert visitor.post("/api/keys", json={"label": "x"}, headers=good).status_code == 201


def test_a_session_is_no_key_and_a_key_no_session(visitor: httpx.Client, service: Here) -> None:
    """A token that was just seen in its cookie opens nothing as a key, nor the other way round."""
    assert log_in(visitor, "ann", PASSWORD).status_code == 303
    assert visitor.get("/api/v1/me").status_code == 200
    token = visitor.cookies["topsecret_session"]
    body = {"label": "without the form's token"}
    for method, path in (("GET", "/api/v1/me"), ("POST", "/api/v1/keys")):
        more = {"json": body} if method == "POST" else {}
        with httpx.Client(base_url=visitor.base_url) as stranger:
            headers = {"authorization": f"Bearer {token}"}
            assert stranger.request(method, path, headers=headers, **more).status_code == 401
            assert service.call("ann", "GET", "/api/v1/me").status_code == 200
            stranger.cookies.set("topsecret_session", service.keys["ann"])
            assert stranger.get("/api/v1/me").status_code == 401


def test_a_log_in_from_another_sites_form_is_refused(visitor: httpx.Client) -> None:
    answer = visitor.post("/login", data={"name": "ann", "password": PASSWORD, "visit": "x"})
    assert answer.json()["error"] == "form_expired"


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "null", "http://evil.example", "x"])
def test_a_change_from_an_address_that_is_none_is_refused(
    visitor: httpx.Client, origin: str
) -> None:
    assert log_in(visitor, "ann", PASSWORD).status_code == 303
    form = {"label": "y", "csrf": form_token(visitor.get("/account").text, "csrf")}
    sent = visitor.post("/account/keys", data=form, headers={"origin": origin})
    assert sent.status_code == 403
    assert sent.json()["error"] == "foreign_page"


def test_a_key_opens_until_it_is_revoked(service: Here) -> None:
    key = service.call("ann", "POST", "/api/keys", {"label": "short"}).json()["key"]
    headers = {"authorization": f"Bearer {key}"}
    assert service.client.get("/api/me", headers=headers).status_code == 200
    identity = key.split("_")[1]
    assert service.call("bob", "DELETE", f"/api/keys/{identity}").status_code == 404
    assert service.call("ann", "DELETE", f"/api/keys/{identity}").status_code == 200
    assert service.client.get("/api/me", headers=headers).status_code == 401
    wrong = {"authorization": f"Bearer {key[:-1]}{'x' if key[-1] != 'x' else 'y'}"}
    assert service.client.get("/api/me", headers=wrong).status_code == 401


@pytest.fixture
def _stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """No token comes back while a test is slow."""
    monkeypatch.setattr(rate_limits, "time", SimpleNamespace(monotonic=lambda: 0.0))


@pytest.mark.usefixtures("_stopped")
def test_too_many_tries_must_wait(tmp_path: Path) -> None:
    with here(tmp_path, tries_per_minute=3, questions_per_minute=2) as service:
        with httpx.Client(base_url=service.client.base_url, timeout=PATIENCE) as visitor:
            codes = [log_in(visitor, "ann", "wrong").status_code for _ in range(4)]
            assert codes == [401, 401, 401, 429]
            assert log_in(visitor, "ann", PASSWORD).status_code == 429
        body = {"column": "place", "k": 1, "epsilon": 0.1}
        path = "/api/datasets/events/ask"
        asked = [service.call("ann", "POST", path, body).status_code for _ in range(3)]
        assert asked == [202, 202, 429]
        again = service.call("ann", "POST", path, body)
        assert int(again.headers["retry-after"]) >= 1


@pytest.mark.usefixtures("_stopped")
def test_tries_at_the_same_time_do_not_pass_the_limit(tmp_path: Path) -> None:
    with here(tmp_path, tries_per_minute=3) as service:
        base = service.client.base_url
        with httpx.Client(base_url=base, timeout=PATIENCE) as visitor:
            visit = form_token(visitor.get("/login").text, "visit")
            # Right passwords are no tries, however many.
            for _ in range(5):
                assert log_in(visitor, "bob", PASSWORD).status_code == 303

            def tried(number: int) -> int:
                form = {"name": ("ann", " ANN ")[number % 2], "password": "no", "visit": visit}
                return visitor.post("/login", data=form).status_code

            with ThreadPoolExecutor(20) as pool:
                assert sorted(pool.map(tried, range(20))) == [401] * 3 + [429] * 17
        names = [name for _, name in service.parts.limits._buckets if name.startswith("log-in of")]
        assert sorted(names) == ["log-in of ann", "log-in of bob"]

        def by_key(key: str) -> int:
            headers = {"authorization": f"Bearer {key}"}
            return httpx.get(f"{base}/api/me", headers=headers, timeout=PATIENCE).status_code

        new = service.parts.accounts.new_key("ann", "many at once")
        with ThreadPoolExecutor(20) as pool:
            assert list(pool.map(by_key, [new] * 20)) == [200] * 20
            # Guesses at a key's secret are counted by the key.
            wrong = [f"{new}{number}" for number in range(20)]
            assert sorted(pool.map(by_key, wrong)) == [401] * 3 + [429] * 17
        assert by_key(new) == 200


@pytest.mark.usefixtures("_stopped")
def test_wrong_keys_keep_no_right_one_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor one that this process has never seen, whatever was guessed from the same address."""
    hashed: list[str] = []
    matches = credentials.key_matches

    def counted(secret: str, stored: str) -> bool:
        hashed.append(secret)
        return matches(secret, stored)

    with here(tmp_path, tries_per_minute=3) as service:
        monkeypatch.setattr(credentials, "key_matches", counted)

        def by_key(key: str) -> int:
            headers = {"authorization": f"Bearer {key}"}
            return service.client.get("/api/me", headers=headers).status_code

        unknown = [f"tsk_{number:012x}_{'x' * 43}" for number in range(6)] + ["tsk_", "x", "tsk__y"]
        assert {by_key(key) for key in unknown} == {401}
        assert not hashed  # nobody's secret: there is nothing to compare it with
        identity = service.keys["ann"].split("_")[1]
        guessed = [by_key(f"tsk_{identity}_guess{number}") for number in range(6)]
        assert guessed == [401] * 3 + [429] * 3
        assert [by_key(service.keys[name]) for name in ("ann", "bob", "olga")] == [200] * 3
        assert not service.parts.old_keys


@pytest.mark.usefixtures("_stopped")
def test_tries_through_a_proxy_are_counted_by_the_visitors_address(tmp_path: Path) -> None:
    with here(tmp_path, tries_per_minute=3) as service:

        def tried(address: str) -> int:
            headers = {"x-forwarded-for": address}
            base = service.client.base_url
            with httpx.Client(base_url=base, timeout=PATIENCE, headers=headers) as visitor:
                return log_in(visitor, "nobody", "wrong").status_code

        assert [tried("192.0.2.1") for _ in range(4)] == [401, 401, 401, 429]
        assert tried("192.0.2.2") == 401


def test_every_answer_has_secure_headers(service: Here) -> None:
    for path in ("/login", "/api/health", "/nothing", "/static/base.css", "/api/me"):
        headers = service.client.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
    assert service.client.get("/login").headers["cache-control"] == "no-store"
    cookie = service.client.get("/login").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie


def test_a_large_body_is_refused(service: Here) -> None:
    answer = service.client.post("/api/keys", content=b"x" * 100_000)
    assert answer.status_code == 413
    key = {"authorization": f"Bearer {service.keys['ann']}"}
    answer = service.client.post("/api/keys", content=b"x" * 100_000, headers=key)
    assert answer.status_code == 413
    assert answer.json()["error"] == "too_large"


def test_the_owner_cannot_leave_the_data_folders(service: Here) -> None:
    (service.parts.settings.home / "outside.csv").write_text("user,place\n")
    link = service.parts.settings.files[0] / "link.csv"
    if not link.exists():
        link.symlink_to(service.parts.settings.home / "outside.csv")
    for file in ("../outside.csv", "/etc/passwd", "link.csv", "missing.csv", ""):
        body = {"name": "leak", "title": "x", "file": file, "person": "user", "columns": ["place"]}
        answer = service.call("olga", "POST", "/api/datasets", body | {"epsilon": 1})
        assert answer.status_code in (400, 422)
