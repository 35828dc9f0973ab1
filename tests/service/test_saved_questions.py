"""Questions that are kept under a name: by API, on the page and from Python."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from serving import PASSWORD, Here
from sqlalchemy import text
from test_ending import until
from test_teams import browser, post

import topsecret
from topsecret.client import Answer
from topsecret.errors import InvalidParameter, ServiceError
from topsecret.ledger.store import Store
from topsecret.service import saved_questions, schema
from topsecret.service.auth.accounts import Accounts
from topsecret.service.auth.people import User
from topsecret.service.jobs.job import Asked
from topsecret.service.saved_questions import SavedQuestions

QUESTION = {"column": "place", "k": 2, "epsilon": 0.25}
SAVED = "/api/v1/saved"


def test_a_question_is_kept_asked_again_and_forgotten(
    service: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = topsecret.connect(str(service.client.base_url), service.keys["ann"])
    ann.save("weekly", "events", item="place", k=2, epsilon=0.25)
    ann.save("places.2026", "events", item="place", k=3, epsilon=0.3, counts=True)
    kept = ann.saved()
    assert [(one.name, one.dataset) for one in kept] == [
        ("places.2026", "events"),
        ("weekly", "events"),
    ]
    assert "Top 2 of place" in kept[1].words
    before = service.parts.ledger.account("events").spent
    answer = ann.ask_saved("weekly", request_id="monday")
    assert isinstance(answer, Answer)
    assert answer.items == ("Harbour", "Market")
    paid = service.parts.ledger.account("events").spent
    assert paid != before
    again = ann.ask_saved("weekly")  # the same question, for nothing
    assert isinstance(again, Answer)
    assert again.items == answer.items
    assert service.parts.ledger.account("events").spent == paid
    plan = service.call("ann", "POST", f"{SAVED}/weekly/plan")
    assert (plan.status_code, plan.json()["epsilon"]) == (200, 0.25)
    # Another's are another's, and so are the questions of their answers.
    assert service.call("bob", "GET", SAVED).json() == []
    for method, path, body in (
        ("POST", f"{SAVED}/weekly/ask", {}),
        ("POST", f"{SAVED}/weekly/plan", None),
        ("DELETE", f"{SAVED}/weekly", None),
        ("PUT", f"{SAVED}/mine", {"answer": answer.id}),
    ):
        assert service.call("bob", method, path, body).status_code == 404, path
    assert service.call("olga", "PUT", f"{SAVED}/mine", {"answer": answer.id}).status_code == 403
    # What cannot be asked is not kept.
    wrong = {"dataset": "events", "question": QUESTION | {"column": "user"}}
    for body in (wrong, {"dataset": "events"}, {"answer": answer.id, "dataset": "events"}, {}):
        assert service.call("ann", "PUT", f"{SAVED}/wrong", body).status_code == 400, body
    elsewhere = {"dataset": "visits", "question": QUESTION}
    assert service.call("ann", "PUT", f"{SAVED}/wrong", elsewhere).status_code == 404
    with pytest.raises(InvalidParameter):
        ann.save("Every Monday!", "events", item="place", epsilon=0.25)
    monkeypatch.setattr(saved_questions, "MOST", 2)
    ann.save("weekly", "events", item="place", k=1, epsilon=0.25)  # in place of the other
    with pytest.raises(InvalidParameter, match="delete one first"):
        ann.save("third", "events", item="place", k=1, epsilon=0.25)
    # A question in SQL that was kept when the dataset could be asked so.
    service.parts.saved.delete(User("ann", "analyst"), "places.2026")
    service.parts.saved.save(
        User("ann", "analyst"), "in-sql", "events", Asked("place", 1, 0.25, query="SELECT 1")
    )
    for step in ("plan", "ask"):
        refused = service.call("ann", "POST", f"{SAVED}/in-sql/{step}", {})
        assert (refused.status_code, "in SQL" in refused.text) == (400, True)
    ann.forget_saved("weekly")
    with pytest.raises(ServiceError, match="no such saved question"):
        ann.ask_saved("weekly")
    assert ann.top_k("events", item="place", k=2, epsilon=0.25).items == answer.items


def test_of_two_who_save_at_once_the_last_stays(postgres_url: str) -> None:
    store = Store(postgres_url)
    schema.create(store)
    Accounts(store).add("ann", "analyst", PASSWORD)
    saved, first = SavedQuestions(store), Asked("place", 1, 0.25)
    row = {"user": "ann", "name": "weekly", "dataset": "events", "question": first.to_text()}
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with ThreadPoolExecutor(1) as pool:
        with store.writing() as connection:
            schema.put(connection, schema.SAVED, row | {"created": 0.0})
            last = pool.submit(
                saved.save, User("ann", "analyst"), "weekly", "events", Asked("place", 3, 0.25)
            )
            until(lambda: connection.execute(waiting).scalar_one())
        last.result()
    assert saved.get("ann", "weekly").asked.k == 3
    store.close()


def test_the_pages_keep_and_ask_and_an_account_takes_its_questions_along(fresh: Here) -> None:
    answer = fresh.answered("bob", "/api/v1/datasets/events/ask", QUESTION)["id"]
    with browser(fresh, "bob") as client:
        assert "Nothing saved yet" in client.get("/saved").text
        page = f"/answers/{answer}"
        assert post(client, page, "/saved", name="Not so", answer=answer).status_code == 422
        assert post(client, page, "/saved", name="weekly", answer=answer).status_code == 303
        assert "Top 2 of place" in client.get("/saved").text
        again = post(client, "/saved", "/saved/weekly/ask", request_id="tuesday")
        assert (again.status_code, again.headers["location"][:9]) == (303, "/answers/")
        assert "Save this question" in client.get(page).text
        assert post(client, "/saved", "/saved/weekly/delete").status_code == 303
        assert post(client, page, "/saved", name="weekly", answer=answer).status_code == 303
    with browser(fresh, "olga") as client:
        assert "Save this question" not in client.get(page).text
    assert [one.name for one in fresh.parts.saved.all("bob")] == ["weekly"]
    fresh.parts.accounts.deactivate("bob")
    assert fresh.parts.saved.all("bob") == []
