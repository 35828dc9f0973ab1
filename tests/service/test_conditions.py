"""Conditions reach the ledger as they were asked, or are refused: none is cut or changed."""

import time
from typing import Any

import httpx
import pytest
from serving import Here
from starlette.datastructures import FormData

from topsecret.service.web.analyst_pages import _filters

COLUMNS = ("a", "b", "c", "d", "e", "f")
QUESTION = {"column": "place", "k": 1, "epsilon": 0.5}
PLAN, ASK = "/api/v1/datasets/six/plan", "/api/v1/datasets/six/ask"
ANSWERS = "/api/v1/answers?dataset=six"
LONG = "1" * 201
FORM = {"k": "1", "length": "k", "step": "6", "column": "place"}


@pytest.fixture(scope="module")
def six(service: Here) -> Here:
    """A dataset whose rows may be chosen by six columns; no row has f = 1."""
    rows = [f"u{person},p,1,1,1,1,1,0" for person in range(1000)]
    text = "\n".join([f"user,place,{','.join(COLUMNS)}", *rows]) + "\n"
    (service.parts.settings.files[0] / "six.csv").write_text(text, encoding="utf-8")
    body: dict[str, Any] = {"name": "six", "title": "Six", "file": "six.csv", "person": "user"}
    body |= {"columns": ["place"], "filters": dict.fromkeys(COLUMNS, "text"), "epsilon": 8}
    assert service.call("olga", "POST", "/api/datasets", body).status_code == 201
    service.parts.datasets.allow("six", "ann", {"epsilon": 8.0})
    return service


def test_two_conditions_of_a_column_make_a_range_in_a_text_file_too(service: Here) -> None:
    rows = [f"u{n},p{n % 5},{n % 5},2026-01-0{1 + n % 5}" for n in range(2000)]
    text = "\n".join(["user,place,size,day", *rows, "x,p3,none,none"]) + "\n"
    (service.parts.settings.files[0] / "ranges.csv").write_text(text, encoding="utf-8")
    body: dict[str, Any] = {"name": "ranges", "title": "R", "file": "ranges.csv", "person": "user"}
    body |= {"columns": ["place"], "filters": {"size": "number", "day": "date"}, "epsilon": 8}
    assert service.call("olga", "POST", "/api/datasets", body).status_code == 201
    service.parts.datasets.allow("ranges", "ann", {"epsilon": 8.0})
    headers = {"authorization": f"Bearer {service.keys['ann']}", "accept": "text/html"}
    page = service.client.get("/datasets/ranges", headers=headers).text
    for column, least, most in (("size", "1", "2"), ("day", "2026-01-02", "2026-01-03")):
        assert page.count(f'name="value:{column}"') == 2
        verbs, values = ["at least", "at most"], [least, most]
        form: dict[str, Any] = FORM | {"k": "5", "request_id": column, "step": "8"}
        form |= {f"verb:{column}": verbs, f"value:{column}": values}
        asked = service.client.post("/datasets/ranges", data=form, headers=headers)
        job = service.ended("ann", asked.headers["location"].rsplit("/", 1)[1])
        shown = [
            {"column": column, "verb": v, "value": x} for v, x in zip(verbs, values, strict=True)
        ]
        assert job["where"] == shown
        assert set(job["answer"]["items"]) == {"p1", "p2"}


def sent(service: Here, name: str, values: dict[str, str], **more: str) -> httpx.Response:
    """The page's form with these conditions."""
    form = FORM | {"request_id": name} | more
    for column, value in values.items():
        form |= {f"verb:{column}": "is", f"value:{column}": value}
    headers = {"authorization": f"Bearer {service.keys['ann']}", "accept": "text/html"}
    return service.client.post("/datasets/six", data=form, headers=headers, follow_redirects=False)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (dict.fromkeys(COLUMNS, "1"), "A question has at most 5 conditions"),
        ({"a": "1" * 501}, "The value of a condition has at most 500 characters"),
    ],
    ids=["too many", "too long"],
)
def test_no_condition_is_cut_off_a_question(six: Here, values: dict[str, str], words: str) -> None:
    refused = sent(six, f"cut-{len(values)}", values)
    assert refused.status_code == 422
    assert words in refused.text
    where = [{"column": column, "verb": "is", "value": value} for column, value in values.items()]
    for path in (PLAN, ASK):
        refused = six.call("ann", "POST", path, QUESTION | {"where": where})
        assert (refused.status_code, refused.json()["error"]) == (422, "invalid_request")
        assert words in refused.json()["message"]
    assert six.call("ann", "GET", ANSWERS).json() == []


def test_five_conditions_of_the_page_are_asked(six: Here) -> None:
    # Blanks around what a hand writes are nothing; a program's are a part of the text.
    asked = sent(six, "five", dict.fromkeys(COLUMNS[:5], " 1 ") | {"f": " "})
    assert asked.status_code == 303
    job = six.ended("ann", asked.headers["location"].rsplit("/", 1)[1])
    assert [(one["column"], one["value"]) for one in job["where"]] == [
        (column, "1") for column in COLUMNS[:5]
    ]
    assert job["answer"]["items"] == ["p"]
    where = [{"column": "a", "verb": "is", "value": " 1"}]
    assert six.answered("ann", ASK, QUESTION | {"where": where})["answer"]["items"] == []


def test_a_form_of_very_many_fields_holds_nobody_up() -> None:
    # Forms are read by the thread that serves all requests.
    form = FormData([(f"value:{number}", " ") for number in range(10_000)])
    begun = time.thread_time()
    assert _filters(form) == ()
    assert time.thread_time() - begun < 1


@pytest.mark.parametrize(
    ("name", "form", "told"),
    [
        ("measure", {"by": "rows", "bound": "1e1"}, {"of": "rows", "max_per_item": ["1e1"]}),
        ("groups", {"group_by": "a", "groups": LONG}, {"by": "a", "values": [LONG]}),
    ],
    ids=["a bound", "a long group"],
)
def test_what_the_page_takes_and_http_does_not_is_listed(
    six: Here, name: str, form: dict[str, str], told: dict[str, Any]
) -> None:
    """One such question made every list that it was in an error, the owner's too, for good."""
    answer = sent(six, f"listed-{name}", {}, **form).headers["location"].rpartition("/")[2]
    saved = six.call("ann", "PUT", f"/api/v1/saved/{name}", {"answer": answer})
    assert saved.status_code == 200
    for who, path in (("olga", ANSWERS), ("ann", ANSWERS), ("ann", "/api/v1/saved")):
        listed = six.call(who, "GET", path)
        assert listed.status_code == 200
        (found,) = [
            one for one in listed.json() if answer == one.get("id") or one.get("name") == name
        ]
        assert found[name].items() >= told.items()
