"""A service asked from Python: calls like the library's, errors in the service's words."""

import re
import socket
import threading
import warnings
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from serving import PATIENCE, Here, write_events

import topsecret
from topsecret.client import Service
from topsecret.client.answers import budget_of
from topsecret.errors import BudgetExceeded, InvalidParameter, ServiceError, WeakPrivacy


@pytest.fixture(scope="module")
def ann(service: Here) -> Service:
    write_events(service.parts.settings.files[0] / "mine.csv", {"Harbour": 900, "Market": 700})
    body = {"name": "mine", "title": "M", "file": "mine.csv", "person": "user", "epsilon": 4}
    body |= {"columns": ["place"], "filters": {"colour": "text"}}
    assert service.call("olga", "POST", "/api/datasets", body).status_code == 201
    service.parts.datasets.allow("mine", "ann", {"epsilon": 4.0})
    made = topsecret.connect(str(service.client.base_url), service.keys["ann"])
    return replace(made, patience=PATIENCE)  # a busy machine may take longer than its 30 s


def test_a_question_is_asked_as_of_the_library(ann: Service) -> None:
    assert "mine" in ann.datasets()
    asked = {"item": "place", "k": 1, "epsilon": 0.5, "where": [("colour", "in", ["red", "blue"])]}
    seen = ann.plan("mine", **asked)  # type: ignore[arg-type]
    assert seen.fits
    assert seen.lead
    answer = ann.top_k("mine", **asked, request_id="monday", counts=True)  # type: ignore[arg-type]
    assert answer.items == ("Harbour",)
    assert answer.counts is not None
    assert answer.half_width is not None
    assert abs(answer.counts[0] - 900) < 20 * answer.half_width
    assert answer.epsilon <= 0.5
    assert "Guarantee" in answer.receipt
    again = ann.top_k("mine", **asked, request_id="monday", counts=True)  # type: ignore[arg-type]
    assert again == answer
    assert ann.budget("mine").state == "open"


@pytest.fixture(scope="module")
def odd(service: Here, ann: Service) -> str:
    """A dataset with texts that have blanks and commas, and columns of every kind."""
    lines = ["user,place,country,price,day"]
    for number, country in enumerate(["FR", " FR", "", '"F,R"', " "]):
        rest = f"p{number},{country},{number},2026-03-0{number + 1}"
        lines += [f"u{number}-{person},{rest}" for person in range(3000)]
    text = "\n".join(lines) + "\n"
    (service.parts.settings.files[0] / "odd.csv").write_text(text, encoding="utf-8")
    body = {"name": "odd", "title": "O", "file": "odd.csv", "person": "user", "epsilon": 9}
    filters = {"country": "text", "price": "number", "day": "date"}
    body |= {"columns": ["place"], "filters": filters}
    assert service.call("olga", "POST", "/api/datasets", body).status_code == 201
    service.parts.datasets.allow("odd", "ann", {"epsilon": 9.0})
    return "odd"


@pytest.mark.parametrize(
    ("where", "items"),
    [
        (("country", "=", " FR"), "p1"),
        (("country", "=", " "), "p4"),
        (("country", "!=", "FR "), "p0 p1 p3 p4"),  # nothing is no value
        (("country", "=", "F,R"), "p3"),
        (("country", "in", ["FR", "DE"]), "p0"),
        (("price", ">=", 3), "p3 p4"),
        (("price", "<=", 0.5), "p0"),
        (("day", ">=", date(2026, 3, 4)), "p3 p4"),
        (("day", "=", "2026-03-02"), "p1"),
    ],
    ids=str,
)
def test_a_condition_is_that_of_the_library(
    service: Here, ann: Service, odd: str, where: tuple[str, str, Any], items: str
) -> None:
    answer = ann.top_k(odd, item="place", k=5, epsilon=0.5, where=[where])
    assert sorted(answer.items) == items.split()
    file = service.parts.settings.files[0] / "odd.csv"
    asked: dict[str, Any] = {"item": "place", "person": "user", "k": 5, "where": [where]}
    found = topsecret.top_k(file, epsilon=5.0, delta=1e-3, **asked)
    assert sorted(found.items) == items.split()


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (("country", "in", ["", "FR"]), "'' cannot be in a list here"),
        (("country", "in", [" FR"]), "' FR' cannot be in a list here"),
        (("country", "in", ["F,R"]), "'F,R' cannot be in a list here"),
        (("country", "in", []), "needs a list of one text or more"),
        (("country", "in", [1]), "needs a list of one text or more"),
        (("country", "=", ""), "with an empty text"),
        (("country", "=", 5), "compares 'country' as a text, and 5 is a number"),
        (("country", "=", date(2026, 3, 1)), "as a text, and 2026-03-01 is a date"),
        (("price", "=", True), "a text, a number or a day; found a bool"),
        (("day", ">=", datetime(2026, 3, 1, 12)), "a text, a number or a day; found a datetime"),
    ],
    ids=str,
)
def test_what_the_service_cannot_express_is_refused(
    ann: Service, odd: str, where: tuple[str, str, Any], words: str
) -> None:
    before = ann.budget(odd)
    for ask in (ann.plan, ann.top_k):
        with pytest.raises(InvalidParameter, match=re.escape(words)):
            ask(odd, item="place", k=1, epsilon=0.01, where=[where])
    assert ann.budget(odd) == before


