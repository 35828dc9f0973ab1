"""The audit trail: nothing is changed without an entry, no entry holds a secret, none can go."""

import json
import shutil
from pathlib import Path
from urllib.parse import urlencode

import pytest
from serving import PASSWORD, Here
from sqlalchemy import delete, update
from test_coming_in import log_in
from test_routes import BODIES, WHO
from test_teams import browser, post

from topsecret.cli import main
from topsecret.errors import InvalidParameter, LedgerError
from topsecret.ledger.chain import canonical
from topsecret.ledger.store import Store
from topsecret.service import schema
from topsecret.service.audit import FIELDS, Trail, details, faults, shown
from topsecret.service.witness import Witness

QUIET = {
    *(f"/api/v1/datasets/{{dataset}}/{ending}" for ending in ("plan", "ask", "sql/plan", "sql")),
    "/datasets/{dataset}",
    *("/api/v1/saved/{name}/plan", "/api/v1/saved/{name}/ask", "/saved/{name}/ask"),
}
DOORS = {"/login", "/setup"}
"""Noted in their own way, once somebody was let in."""


def test_every_change_is_noted_and_says_when_it_was_refused(service: Here) -> None:
    for method, path in sorted(WHO):
        if method == "GET" or path in QUIET | DOORS or path.endswith("/cancel"):
            continue
        names = ("dataset", "answer", "key", "name", "reservation", "schedule", "session", "source")
        concrete = path.format(**dict.fromkeys(names, "nothing"))
        before = service.parts.audit.reached()[0]
        status = service.call("olga", method, concrete).status_code
        noted = list(service.parts.audit.page(most=service.parts.audit.reached()[0] - before))
        assert len(noted) == (2 if status >= 400 else 1), (method, path, status)
        assert all(json.loads(one.body)["by"] == "olga" for one in noted)
        if status >= 400:
            assert json.loads(noted[0].body)["status"] == status


def test_an_entry_says_what_was_done_and_no_secret(service: Here) -> None:
    share = {"analyst": "ann", "epsilon": 4}
    assert service.call("olga", "POST", "/api/v1/datasets/events/allowances", share).is_success
    entry = service.call("olga", "GET", "/api/v1/audit?limit=1").json()[0]
    assert (entry["by"], entry["action"]) == ("olga", "allow")
    assert entry["details"] | share == entry["details"]
    assert entry["details"]["by_key"] == service.keys["olga"].split("_")[1]
    with browser(service, "bob") as client:
        secret = "another long password"
        changed = post(client, "/account", "/account/password", old=PASSWORD, new=secret)
        assert changed.status_code == 303
        post(client, "/account", "/account/keys/revoke", key=service.keys["ann"])
        post(client, "/account", "/account/password", old=secret, new=PASSWORD)
    whole = service.call("olga", "GET", "/owner/audit/download.jsonl").text
    assert [json.loads(line)["position"] for line in whole.splitlines()] == [
        *range(1, len(whole.splitlines()) + 1)
    ]
    for hidden in (PASSWORD, secret, service.keys["ann"].split("_", 2)[2][:8], "csrf"):
        assert hidden not in whole
    assert "log in" in whole
    assert "change password" in service.call("olga", "GET", "/owner/audit").text


@pytest.mark.parametrize("form", [False, True])
@pytest.mark.parametrize("kind", ["", "; charset=utf-8", "in capitals"])
def test_no_body_says_another_thing_than_the_path(service: Here, form: bool, kind: str) -> None:
    """Every address with something in its path is told the contrary, in fields that it may take."""
    sent = "application/x-www-form-urlencoded" if form else "application/json"
    kind = sent.upper() if kind == "in capitals" else sent + kind
    headers = {"authorization": f"Bearer {service.keys['olga']}", "content-type": kind}
    walked = 0
    for method, path in sorted(WHO):
        if method == "GET" or "{" not in path or path in QUIET or path.endswith("/cancel"):
            continue
        true = {name: "the-path" for name in FIELDS if f"{{{name}}}" in path}
        false = dict.fromkeys(FIELDS, "another") | BODIES.get(path, {}) | dict.fromkeys(true, "lie")
        content = urlencode(false, doseq=True) if form else json.dumps(false)
        before = service.parts.audit.reached()[0]
        service.client.request(method, path.format(**true), headers=headers, content=content)
        noted = service.parts.audit.page(most=service.parts.audit.reached()[0] - before)
        told = shown(noted[-1])["details"]
        assert told | true == told, (method, path)
        if path not in BODIES and not form:  # it takes no JSON: nothing of it was done
            assert set(told) == {*true, "by_key"}, (method, path)
        walked += 1
    assert walked > 15


