"""A dataset after its registration: edited, pointed to the next file, paused, retired, deleted."""

from pathlib import Path
from typing import Any

import pytest
from serving import PLACES, SHOP, Here, populate, settings, write_events
from sqlalchemy import create_engine, text
from test_files_that_change import meanwhile
from test_standing import before
from test_teams import browser, post

from topsecret.errors import Closing, LedgerError
from topsecret.service.dataset_life import Changes
from topsecret.service.jobs.job import Asked
from topsecret.service.schema import JOBS
from topsecret.service.state import Parts

EVENTS, VISITS = "/api/v1/datasets/events", "/api/v1/datasets/visits"
QUESTION = {"column": "place", "k": 1, "epsilon": 0.3}


def spent(service: Here, name: str) -> object:
    return service.parts.ledger.account(name).spent


def edit(service: Here, path: str, who: str = "olga", **changes: object) -> int:
    return service.call(who, "PATCH", path, changes).status_code


def test_what_may_be_asked_can_be_changed(service: Here) -> None:
    assert edit(service, EVENTS, title="Happenings", columns=["colour"]) == 200
    listed = service.call("ann", "GET", "/api/v1/datasets").json()[0]
    assert (listed["title"], listed["columns"]) == ("Happenings", ["colour"])
    refused = service.call("ann", "POST", f"{EVENTS}/ask", QUESTION)
    assert (refused.status_code, "cannot be asked" in refused.text) == (400, True)
    assert edit(service, EVENTS, columns=["colour", "place"], filters={"colour": "text"}) == 200
    where = [{"column": "colour", "value": "red"}]
    asked = service.answered("ann", f"{EVENTS}/ask", QUESTION | {"where": where})
    assert asked["state"] == "answered"
    for wrong in ({"columns": ["user"]}, {"columns": ["size"]}, {"version": "2"}, {"title": "\n"}):
        assert edit(service, EVENTS, **wrong) == 400, wrong
    assert edit(service, EVENTS, filters={}, person="place") == 422  # who is protected stays
    assert edit(service, EVENTS, "ann", title="Mine") == 403


def test_the_next_file_is_paid_from_the_same_budget(service: Here, tmp_path: Path) -> None:
    files = service.parts.settings.files[0]
    (files / "2026").mkdir()
    write_events(files / "2026" / "may.csv", {"Bridge": 1000} | PLACES)
    (files / "other.csv").write_text("customer,place\n1,Harbour\n")
    first = service.answered("bob", f"{EVENTS}/ask", QUESTION)
    before = spent(service, "events")
    again = service.answered("bob", f"{EVENTS}/ask", QUESTION)
    assert (again["answer"]["items"], spent(service, "events")) == (["Harbour"], before)
    assert edit(service, EVENTS, file="2026/may.csv") == 200
    second = service.answered("bob", f"{EVENTS}/ask", QUESTION)
    assert (first["answer"]["items"], second["answer"]["items"]) == (["Harbour"], ["Bridge"])
    assert spent(service, "events") != before
    # Back at the first file, its answers are found.
    after = spent(service, "events")
    assert edit(service, EVENTS, file="events.csv") == 200
    assert service.answered("bob", f"{EVENTS}/ask", QUESTION)["answer"]["items"] == ["Harbour"]
    assert spent(service, "events") == after
    for wrong in ("other.csv", "nothing.csv", "../service.db"):
        assert edit(service, EVENTS, file=wrong) == 400, wrong
    # Who owns this dataset alone does not choose among everybody's files.
    service.parts.roles.give("events", "ann", "owner")
    assert edit(service, EVENTS, "ann", title="Events") == 200
    assert edit(service, EVENTS, "ann", file="2026/may.csv") == 403
    assert edit(service, EVENTS, "ann", source="shop", table="visits") == 403
    service.parts.roles.take("events", "ann")


