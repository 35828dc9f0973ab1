"""Questions as the library asks them: filters by kind, counts with intervals, all that is safe."""

import json
import re

import pytest
from serving import Here, write_events

from topsecret.ledger import Flexible, Price
from topsecret.planning.summary import outlook
from topsecret.questions.top_k import top_k
from topsecret.service.filters import conditions, typed
from topsecret.service.jobs.job import Asked
from topsecret.service.problems import Problem

ASK, PLAN = "/api/v1/datasets/chosen/ask", "/api/v1/datasets/chosen/plan"
QUESTION = {"column": "place", "k": 2, "epsilon": 0.5}


@pytest.fixture(scope="module")
def chosen(service: Here) -> Here:
    """A data set whose rows may be chosen by their colour."""
    counts = {"Harbour": 900, "Market": 700, "Library": 500}
    write_events(service.parts.settings.files[0] / "chosen.csv", counts)
    body = {"name": "chosen", "title": "Chosen", "file": "chosen.csv", "person": "user"}
    body |= {"columns": ["place"], "filters": {"colour": "text"}, "epsilon": 8}  # type: ignore[dict-item]
    assert service.call("olga", "POST", "/api/datasets", body).status_code == 201
    service.parts.datasets.allow("chosen", "ann", {"epsilon": 8.0})
    return service


def test_a_filter_counts_some_rows_alone(chosen: Here) -> None:
    asked = QUESTION | {"where": [{"column": "colour", "verb": "one of", "value": "red, green"}]}
    assert chosen.call("ann", "POST", PLAN, asked).json()["fits"]
    job = chosen.answered("ann", ASK, asked)
    assert job["answer"]["items"] == ["Harbour", "Market"]
    assert "red" in job["answer"]["where"]
    assert job["where"] == [{"column": "colour", "verb": "one of", "value": "red, green"}]
    nobody = QUESTION | {"where": [{"column": "colour", "verb": "is", "value": "no such"}]}
    assert chosen.answered("ann", ASK, nobody)["answer"]["items"] == []


def test_rows_are_chosen_by_allowed_columns_alone(chosen: Here) -> None:
    for where in (
        [{"column": "user", "verb": "is", "value": "u1"}],
        [{"column": "place", "verb": "is", "value": "Harbour"}],
        [{"column": "colour", "verb": "at least", "value": "red"}],
        [{"column": "colour; DROP", "verb": "is", "value": "x"}],
    ):
        refused = chosen.call("ann", "POST", ASK, QUESTION | {"where": where})
        assert refused.status_code == 400
        assert refused.json()["error"] == "invalid"
    six = [{"column": "colour", "value": "red"}] * 6
    assert chosen.call("ann", "POST", ASK, QUESTION | {"where": six}).status_code == 422
    body = {"name": "p", "title": "P", "file": "chosen.csv", "person": "user", "epsilon": 1}
    body |= {"columns": ["place"], "filters": {"user": "text"}}
    assert chosen.call("olga", "POST", "/api/datasets", body).status_code == 400


def test_kinds_have_their_verbs_and_values() -> None:
    assert typed("number", "at most", "1.5") == ("<=", 1.5)
    found = conditions([("day", "is", "2026-01-31")], {"day": "date"})
    assert str(found[0][2]) == "2026-01-31"
    for kind, verb, value in (
        ("number", "is", "nan"),
        ("number", "is", "1e999"),
        ("number", "one of", "1"),
        ("date", "at least", "31.1.2026"),
        ("text", "is", "  "),
    ):
        with pytest.raises(Problem):
            typed(kind, verb, value)


