"""Every route, walked as nobody, as an analyst and as the owner: who may do what.

The table lists all routes of the application; one that is missing here fails the test.
"""

from typing import Any

import pytest
from serving import SHOP, Here

NOBODY, ANALYST, OWNER = None, "ann", "olga"
ALL = {NOBODY: "open", ANALYST: "open", OWNER: "open"}
PEOPLE = {NOBODY: "no", ANALYST: "open", OWNER: "open"}
OWNERS = {NOBODY: "no", ANALYST: "no", OWNER: "open"}
QUESTION = {"column": "place", "k": 1, "epsilon": 0.2}
SQL = {"query": "SELECT 1", "epsilon": 0.2}
REGISTER = {
    "name": "more",
    "title": "More",
    "file": "events.csv",
    "person": "user",
    "columns": ["place"],
    "epsilon": 1,
}

WHO: dict[tuple[str, str], dict[str | None, str]] = {
    ("GET", "/"): ALL,
    ("GET", "/login"): ALL,
    ("POST", "/login"): ALL,
    ("GET", "/login/openid"): ALL,
    ("GET", "/login/openid/back"): ALL,
    ("GET", "/setup"): ALL,
    ("POST", "/setup"): ALL,
    ("GET", "/docs"): ALL,
    ("GET", "/openapi.json"): ALL,
    ("GET", "/api/v1/health"): ALL,
    ("POST", "/logout"): PEOPLE,
    ("GET", "/account"): PEOPLE,
    ("GET", "/account/password"): PEOPLE,
    ("POST", "/account/password"): PEOPLE,
    ("POST", "/account/sessions/end"): PEOPLE,
    ("GET", "/api/v1/sessions"): PEOPLE,
    ("DELETE", "/api/v1/sessions/{session}"): PEOPLE,
    ("POST", "/account/keys"): PEOPLE,
    ("POST", "/account/keys/revoke"): PEOPLE,
    ("GET", "/datasets/{dataset}"): PEOPLE,
    ("POST", "/datasets/{dataset}"): PEOPLE,
    ("GET", "/answers"): PEOPLE,
    ("GET", "/answers/{answer}"): PEOPLE,
    ("POST", "/answers/{answer}/cancel"): PEOPLE,
    ("POST", "/api/v1/answers/{answer}/cancel"): PEOPLE,
    ("GET", "/answers/{answer}/download.{form}"): PEOPLE,
    ("GET", "/api/v1/me"): PEOPLE,
    ("GET", "/api/v1/datasets"): PEOPLE,
    ("POST", "/api/v1/datasets/{dataset}/plan"): PEOPLE,
    ("POST", "/api/v1/datasets/{dataset}/ask"): PEOPLE,
    ("POST", "/api/v1/datasets/{dataset}/sql/plan"): PEOPLE,
    ("POST", "/api/v1/datasets/{dataset}/sql"): PEOPLE,
    ("GET", "/api/v1/datasets/{dataset}/budget"): PEOPLE,
    ("GET", "/api/v1/answers"): PEOPLE,
    ("GET", "/api/v1/answers/{answer}"): PEOPLE,
    ("GET", "/api/v1/answers/{answer}/csv"): PEOPLE,
    ("GET", "/saved"): PEOPLE,
    ("POST", "/saved"): PEOPLE,
    ("POST", "/saved/{name}/ask"): PEOPLE,
    ("POST", "/saved/{name}/delete"): PEOPLE,
    ("GET", "/saved/{name}/schedule"): PEOPLE,
    ("POST", "/saved/{name}/schedule"): PEOPLE,
    ("POST", "/saved/schedules/{schedule}/end"): PEOPLE,
    ("POST", "/api/v1/saved/{name}/schedule"): PEOPLE,
    ("GET", "/api/v1/schedules"): PEOPLE,
    ("DELETE", "/api/v1/schedules/{schedule}"): PEOPLE,
    ("GET", "/api/v1/saved"): PEOPLE,
    ("PUT", "/api/v1/saved/{name}"): PEOPLE,
    ("DELETE", "/api/v1/saved/{name}"): PEOPLE,
    ("POST", "/api/v1/saved/{name}/plan"): PEOPLE,
    ("POST", "/api/v1/saved/{name}/ask"): PEOPLE,
    ("GET", "/api/v1/keys"): PEOPLE,
    ("POST", "/api/v1/keys"): PEOPLE,
    ("DELETE", "/api/v1/keys/{key}"): PEOPLE,
    ("GET", "/metrics"): OWNERS,
    ("POST", "/api/v1/datasets"): OWNERS,
    ("POST", "/api/v1/datasets/{dataset}/allowances"): OWNERS,
    ("POST", "/api/v1/datasets/{dataset}/close"): OWNERS,
    ("PATCH", "/api/v1/datasets/{dataset}"): OWNERS,
    ("DELETE", "/api/v1/datasets/{dataset}"): OWNERS,
    ("POST", "/api/v1/datasets/{dataset}/state"): OWNERS,
    ("GET", "/owner/datasets/{dataset}/edit"): OWNERS,
    ("POST", "/owner/datasets/{dataset}/edit"): OWNERS,
    ("POST", "/owner/datasets/{dataset}/state"): OWNERS,
    ("POST", "/owner/datasets/{dataset}/delete"): OWNERS,
    ("GET", "/api/v1/datasets/{dataset}/roles"): OWNERS,
    ("PUT", "/api/v1/datasets/{dataset}/roles/{name}"): OWNERS,
    ("DELETE", "/api/v1/datasets/{dataset}/roles/{name}"): OWNERS,
    ("GET", "/api/v1/audit"): OWNERS,
    ("DELETE", "/api/v1/analysts/{name}"): OWNERS,
    ("GET", "/api/v1/sources"): OWNERS,
    ("GET", "/api/v1/sources/{source}"): OWNERS,
    ("GET", "/api/v1/analysts"): OWNERS,
    ("GET", "/api/v1/analysts/{name}/keys"): OWNERS,
    ("DELETE", "/api/v1/analysts/{name}/keys/{key}"): OWNERS,
    ("POST", "/api/v1/analysts"): OWNERS,
    ("GET", "/api/v1/in-doubt"): OWNERS,
    ("POST", "/api/v1/in-doubt/{reservation}/write-off"): OWNERS,
    ("GET", "/owner"): OWNERS,
    ("GET", "/owner/new"): OWNERS,
    ("POST", "/owner/new"): OWNERS,
    ("GET", "/owner/datasets/{dataset}"): OWNERS,
    ("POST", "/owner/datasets/{dataset}/allow"): OWNERS,
    ("POST", "/owner/datasets/{dataset}/close"): OWNERS,
    ("POST", "/owner/datasets/{dataset}/roles"): OWNERS,
    ("GET", "/owner/audit"): OWNERS,
    ("GET", "/owner/audit/download.jsonl"): OWNERS,
    ("GET", "/owner/analysts"): OWNERS,
    ("POST", "/owner/analysts"): OWNERS,
    ("POST", "/owner/analysts/reset"): OWNERS,
    ("POST", "/owner/analysts/remove"): OWNERS,
    ("POST", "/owner/analysts/revoke"): OWNERS,
    ("GET", "/owner/in-doubt"): OWNERS,
    ("POST", "/owner/in-doubt"): OWNERS,
}
BODIES: dict[str, Any] = {
    "/api/v1/datasets/{dataset}/plan": QUESTION,
    "/api/v1/datasets/{dataset}/ask": QUESTION,
    "/api/v1/datasets/{dataset}/sql/plan": SQL,
    "/api/v1/datasets/{dataset}/sql": SQL,
    "/api/v1/saved/{name}": {"dataset": "nothing", "question": QUESTION},
    "/api/v1/saved/{name}/ask": {},
    "/api/v1/saved/{name}/schedule": {"times": 3},
    "/api/v1/keys": {"label": "walk"},
    "/api/v1/datasets": REGISTER,
    "/api/v1/datasets/{dataset}/allowances": {"analyst": "ann", "epsilon": 1},
    "/api/v1/analysts": {"name": "new"},
    "/api/v1/datasets/{dataset}": {"title": "More"},
    "/api/v1/datasets/{dataset}/state": {"state": "paused"},
    "/api/v1/datasets/{dataset}/roles/{name}": {"role": "viewer"},
}