def test_a_folder_of_partitions_is_one_data_set(service: Here, tmp_path: Path) -> None:
    folder = service.parts.settings.files[0] / "dated [eu]"
    for month in ("05", "06"):
        (folder / f"2026-{month}").mkdir(parents=True)
    write_events(folder / "2026-05" / "a.csv", {"Bridge": 300, "Market": 400})
    (folder / "2026-06" / "b.csv").write_text(
        "user,place,colour\n" + "".join(f"v{n},Bridge,red\n" for n in range(300))
    )
    pattern = "dated [eu]/**/*.csv"
    assert pattern in service.parts.datasets.files()
    body = {"name": "months", "title": "D", "file": pattern, "person": "user", "epsilon": 4}
    for wrong in ("dated/**/*.csv", "dated [eu]/**/*.parquet", "../files/**/*.csv", "dated [eu]"):
        refused = service.call(
            "olga", "POST", "/api/datasets", body | {"file": wrong, "columns": ["place"]}
        )
        assert refused.status_code == 400, wrong
    made = service.call("olga", "POST", "/api/datasets", body | {"columns": ["place"]})
    assert (made.status_code, made.json()["warning"]) == (201, None)
    assert pattern in service.call("olga", "GET", "/owner/datasets/months").text
    service.parts.datasets.allow("months", "ann", {"epsilon": 4.0})
    path = "/api/v1/datasets/months/ask"
    assert service.answered("ann", path, QUESTION)["answer"]["items"] == ["Bridge"]  # of both
    before = spent(service, "months")
    # A file more makes the question a new one, from the same budget.
    write_events(folder / "c.csv", {"Castle": 2000})
    assert service.answered("ann", path, QUESTION)["answer"]["items"] == ["Castle"]
    after = spent(service, "months")
    assert after != before
    # A part of it is registered too: their budgets add up.
    part = body | {"name": "part", "file": "dated [eu]/2026-05/a.csv", "columns": ["place"]}
    assert "as months too" in service.call("olga", "POST", "/api/datasets", part).json()["warning"]
    # No link in it is followed, and that costs nothing.
    write_events(tmp_path / "outside.csv", {"Secret": 5000})
    (folder / "2026-06" / "link").symlink_to(tmp_path)
    failed = service.answered("ann", path, QUESTION)
    assert (failed["state"], failed["error"]) == ("failed", "source_failed")
    assert spent(service, "months") == after


def test_a_new_version_of_a_table_is_a_new_question(service: Here) -> None:
    asked = QUESTION | {"epsilon": 0.4}
    assert service.answered("bob", f"{VISITS}/ask", asked)["answer"]["items"] == ["Harbour"]
    engine = create_engine(f"sqlite:///{service.parts.settings.home / SHOP}")
    with engine.begin() as connection:
        rows = [{"who": f"n{number}"} for number in range(1500)]
        connection.execute(text("INSERT INTO visits VALUES (:who, 'Tower')"), rows)
    engine.dispose()
    before = spent(service, "visits")
    assert service.answered("bob", f"{VISITS}/ask", asked)["answer"]["items"] == ["Harbour"]
    assert spent(service, "visits") == before
    assert edit(service, VISITS, version="2026-11-16") == 200
    assert service.answered("bob", f"{VISITS}/ask", asked)["answer"]["items"] == ["Tower"]
    after = spent(service, "visits")
    assert after != before
    assert service.answered("bob", f"{VISITS}/ask", asked)["answer"]["items"] == ["Tower"]
    assert spent(service, "visits") == after
    assert edit(service, VISITS, version="") == 200
    assert service.answered("bob", f"{VISITS}/ask", asked)["answer"]["items"] == ["Harbour"]
    assert edit(service, VISITS, version="x" * 101) == 422