def test_a_group_is_that_of_the_library(ann: Service, odd: str) -> None:
    asked: dict[str, Any] = {"item": "place", "k": 1, "epsilon": 1.0}
    found = ann.top_k_by(odd, by="country", groups=["FR", " FR"], **asked)
    assert [one.items for one in found.values()] == [("p0",), ("p1",)]
    with pytest.raises(InvalidParameter, match="as a text, and 5 is a number"):
        ann.plan(odd, by="country", groups=[5], **asked)


def test_the_kinds_of_columns_are_looked_up_once(
    ann: Service, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each number of a condition or a group cost a request of the account's."""
    sent, call = list[str](), Service._call
    monkeypatch.setattr(
        Service, "_call", lambda self, *what: sent.append(what[1]) or call(self, *what)
    )
    where = [("price", ">=", 0), ("price", "<=", 9)]
    ann.plan(odd, item="place", k=1, epsilon=1.0, by="price", groups=range(5), where=where)
    assert sent == ["/datasets", "/datasets/odd/plan"]


def test_a_weak_budget_is_warned_of(service: Here, ann: Service) -> None:
    with pytest.warns(WeakPrivacy, match="epsilon = 19 is above 10") as seen:
        ann.plan("mine", item="place", k=1, epsilon=19.0)
    assert [one.filename for one in seen] == [__file__]
    before = ann.budget("mine")
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeakPrivacy)
        with pytest.raises(WeakPrivacy):  # before anything is asked, so that it costs nothing
            ann.top_k("mine", item="place", k=1, epsilon=11.0)
    assert ann.budget("mine") == before
    body = {"name": "weak", "title": "W", "file": "mine.csv", "person": "user", "epsilon": 4}
    body |= {"columns": ["place"], "delta": 0.01}
    assert service.call("olga", "POST", "/api/datasets", body).status_code == 201
    service.parts.datasets.allow("weak", "ann", {"epsilon": 4.0})
    with pytest.warns(WeakPrivacy, match="delta = [0-9.]+ is above 0.001") as seen:
        answer = ann.top_k("weak", item="place", k=1, epsilon=2.4)
    assert answer.delta > 1e-3
    assert __file__ in [one.filename for one in seen]  # the service is in this process, too


def test_refusals_are_errors_with_the_services_words(ann: Service) -> None:
    with pytest.raises(BudgetExceeded, match="The dataset has not enough epsilon left"):
        ann.top_k("mine", item="place", k=1, epsilon=19.0)
    with pytest.raises(InvalidParameter, match="This column cannot be asked"):
        ann.top_k("mine", item="user", k=1, epsilon=0.1)
    with pytest.raises(ServiceError, match="there is no dataset 'visits' for you"):
        ann.top_k("visits", item="place", k=1, epsilon=0.1)
    with pytest.raises(ServiceError, match="Log in, or send an API key"):
        topsecret.connect(ann.url, "tsk_no_key").datasets()
    with pytest.raises(ServiceError, match="does not answer"):
        topsecret.connect("http://127.0.0.1:1", "tsk_no_key").datasets()
    for where in ([("colour", "like", "r%")], [("colour", "in", "red")], [("colour", "=", ["a"])]):
        with pytest.raises(InvalidParameter):
            ann.plan("mine", item="place", epsilon=0.1, where=where)  # type: ignore[arg-type]


def test_a_key_is_sent_to_its_service_alone_and_not_shown(ann: Service) -> None:
    assert ann.key not in repr(ann)
    for url in ("http://example.org", "ftp://example.org", "example.org"):
        with pytest.raises(InvalidParameter):
            topsecret.connect(url, "tsk_no_key")
    with pytest.raises(InvalidParameter, match=r"no dataset .*; datasets.* lists yours"):
        ann.budget("../owner")
    with pytest.raises(InvalidParameter, match="needs an API key"):
        topsecret.connect("https://example.org", "")


def test_what_cannot_be_an_address_or_a_key_is_said_to_be_none() -> None:
    service = topsecret.connect("https://example.org", "tsk_1_secret\n")  # as a file holds it
    assert service.key == "tsk_1_secret"
    for key in ("tsk_1\nsecret", "tsk_1_sécret"):
        with pytest.raises(InvalidParameter, match="one line like tsk_") as refused:
            topsecret.connect("https://example.org", key)
        assert key not in str(refused.value)
    for url in ("https://ann:secret@x.org", "https://[::1", "https://x.org:no", "https://x y"):
        with pytest.raises(InvalidParameter, match="is like https://topsecret") as refused:
            topsecret.connect(url, "tsk_1_secret")
        assert url not in str(refused.value)