def test_the_table_has_every_route(service: Here) -> None:
    from topsecret.service.app import ROUTERS, create_app

    documented = {
        (method.upper(), path)
        for path, methods in create_app(service.parts.settings).openapi()["paths"].items()
        for method in methods
    }
    written = {
        (method, route.path)
        for router in ROUTERS
        for route in router.routes
        for method in route.methods  # type: ignore[attr-defined]
    }
    assert documented <= written
    assert written | {("GET", "/openapi.json")} == set(WHO)


@pytest.mark.parametrize(("method", "path"), sorted(WHO))
def test_who_may_do_what(service: Here, method: str, path: str) -> None:
    for who, expected in WHO[method, path].items():
        names = dict.fromkeys(
            ("dataset", "answer", "key", "name", "reservation", "schedule", "session"), "nothing"
        )
        concrete = path.format(source="shop", form="csv", **names)
        answer = service.call(who, method, concrete, BODIES.get(path))
        assert answer.status_code < 500
        refused = answer.status_code in (401, 403)
        # A form without its fields, an answer that does not exist: past the door, no further.
        if path in ("/login", "/setup") and method == "POST":
            assert answer.status_code in (403, 422)
        else:
            assert refused == (expected == "no"), f"{who} got {answer.status_code}"
        if expected == "no":
            assert answer.status_code == (401 if who is None else 403)
            assert set(answer.json()) == {"error", "message", "request_id"}


def test_an_analyst_sees_nothing_of_files_and_databases(service: Here) -> None:
    body = {"column": "place", "k": 2, "epsilon": 0.5}
    answer = service.answered("bob", "/api/v1/datasets/visits/ask", body)["id"]
    paths = ["/", "/answers", "/openapi.json", "/docs", "/api/v1/datasets", "/api/answers"]
    paths += [f"{ahead}/answers/{answer}" for ahead in ("", "/api")]
    paths += [f"/answers/{answer}/download.json"]
    for name in ("events", "visits"):
        paths += [f"/datasets/{name}", f"/api/v1/datasets/{name}/budget"]
    for path in paths:
        found = service.call("bob", "GET", path)
        assert found.status_code == 200
        for secret in ("events.csv", SHOP, "shop", "sqlite"):
            assert secret not in found.text, f"{secret} in {path}"