def test_what_was_sent_in_json_of_another_name_is_noted(service: Here) -> None:
    headers = {"authorization": f"Bearer {service.keys['olga']}"}
    for kind in ("application/vnd.x+json", "Application/JSON"):
        content = json.dumps({"label": "called otherwise"})
        made = service.client.post(
            "/api/v1/keys", headers=headers | {"content-type": kind}, content=content
        )
        assert made.status_code == 201
        noted = service.call("olga", "GET", "/api/v1/audit?limit=2").json()[1]
        assert noted["details"]["label"] == "called otherwise", kind


@pytest.mark.parametrize(
    "sent",
    [
        "x" * 1000,
        "\N{SNAKE}" * 1000,
        '"' * 1000,
        ["x" * 200] * 50,
        [["x"] * 20] * 20,
        {"x" * 200: 1},
        int("9" * 4299),
        -int("9" * 4299),
        [int("9" * 4299)] * 3,
        [[]] * 1000,
    ],
    ids=range(10),
)
def test_an_entry_is_short_whatever_is_sent(service: Here, sent: object) -> None:
    before = service.parts.audit.reached()[0]
    body = {"label": sent, "scope": sent, "days": sent}
    assert service.call("ann", "POST", "/api/v1/keys", body).status_code == 422
    _, entry = service.parts.audit.page(most=service.parts.audit.reached()[0] - before)
    told = shown(entry)["details"]
    assert told.keys() == {"label", "scope", "days", "by_key"}
    assert max(len(json.dumps(value)) for value in told.values()) <= 200
    assert told["label"].endswith("…")
    # Which columns are opened is told at more length.
    columns = [f"column {number}" for number in range(100)]
    assert details({"columns": columns, "times": 12, "filters": {"age": "number"}}) == {
        "columns": columns,
        "times": 12,
        "filters": "{'age': 'number'}",
    }
    deep: list[object] = []
    for _ in range(10**5):  # deeper than any body can be read
        deep = [deep]
    assert details({"label": deep, "days": float("inf")}) == {"label": "…", "days": "inf"}


