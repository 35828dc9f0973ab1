"""Shares of a budget: a share of ε bounds everything else, and a refusal says who can help."""

import re

import pytest
from serving import Here
from sqlalchemy import text

from topsecret.ledger import Flexible, Price
from topsecret.ledger.question_delta import delta_rate, question_delta
from topsecret.ledger.store import Store
from topsecret.planning.summary import outlook
from topsecret.service import schema
from topsecret.service.preview import Length

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


@pytest.mark.parametrize("k", [1, 3, 10, "auto"])
@pytest.mark.parametrize("epsilon", [0.001, 1.0])
def test_delta_never_ends_before_rho(k: Length, epsilon: float) -> None:
    budget = Flexible.of(epsilon=4, delta=1e-5)
    seen = outlook(k, epsilon, question_delta(delta_rate(budget), epsilon))
    worst, limits = budget.worst(Price(seen.loss)), budget.limits
    by_rho = limits["rho"] / worst["rho"]
    assert all(limits[name] / value >= by_rho for name, value in worst.items() if value)


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


def test_a_refusal_says_what_ran_out_and_who_can_help(service: Here) -> None:
    service.parts.datasets.allow("events", "ann", {"epsilon": 0.5})
    mine = service.answered("ann", ASK, {"column": "place", "k": 2, "epsilon": 0.9})["message"]
    assert mine.startswith("Your share of the dataset has not enough epsilon left")
    fits = re.search(r"An epsilon of (0\.\d+) would fit\. ", mine)
    assert fits
    fitting = {"column": "place", "k": 2, "epsilon": float(fits[1])}
    assert service.answered("ann", ASK, fitting)["state"] == "answered"
    assert mine.endswith("The owner can give you a larger share.")
    all_of_it = service.answered("bob", ASK, {"column": "place", "k": 1, "epsilon": 4.0})["message"]
    assert all_of_it.startswith("The dataset has not enough epsilon left for this question, who")
    assert all_of_it.endswith("cannot be raised; stored answers stay free.")
    body = {"column": "place", "k": 50}
    items = service.answered("bob", "/api/v1/datasets/metered/ask", body)["message"]
    assert items.startswith("The dataset has not enough items left for this question")
    assert "At most 20 items fit." in items


def test_a_data_set_of_an_earlier_service_keeps_its_questions(service: Here) -> None:
    """Its answers were stored under one delta for all questions, and are found under it."""
    settings = service.parts.settings
    store = Store(settings.place)
    with store.writing() as connection:
        connection.execute(text("UPDATE service_datasets SET delta_rate = NULL"))
    old = service.parts.datasets.get("events")
    assert old.delta_of(0.001) == old.delta_of(1.0) == old.delta == 1e-7
    service.parts.datasets.allow("events", "ann", {"epsilon": 0.05})
    share = service.parts.datasets.allowance("events", "ann")
    assert share is not None
    assert float(share.limits["delta"]) == 1e-7
    with store.writing() as connection:
        connection.execute(text("ALTER TABLE service_datasets DROP COLUMN delta_rate"))
    schema.create(store)
    assert service.parts.datasets.get("events").delta_rate is None
    store.close()
