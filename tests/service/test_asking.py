"""Asking over the API: free plans, one answer for each request id, budgets that hold."""

import json
import re
from fractions import Fraction

from serving import Here

QUESTION = {"column": "place", "k": 3, "epsilon": 1.0}
ASK, PLAN = "/api/datasets/events/ask", "/api/datasets/events/plan"


def test_an_answer_has_items_and_a_receipt(service: Here) -> None:
    job = service.answered("ann", ASK, QUESTION)
    assert job["state"] == "answered"
    assert job["answer"]["items"] == ["Harbour", "Market", "Library"]
    assert "Guarantee" in job["answer"]["receipt"]
    assert "source" not in job["answer"]


def test_a_plan_is_free_and_in_words(service: Here) -> None:
    before = service.call("ann", "GET", "/api/datasets/events/budget").json()
    plan = service.call("ann", "POST", PLAN, QUESTION).json()
    assert plan["fits"]
    assert plan["lead"] > 0
    assert "named with 95% probability" in plan["buys"]
    assert service.call("ann", "GET", "/api/datasets/events/budget").json() == before


def test_an_analyst_reads_no_formulas_unless_they_are_unfolded(service: Here) -> None:
    """Neither what is asked, nor its price, nor its receipt is told in rho or slack."""
    job = service.answered("ann", ASK, QUESTION)
    pages = [
        json.dumps(service.call("ann", "POST", PLAN, QUESTION).json()),
        *(
            service.call("ann", "GET", path).text
            for path in ("/", "/datasets/events", f"/answers/{job['id']}", "/answers")
        ),
    ]
    for page in pages:
        open_to_all = re.sub("<details>.*?</details>", "", page, flags=re.DOTALL)
        assert not re.search(r"\b(rho|slack)\b", open_to_all, re.IGNORECASE)


def test_the_same_request_finds_the_same_answer(service: Here) -> None:
    body = QUESTION | {"request_id": "once", "epsilon": 0.9}
    first = service.answered("ann", ASK, body)
    again = service.call("ann", "POST", ASK, body)
    assert again.status_code == 200
    assert again.json() == first


def test_a_request_id_is_for_one_question(service: Here) -> None:
    service.answered("ann", ASK, QUESTION | {"request_id": "taken"})
    other = service.call("ann", "POST", ASK, QUESTION | {"request_id": "taken", "k": 2})
    assert other.status_code == 409
    assert other.json()["error"] == "request_id_used"


def test_the_same_question_again_costs_nothing(fresh: Here) -> None:
    first = fresh.answered("ann", ASK, QUESTION)
    spent = fresh.parts.ledger.account("events").spent
    again = fresh.answered("bob", ASK, QUESTION)
    assert again["answer"]["items"] == first["answer"]["items"]
    assert again["answer"]["receipt"]["Budget"].startswith("nothing")
    assert fresh.parts.ledger.account("events").spent == spent


def test_a_budget_that_is_used_up_refuses(fresh: Here) -> None:
    fresh.parts.datasets.allow("events", "ann", {"epsilon": 0.5})
    assert not fresh.call("ann", "POST", PLAN, QUESTION | {"epsilon": 3.0}).json()["fits"]
    job = fresh.answered("ann", ASK, QUESTION | {"epsilon": 3.0})
    assert (job["state"], job["error"], job["answer"]) == ("refused", "budget_exceeded", None)
    account = fresh.parts.ledger.account("events")
    assert all(value == 0 for value in account.spent.values())


def test_a_fixed_price_is_paid_by_the_item(fresh: Here) -> None:
    path = "/api/datasets/metered/ask"
    job = fresh.answered("bob", path, {"column": "place", "k": 2})
    assert job["state"] == "answered"
    assert fresh.parts.ledger.account("metered").spent == {
        "picks": Fraction(2),
        "queries": Fraction(1),
    }
    assert fresh.call("bob", "POST", path, {"column": "place", "epsilon": 1}).status_code == 400


def test_a_cap_is_part_of_the_data_set(fresh: Here) -> None:
    body = {"name": "capped", "title": "Capped", "file": "events.csv", "person": "user"}
    body |= {"columns": ["place"], "epsilon": 4, "delta": 1e-5, "cap": 2}
    assert fresh.call("olga", "POST", "/api/datasets", body).status_code == 201
    share = {"analyst": "ann", "epsilon": 4}
    assert fresh.call("olga", "POST", "/api/datasets/capped/allowances", share).status_code == 200
    job = fresh.answered("ann", "/api/datasets/capped/ask", QUESTION | {"epsilon": 0.5})
    assert job["answer"]["max_items"] == 2