def test_a_long_entry_is_cut_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Letter by letter it took seconds, in which nobody else was served."""
    written: list[str] = []

    def counted(value: object) -> str:
        written.append(canonical(value))
        return written[-1]

    monkeypatch.setattr("topsecret.service.audit.canonical", counted)
    told = details({"columns": ["\N{SNAKE}" * 200] * 50})["columns"]
    assert len(written) < 20
    assert 9_980 < len(canonical(told)) <= 10_000


def test_an_entry_names_what_it_is_about(service: Here) -> None:
    def entries(most: int) -> list[tuple[str, dict[str, object]]]:
        found = service.call("olga", "GET", f"/api/v1/audit?limit={most}").json()
        for one in found:
            one["details"].pop("by_key", None)
        return [(one["action"], one["details"]) for one in reversed(found)]

    # Whose question an owner ended, also once the question is forgotten.
    question = {"column": "place", "k": 2, "epsilon": 0.1}
    job = service.answered("ann", "/api/v1/datasets/events/ask", question)["id"]
    about = {"answer": job, "analyst": "ann", "dataset": "events"}
    assert service.call("olga", "POST", f"/api/v1/answers/{job}/cancel").is_success
    assert entries(1) == [("cancel", about)]
    with browser(service, "olga") as client:
        assert post(client, "/account", f"/answers/{job}/cancel").status_code == 303
    assert entries(1) == [("cancel", about)]
    # Which key was made: its id is in the trail before the key stands.
    key = service.call("olga", "POST", "/api/v1/keys", {"label": "named"}).json()["key"]
    (made, given), (named, identity) = entries(2)
    assert (made, given["label"], named) == ("make key", "named", "key id")
    position = service.parts.audit.reached()[0] - 1
    assert identity == {"entry": position, "key": key.split("_")[1]}
    with browser(service, "olga") as client:
        assert post(client, "/account", "/account/keys", label="by form").status_code == 200
    ids = {one.id for one in service.parts.accounts.keys("olga")}
    assert (entries(1)[0][0], entries(1)[0][1]["key"] in ids) == ("key id", True)
    # What a dataset was registered with.
    body = {"name": "asked-in-sql", "title": "S", "file": "events.csv", "person": "user"}
    body |= {"columns": ["place"], "epsilon": 1, "sql": True, "trust_view": False}  # type: ignore[dict-item]
    assert service.call("olga", "POST", "/api/v1/datasets", body).status_code == 201
    ((action, told),) = entries(1)
    assert (action, told["sql"], told["trust_view"]) == ("register", True, False)


def test_no_key_is_made_whose_id_cannot_be_noted(
    service: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, keys = service.parts.audit.note, service.parts.accounts.keys("ann")

    def full(by: str, action: str, details: object = None) -> int:
        if action == "key id":
            raise LedgerError("the disk is full")
        return note(by, action, details)  # type: ignore[arg-type]

    monkeypatch.setattr(service.parts.audit, "note", full)
    assert service.call("ann", "POST", "/api/v1/keys", {"label": "unseen"}).status_code == 503
    assert service.parts.accounts.keys("ann") == keys


def test_who_did_not_come_in_leaves_no_entry(service: Here) -> None:
    before = service.parts.audit.reached()
    assert log_in(service.client, "ann", "wrong").status_code == 401
    assert service.call("ann", "POST", "/api/v1/datasets/events/close").status_code == 403
    assert service.parts.audit.reached() == before


def test_nothing_is_changed_that_cannot_be_noted(
    service: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise LedgerError("the disk is full")

    monkeypatch.setattr(service.parts.audit, "note", full)
    body = {"name": "unseen"}
    assert service.call("olga", "POST", "/api/analysts", body).status_code == 503
    assert "unseen" not in {one.name for one in service.parts.accounts.users()}


def ended(command: list[str]) -> object:
    with pytest.raises(SystemExit) as stop:
        main(command)
    return stop.value.code


def test_what_was_written_cannot_be_changed_or_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(str(tmp_path / "service.db"))
    schema.create(store)
    trail = Trail(store)
    for number in range(4):
        assert trail.note("olga", "allow", {"epsilon": number}) == number + 1
    assert list(faults(trail.all())) == []
    reached = trail.reached()
    command = ["service", "audit", "--home", str(tmp_path)]
    assert ended(command) == 0
    printed = [json.loads(line)["details"] for line in capsys.readouterr().out.splitlines()]
    assert printed == [{"epsilon": number} for number in range(4)]
    with store.writing() as connection:
        second = schema.AUDIT.c.position == 2
        connection.execute(update(schema.AUDIT).where(second).values(body='{"by":"ann"}'))
    assert list(faults(trail.all())) == ["entry 2 is not what was written"]
    assert ended(command) == 1
    assert "FAULT: entry 2" in capsys.readouterr().err
    with store.writing() as connection:
        connection.execute(delete(schema.AUDIT).where(second))
    assert list(faults(trail.all())) == ["entry 3 is not what was written"]
    assert trail.passed(*reached)
    with store.writing() as connection:
        connection.execute(delete(schema.AUDIT).where(schema.AUDIT.c.position == 4))
    assert not trail.passed(*reached)
    store.close()


def test_the_witness_misses_entries_that_were_cut(fresh: Here) -> None:
    witness = Witness(fresh.parts.settings.home / "elsewhere.json")
    ledger, trail = fresh.parts.ledger, fresh.parts.audit
    trail.note("olga", "allow")
    trail.note("olga", "close")
    witness.note(ledger, trail)
    witness.check(ledger, trail)
    with fresh.parts.store.writing() as connection:
        connection.execute(delete(schema.AUDIT).where(schema.AUDIT.c.position == 2))
    with pytest.raises(InvalidParameter, match="audit trail has forgotten"):
        witness.check(ledger, trail)


def test_nothing_is_spent_past_a_witness_that_cannot_be_read_or_written(fresh: Here) -> None:
    folder = fresh.parts.settings.home / "far"
    folder.mkdir()
    witness, path = Witness(folder / "witness.json"), folder / "witness.json"
    ledger, trail = fresh.parts.ledger, fresh.parts.audit
    witness.note(ledger, trail)
    noted = path.read_text(encoding="utf-8")
    path.write_text("{", encoding="utf-8")
    with pytest.raises(InvalidParameter, match="cannot be read"):
        witness.note(ledger, trail)
    with pytest.raises(LedgerError, match="cannot be read"):
        witness.trust()
    path.write_text(noted, encoding="utf-8")
    witness.note(ledger, trail)
    witness.trust()
    shutil.rmtree(folder)
    with pytest.raises(LedgerError, match="cannot be written"):
        witness.note(ledger, trail)
    with pytest.raises(LedgerError, match="cannot be written"):
        witness.trust()
