"""Rises between two periods: what a person moves, exhaustively; asked as users do."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from command import run
from topsecret import Histogram, top_k, top_k_by
from topsecret.errors import DomainRequired, InvalidParameter, SourceError
from topsecret.ledger import Flexible, Ledger, Metered
from topsecret.mechanisms import (
    GumbelTopK,
    LimitedDomain,
    Mechanism,
    OneshotExponential,
    PermuteAndFlip,
    PrunedTopK,
)
from topsecret.questions.question import Question
from topsecret.results.record import from_record, to_record
from topsecret.verify import Neighbourhood, check_privacy

ITEMS = ("a", "b", "c")
EITHER_WAY = Neighbourhood(adjacency="replace")
"""Each score moves by −1, 0 or 1: what one person more does to rises."""


def built_for(move: int) -> list[Mechanism]:
    return [
        GumbelTopK(2, Fraction(10 * move, 7), sensitivity=move),
        PrunedTopK(2, 0.7, sensitivity=move),
        PermuteAndFlip(2, 2.0 * move, move),
        OneshotExponential(2, 1.0, sensitivity=move),
    ]


def test_one_person_moves_every_rise_by_one_up_or_down_and_no_further() -> None:
    """All persons over three items and two periods; a shift of one makes all moves 0, 1 or 2."""
    moves = set()
    for earlier, later in product(product((0, 1), repeat=3), repeat=2):
        moves.add(tuple(b - a for a, b in zip(earlier, later, strict=True)))
    assert moves - {(0, 0, 0)} == set(EITHER_WAY.steps(3))
    assert all(0 <= 1 + step <= 2 for move in moves for step in move)


@pytest.mark.parametrize("mechanism", built_for(2), ids=str)
def test_noise_for_two_keeps_the_claim_and_the_law_does_not_know_a_shift(
    mechanism: Mechanism,
) -> None:
    check_privacy(mechanism, items=3, max_count=3, tall=6, neighbourhood=EITHER_WAY).require()
    rises, shift = {"a": 5, "b": 4, "c": 0}, 1 << 40
    shifted = {item: rise + shift for item, rise in rises.items()}
    law = mechanism.distribution(Histogram.of(shifted, ITEMS))
    assert law == pytest.approx(mechanism.distribution(Histogram.of(rises, ITEMS)), abs=1e-15)


@pytest.mark.parametrize("mechanism", built_for(1), ids=str)
def test_noise_for_one_is_caught(mechanism: Mechanism) -> None:
    wrong = check_privacy(mechanism, items=3, max_count=3, tall=6, neighbourhood=EITHER_WAY)
    assert wrong.broken is not None


def test_a_law_that_knows_a_shift_is_not_offered() -> None:
    """A threshold over nobody is no threshold for shifted scores."""
    limited = LimitedDomain(1, 4, 0.5, 0.01)
    near = limited.distribution(Histogram.of({"a": 2, "b": 1}))
    far = limited.distribution(Histogram.of({"a": 102, "b": 101}))
    assert near != pytest.approx(far, abs=0.1)
    with pytest.raises(InvalidParameter, match="rise_from needs one of the mechanisms pruned"):
        Question.of(**ASKED, mechanism="limited-domain")


ASKED: dict[str, Any] = {
    "item": "place",
    "person": "user",
    "k": 1,
    "epsilon": 2,
    "domain": ["pier", "park", "zoo", "mill"],
    "where": [("month", "=", "may")],
    "rise_from": [("month", "=", "april")],
}


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Most go to the park in both months, the pier rises, the zoo falls."""
    path = tmp_path_factory.mktemp("months") / "events.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["user", "place", "month"])
        for user in range(1200):
            rows.writerow([user, "park", "april"])
            rows.writerows([[user, "park", "may"]] * 2)
            rows.writerow([user, "zoo", "april" if user % 2 else "may"])
            if user % 3:
                rows.writerow([user, "pier", "may"])
            elif user % 2:
                rows.writerow([user, "zoo", "april"])
            if user < 400:
                rows.writerow([user, "zoo", "april"])
    return path


def test_the_largest_rises_and_falls_are_named(events: Path) -> None:
    release = top_k(events, **ASKED)
    assert release.items == ("pier",)
    assert top_k(events, **ASKED, order="least").items == ("zoo",)
    assert top_k(events, **ASKED, mechanism="gumbel", max_items=2).epsilon <= 2
    assert "by rise from month = 'april'" in release.title
    assert "raises some items and lowers others" in dict(release.receipt)["Clipped"]
    assert release.parameters["sensitivity"] == 2
    assert from_record(json.loads(json.dumps(to_record(release)))) == release


