"""What a request was recognised by ends while it is under way: nothing that it makes outlives it.

Where the old code looked and then wrote, each test lets the end come in between: a slow hash, the
look at a password or the entry in the audit trail does it.
"""

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from serving import PASSWORD, PATIENCE, Here, populate, settings
from sqlalchemy import select, text
from test_coming_in import form_token, log_in
from test_teams import browser, post

from topsecret.errors import InvalidParameter, LedgerError
from topsecret.ledger.store import Store
from topsecret.service import api, schema
from topsecret.service.audit import Trail
from topsecret.service.auth import accounts as accounts_module
from topsecret.service.auth import credentials, dependencies, standing
from topsecret.service.auth.accounts import Accounts
from topsecret.service.auth.people import User
from topsecret.service.auth.recognised import Recognised
from topsecret.service.auth.roles import Roles
from topsecret.service.auth.standing import guarded
from topsecret.service.dataset_life import Changes
from topsecret.service.jobs.job import Asked
from topsecret.service.problems import Problem
from topsecret.service.saved_questions import SavedQuestions
from topsecret.service.state import Parts

NEW = "another long password"


def opened(place: str) -> Accounts:
    store = Store(place)
    schema.create(store)
    made = Accounts(store)
    for name, role in (("olga", "owner"), ("otto", "owner"), ("ann", "analyst")):
        made.add(name, role, PASSWORD)  # type: ignore[arg-type]
    return made


@pytest.fixture(params=["sqlite", "postgres"])
def accounts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Accounts]:
    sqlite = request.param == "sqlite"
    place = str(tmp_path / "s.db") if sqlite else request.getfixturevalue("postgres_url")
    made = opened(place)
    yield made
    made._store.close()


def by_key(accounts: Accounts) -> User:
    found = accounts.by_key(accounts.new_key("ann", "maker"))
    assert found is not None
    return found


def by_session(accounts: Accounts) -> User:
    found = accounts.by_session(accounts.begin("ann"))
    assert found is not None
    return found


def before(patch: pytest.MonkeyPatch, place: Any, name: str, act: Callable[[], object]) -> None:
    """Something happens, once, when a function is called, and before it returns."""
    function, happened = getattr(place, name), threading.Event()

    def wrapped(*given: Any, **more: Any) -> Any:
        result = function(*given, **more)
        if not happened.is_set():
            happened.set()
            act()
        return result

    patch.setattr(place, name, wrapped)


RESET = (by_key, lambda accounts, _: accounts.set_password("ann", NEW, first=True))
REVOKED = (by_key, lambda accounts, maker: accounts.revoke_key("ann", maker.key))
LOGGED_OUT = (
    by_session,
    lambda accounts, _: accounts.end_session("ann", accounts.sessions("ann")[0].id),
)
CHANGED = (by_session, lambda accounts, _: accounts.set_password("ann", NEW))
DELETED = (by_session, lambda accounts, _: accounts.deactivate("ann"))


@pytest.mark.parametrize("case", [RESET, REVOKED, LOGGED_OUT, CHANGED, DELETED])
def test_no_key_outlives_what_its_maker_came_with(
    accounts: Accounts, monkeypatch: pytest.MonkeyPatch, case: Any
) -> None:
    recognised, end = case
    maker = recognised(accounts)
    before(monkeypatch, credentials, "new_key", lambda: end(accounts, maker))
    with pytest.raises(Problem) as refused:
        accounts.new_key("ann", "late", maker=maker)
    assert (refused.value.status, refused.value.error) == (401, "not_logged_in")
    assert "sign in again" in refused.value.message
    assert accounts.keys("ann") == []


