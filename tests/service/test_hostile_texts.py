"""Texts that are no Unicode: refused before anything is kept, and harmless where they were kept."""

import json
import time

import httpx
import pytest
from serving import Here, write_events
from sqlalchemy import select
from test_coming_in import form_token
from test_teams import browser

from topsecret.service.auth import credentials
from topsecret.service.schema import JOBS, SAVED

HALF = "\ud800"
QUESTION = {"column": "place", "k": 1, "epsilon": 0.1}


@pytest.fixture(scope="module", autouse=True)
def filtered(service: Here) -> None:
    """A dataset whose rows may be chosen by a text."""
    write_events(service.parts.settings.files[0] / "chosen.csv", {"Harbour": 90, "Market": 70})
    body = {"name": "chosen", "title": "Chosen", "file": "chosen.csv", "person": "user"}
    body |= {"columns": ["place"], "filters": {"colour": "text"}, "epsilon": 4, "sql": True}
    assert service.call("olga", "POST", "/api/v1/datasets", body).status_code == 201
    service.parts.datasets.allow("chosen", "ann", {"epsilon": 4.0})


def raw(service: Here, who: str, method: str, path: str, body: object) -> httpx.Response:
    """JSON as it is: half a pair escaped."""
    headers = {"authorization": f"Bearer {service.keys[who]}", "content-type": "application/json"}
    return service.client.request(method, path, headers=headers, content=json.dumps(body))


def in_utf_7(client: httpx.Client, path: str, token: str, **fields: str) -> httpx.Response:
    """A form in UTF-7, in which +2AA- is half a pair."""
    parts = "".join(
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    )
    headers = {"content-type": "multipart/form-data; boundary=b; charset=utf-7"}
    headers |= {"x-csrf-token": token} if token else {}
    return client.post(path, content=f"{parts}--b--\r\n".encode(), headers=headers)


def jobs(service: Here) -> list[str]:
    with service.parts.store.reading() as connection:
        return list(connection.execute(select(JOBS.c.id)).scalars())


@pytest.mark.parametrize(
    ("who", "method", "path", "body"),
    [
        ("bob", "POST", "/api/v1/keys", {"label": HALF}),
        ("bob", "POST", "/api/v1/keys", {"label": [[HALF]]}),
        ("olga", "PATCH", "/api/v1/datasets/chosen", {"title": HALF}),
        ("olga", "PATCH", "/api/v1/datasets/chosen", {"filters": {HALF: "text"}}),
        ("olga", "PATCH", "/api/v1/datasets/chosen", {"columns": ["place", HALF]}),
        ("olga", "POST", "/api/v1/analysts", {"name": HALF}),
        ("ann", "PUT", "/api/v1/saved/x", {"dataset": HALF, "question": QUESTION}),
    ],
)
def test_a_change_with_half_a_pair_is_refused_and_not_noted(
    service: Here, who: str, method: str, path: str, body: object
) -> None:
    before = service.parts.audit.reached()
    assert raw(service, who, method, path, body).status_code == 422
    assert service.parts.audit.reached() == before
    assert service.call("olga", "GET", "/api/v1/audit").status_code == 200
    assert service.call("olga", "GET", "/owner/audit").status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("ask", QUESTION | {"column": HALF}),
        ("ask", QUESTION | {"where": [{"column": "colour", "verb": "is", "value": HALF}]}),
        ("ask", QUESTION | {"where": [{"column": HALF, "verb": "is", "value": "red"}]}),
        ("ask", QUESTION | {"groups": {"by": "colour", "values": ["red", HALF]}}),
        ("ask", QUESTION | {"groups": {"by": HALF, "values": ["red"]}}),
        ("ask", QUESTION | {"measure": {"of": "sum", "column": HALF}}),
        ("sql", {"query": f"SELECT '{HALF}'", "epsilon": 0.1}),
        ("plan", QUESTION | {"where": [{"column": "colour", "verb": "is", "value": HALF}]}),
        ("sql/plan", {"query": f"SELECT '{HALF}'", "epsilon": 0.1}),
    ],
)
def test_a_question_with_half_a_pair_is_refused(service: Here, path: str, body: object) -> None:
    before = jobs(service)
    assert raw(service, "ann", "POST", f"/api/v1/datasets/chosen/{path}", body).status_code == 422
    assert jobs(service) == before


