"""Shares of a budget: a share of ε bounds everything else, and a refusal says who can help."""

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from serving import Here
from sqlalchemy import text

from topsecret.errors import BudgetExceeded
from topsecret.ledger import Flexible
from topsecret.ledger.holds import Holds
from topsecret.ledger.question_delta import delta_rate, question_delta
from topsecret.ledger.store import Store
from topsecret.questions.question import Keywords, Question
from topsecret.service import schema
from topsecret.service.datasets import Dataset
from topsecret.service.grouped_by import GroupedBy
from topsecret.service.jobs.job import Asked
from topsecret.service.preview import worst_case
from topsecret.service.ranked_by import RankedBy

ASK, PLAN = "/api/v1/datasets/events/ask", "/api/v1/datasets/events/plan"


def test_a_small_share_holds_a_small_part_of_every_resource(service: Here) -> None:
    service.parts.datasets.allow("events", "ann", {"epsilon": 0.05})
    budget = service.parts.ledger.account("events").budget
    share = service.parts.datasets.allowance("events", "ann")
    assert share is not None
    part = share.limits["rho"] / budget.limits["rho"]
    assert part < 1 / 100
    assert {name: value / budget.limits[name] for name, value in share.limits.items()} == {
        "rho": part,
        "delta": part,
        "slack": part,
    }
    service.parts.datasets.allow("events", "ann", {"epsilon": 4.0})
    whole = service.parts.datasets.allowance("events", "ann")
    assert whole is not None
    assert whole.limits == budget.limits


def groups(number: int, disjoint: bool = False) -> GroupedBy:
    return GroupedBy("g", tuple("abcdefghijklmnopqrst"[:number]), disjoint)


