"""API keys: what they may do, and everything that ends them."""

import time
from types import SimpleNamespace

import httpx
import pytest
from serving import PASSWORD, Here
from test_coming_in import form_token, log_in

from topsecret.service.auth import accounts as accounts_module

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
    monkeypatch.setattr(accounts_module.time, "monotonic", time.monotonic, raising=False)
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
    assert key.split("_")[2] not in str(listed)
    path = f"/api/analysts/bob/keys/{found['id']}"
    assert service.call("ann", "DELETE", path).status_code == 403
    assert service.call("olga", "DELETE", path).status_code == 200
    assert service.call("olga", "DELETE", path).status_code == 404
    assert status(service, key, "/api/me") == 401


@pytest.mark.parametrize("how", ["change", "reset", "remove"])
def test_a_new_password_ends_every_key(service: Here, how: str) -> None:
    name = f"carl-{how}"
    service.parts.accounts.add(name, "analyst", PASSWORD)
    key = service.parts.accounts.new_key(name, "old")
    assert status(service, key, "/api/me") == 200
    if how == "change":
        with httpx.Client(base_url=service.client.base_url) as visitor:
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
    from sqlalchemy import update

    from topsecret.service.schema import KEYS

    key = service.parts.accounts.new_key("ann", "of old")
    with service.parts.store.writing() as connection:
        mine = update(KEYS).where(KEYS.c.id == key.split("_")[1])
        connection.execute(mine.values(scope=None, expires=None, parent=None))
    assert status(service, key, "/api/keys") == 200
