"""API keys: what they may do, and everything that ends them."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx
import pytest
from argon2 import PasswordHasher
from serving import PASSWORD, PATIENCE, Here
from sqlalchemy import update
from test_coming_in import form_token, log_in

from topsecret.service.auth import accounts as accounts_module
from topsecret.service.auth import credentials
from topsecret.service.auth.people import User
from topsecret.service.schema import KEYS
from topsecret.service.state import Parts

ASK = "/api/v1/datasets/events/ask"
QUESTION = {"column": "place", "k": 1, "epsilon": 0.3, "request_id": "scope"}


def status(service: Here, key: str, path: str, method: str = "GET", body: object = None) -> int:
    headers = {"authorization": f"Bearer {key}"}
    return service.client.request(method, path, headers=headers, json=body).status_code


def test_a_scope_bounds_a_key(service: Here) -> None:
    made = {
        scope: service.call("ann", "POST", "/api/keys", {"label": scope, "scope": scope}).json()
        for scope in ("ask", "read", "metrics", "all")
    }
    can = {
        scope: (
            status(service, one["key"], ASK, "POST", QUESTION) in (200, 202),
            status(service, one["key"], "/api/datasets") == 200,
            status(service, one["key"], "/api/keys") == 200,
            status(service, one["key"], "/account") == 200,
        )
        for scope, one in made.items()
    }
    assert can == {
        "ask": (True, True, False, False),
        "read": (False, True, False, False),
        "metrics": (False, False, False, False),
        "all": (True, True, True, True),
    }
    refused = service.client.get(
        "/api/keys", headers={"authorization": f"Bearer {made['read']['key']}"}
    )
    assert (refused.status_code, refused.json()["error"]) == (403, "scope")
    # An owner's key for asking ends nobody else's question.
    job = service.call("ann", "POST", ASK, QUESTION).json()["id"]
    for scope, may in (("ask", 403), ("all", 200)):
        key = service.parts.accounts.new_key("olga", scope, scope)
        assert status(service, key, f"/api/answers/{job}/cancel", "POST") == may


def test_metrics_need_no_full_key(service: Here) -> None:
    body = {"label": "prometheus", "scope": "metrics"}
    key = service.call("olga", "POST", "/api/keys", body).json()["key"]
    assert status(service, key, "/metrics") == 200
    for path in ("/api/analysts", "/api/datasets", "/owner", "/api/me"):
        assert status(service, key, path) == 403
    of_an_analyst = service.call("ann", "POST", "/api/keys", body).json()["key"]
    assert status(service, of_an_analyst, "/metrics") == 403


def test_a_key_ends_at_its_time(service: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = service.parts.accounts
    key = accounts.new_key("ann", "a month", "ask", 30)
    assert accounts.by_key(key) is not None
    child = accounts.new_key("ann", "child", "ask", 365, accounts.by_key(key))
    now = time.time()
    monkeypatch.setattr(accounts_module, "time", SimpleNamespace(time=lambda: now + 30 * 86400 + 1))
    assert accounts.by_key(key) is None
    assert accounts.by_key(child) is None


def test_a_key_ends_with_the_key_that_made_it(service: Here) -> None:
    first = service.call("ann", "POST", "/api/keys", {"label": "first"}).json()["key"]
    keys = [first]
    for label in ("second", "third"):
        headers = {"authorization": f"Bearer {keys[-1]}"}
        made = service.client.post("/api/keys", json={"label": label}, headers=headers)
        keys.append(made.json()["key"])
    assert [status(service, key, "/api/me") for key in keys] == [200] * 3
    identity = first.split("_")[1]
    assert service.call("ann", "DELETE", f"/api/keys/{identity}").status_code == 200
    assert [status(service, key, "/api/me") for key in keys] == [401] * 3


def test_the_owner_sees_and_revokes_the_keys_of_others(service: Here) -> None:
    key = service.call("bob", "POST", "/api/keys", {"label": "bobs", "days": 7}).json()["key"]
    listed = service.call("olga", "GET", "/api/analysts/bob/keys").json()
    found = next(one for one in listed if one["label"] == "bobs")
    assert found["id"] == key.split("_")[1]
    assert len(found["expires"]) == len("2030-01-01")
    assert key.split("_", 2)[2] not in str(listed)  # a secret may have a "_" of its own
    path = f"/api/analysts/bob/keys/{found['id']}"
    assert service.call("ann", "DELETE", path).status_code == 403
    assert service.call("olga", "DELETE", path).status_code == 200
    assert service.call("olga", "DELETE", path).status_code == 404
    assert status(service, key, "/api/me") == 401


@pytest.mark.parametrize(("who", "page"), [("olga", "/owner/analysts"), ("bob", "/account")])
def test_the_pages_show_and_revoke_keys(service: Here, who: str, page: str) -> None:
    key = service.parts.accounts.new_key("bob", f"seen by {who}")
    identity, headers = key.split("_")[1], {"authorization": f"Bearer {service.keys[who]}"}
    assert f"tsk_{identity}_…" in service.call(who, "GET", page).text
    revoke = f"{page}/revoke" if who == "olga" else f"{page}/keys/revoke"
    form = {"name": "bob", "key": identity}
    sent = service.client.post(revoke, headers=headers, data=form)
    assert (sent.status_code, sent.headers["location"]) == (303, page)
    assert status(service, key, "/api/me") == 401


@pytest.mark.parametrize("how", ["change", "reset", "remove"])
def test_a_new_password_ends_every_key(service: Here, how: str) -> None:
    name = f"carl-{how}"
    service.parts.accounts.add(name, "analyst", PASSWORD)
    key = service.parts.accounts.new_key(name, "old")
    assert status(service, key, "/api/me") == 200
    if how == "change":
        with httpx.Client(base_url=service.client.base_url, timeout=PATIENCE) as visitor:
            log_in(visitor, name, PASSWORD)
            csrf = form_token(visitor.get("/account").text, "csrf")
            form = {"csrf": csrf, "old": PASSWORD, "new": "another horse battery"}
            assert visitor.post("/account/password", data=form).status_code == 303
    else:
        form = {"name": name}
        headers = {"authorization": f"Bearer {service.keys['olga']}"}
        service.client.post(f"/owner/analysts/{how}", data=form, headers=headers)
    assert status(service, key, "/api/me") == 401
    assert service.parts.accounts.keys(name) == []


def test_keys_of_an_earlier_service_go_on(service: Here) -> None:
    key = service.parts.accounts.new_key("ann", "of old")
    identity, secret = credentials.parse_key(key)
    slow = PasswordHasher(time_cost=1, memory_cost=8192, parallelism=1).hash(secret)
    with service.parts.store.writing() as connection:
        mine = update(KEYS).where(KEYS.c.id == identity)
        connection.execute(mine.values(hash=slow, scope=None, expires=None, parent=None))
    assert status(service, f"{key}x", "/api/keys") == 401
    assert service.parts.accounts.key_hash(identity) == slow
    assert status(service, key, "/api/keys") == 200
    # A slow hash is for passwords; from its first use on the key has a quick one.
    assert service.parts.accounts.key_hash(identity) == credentials.hash_token(secret)
    service.parts.accounts.recognised.forget()
    assert status(service, key, "/api/keys") == 200
    assert status(service, f"{key}x", "/api/keys") == 401
    service.parts.accounts.revoke_key("ann", identity)


def test_who_guesses_at_a_key_keeps_it_from_nobody(
    service: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even one that the process has never seen, and while its guesses are compared."""
    key = service.parts.accounts.new_key("ann", "guessed at")
    matches, opened, guessing = credentials.key_matches, threading.Event(), threading.Event()

    def held(secret: str, stored: str) -> bool:
        if secret.endswith("guess"):
            guessing.set()
            assert opened.wait(PATIENCE)
        return matches(secret, stored)

    monkeypatch.setattr(credentials, "key_matches", held)
    with ThreadPoolExecutor(3) as pool:
        guesses = [pool.submit(status, service, f"{key}{n}guess", "/api/me") for n in range(3)]
        assert guessing.wait(PATIENCE)
        right = status(service, key, "/api/me")
        opened.set()
        assert {guess.result(PATIENCE) for guess in guesses} == {401}
    assert right == 200
    assert not service.parts.old_keys