def test_an_analyst_names_no_file_no_table_and_no_other_column(service: Here) -> None:
    for column in ("user", "place; DROP TABLE x", "../events.csv", "count(*)"):
        answer = service.call("ann", "POST", ASK, QUESTION | {"column": column})
        assert answer.status_code == 400
        assert answer.json()["message"].startswith("This column cannot be asked")
    for field in ("file", "source", "sql", "table", "url"):
        answer = service.call("ann", "POST", ASK, QUESTION | {field: "x"})
        assert answer.status_code == 422


def test_a_data_set_without_an_allowance_does_not_exist(service: Here) -> None:
    for name in ("metered", "nothing"):
        for path in (f"/api/datasets/{name}/budget",):
            answer = service.call("ann", "GET", path)
            assert answer.status_code == 404
            assert answer.json()["message"] == f"there is no dataset {name!r} for you"
    names = [one["name"] for one in service.call("ann", "GET", "/api/datasets").json()]
    assert names == ["events"]


def test_another_analysts_answer_is_refused(service: Here) -> None:
    mine = service.answered("ann", ASK, QUESTION)["id"]
    assert service.call("ann", "GET", f"/api/answers/{mine}").status_code == 200
    for path in (f"/api/answers/{mine}", f"/api/answers/{mine}/csv", f"/answers/{mine}"):
        assert service.call("bob", "GET", path).status_code == 404
    assert service.call("olga", "GET", f"/api/answers/{mine}").status_code == 200


def test_csv_is_safe_in_a_spreadsheet(service: Here) -> None:
    from dataclasses import replace

    mine = service.answered("ann", ASK, QUESTION)["id"]
    text = service.call("ann", "GET", f"/api/answers/{mine}/csv").text
    assert text.splitlines()[:2] == ["rank,place", "1,Harbour"]
    release = service.parts.jobs.find(mine).release
    assert release is not None
    assert "'=1+1" in replace(release, items=("=1+1",)).to_csv()
    assert replace(release, item="=1+1").to_csv().startswith("rank,'=1+1\r\n")  # a column's name


def test_an_allowance_of_nothing_buys_nothing(fresh: Here) -> None:
    fresh.parts.datasets.allow("metered", "ann", {"queries": 0, "picks": 0})
    body = {"column": "place", "k": 2}
    plan = fresh.call("ann", "POST", "/api/datasets/metered/plan", body).json()
    assert (plan["fits"], plan["again"], plan["left"]) == (False, 0, 0.0)
    job = fresh.answered("ann", "/api/datasets/metered/ask", body)
    assert (job["state"], job["error"]) == ("refused", "budget_exceeded")
    summary = fresh.call("ann", "GET", "/api/datasets/metered/budget").json()["summary"]
    assert summary == "0 of 0 items left, 0 of 0 queries left"


def test_the_preview_of_a_closed_budget_says_that_it_is_closed(fresh: Here) -> None:
    for name, question in (
        ("events", {"column": "place", "k": 2, "epsilon": 0.5}),
        ("metered", {"column": "place", "k": 2}),
    ):
        path = f"/api/v1/datasets/{name}"
        before = fresh.call("bob", "POST", f"{path}/plan", question).json()
        assert before["fits"]
        assert fresh.call("olga", "POST", f"{path}/close").status_code == 200
        plan = fresh.call("bob", "POST", f"{path}/plan", question).json()
        assert (plan["fits"], plan["again"], plan["left"]) == (False, 0, before["left"])
        assert plan["takes"] == (
            "The budget of this dataset is closed: nothing more is paid from it, and nobody can "
            "open it again. Ask its owner for another dataset."
        )
        assert plan["takes"] in fresh.call("bob", "GET", f"/datasets/{name}").text
    state = {"state": "paused"}
    assert fresh.call("olga", "POST", "/api/v1/datasets/visits/state", state).status_code == 200
    page = fresh.call("bob", "GET", "/datasets/visits").text
    assert "The owner has paused this dataset." in page
    assert "budget of this dataset is closed" not in page