def test_a_version_is_read_from_a_public_table(fresh: Here) -> None:
    engine = create_engine(f"sqlite:///{fresh.parts.settings.home / SHOP}")

    def run(statement: str) -> None:
        with engine.begin() as connection:
            connection.execute(text(statement))

    def ask(**more: object) -> dict[str, Any]:
        return fresh.answered("bob", f"{VISITS}/ask", QUESTION | more)

    plain = ask(request_id="plain")
    run("CREATE TABLE runs (finished TEXT)")
    run("INSERT INTO runs VALUES ('2026-11-15')")
    place = {"table": "runs", "column": "finished"}
    for wrong in ({"table": "visits", "column": "place"}, {"table": "runs", "column": "none"}):
        assert edit(fresh, VISITS, version_from=wrong | {"trusted": True}) == 400
    assert edit(fresh, VISITS, version_from=place, version="mine") == 400
    assert edit(fresh, EVENTS, version_from=place) == 400  # a file
    fresh.parts.roles.give("visits", "ann", "owner")
    assert edit(fresh, VISITS, "ann", version_from=place) == 403  # not among everybody's tables
    assert edit(fresh, VISITS, version_from=place) == 200
    first = ask(request_id="monday")
    before = spent(fresh, "visits")
    run("UPDATE visits SET place = 'Tower' WHERE place = 'Harbour'")
    assert ask()["answer"]["items"] == first["answer"]["items"] == ["Harbour"]
    assert spent(fresh, "visits") == before
    run("INSERT INTO runs VALUES ('2026-11-16')")
    assert ask()["answer"]["items"] == ["Tower"]
    after = spent(fresh, "visits")
    assert after != before
    # Taken over from a process that died, a question is about the version that it began with.
    with fresh.parts.store.writing() as connection:
        lost = {"state": "working", "shown": None, "answer": None}
        connection.execute(JOBS.update().where(JOBS.c.request == "monday").values(lost))
    assert fresh.parts.jobs.run(first["id"]) == "answered"
    assert fresh.ended("bob", first["id"])["answer"]["items"] == ["Harbour"]
    assert spent(fresh, "visits") == after
    # So it is where the job was forgotten, and where it began without a version.
    with fresh.parts.store.writing() as connection:
        connection.execute(JOBS.update().where(JOBS.c.request == "monday").values(asked=0.0))
    assert fresh.parts.jobs.forget(1) == 1
    assert ask(request_id="monday")["answer"]["items"] == ["Harbour"]
    with fresh.parts.store.writing() as connection:
        connection.execute(JOBS.update().where(JOBS.c.request == "plain").values(lost))
    assert fresh.parts.jobs.run(plain["id"]) == "answered"
    assert spent(fresh, "visits") == after
    # Another table with the same value is another version, and so is the value in words.
    run("CREATE TABLE runs_too (finished TEXT)")
    run("INSERT INTO runs_too VALUES ('2026-11-15')")
    for other in ({"version_from": place | {"table": "runs_too"}}, {"version": "2026-11-15"}):
        assert edit(fresh, VISITS, **other) == 200
        assert ask()["answer"]["items"] == ["Tower"]
    assert edit(fresh, VISITS, version_from=place) == 200
    after = spent(fresh, "visits")
    # What cannot be read is free, and said to owners alone.
    run("DELETE FROM runs")
    failed = ask()
    assert (failed["state"], failed["error"]) == ("failed", "source_failed")
    assert ("Nothing was charged" in failed["message"], "runs" in str(failed)) == (True, False)
    assert "runs" in fresh.call("olga", "GET", f"/api/v1/answers/{failed['id']}").json()["cause"]
    assert spent(fresh, "visits") == after
    page = "/owner/datasets/visits"
    with browser(fresh, "olga") as client:
        assert "finished of runs" in client.get(page).text
        form = {"title": "Visits", "columns": "place", "version": "", "version_table": "visits"}
        wrong_page = post(client, f"{page}/edit", f"{page}/edit", **form, version_column="place")
        assert (wrong_page.status_code, "would be data" in wrong_page.text) == (400, True)
        form["version_table"] = ""
        assert post(client, f"{page}/edit", f"{page}/edit", **form).status_code == 303
    assert fresh.parts.datasets.get("visits").version_from is None
    engine.dispose()