def test_a_log_in_with_the_old_password_opens_nothing(
    accounts: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    for end in (lambda: accounts.set_password("ann", NEW), lambda: accounts.deactivate("ann")):
        password = PASSWORD if accounts.check_password("ann", PASSWORD) else NEW
        before(monkeypatch, credentials, "password_matches", end)
        assert accounts.log_in("ann", password) is None
        monkeypatch.undo()
        assert accounts.sessions("ann") == []
    with pytest.raises(Problem, match="not_logged_in"):  # whoever vouched for her
        accounts.begin("ann")


def test_a_name_that_postgres_cannot_look_up_is_nobodys(accounts: Accounts) -> None:
    assert accounts.log_in("ann\0", PASSWORD) is None


def test_nothing_is_kept_for_an_account_or_a_dataset_that_is_gone(accounts: Accounts) -> None:
    accounts.deactivate("ann")
    with pytest.raises(Problem, match="not_logged_in"):
        SavedQuestions(accounts._store).save(
            User("ann", "analyst"), "mine", "events", Asked("place", 1, 0.1)
        )
    with pytest.raises(InvalidParameter, match="there is no dataset 'gone'"):
        Roles(accounts._store, Recognised()).give("gone", "otto", "owner")


def overtaken(
    accounts: Accounts,
    patch: pytest.MonkeyPatch,
    first: Callable[[], object],
    late: Any,
    once: tuple[Any, str] = (accounts_module, "_end_all"),
) -> list[Any]:
    """What ``late`` ends with, begun when ``first`` has written and before that is committed.

    Or as soon as it has called another function, ``once``.
    """
    became: list[Any] = []

    def act() -> None:
        try:
            became.append(late())
        except (Problem, InvalidParameter, LedgerError) as error:
            became.append(error)

    thread = threading.Thread(target=act)
    waiting = text("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")

    def begin() -> None:
        thread.start()
        deadline = time.monotonic() + PATIENCE
        while thread.is_alive() and time.monotonic() < deadline:
            with accounts._store.reading() as connection:
                if connection.execute(waiting).first() is not None:
                    return
            time.sleep(0.01)

    before(patch, *once, begin)
    first()
    thread.join(PATIENCE)
    return became


def test_postgres_lets_nothing_slip_between_two_transactions(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts = opened(postgres_url)
    maker = by_key(accounts)

    def reset() -> None:
        accounts.set_password("ann", NEW)

    (refused,) = overtaken(
        accounts, monkeypatch, reset, lambda: accounts.new_key("ann", "late", maker=maker)
    )
    assert isinstance(refused, Problem)
    assert accounts.keys("ann") == []
    monkeypatch.undo()
    session = overtaken(accounts, monkeypatch, reset, lambda: accounts.log_in("ann", NEW))
    assert (session, accounts.sessions("ann")) == ([None], [])
    monkeypatch.undo()
    # Two owners who delete each other: one stays.
    (stays,) = overtaken(
        accounts,
        monkeypatch,
        lambda: accounts.deactivate("olga"),
        lambda: accounts.deactivate("otto"),
    )
    assert isinstance(stays, InvalidParameter)
    assert "the last owner stays" in str(stays)
    assert accounts.owners() == ["otto"]
    accounts._store.close()


@pytest.mark.parametrize("act", ["reset", "delete", "revoke", "give", "take"])
def test_two_owners_who_act_on_each_other_at_once_are_one_after_the_other(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    accounts = opened(postgres_url)
    roles = Roles(accounts._store, Recognised())
    with accounts._store.writing() as connection:
        row = {"name": "events", "title": "E", "source": "e.csv", "person": "user"}
        row |= {"columns": "[]", "delta": 0.1, "created": 0.0}
        connection.execute(schema.DATASETS.insert().values(row))
    for name in ("olga", "otto"):
        roles.give("events", name, "owner")
    people = {name: accounts.by_key(accounts.new_key(name, "k")) for name in ("olga", "otto")}

    def change(who: str, other: str) -> object:
        me, them = people[who], people[other]
        assert me is not None
        assert them is not None
        if act in ("give", "take"):
            given = guarded(roles, me)
            if act == "take":
                return given.take("events", other)
            return given.give("events", other, "viewer")
        mine = guarded(accounts, me)
        if act == "reset":
            return mine.set_password(other, NEW, first=True)
        return mine.deactivate(other) if act == "delete" else mine.revoke_key(other, them.key)

    first, late = partial(change, "olga", "otto"), partial(change, "otto", "olga")
    (refused,) = overtaken(accounts, monkeypatch, first, late, (standing, "check_rights"))
    assert isinstance(refused, Problem)
    roles_changed = act in ("give", "take")
    wanted = (403, "owner_only") if roles_changed else (401, "not_logged_in")
    assert (refused.status, refused.error) == wanted
    assert accounts.check_password("olga", PASSWORD)
    assert [one.role for one in roles.members("events") if one.name == "olga"] == ["owner"]
    accounts._store.close()


def test_a_change_under_way_keeps_no_entry_of_the_trail_waiting(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts = opened(postgres_url)
    trail, noted = Trail(accounts._store), list[int]()
    olga = accounts.by_key(accounts.new_key("olga", "k"))
    assert olga is not None
    before(monkeypatch, standing, "check_rights", lambda: noted.append(trail.note("ann", "ask")))
    guarded(accounts, olga).set_password("otto", NEW, first=True)
    assert noted == [1]
    accounts._store.close()


def test_a_change_of_password_does_not_undo_a_reset(
    service: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts, handed = service.parts.accounts, "handed over by an owner"
    accounts.add("carla", "analyst", PASSWORD)

    def reset() -> None:
        accounts.set_password("carla", handed, first=True)

    with browser(service, "carla") as client:
        before(monkeypatch, credentials, "hash_password", reset)
        changed = post(client, "/account", "/account/password", old=PASSWORD, new=NEW)
        assert (changed.status_code, "sign in again" in changed.text) == (401, True)
        assert client.get("/account").headers["location"].startswith("/login")
    monkeypatch.undo()
    newest = service.call("olga", "GET", "/api/v1/audit?limit=1").json()[0]
    assert (newest["action"], newest["details"]["status"]) == ("refused", 401)
    assert accounts.check_password("carla", handed)
    # Nor does the session that begins after a change.
    accounts.set_password("carla", PASSWORD)
    with browser(service, "carla") as client:
        before(monkeypatch, accounts_module.Accounts, "set_password", reset)
        changed = post(client, "/account", "/account/password", old=PASSWORD, new=NEW)
        assert changed.status_code == 401
    assert accounts.sessions("carla") == []
    assert log_in(service.client, "carla", NEW).status_code == 401


REGISTER = {"name": "late", "title": "L", "file": "events.csv", "person": "user", "epsilon": 1}
OWNERS: list[tuple[str, str, Any]] = [
    ("POST", "/api/v1/analysts", {"name": "late", "role": "owner"}),
    ("POST", "/api/v1/keys", {"label": "late"}),
    ("DELETE", "/api/v1/analysts/bob", None),
    ("DELETE", "/api/v1/analysts/bob/keys/{key}", None),
    ("POST", "/owner/analysts/reset", "name=bob"),
    ("POST", "/owner/analysts/revoke", "name=bob&key={key}"),
    ("POST", "/api/v1/datasets", REGISTER | {"columns": ["place"]}),
    ("DELETE", "/api/v1/datasets/metered", None),
]
DATASET_OWNERS: list[tuple[str, str, Any]] = [
    ("PATCH", "/api/v1/datasets/events", {"title": "Late", "columns": ["place"]}),
    ("POST", "/api/v1/datasets/events/allowances", {"analyst": "ann", "epsilon": 2}),
    ("POST", "/owner/datasets/events/allow", "analyst=ann&epsilon=2"),
    ("POST", "/api/v1/datasets/events/state", {"state": "paused"}),
    ("POST", "/owner/datasets/events/state", "state=paused"),
    ("PUT", "/api/v1/datasets/events/roles/ann", {"role": "owner"}),
    ("DELETE", "/api/v1/datasets/events/roles/bob", None),
    ("POST", "/owner/datasets/events/roles", "name=ann&role=owner"),
    ("POST", "/api/v1/datasets/events/close", None),
    ("POST", "/owner/datasets/events/close", ""),
    ("DELETE", "/api/v1/schedules/{to_come}", None),
    ("POST", "/saved/schedules/{to_come}/end", ""),
    ("DELETE", "/api/v1/schedules/{past}", None),
    ("POST", "/saved/schedules/{past}/end", ""),
]


def everything(service: Here) -> list[Any]:
    """All that owners can change."""
    tables = (schema.USERS, schema.ROLES, schema.DATASETS, schema.SAVED)
    tables += (schema.SCHEDULES, schema.RUNS)
    with service.parts.store.reading() as connection:
        found: list[Any] = [sorted(map(str, connection.execute(select(one)))) for one in tables]
    names = [one.name for one in service.parts.datasets.all()]
    found += [service.parts.ledger.position(name) for name in names]
    return [*found, [one.id for one in service.parts.accounts.keys("bob")]]


def scheduled(service: Here, who: str) -> str:
    """A schedule of somebody's about ``events``, of which nothing is due today."""
    at = datetime.now(UTC) + timedelta(days=1)
    left = service.parts.ledger.account("events").left
    cost = {name: amount / 1000 for name, amount in left.items()}
    begin = partial(service.parts.schedules.begin, who, "x", "events", Asked("place", 2, 0.2))
    return begin(cost=cost, times=[at], every="day")[0].id


@pytest.mark.parametrize("lost", ["key", "role"])
def test_no_change_is_made_with_rights_that_have_ended(
    fresh: Here, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    accounts, roles = fresh.parts.accounts, fresh.parts.roles
    roles.give("events", "bob", "owner")
    key = {"key": fresh.keys["bob"].split("_")[1], "to_come": scheduled(fresh, "ann")}
    key |= {"past": scheduled(fresh, "ann")}
    fresh.parts.schedules.end(key["past"])
    who, changes = ("olga", OWNERS + DATASET_OWNERS) if lost == "key" else ("bob", DATASET_OWNERS)
    for method, path, body in changes:
        if lost == "key":
            fresh.keys[who] = accounts.new_key(who, "to be lost")
        else:
            roles.give("events", who, "owner")
        identity = fresh.keys[who].split("_")[1]
        kept: list[Any] = []

        def lose(mine: str = identity, kept: list[Any] = kept) -> None:
            if lost == "key":
                assert accounts.revoke_key("olga", mine)
            else:
                assert roles.take("events", "bob")
            kept += everything(fresh)

        with monkeypatch.context() as patch:  # the entry in the trail comes before the change
            before(patch, fresh.parts.audit, "note", lose)
            headers = {"authorization": f"Bearer {fresh.keys[who]}"}
            more: dict[str, Any] = {"json": body} if isinstance(body, dict) else {}
            if isinstance(body, str):
                headers["content-type"] = "application/x-www-form-urlencoded"
                more = {"content": body.format(**key)}
            answer = fresh.client.request(method, path.format(**key), headers=headers, **more)
        wanted = (401, "not_logged_in") if lost == "key" else (403, "owner_only")
        assert (answer.status_code, answer.json()["error"]) == wanted, (method, path)
        assert everything(fresh) == kept, (method, path)
    assert accounts.keys("olga")[1:] == []


def test_no_schedule_is_begun_with_a_key_that_has_ended(
    fresh: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"dataset": "metered", "question": {"column": "place", "k": 2}}
    assert fresh.call("bob", "PUT", "/api/v1/saved/weekly", body).status_code == 200
    kept, mine = everything(fresh), fresh.keys["bob"].split("_")[1]
    revoke = partial(fresh.parts.accounts.revoke_key, "bob", mine)
    before(monkeypatch, fresh.parts.audit, "note", revoke)
    refused = fresh.call("bob", "POST", "/api/v1/saved/weekly/schedule", {"times": 2})
    assert (refused.status_code, refused.json()["error"]) == (401, "not_logged_in")
    assert everything(fresh) == [*kept[:-1], []]


PLAIN = {"column": "place", "k": 2, "epsilon": 0.2}
QUERY = "SELECT place, COUNT(DISTINCT user) AS n FROM t GROUP BY place ORDER BY n DESC LIMIT 2"
ASKING: list[tuple[str, str, Any]] = [
    ("POST", "/api/v1/datasets/pasted/ask", PLAIN),
    ("POST", "/api/v1/datasets/pasted/sql", {"query": QUERY, "epsilon": 0.2}),
    ("POST", "/api/v1/saved/weekly/ask", {}),
    ("PUT", "/api/v1/saved/late", {"dataset": "pasted", "question": PLAIN}),
    ("DELETE", "/api/v1/saved/weekly", None),
    ("POST", "/datasets/pasted", {"request_id": "form", "column": "place", "step": "1"}),
    ("POST", "/datasets/pasted", {"request_id": "sql", "query": QUERY, "step": "1"}),
    ("POST", "/saved", {"name": "late", "answer": "{answer}"}),
    ("POST", "/saved/weekly/ask", {"request_id": "again"}),
    ("POST", "/saved/weekly/delete", {}),
]


@pytest.mark.parametrize(("method", "path", "body"), ASKING)
def test_nothing_is_asked_or_kept_with_a_key_or_a_session_that_has_ended(
    asking: Here, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Any
) -> None:
    accounts, paged = asking.parts.accounts, not path.startswith("/api")
    jobs = partial(asking.parts.jobs.without_answers, "ann", None, 100)
    kept, answer = (everything(asking), len(jobs())), jobs()[-1].id
    key = accounts.new_key("ann", "to be lost")

    def lose() -> None:  # once who asks is known
        if paged:
            assert accounts.end_session("ann", accounts.sessions("ann")[0].id)
        else:
            assert accounts.revoke_key("ann", key.split("_")[1])

    with browser(asking, "ann") as client:
        csrf = form_token(client.get("/account").text, "csrf")
        before(monkeypatch, dependencies, "limited", lose)
        if paged:
            given = {name: value.format(answer=answer) for name, value in body.items()}
            refused = client.post(path, data={"csrf": csrf, **given})
            to_login = refused.headers.get("location") == "/login"  # of what no trail has
            assert to_login or (refused.status_code, "sign in again" in refused.text) == (401, True)
        else:
            asking.keys["lost"] = key
            refused = asking.call("lost", method, path, body)
            assert (refused.status_code, refused.json()["error"]) == (401, "not_logged_in")
    assert (everything(asking), len(jobs())) == kept


@pytest.fixture(scope="module")
def asking(service: Here) -> Here:
    """A service that may be asked in SQL, of which ann has asked and kept one question."""
    body = REGISTER | {"name": "pasted", "columns": ["place"], "sql": True}
    assert service.call("olga", "POST", "/api/v1/datasets", body).status_code == 201
    service.parts.datasets.allow("pasted", "ann", {"epsilon": 1.0})
    service.answered("ann", "/api/v1/datasets/pasted/ask", PLAIN)
    body = {"dataset": "pasted", "question": PLAIN}
    assert service.call("ann", "PUT", "/api/v1/saved/weekly", body).status_code == 200
    return service


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    """A service without a desk: questions are answered when a test says so."""
    made = Parts(settings(tmp_path))
    populate(made, tmp_path)
    yield made
    made.ledger.close()
    made.store.close()


def test_a_deleted_account_asks_nothing_more(parts: Parts) -> None:
    jobs, asked, now = parts.jobs, Asked("place", 2, 0.2), datetime.now(UTC)
    waits, _ = jobs.ask("ann", "events", asked, "before", "me")
    at, cost = parts.ledger.position("events"), parts.ledger.account("events").left
    parts.accounts.deactivate("ann")  # and the process dies before it ends what is under way
    with pytest.raises(Problem, match="not_logged_in"):
        jobs.ask("ann", "events", asked, "after", "me")
    cost = {name: amount / 1000 for name, amount in cost.items()}
    with pytest.raises(Problem, match="not_logged_in"):
        parts.schedules.begin("ann", "x", "events", asked, cost=cost, times=[now], every="day")
    assert jobs.run(waits.id) == "refused"
    with parts.store.reading() as connection:
        found = connection.execute(select(schema.JOBS.c.request, schema.JOBS.c.message)).all()
    assert [tuple(one) for one in found] == [("before", "The account was deleted.")]
    assert parts.ledger.position("events") == at


def test_no_question_comes_in_while_its_account_is_deleted(
    fresh: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = "/api/v1/analysts/ann"
    before(monkeypatch, api, "checked", lambda: fresh.call("olga", "DELETE", delete))
    body = {"column": "place", "k": 2, "epsilon": 0.2}
    refused = fresh.call("ann", "POST", "/api/v1/datasets/events/ask", body)
    assert (refused.status_code, refused.json()["error"]) == (401, "not_logged_in")
    assert fresh.call("olga", "GET", "/api/v1/answers?dataset=events").json() == []


def test_a_column_that_is_withdrawn_is_not_asked_by_a_question_that_waits(parts: Parts) -> None:
    waits, _ = parts.jobs.ask("ann", "events", Asked("colour", 2, 0.2), "waits", "me")
    at = parts.ledger.position("events")
    parts.life.edit("events", Changes(columns=("place",)))
    assert parts.jobs.run(waits.id) == "refused"
    with parts.store.reading() as connection:
        told = connection.execute(select(schema.JOBS.c.message)).scalar_one()
    assert told == "This column cannot be asked; choose from: place"
    assert parts.ledger.position("events") == at