@pytest.mark.parametrize("status", [b"200 OK", b"503 Busy"])
@pytest.mark.parametrize("rest", [b"content-length: 9\r\n\r\n{}", b"x" * 70_000])
def test_a_reply_that_breaks_off_is_no_reply(status: bytes, rest: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def reply() -> None:
            with listening.accept()[0] as opened:
                opened.recv(65536)
                opened.sendall(b"HTTP/1.1 " + status + b"\r\n" + rest)

        thread = threading.Thread(target=reply)
        thread.start()
        service = topsecret.connect(f"http://127.0.0.1:{listening.getsockname()[1]}", "tsk_1_s")
        with pytest.raises(ServiceError, match=r"does not answer|status 503"):
            service.datasets()
        thread.join()


def test_a_redirect_does_not_carry_the_key_away(service: Here, ann: Service) -> None:
    # /setup leads to /login here: whoever follows it sends the key along.
    moved = replace(ann, url=ann.url + "/setup?x=")
    with pytest.raises(ServiceError, match="status 303"):
        moved.datasets()


def test_a_proxy_does_not_read_the_key(ann: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    from topsecret.client import service as client

    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")  # where nobody listens
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    client._opener.cache_clear()
    assert "mine" in ann.datasets()  # without a detour
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    client._opener.cache_clear()
    tunnels = [one for one in client._opener("https").handlers if hasattr(one, "https_open")]
    assert len(tunnels) == 2  # TLS goes through a proxy as it is
    client._opener.cache_clear()


def test_a_budget_tells_the_whole_from_what_is_left(service: Here, ann: Service) -> None:
    service.parts.datasets.allow("metered", "ann", {"queries": 4, "picks": 20})
    whole = ann.budget("metered")
    assert whole.left == 1
    ann.top_k("metered", item="place", k=2)
    after = ann.budget("metered")
    assert (after.epsilon, after.delta) == (whole.epsilon, whole.delta)  # the dataset's
    assert after.left == 0.75  # one of four questions
    share = {"limits": {"rho": "1/3", "delta": "1/7"}, "left": {"rho": "1/9"}}
    seen = budget_of({"state": "open", "epsilon": 1.0, "delta": 1e-6, "summary": ""} | share)
    assert seen.left == 0  # zeros are not sent
    seen = budget_of(
        {"state": "open", "epsilon": 1.0, "delta": 1e-6, "summary": ""}
        | share
        | {"left": {"rho": "1/9", "delta": "1/7"}}
    )
    assert seen.left == 0.333


def test_rows_and_sums_are_asked_as_of_the_library(ann: Service) -> None:
    rows = ann.top_k("mine", item="place", k=1, epsilon=0.5, measure="rows", max_per_item=2)
    assert rows.items == ("Harbour",)
    assert "at most 2 rows of each person" in rows.receipt["Clipped"]
    with pytest.raises(InvalidParameter, match="cannot be summed; choose from: none"):
        ann.plan("mine", item="place", epsilon=0.5, measure=topsecret.Sum("colour", 0.01))
    with pytest.raises(InvalidParameter, match="must be 'persons' without bounds"):
        ann.plan("mine", item="place", epsilon=0.5, measure="averages")


def test_groups_are_asked_as_of_the_library(ann: Service) -> None:
    asked = {"item": "place", "k": 1, "epsilon": 0.5, "by": "colour", "groups": ["red", "green"]}
    assert ann.plan("mine", **asked).answer.startswith("You get, for each of 2 groups, ")  # type: ignore[arg-type]
    answers = ann.top_k_by("mine", **asked, request_id="by-colour")  # type: ignore[arg-type]
    assert {group: one.items for group, one in answers.items()} == {
        "red": ("Harbour",),
        "green": (),
    }
    assert (answers.by, answers.composition, len(answers)) == ("colour", "sequential", 2)
    assert answers["red"].epsilon < answers.epsilon <= 0.5
    assert ann.answer(answers.id) == answers
    with pytest.raises(InvalidParameter, match="needs groups="):
        ann.plan("mine", item="place", epsilon=0.5, by="colour")


def test_a_saved_question_is_scheduled(ann: Service) -> None:
    ann.save("weekly", "mine", item="place", k=1, epsilon=0.1)
    start = datetime.now(UTC) + timedelta(days=1)
    made = ann.schedule("weekly", times=2, start=start, request_id="once")
    assert made == ann.schedule("weekly", times=2, start=start, request_id="once")
    assert [run.state for run in made.runs] == ["waiting", "waiting"]
    assert made.runs[1].at - made.runs[0].at == timedelta(days=7)
    assert (made.name, made.dataset, made.every) == ("weekly", "mine", "week")
    assert ann.schedules() == [made]
    ann.end_schedule(made)
    assert [run.state for run in ann.schedules()[0].runs] == ["given up", "given up"]
    ann.end_schedule(made.id)
    assert ann.schedules() == []
    ann.save("weekly", "mine", item="place", k=1, epsilon=0.7)
    with pytest.raises(ServiceError, match=r"paid in advance, need more .* It fits \d+ times"):
        ann.schedule("weekly", times=100, every="day", start=start)