def test_a_paused_data_set_is_not_asked_and_goes_on(service: Here) -> None:
    state = f"{EVENTS}/state"
    assert service.call("ann", "POST", state, {"state": "paused"}).status_code == 403
    assert service.call("olga", "POST", state, {"state": "paused"}).status_code == 200
    for path in ("ask", "plan"):
        refused = service.call("ann", "POST", f"{EVENTS}/{path}", QUESTION)
        assert (refused.status_code, refused.json()["error"]) == (409, "paused")
    assert service.call("ann", "GET", "/api/v1/datasets").json()[0]["state"] == "paused"
    assert "Paused by its owner: stored answers stay." in service.call("ann", "GET", "/").text
    with browser(service, "ann") as client:
        page = post(client, "/account", "/datasets/events", request_id="paused", column="place")
    assert (page.status_code, "<h1>Not possible now</h1>" in page.text) == (409, True)
    # A question that waited when it was paused is refused, for nothing.
    before = spent(service, "events")
    waiting = {"id": "waited", "user": "ann", "dataset": "events", "request": "w", "asked": 1.0}
    waiting |= {"question": '["place", 1, 0.35]', "state": "working", "worker": ""}
    with service.parts.store.writing() as connection:
        connection.execute(JOBS.insert().values(waiting))
    assert service.parts.jobs.run("waited") == "refused"
    assert spent(service, "events") == before
    assert service.call("olga", "POST", state, {"state": "open"}).status_code == 200
    assert service.answered("ann", f"{EVENTS}/ask", QUESTION)["state"] == "answered"


def test_the_pages_do_the_same(service: Here) -> None:
    page = "/owner/datasets/metered"
    with browser(service, "olga") as client:
        assert "Harbour" not in client.get(f"{page}/edit").text  # columns, no rows
        wrong = post(client, f"{page}/edit", f"{page}/edit", title="Metered")
        assert (wrong.status_code, "at least one column" in wrong.text) == (400, True)
        form = {"title": "By the metre", "columns": "place"}
        assert post(client, f"{page}/edit", f"{page}/edit", **form).status_code == 303
        assert "By the metre" in client.get(page).text
        assert post(client, page, f"{page}/state", state="paused").status_code == 303
        assert "Let it go on" in client.get(page).text
        assert post(client, page, f"{page}/delete").status_code == 303
        assert client.get(page).status_code == 404


def test_what_was_asked_is_retired_and_not_deleted(fresh: Here) -> None:
    answer = fresh.answered("ann", f"{EVENTS}/ask", QUESTION)["id"]
    refused = fresh.call("olga", "DELETE", EVENTS)
    assert (refused.status_code, "retire it instead" in refused.text) == (400, True)
    retired = {"state": "retired"}
    assert fresh.call("olga", "POST", f"{EVENTS}/state", retired).status_code == 200
    assert fresh.parts.ledger.account("events").state == "closed"
    assert fresh.call("ann", "GET", "/api/v1/datasets").json() == []
    assert fresh.call("ann", "POST", f"{EVENTS}/ask", QUESTION).status_code == 409
    assert fresh.call("ann", "GET", f"/api/v1/answers/{answer}").json()["state"] == "answered"
    assert fresh.call("ann", "GET", f"/answers/{answer}").status_code == 200
    back = fresh.call("olga", "POST", f"{EVENTS}/state", {"state": "open"})
    assert (back.status_code, "stays so" in back.text) == (400, True)


@pytest.mark.parametrize("who", ["ann", "bob"])
def test_only_owners_change_the_life_of_a_data_set(service: Here, who: str) -> None:
    for method, path, body in (
        ("DELETE", EVENTS, None),
        ("POST", f"{EVENTS}/state", {"state": "retired"}),
        ("GET", "/owner/datasets/events/edit", None),
    ):
        assert service.call(who, method, path, body).status_code == 403


