"""Plans by rows and sums: leads in multiples of the bound, and a bound proposed from an example."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from command import run
from topsecret import Sum, Zipf, plan
from topsecret.calibration import Question, prepare
from topsecret.calibration.question import Scores
from topsecret.errors import InvalidParameter
from topsecret.planning.chances import of
from topsecret.planning.leads import LIKELY, needed
from topsecret.planning.proposed_bound import RowsOfShape
from topsecret.planning.rule import smallest_epsilon

ROWS: dict[str, Any] = {"measure": "rows", "max_per_item": 3}


@pytest.mark.parametrize("domain_size", [None, 500])
def test_leads_and_noise_are_in_multiples_of_the_bound(domain_size: int | None) -> None:
    asked: dict[str, Any] = {"k": 2, "epsilon": 1.0, "domain_size": domain_size}
    rows, coins = plan(**asked, **ROWS), plan(**asked, measure=Sum("price", 0.1), max_per_item=7.5)
    for option in rows.options:
        persons = Question.of(**asked)
        one = needed(option.name, persons).one or 0
        assert option.needed_lead == 3 * one
        assert option.scale == pytest.approx(3 * prepare(option.name, persons).scale, rel=1e-9)
        assert coins[option.name].needed_lead == -(-75 * one // 10)
        assert option.epsilon <= 1
    assert "by rows, at most 3 of one person for one item" in rows.title
    assert "by sum of price, at most 7.5 of one person" in coins.title
    assert "persons" not in " ".join((rows.title, *rows.sentences))


@pytest.mark.parametrize("bounds", [(), (1, 2, 5), (60, 200)])
@pytest.mark.parametrize("name", ["limited-domain", "gumbel"])
def test_a_lead_is_the_smallest_that_is_likely(name: str, bounds: tuple[int, ...]) -> None:
    """By the mechanism that is drawn, at the bound that is drawn, in its own units."""
    unit = bounds[-1] if bounds else 7
    question = Question.of(k=2, epsilon=1.0, domain_size=50 if name == "gumbel" else None)
    question = question.ranked_by(Scores(unit, 1, "rows", bounds))
    lead = needed(name, question).one
    mechanism: Any = prepare(name, question).mechanism
    mechanism = mechanism.options[-1] if bounds else mechanism
    assert lead is not None
    units = unit if name == "gumbel" else 1  # the other's law is in multiples already
    others = 48 if name == "gumbel" else question.k_bar - 2
    chances = [of(mechanism, units * one, 2, others).one for one in (lead - 1, lead)]
    assert chances[0] < LIKELY <= chances[1]


def test_a_bound_on_all_has_leads_over_nobody() -> None:
    made = plan(k=10, epsilon=1.0, **ROWS, max_total=5)
    assert made.recommended == "weighted"
    assert made["weighted"].over_rank == 0
    threshold = made["weighted"].parameters["threshold"]
    assert threshold < made["weighted"].needed_lead  # type: ignore[operator]
    private = plan(k=10, epsilon=1.0, measure="rows", max_per_item="private")
    assert "chosen privately out of 10" in private.title
    assert private["tested"].needed_lead == needed("tested", private.question).one


def test_the_epsilon_for_a_lead_is_found_in_rows() -> None:
    found = plan(k=1, needed_lead=300, **ROWS)
    assert found.epsilon == smallest_epsilon(Question.of(k=1, epsilon=1.0), 100)
    assert (found["limited-domain"].needed_lead or 0) <= 300
    assert "an item with 300 rows more than the rest" in found.sentences[0]


def test_a_bound_is_proposed_from_public_amounts() -> None:
    """Twice as often by fewer persons: persons alone mislead, a large bound drowns it in noise."""
    twice, once = [[2] * 600] * 3, [[1] * 900] * 5
    made = plan(k=3, epsilon=1.0, measure="rows", public_amounts=[*twice, *once, [500]], runs=4)
    assert made.question.sensitivity == 2
    assert "Proposed: max_per_item=2." in made.proposed
    assert "500 (0." in made.proposed
    assert next(row.mean for row in made.recalls if row.name == made.recommended) > 0.5
    assert made.to_dict()["proposed"] == made.proposed
    coins = [[0.1] * 900, [0.2] * 600, [0.2] * 600]
    euros = plan(k=2, epsilon=1.0, measure=Sum("price", 0.1), public_amounts=coins, runs=4)
    assert "max_per_item=0.2." in euros.proposed


def test_rows_of_a_shape_are_those_of_persons_who_draw() -> None:
    """E min(X, c) of a binomial X, by drawing; c = 1 is the number of persons."""
    shape = Zipf(1.0, 20, 20_000, 6)
    rows = RowsOfShape(shape)
    assert rows.clipped(1) == shape.counts()
    assert sum(rows.whole()) == pytest.approx(20_000 * 6, abs=20)
    weights = 1 / np.arange(1, 21)
    drawn = np.random.default_rng(1).multinomial(6, weights / weights.sum(), 20_000)
    for bound in (2, 3):
        by_hand = np.minimum(drawn, bound).sum(axis=0)
        assert rows.clipped(bound) == pytest.approx(by_hand, abs=5 * 20_000**0.5)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"measure": "rows"}, "needs a bound on what one person adds"),
        ({"max_per_item": 3}, "max_per_item=3 bounds rows and sums"),
        ({"measure": Sum("price"), "shape": Zipf(1.0, 9, 9)}, "no values to sum; give public_am"),
        ({**ROWS, "max_total": 5, "shape": Zipf(1.0, 9, 9)}, "tried with one public max_per_item"),
        ({**ROWS, "public_counts": [3, 2]}, "public_counts are of people"),
        ({"public_amounts": [[1]]}, "are for measure='rows' or Sum"),
        ({"measure": "rows", "public_amounts": "visits.csv"}, "a private source has no place"),
        ({"measure": "rows", "public_amounts": [[-1]]}, "at least 0; found -1"),
        ({"measure": "rows", "public_amounts": [[1]], "shape": Zipf(1.0, 9, 9)}, "alone, without"),
    ],
)
def test_what_cannot_be_planned_is_refused(more: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        plan(k=2, epsilon=1.0, **more)
    with pytest.raises(InvalidParameter, match="needed_lead=2 must be at least max_per_item=3"):
        plan(k=2, needed_lead=2, **ROWS)


def test_the_command_plans_measures() -> None:
    words = ["plan", "-k", "1", "--epsilon", "1", "--json"]
    rows = run(*words, "--measure", "rows", "--max-per-item", "3")
    assert json.loads(rows.stdout)["question"]["sensitivity"] == 3
    shape = ["--shape", "zipf:1.1", "--items", "50", "--persons", "2000", "--runs", "2"]
    assert (
        "max_per_item=" in json.loads(run(*words, "--measure", "rows", *shape).stdout)["proposed"]
    )