def test_counts_come_with_their_intervals_and_the_page_shows_them(chosen: Here) -> None:
    plan = chosen.call("ann", "POST", PLAN, QUESTION | {"counts": True}).json()
    assert plan["fits"]
    assert "noisy count" in plan["answer"]
    job = chosen.answered("ann", ASK, QUESTION | {"counts": True})
    answer = job["answer"]
    assert len(answer["counts"]) == len(answer["items"]) == 2
    page = chosen.call("ann", "GET", f"/answers/{job['id']}").text
    assert f"± {answer['half_width']:,} people" in page
    assert page.count('class="bar"') == page.count('class="error"') == 2
    # Without counts there is nothing to draw: a plain list.
    plain = chosen.answered("ann", ASK, QUESTION)
    page = chosen.call("ann", "GET", f"/answers/{plain['id']}").text
    assert 'class="bar"' not in page
    assert "Harbour" in page
    folded = page.index("Numbers for experts")
    assert "rho" not in page[:folded].lower()
    assert re.search(r"rho 0\.\d+", page[folded:], re.IGNORECASE)


def test_the_preview_of_counts_costs_what_the_question_costs(chosen: Here) -> None:
    budget = Flexible.of(epsilon=8, delta=1e-6)
    dataset = chosen.parts.datasets.get("chosen")
    job = chosen.answered("ann", ASK, QUESTION | {"counts": True, "epsilon": 0.4})
    seen = outlook(2, 0.4, dataset.delta_of(0.4), counts=True)
    cost = job["answer"]["charge"]["cost"]
    assert {k: str(v) for k, v in budget.worst(Price(seen.loss)).items() if v} == cost


def test_all_that_is_safe_is_named_with_lower_bounds(chosen: Here) -> None:
    plan = chosen.call("ann", "POST", PLAN, QUESTION | {"k": "all"}).json()
    assert plan["buys"].startswith("An item that ")
    assert " people have is named with 95% probability" in plan["buys"]
    job = chosen.answered("ann", ASK, QUESTION | {"k": "all"})
    assert set(job["answer"]["items"]) == {"Harbour", "Market", "Library"}
    page = chosen.call("ann", "GET", f"/answers/{job['id']}").text
    assert f"at least {job['answer']['at_least'][0]:,} people" in page
    refused = chosen.call("ann", "POST", ASK, QUESTION | {"k": "all", "counts": True})
    assert refused.status_code == 400
    fixed = chosen.call("bob", "POST", "/api/datasets/metered/ask", {"column": "place", "k": "all"})
    assert fixed.status_code == 400


def test_only_what_surely_has_so_many_persons(chosen: Here) -> None:
    bounds = chosen.answered("ann", ASK, QUESTION | {"k": "all"})["answer"]["at_least"]
    asked = QUESTION | {"k": "all", "at_least": 2}
    assert chosen.call("ann", "POST", PLAN, asked).json()["mechanism"] == "weighted"
    job = chosen.answered("ann", ASK, asked)
    assert job["at_least"] == 2
    assert min(job["answer"]["at_least"]) >= 2
    none = chosen.answered("ann", ASK, asked | {"at_least": 10 * max(bounds)})
    assert none["answer"]["items"] == []
    for wrong in ({"counts": True}, {"k": "auto"}, {"at_least": 0}):
        assert chosen.call("ann", "POST", ASK, asked | wrong).status_code in (400, 422)


def test_what_version_0_1_asked_is_stored_as_it_was() -> None:
    assert json.loads(Asked("place", 3, 1.0).to_text()) == ["place", 3, 1.0]


def test_an_answer_is_that_of_the_library(chosen: Here) -> None:
    """The same question asked by the library finds the service's answer."""
    where = [{"column": "colour", "verb": "is", "value": "red"}]
    asked = QUESTION | {"where": where, "counts": True, "epsilon": 0.45}
    job = chosen.answered("ann", ASK, asked)
    dataset = chosen.parts.datasets.get("chosen")
    again = top_k(
        dataset.source,
        item="place",
        person="user",
        k=2,
        epsilon=0.45,
        delta=dataset.delta_of(0.45),
        where=[("colour", "=", "red")],
        counts=True,
        ledger=chosen.parts.ledger,
        dataset="chosen",
        analyst="ann",
    )
    assert again.charge is not None
    assert again.charge.stored
    assert list(again.counts or ()) == job["answer"]["counts"]