def test_what_is_withdrawn_while_another_change_is_looked_at_stays_so(
    fresh: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, filtered = fresh.parts, {"colour": "text"}
    write_events(parts.settings.files[0] / "next.csv", PLACES)
    assert edit(fresh, EVENTS, filters=filtered) == 200

    def withdraw() -> None:
        parts.life.edit("events", Changes(columns=("place",), filters={}))

    with monkeypatch.context() as patch:
        before(patch, parts.datasets, "schema_of", withdraw)
        assert edit(fresh, EVENTS, file="next.csv") == 200
    known = parts.datasets.get("events")
    assert (known.source.rpartition("/")[2], known.columns) == ("next.csv", ("place",))
    assert known.filters == {}
    with monkeypatch.context() as patch:
        allow = Changes(filters=filtered)
        before(patch, parts.datasets, "existing", lambda: parts.life.edit("events", allow))
        assert edit(fresh, EVENTS, columns=["place", "colour"]) == 200
    known = parts.datasets.get("events")
    assert (known.columns, known.filters) == (("place", "colour"), filtered)
    # Nor does a pause that ends bring back what is retired by then.
    before(monkeypatch, parts.datasets, "get", lambda: parts.life.move("events", "retired"))
    back = fresh.call("olga", "POST", f"{EVENTS}/state", {"state": "open"})
    assert (back.status_code, "stays so" in back.text) == (400, True)
    assert parts.datasets.get("events").state == "retired"


WAITED = "Nothing was charged: the rules changed while this question waited for an engine. "
BY_PLACE = {"column": "colour", "k": 1, "epsilon": 0.2}
BY_PLACE |= {"where": [{"column": "place", "verb": "is", "value": "Harbour"}]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda life: life.edit("events", Changes(columns=("place",))), "choose from: place"),
        (lambda life: life.edit("events", Changes(filters={})), "choose from: none"),
        (lambda life: life.move("events", "paused"), "The owner has paused this dataset."),
    ],
)
def test_what_is_withdrawn_while_a_question_waits_for_an_engine_is_not_read(
    fresh: Here, change: Any, words: str
) -> None:
    life, ledger = fresh.parts.life, fresh.parts.ledger
    life.edit("events", Changes(filters={"place": "text"}))
    with meanwhile(lambda: change(life)):
        job = fresh.answered("ann", f"{EVENTS}/ask", BY_PLACE)
    assert (job["state"], job["error"], job["answer"]) == ("refused", "refused", None)
    assert job["message"].startswith(WAITED)
    assert words in job["message"]
    assert [one.event for one in ledger.history("events")][-2:] == ["reserved", "released"]
    assert not any(ledger.account("events").spent.values())
    life.move("events", "open")
    # What does not concern a question does not end it.
    with meanwhile(lambda: life.edit("events", Changes(title="T", columns=("place",)))):
        kept = fresh.answered("ann", f"{EVENTS}/ask", {"column": "place", "k": 1, "epsilon": 0.2})
    assert kept["state"] == "answered"


def test_a_query_does_not_read_a_column_that_is_withdrawn_while_it_waits(fresh: Here) -> None:
    new = {"name": "pasted", "title": "P", "file": "events.csv", "person": "user", "epsilon": 8}
    new |= {"columns": ["place", "colour"], "sql": True}
    assert fresh.call("olga", "POST", "/api/v1/datasets", new).status_code == 201
    fresh.parts.datasets.allow("pasted", "ann", {"epsilon": 8.0})
    for column, state in (("colour", "refused"), ("place", "answered")):
        fresh.parts.life.edit("pasted", Changes(columns=("place", "colour")))
        query = f'SELECT {column}, COUNT(DISTINCT "user") AS n FROM t GROUP BY {column}'
        body = {"query": f"{query} ORDER BY n DESC LIMIT 1", "epsilon": 0.2}
        with meanwhile(lambda: fresh.parts.life.edit("pasted", Changes(columns=("place",)))):
            job = fresh.answered("ann", "/api/v1/datasets/pasted/sql", body)
        assert job["state"] == state
        if state == "refused":
            assert job["message"].startswith(WAITED)
            assert fresh.parts.ledger.history("pasted")[-1].event == "released"
            assert not any(fresh.parts.ledger.account("pasted").spent.values())


def test_a_question_waits_again_where_the_rules_cannot_be_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = Parts(settings(tmp_path))  # nobody answers but this test
    populate(parts, tmp_path)
    job, _ = parts.jobs.ask("ann", "events", Asked("place", 1, 0.2), "waits", "me")
    real, looks = parts.jobs.check, []

    def check(user: str, dataset: str, asked: Asked) -> None:
        looks.append(dataset)
        if len(looks) == 2:
            raise LedgerError("the store is away")
        real(user, dataset, asked)

    monkeypatch.setattr(parts.jobs, "check", check)
    with pytest.raises(Closing, match="tried again later"):
        parts.jobs.run(job.id)
    assert not any(parts.ledger.account("events").spent.values())
    assert parts.jobs.run(job.id) == "answered"
    assert parts.ledger.check().faults == ()
    parts.ledger.close()
    parts.store.close()