def test_without_a_domain_what_leads_in_either_period_is_compared(
    events: Path, tmp_path: Path
) -> None:
    """The lists of both periods name all three places, and their rises are told apart."""
    asked = ASKED | {"domain": None, "epsilon": 8}
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("d", Flexible.of(epsilon=40, delta=1e-4), person="user")
    found = [top_k(events, **asked, ledger=ledger, dataset="d") for _ in range(2)]
    assert [one.charge.stored for one in found] == [False, True]  # type: ignore[union-attr]
    ledger.close()
    release = found[0]
    assert release.items == ("pier",)
    assert release.epsilon <= 8
    assert (release.mechanism, release.parameters["names"]) == ("leading-rises", 20)
    assert from_record(json.loads(json.dumps(to_record(release)))) == release
    falls = top_k(events, **asked | {"k": 4}, order="least")
    assert falls.items[0] == "zoo"
    assert set(falls.items) == {"zoo", "park", "pier"}  # nobody names the mill
    assert "named no more" in falls.told
    nobody = top_k(events, **asked | {"epsilon": 0.01})
    assert (nobody.items, nobody.complete) == ((), False)
    with pytest.raises(DomainRequired, match="needs a delta above 0"):
        top_k(events, **asked, delta=0)
    with pytest.raises(InvalidParameter, match=r"must lie between 0.0001 and 10"):
        top_k(events, **asked | {"epsilon": 11})


def test_a_ledger_charges_it_once_and_knows_it_from_other_questions(
    events: Path, tmp_path: Path
) -> None:
    plain = {name: value for name, value in ASKED.items() if name != "rise_from"}
    prints = [Question.of(**ASKED).fingerprint(), Question.of(**plain).fingerprint()]
    assert "rise_from" in prints[0]
    assert "rise_from" not in prints[1]
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("d", Flexible.of(epsilon=9, delta=1e-4), person="user")
    ledger.open_budget("m", Metered.of(epsilon=5, delta=1e-5, queries=5, picks=9), person="user")
    answers = [top_k(events, **ASKED, ledger=ledger, dataset="d") for _ in range(2)]
    assert [one.charge.stored for one in answers] == [False, True]  # type: ignore[union-attr]
    wrong = ASKED | {"rise_from": [("mnth", "=", "april")], "epsilon": 0.3}
    before = ledger.account("d").spent
    with pytest.raises(SourceError, match="has no column 'mnth'"):
        top_k(events, **wrong, ledger=ledger, dataset="d")
    assert ledger.account("d").spent == before
    with pytest.raises(InvalidParameter, match="from a budget that is not metered"):
        top_k(events, **ASKED | {"epsilon": None}, ledger=ledger, dataset="m")
    ledger.close()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"domain": range(9)}, "rise_from needs a public domain that is listed, or none"),
        ({"domain": None, "mechanism": "tested"}, "rise_from has its own lists; leave the mech"),
        ({"domain": None, "k_bar": 99}, "has no k_bar and no fill"),
        ({"domain": None, "measure": "rows", "max_per_item": 2}, "rise_from ranks by people"),
        ({"k": "auto"}, "with a number k"),
        ({"at_least": 3}, "without counts, at_least and groups"),
        ({"counts": True}, "without counts, at_least and groups"),
        ({"measure": "rows", "max_per_item": 2}, "rise_from ranks by people"),
        ({"mechanism": GumbelTopK(1, 1.0)}, "needs one of the mechanisms pruned, gumbel"),
        ({"mechanism": "tested"}, "needs one of the mechanisms pruned, gumbel"),
    ],
)
def test_what_is_not_offered_is_refused(more: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        Question.of(**ASKED | more)


def test_groups_are_refused_and_the_command_asks(events: Path) -> None:
    with pytest.raises(InvalidParameter, match="and groups"):
        top_k_by(events, by="month", groups=["may"], **ASKED)
    domain = events.with_name("places.csv")
    domain.write_text("place\npier\npark\nzoo\nmill\n")
    words = ["top", str(events), "--item", "place", "--person", "user", "-k", "1", "--epsilon", "2"]
    words += ["--domain", str(domain), "--where", "month = 'may'", "--json"]
    found = run(*words, "--rise-from", "month = 'april'")
    assert json.loads(found.stdout)["items"] == ["pier"]