@pytest.mark.parametrize(
    "field", ["value:colour", "verb:colour", "column", "query", "groups", "group_by", "by", "bound"]
)
def test_a_form_in_utf_7_asks_nothing(service: Here, field: str) -> None:
    fields = {"request_id": field.replace("_", ""), "column": "place", "k": "1", "step": "0"}
    fields |= {"verb:colour": "is", "value:colour": "red", "by": "sum:x", "bound": "1"}
    fields |= {"group_by": "colour", "groups": "red", field: "x+2AA-y"}
    if field not in ("by", "bound"):
        fields |= {"by": "persons"}
    before = jobs(service)
    with browser(service, "ann") as client:
        csrf = form_token(client.get("/datasets/chosen").text, "csrf")
        assert in_utf_7(client, "/datasets/chosen", csrf, **fields).status_code == 422
    assert jobs(service) == before
    account = service.parts.ledger.account("chosen")
    assert not account.pending
    assert not any(account.spent.values())


def test_a_forms_token_that_is_no_text_is_a_wrong_one(service: Here) -> None:
    with browser(service, "ann") as client:
        sent = in_utf_7(client, "/account/keys", "", csrf="+2AA-", label="x")
        assert sent.status_code == 403
    assert credentials.same(HALF, HALF)
    assert not credentials.same(HALF, "?")


def test_what_was_stored_before_is_shown_with_a_question_mark(service: Here) -> None:
    """Questions, saved ones and entries as version 0.1 and a form in UTF-7 could leave them."""
    text = json.dumps(["place", 1, 0.1, {"where": [["colour", "is", f"x{HALF}y"]]}])
    stored = {"user": "ann", "dataset": "chosen", "question": text}
    now = time.time()
    job = {"id": "halfapair", "request": "r", "state": "failed", "asked": now, "shown": now - 1}
    ended = {"worker": "w", "error": "failed", "message": "It could not be answered."}
    with service.parts.store.writing() as connection:
        connection.execute(JOBS.insert().values(stored | job | ended))
        connection.execute(SAVED.insert().values(stored | {"name": "half", "created": now}))
    service.parts.audit.note("olga", "make key", {"label": HALF, "columns": [HALF]})
    pages = {"ann": ["/", "/answers", "/answers/halfapair", "/saved"]}
    pages |= {"olga": ["/owner/datasets/chosen", "/answers?dataset=chosen", "/owner/audit"]}
    for who, paths in pages.items():
        for path in paths:
            assert service.call(who, "GET", path).status_code == 200, path
    assert "colour is x?y" in service.call("ann", "GET", "/answers").text
    for who, path in (
        ("ann", "/api/v1/answers"),
        ("ann", "/api/v1/saved"),
        ("ann", "/api/v1/answers/halfapair"),
        ("olga", "/api/v1/answers?dataset=chosen"),
        ("olga", "/api/v1/audit"),
    ):
        found = service.call(who, "GET", path)
        assert found.status_code == 200, path
        assert "\\ud800" not in found.text, path
        assert "?" in found.text, path
    # Asked again it is refused, and the whole trail can still be fetched, as it was written.
    for ending in ("ask", "plan"):
        again = service.call("ann", "POST", f"/api/v1/saved/half/{ending}", {})
        assert again.status_code == 422
    whole = service.call("olga", "GET", "/owner/audit/download.jsonl").text
    assert json.loads(whole.splitlines()[-1])["details"]["label"] == HALF