KINDS = {
    "one": Asked("x", 1, 1.0),
    "three": Asked("x", 3, 1.0),
    "ten": Asked("x", 10, 1.0),
    "auto": Asked("x", "auto", 1.0),
    "counts": Asked("x", 3, 1.0, counts=True),
    "rows": Asked("x", 5, 1.0, ranked_by=RankedBy(None, "1", ("3",))),
    "all": Asked("x", "all", 1.0),
    "at least": Asked("x", 3, 1.0, at_least=50),
    "two groups": Asked("x", 3, 1.0, grouped_by=groups(2)),
    "five groups": Asked("x", 1, 1.0, grouped_by=groups(5)),
    "twenty groups": Asked("x", 1, 1.0, grouped_by=groups(20)),
    "twenty lists": Asked("x", 10, 1.0, grouped_by=groups(20)),
    "disjoint": Asked("x", 3, 1.0, grouped_by=groups(20, True)),
    "all in groups": Asked("x", "all", 1.0, grouped_by=groups(20)),
}
BUDGETS = {(4, 1e-5): (0.001, 1.0), (1, 1e-12): (0.001, 0.5), (20, 1e-9): (0.05, 10.0)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("terms", BUDGETS)
@pytest.mark.parametrize("cap", [None, 5])
def test_delta_never_ends_before_rho(kind: str, terms: tuple[float, float], cap: int) -> None:
    budget = Flexible.of(epsilon=terms[0], delta=terms[1])
    known = Dataset("d", "d", "f", "p", ("x",), cap, 1e-7, None, delta_rate(budget), {"g": "text"})
    for epsilon in BUDGETS[terms]:
        worst = worst_case(known, budget, replace(KINDS[kind], epsilon=epsilon))
        parts = {name: value / budget.limits[name] for name, value in worst.items()}
        assert max(parts.values()) == parts["rho"], {n: float(v) for n, v in parts.items()}


def test_a_plain_question_keeps_its_delta_and_others_their_names() -> None:
    """The answers that were paid for when all kinds had one delta are found by it."""
    rate = delta_rate(Flexible.of(epsilon=4, delta=1e-5))
    assert question_delta(rate, 1.0) == 4.44e-7
    asked: Keywords = {"item": "x", "person": "p", "k": "all", "epsilon": 1.0}
    before = Question.of(**asked, delta=4.44e-7)
    for lists, thresholded in ((1, True), (20, False), (20, True)):
        now = Question.of(**asked, delta=question_delta(rate, 1.0, lists, thresholded))
        assert now.numbers.delta < before.numbers.delta
        assert now.fingerprint() == before.fingerprint()
    assert Question.of(**asked, delta=4.44e-8).fingerprint() != before.fingerprint()


def test_fifty_questions_for_next_to_nothing_leave_the_data_set_to_others(service: Here) -> None:
    body = {"column": "place", "k": 1, "epsilon": 0.001}
    service.parts.datasets.allow("events", "ann", {"epsilon": 0.05})
    plan = service.call("ann", "POST", PLAN, body).json()
    assert plan["again"] > 50
    assert plan["cost"] < 1 / 50
    before = service.call("bob", "POST", PLAN, body | {"epsilon": 1.0}).json()["again"]
    assert service.answered("ann", ASK, body)["state"] == "answered"
    account = service.parts.ledger.account("events")
    assert all(value < account.budget.limits[key] / 10**4 for key, value in account.spent.items())
    after = service.call("bob", "POST", PLAN, body | {"epsilon": 1.0}).json()["again"]
    assert before == after > 0


def test_of_a_share_below_what_was_spent_nothing_is_left(service: Here) -> None:
    service.parts.datasets.allow("events", "ann", {"epsilon": 4.0})
    body = {"column": "place", "k": 1, "epsilon": 0.5}
    assert service.answered("ann", ASK, body)["state"] == "answered"
    service.parts.datasets.allow("events", "ann", {"epsilon": 0.01})
    plan = service.call("ann", "POST", PLAN, body | {"k": 2}).json()
    assert (plan["left"], plan["again"], plan["fits"]) == (0.0, 0, False)
    assert service.call("ann", "GET", "/api/v1/datasets/events/budget").json()["left"] == {}
    # At a fixed price, with questions left and no items.
    service.parts.datasets.allow("metered", "ann", {"queries": 3, "picks": 5})
    metered, body = "/api/v1/datasets/metered", {"column": "place", "k": 4}
    assert service.answered("ann", f"{metered}/ask", body)["state"] == "answered"
    service.parts.datasets.allow("metered", "ann", {"queries": 3, "picks": 2})
    budget = service.call("ann", "GET", f"{metered}/budget").json()
    assert (budget["left"], budget["summary"]) == (
        {"queries": "2"},
        "0 of 2 items left, 2 of 3 queries left",
    )
    assert "-2" not in service.answered("ann", f"{metered}/ask", body | {"k": 1})["message"]
    assert "-2 of" not in service.call("olga", "GET", "/owner/datasets/metered").text
    with pytest.raises(BudgetExceeded, match="has 0 items left for it"):
        Holds(service.parts.ledger).hold("metered", "ann", {"picks": Fraction(1)}, 1)


def test_a_refusal_says_what_ran_out_and_who_can_help(fresh: Here) -> None:
    fresh.parts.datasets.allow("events", "ann", {"epsilon": 0.5})
    mine = fresh.answered("ann", ASK, {"column": "place", "k": 2, "epsilon": 0.9})["message"]
    assert mine.startswith("Your share of the dataset has not enough epsilon left")
    fits = re.search(r"An epsilon of (0\.\d+) would fit\. ", mine)
    assert fits
    fitting = {"column": "place", "k": 2, "epsilon": float(fits[1])}
    assert fresh.answered("ann", ASK, fitting)["state"] == "answered"
    assert mine.endswith("The owner can give you a larger share.")
    all_of_it = fresh.answered("bob", ASK, {"column": "place", "k": 1, "epsilon": 4.0})["message"]
    assert all_of_it.startswith("The dataset has not enough epsilon left for this question, who")
    assert all_of_it.endswith("cannot be raised; stored answers stay free.")
    body = {"column": "place", "k": 50}
    items = fresh.answered("bob", "/api/v1/datasets/metered/ask", body)["message"]
    assert items.startswith("The dataset has not enough items left for this question")
    assert "At most 20 items fit." in items


def test_an_answer_of_the_earlier_rule_is_found(
    service: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"column": "place", "k": "all", "epsilon": 0.3}
    with monkeypatch.context() as earlier:
        plain = lambda self, asked: float(question_delta(self.delta_rate, asked.epsilon))  # noqa: E731
        earlier.setattr(Dataset, "delta_of", plain)
        first = service.answered("bob", ASK, body | {"request_id": "earlier"})
    spent = service.parts.ledger.account("events").spent
    again = service.answered("bob", ASK, body | {"request_id": "later"})
    assert again["answer"]["items"] == first["answer"]["items"]
    assert service.parts.ledger.account("events").spent == spent


def test_a_data_set_of_an_earlier_service_keeps_its_questions(service: Here) -> None:
    """Its answers were stored under one delta for all questions, and are found under it."""
    settings = service.parts.settings
    store = Store(settings.place)
    with store.writing() as connection:
        connection.execute(text("UPDATE service_datasets SET delta_rate = NULL"))
    old = service.parts.datasets.get("events")
    small, large = Asked("place", 1, 0.001), Asked("place", "all", 1.0)
    assert old.delta_of(small) == old.delta_of(large) == old.delta == 1e-7
    service.parts.datasets.allow("events", "ann", {"epsilon": 0.05})
    share = service.parts.datasets.allowance("events", "ann")
    assert share is not None
    assert float(share.limits["delta"]) == 1e-7
    with store.writing() as connection:
        connection.execute(text("ALTER TABLE service_datasets DROP COLUMN delta_rate"))
    schema.create(store)
    assert service.parts.datasets.get("events").delta_rate is None
    store.close()