def test_an_account_has_a_bounded_number_of_keys(
    service: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.parts.accounts.add("nora", "analyst", PASSWORD)
    service.keys["nora"] = service.parts.accounts.new_key("nora", "first")
    monkeypatch.setattr(accounts_module, "MOST_KEYS", 4)
    made = [service.call("nora", "POST", "/api/keys", {"label": f"{n}"}) for n in range(4)]
    assert [one.status_code for one in made] == [201, 201, 201, 400]
    words = "an account has at most 4 keys; revoke one that is not used any more"
    assert words in made[-1].json()["message"]
    assert service.call("bob", "POST", "/api/keys", {"label": "bobs own"}).status_code == 201
    # One that ended, or was revoked, makes room for another.
    identity = made[0].json()["key"].split("_")[1]
    service.call("nora", "DELETE", f"/api/keys/{identity}")
    assert service.call("nora", "POST", "/api/keys", {"label": "more"}).status_code == 201
    assert service.call("nora", "POST", "/api/keys", {"label": "more"}).status_code == 400


def test_a_stored_answer_looks_the_same_without_the_framework(
    service: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = service.answered("ann", ASK, QUESTION | {"request_id": "stored"})["id"]
    path = f"/api/v1/answers/{answer}"
    accounts, limits = service.parts.accounts, service.parts.limits
    keys = {scope: accounts.new_key("ann", scope, scope) for scope in ("read", "metrics")}
    headers = {"authorization": f"Bearer {keys['read']}"}
    accounts.recognised.forget()
    by_the_route = service.client.get(path, headers=headers)
    looked_up: list[str] = []
    find = service.parts.jobs.find
    monkeypatch.setattr(
        service.parts.jobs, "find", lambda answer: (looked_up.append(answer), find(answer))[1]
    )
    again = service.client.get(path, headers=headers)
    assert (again.content, looked_up) == (by_the_route.content, [])
    own = {"x-request-id", "date"}
    first, second = (
        {name: value for name, value in one.headers.items() if name not in own}
        for one in (by_the_route, again)
    )
    assert first == second
    lines = service.call("olga", "GET", "/metrics").text.splitlines()
    counted = [line for line in lines if 'route="/api/v1/answers/{answer}"' in line]
    assert counted, "stored answers are counted under their route"
    # What the route refuses is refused, however often it was asked before.
    for _ in range(2):
        assert status(service, keys["metrics"], path) == 403
        assert service.call("bob", "GET", path).status_code == 404
        assert service.call("ann", "DELETE", path).status_code == 405
        assert service.call(None, "GET", path).status_code == 401
    monkeypatch.setitem(limits._most, "request", 1)
    monkeypatch.setattr(limits, "_buckets", {})
    assert [status(service, keys["read"], path) for _ in range(3)] == [200, 429, 429]
    monkeypatch.undo()
    accounts.revoke_key("ann", keys["read"].split("_")[1])
    assert status(service, keys["read"], path) == 401


def test_what_ends_in_one_process_ends_in_all_at_once(service: Here) -> None:
    ours = service.parts
    other = Parts(ours.settings)  # as another worker, with the same store
    ends: list[Callable[[str, str], object]] = [
        lambda key, _: other.accounts.revoke_key("ann", key.split("_")[1]),
        lambda *_: other.roles.give("events", "ann", "viewer"),
        lambda *_: other.roles.take("events", "ann"),
        lambda _, token: other.accounts.log_out(token),
        lambda *_: other.accounts.set_password("ann", PASSWORD),
    ]
    for end in ends:
        key, token = ours.accounts.new_key("ann", "here"), ours.accounts.begin("ann")
        assert ours.accounts.by_key(key) is not None
        assert ours.accounts.by_session(token) is not None
        assert ours.accounts.recognised.by("key", key) is not None
        end(key, token)
        assert ours.accounts.recognised.by("key", key) is None
        assert ours.accounts.recognised.by("session", token) is None
    # What was read before a change is not believed after it, although it is remembered later.
    mark = ours.accounts.recognised.mark
    other.roles.give("events", "ann", "viewer")
    ours.accounts.recognised.remember("key", "tsk_late", User("ann", "analyst"), mark)
    assert ours.accounts.recognised.by("key", "tsk_late") is None
    other.roles.take("events", "ann")
    other.ledger.close()
    other.store.close()
    service.keys["ann"] = ours.accounts.new_key("ann", "tests")
