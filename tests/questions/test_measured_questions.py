"""Questions by rows and by sums, asked as users do."""

import csv
import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas
import pytest

from command import run
from topsecret import Sum, top_k, top_k_by
from topsecret.errors import InvalidParameter, WrongForSchema
from topsecret.ledger import Flexible, Ledger, Metered
from topsecret.mechanisms import GumbelTopK, LimitedDomain
from topsecret.questions.question import Question
from topsecret.results.record import from_record, to_record

ASKED: dict[str, Any] = {"item": "place", "person": "user", "k": 2, "epsilon": 2}
ROWS: dict[str, Any] = {"measure": "rows", "max_per_item": 3}
COINS: dict[str, Any] = {"measure": Sum("price", unit=0.01), "max_per_item": "7.5"}


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Most persons are at the park, most rows at the pier, most money in the zoo."""
    chance = random.Random(7)
    path = tmp_path_factory.mktemp("events") / "events.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["user", "city", "place", "price"])
        for user in range(2000):
            places = ["park", *(["pier"] * 3 if user % 2 else []), *(["zoo"] * (user % 3 == 0))]
            for place in [*places, f"p{chance.randrange(40)}"]:
                price = {"zoo": "8.99", "pier": "0.10"}.get(place, "0.01")
                rows.writerow([user, "AB"[user % 2], place, price])
    return path


def test_each_measure_has_its_own_leaders(events: Path) -> None:
    assert top_k(events, **ASKED).items[0] == "park"
    assert top_k(events, **ASKED, **ROWS).items == ("pier", "park")
    assert top_k(events, **ASKED, **COINS).items[0] == "zoo"
    assert top_k(events, **ASKED, measure="rows", max_per_item=1).items == ("park", "pier")


@pytest.mark.parametrize(
    "more",
    [
        {"k": 4},
        {"mechanism": "limited-domain"},
        {"max_items": 2},
        {"domain": ["zoo", "pier", "park", "mill"]},
        {"domain": ["zoo", "pier", "park", "mill"], "mechanism": "gumbel", "max_items": 3},
        {"domain": ["zoo", "pier", "park", "mill"], "delta": 0},
        {"domain": ["zoo", "pier", "park"], "delta": 0, "mechanism": "oneshot-exponential"},
    ],
)
def test_every_mechanism_is_in_units_of_the_bound(events: Path, more: dict[str, Any]) -> None:
    release = top_k(events, **ASKED | COINS | more)
    assert release.items[0] == "zoo"
    assert release.parameters.get("sensitivity", 750) == 750
    assert release.epsilon <= 2


def test_the_receipt_says_how_it_is_clipped_and_never_how_much(events: Path) -> None:
    release = top_k(events, **ASKED, **COINS)
    assert release.title == (
        "Top 2 of 'place' in events.csv, by sum of 'price', with a limit on what each person adds"
    )
    receipt = dict(release.receipt)
    assert receipt["Clipped"] == (
        "each person adds at most 7.5 of 'price' to each item; every value is rounded to the "
        "nearest multiple of 0.01, and negative values and what is no number count as 0; how much "
        "that leaves out is not reported, because it could give people away."
    )
    assert " of price above the item ranked 41, the first that cannot" in receipt["Named when"]
    assert "epsilon_per_pick, times sensitivity, above the first" in receipt["Mechanism"]
    rows = top_k(events, **ASKED, **ROWS)
    assert dict(rows.receipt)["Clipped"].startswith("at most 3 rows of each person count for each")
    assert " rows above the item ranked 41" in dict(rows.receipt)["Named when"]
    assert "Clipped" not in dict(top_k(events, **ASKED).receipt)


def test_the_threshold_is_so_many_times_that_of_persons(events: Path) -> None:
    """In words and in the mechanism: everything is in units of the bound."""
    persons = top_k(events, **ASKED).threshold.split("noisy line, ")[1].split(" people")[0]
    rows = top_k(events, **ASKED, **ROWS).threshold.split("noisy line, ")[1].split(" rows")[0]
    assert 3 * (int(persons) - 1) < float(rows) <= 3 * int(persons)  # people are whole


def test_the_bound_may_be_chosen_privately(events: Path, tmp_path: Path) -> None:
    """The bound is published, the receipt says how it came about, and a ledger charges it."""
    release = top_k(events, **ASKED, measure="rows", max_per_item="private")
    assert release.items == ("pier", "park")
    bound = release.parameters["max_per_item"]
    assert bound in ("2", "5", "10")
    receipt = dict(release.receipt)
    assert receipt["Clipped"] == (
        f"at most {bound} rows of each person count for each item; how many rows that leaves out "
        "is not reported, because it could give people away. The program chose the limit "
        f"{bound} by a noisy look at the data, already counted in epsilon."
    )
    assert "out of 10 public ones, for a twentieth of the budget" in receipt["Named when"]
    assert from_record(json.loads(json.dumps(to_record(release)))) == release
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("d", Flexible.of(epsilon=20, delta=1e-4), person="user")
    paid: dict[str, Any] = {**ASKED, "ledger": ledger, "dataset": "d"}
    listed: dict[str, Any] = {"measure": Sum("price", 0.01), "max_per_item": ["0.1", 1, 9]}
    first, again = top_k(events, **paid, **listed), top_k(events, **paid, **listed)
    assert first.items[0] == "zoo"
    assert [one.charge.stored for one in (first, again)] == [False, True]  # type: ignore[union-attr]
    assert again.parameters == first.parameters
    ledger.close()


@pytest.mark.parametrize(
    "more",
    [
        {"domain": ["zoo", "pier", "park", "mill"]},
        {"domain": ["zoo", "pier", "park", "mill"], "mechanism": "gumbel", "max_items": 2},
        {"k": 4, "max_items": 3},
    ],
)
def test_every_mechanism_takes_the_bound_that_was_chosen(
    events: Path, more: dict[str, Any]
) -> None:
    release = top_k(events, **ASKED | {"measure": "rows", "max_per_item": [1, 3]} | more)
    assert release.parameters["max_per_item"] in ("1", "3")
    assert release.epsilon <= 2


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"delta": 0, "domain": ["zoo", "pier", "park"]}, "needs a delta above 0"),
        (
            {"mechanism": "permute-and-flip", "domain": ["zoo", "pier", "park"]},
            "and one of: tested",
        ),
        ({"mechanism": LimitedDomain(2, 40, 0.1, 1e-7)}, "needs one public max_per_item"),
    ],
)
def test_a_private_bound_has_its_limits(events: Path, more: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        top_k(events, **ASKED | {"measure": "rows", "max_per_item": "private"} | more)


@pytest.mark.parametrize("domain", [None, ["zoo", "pier", "park", "mill"]])
def test_all_that_a_person_adds_may_be_bounded(events: Path, domain: Any) -> None:
    asked: dict[str, Any] = {**ASKED, **ROWS, "max_total": 4, "domain": domain}
    release = top_k(events, **asked)
    assert release.items == ("pier", "park")
    assert release.mechanism == "weighted"
    assert release.epsilon <= 2
    assert dict(release.receipt)["Clipped"].endswith(
        "where the root of the sum of squares of all that a person adds exceeds 4 it is scaled "
        "down together, and rounded down."
    )
    plain = Question.of(**ASKED, **ROWS).fingerprint()
    assert Question.of(**ASKED, **ROWS, max_total=4).fingerprint() != plain


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"mechanism": "tested"}, "max_total needs mechanism='weighted', and 'tested' was given"),
        ({"max_total": None, "mechanism": "weighted"}, "pass max_total, or leave the mechanism"),
        ({"k": "all"}, "k='all' needs measure='persons'"),
        ({"at_least": 3}, "at_least=3 needs measure='persons'"),
        ({"delta": 0, "domain": ["zoo", "pier"]}, "needs a delta above 0"),
        ({"mechanism": LimitedDomain(2, 40, 0.1, 1e-7)}, "without max_total"),
        ({"order": "least", "domain": ["zoo", "pier"]}, "names the items with the most"),
    ],
)
def test_a_bound_on_all_has_its_limits(events: Path, more: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        top_k(events, **ASKED | ROWS | {"max_total": 4} | more)


@pytest.mark.parametrize("disjoint", [False, True])
def test_groups_choose_a_bound_each_and_may_have_a_total(events: Path, disjoint: bool) -> None:
    asked: dict[str, Any] = {**ASKED, "by": "city", "groups": ["A", "B"], "disjoint": disjoint}
    for more in ({"max_per_item": [1, 3]}, {"max_per_item": 3, "max_total": 4}):
        releases = top_k_by(events, **asked, measure="rows", **more)
        assert releases["B"].items == ("pier", "park")
        assert releases.epsilon <= 2
        if "max_total" not in more:
            assert {one.parameters["max_per_item"] for one in releases.values()} <= {"1", "3"}
        # One person is in one disjoint group: each list may cost as much as one alone.
        assert (releases["A"].epsilon == releases.epsilon) == disjoint


def test_the_data_are_asked_for_the_geometry(events: Path, tmp_path: Path) -> None:
    """By rows and sums as by persons: the charge is the same, the receipt says which it was."""
    few = tmp_path / "few.csv"
    few.write_text("user,place\n" + "".join(f"u{n},p{n % 12}\n" * 3 for n in range(900)))
    asked: dict[str, Any] = {**ASKED, "k": 10, "epsilon": 1}
    found = [top_k(path, **asked, **ROWS) for path in (few, events)]
    assert [one.mechanism for one in found] == ["tested-or-weighted"] * 2
    assert found[0].epsilon == found[1].epsilon <= 1
    assert found[0].parameters == found[1].parameters
    assert found[0].parameters["epsilon_of_the_choice"] == pytest.approx(0.105, abs=0.001)
    receipt = dict(found[0].receipt)
    assert receipt["The list"].startswith("has all 10 items asked for. Random noise")
    assert " A noisy look at the data, included in epsilon, chose" in receipt["The list"]
    assert "the one that bounds all that a person adds together." in receipt["The list"]
    for name in ("Named when", "Clipped"):
        assert "exceeds 5.197 rows it is scaled down together" in receipt[name]
    for more in ({"choose": "public"}, {"max_per_item": [1, 3]}):
        assert top_k(few, **asked | ROWS | more).mechanism == "tested"
    coins = top_k(events, **asked, **COINS)
    assert coins.parameters["threshold"] == pytest.approx(7.5 * 44.94, rel=0.001)
    truths = pandas.DataFrame({"user": ["a"], "place": ["b"], "price": [True]})
    with pytest.raises(WrongForSchema, match="needs a column of numbers"):
        top_k(truths, **asked, **COINS)


def test_groups_are_measured_too(events: Path) -> None:
    for disjoint in (True, False):
        releases = top_k_by(
            events, by="city", groups=["A", "B"], disjoint=disjoint, **ASKED, **ROWS
        )
        assert releases["B"].items == ("pier", "park")
        assert releases["A"].items[0] == "park"
        assert dict(releases["A"].receipt)["Clipped"]


def test_a_ledger_tells_the_measures_apart_and_repeats_each(events: Path, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("d", Flexible.of(epsilon=20, delta=1e-4), person="user")
    paid: dict[str, Any] = {**ASKED, "ledger": ledger, "dataset": "d"}
    asked = [{}, ROWS, COINS, {**ROWS, "max_per_item": 4}, {**COINS, "measure": Sum("price", 0.1)}]
    first = [top_k(events, **paid, **one) for one in asked]
    again = [top_k(events, **paid, **one) for one in asked]
    assert [one.charge.stored for one in first] == [False] * 5  # type: ignore[union-attr]
    assert [one.charge.stored for one in again] == [True] * 5  # type: ignore[union-attr]
    assert [one.clipping for one in again] == [one.clipping for one in first]
    ledger.close()


def test_a_metered_budget_measures_too(events: Path, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("d", Metered.of(epsilon=5, delta=1e-5, queries=5, picks=10), person="user")
    release = top_k(events, item="place", person="user", k=1, ledger=ledger, dataset="d", **ROWS)
    assert release.parameters["sensitivity"] == 3
    with pytest.raises(InvalidParameter, match="a budget that is not metered; pass one"):
        top_k(
            events,
            item="place",
            person="user",
            k=1,
            ledger=ledger,
            dataset="d",
            measure="rows",
            max_per_item="private",
        )
    ledger.close()


def test_an_answer_is_stored_with_its_measure(events: Path) -> None:
    release = top_k(events, **ASKED, **COINS)
    assert from_record(json.loads(json.dumps(to_record(release)))) == release
    fields = json.loads(release.to_json())
    assert fields["measure"] == "sum of 'price'"
    assert "measure" not in json.loads(top_k(events, **ASKED).to_json())


def test_persons_are_the_question_that_they_were() -> None:
    plain = Question.of(**ASKED).fingerprint()
    assert Question.of(**ASKED, measure="persons").fingerprint() == plain
    assert plain["measure"] == "persons"
    assert Question.of(**ASKED, **ROWS).fingerprint()["measure"] == "rows"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"k": "all"}, r"k='all' needs measure='persons'"),
        ({"k": "auto"}, r"k='auto' needs measure='persons'"),
        ({"at_least": 5}, r"at_least=5 needs measure='persons'"),
        (
            {"mechanism": "weighted"},
            r"'weighted' ranks by rows and sums with a bound on all",
        ),
        ({"counts": True}, r"counts=True counts people"),
        ({"max_per_item": None}, r"needs a bound on what one person adds"),
    ],
)
def test_what_is_not_offered_is_refused_with_the_reason(
    events: Path, more: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidParameter, match=says):
        top_k(events, **ASKED | ROWS | more)


def test_an_object_must_be_built_for_what_a_person_moves(events: Path) -> None:
    three = LimitedDomain(2, 40, 0.1, 1e-7, sensitivity=3)
    assert top_k(events, **ASKED, **ROWS, mechanism=three).mechanism == "LimitedDomain"
    with pytest.raises(InvalidParameter, match="less than 3; build it with sensitivity=3"):
        top_k(events, **ASKED, **ROWS, mechanism=LimitedDomain(2, 40, 0.1, 1e-7))
    two = GumbelTopK(2, Fraction(20), sensitivity=2)
    with pytest.raises(InvalidParameter, match="build it with sensitivity=3"):
        top_k(events, **ASKED, **ROWS, mechanism=two, domain=["park", "pier"])


def test_a_source_of_the_callers_own_must_say_that_it_measures() -> None:
    class Mine:
        name = "mine"
        does = ("max_items", "where")

        def leading_counts(self, query: Any) -> list[tuple[str, int]]:
            return []

    with pytest.raises(InvalidParameter, match="does not declare that it applies measure"):
        top_k(Mine(), **ASKED, **ROWS)
    with pytest.raises(InvalidParameter, match="a bound that is chosen privately need a file"):
        top_k(Mine(), **ASKED, measure="rows", max_per_item="private")


def test_the_command_measures(events: Path) -> None:
    words = ["top", str(events), "--item", "place", "--person", "user", "-k", "1", "--epsilon", "2"]
    rows = run(*words, "--measure", "rows", "--max-per-item", "3", "--json")
    assert json.loads(rows.stdout)["items"] == ["pier"]
    coins = run(*words, "--sum", "price", "--unit", "0.01", "--max-per-item", "7.5", "--csv")
    assert coins.stdout.splitlines()[1] == "1,zoo"
    private = run(*words, "--measure", "rows", "--max-per-item", "private", "--json")
    assert json.loads(private.stdout)["items"] == ["pier"]
    listed = run(*words, "--measure", "rows", "--max-per-item", "2, 4", "--json")
    assert json.loads(listed.stdout)["parameters"]["max_per_item"] in ("2", "4")
    both = run(*words, "--sum", "price", "--measure", "rows", "--max-per-item", "3")
    assert (both.returncode, "--sum cannot be used with --measure rows" in both.stderr) == (2, True)
