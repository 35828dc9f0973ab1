"""Everything that can be named safely, and what surely has so many persons: asked as users do."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest

from command import run
from topsecret import plan, top_k
from topsecret.counts.weights import Weights
from topsecret.errors import InvalidParameter
from topsecret.ledger import Flexible, Ledger
from topsecret.questions.question import Question
from topsecret.questions.top_k import top_k_by
from topsecret.results.record import from_record, to_record
from topsecret.results.release import Release
from topsecret.sources import CountQuery
from topsecret.sources.domains.weighted_labels import weighted_labels
from topsecret.sources.engines.duckdb import FileSource
from topsecret.sources.engines.duckdb_session import DuckSession

ASKED: dict[str, Any] = {"item": "place", "person": "user", "epsilon": 2, "delta": 1e-5}


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,500 persons with one to six places each, of 60, the first ones common."""
    chance = random.Random(5)
    path = tmp_path_factory.mktemp("events") / "events.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["user", "city", "place"])
        for user in range(1500):
            for _ in range(chance.choice([1, 2, 6])):
                place = min(int(chance.paretovariate(0.9)), 60)
                rows.writerow([user, "AB"[user % 2], f"p{place}"])
    return path


def test_all_names_everything_safe_best_first(events: Path) -> None:
    release = top_k(events, k="all", **ASKED)
    assert release.items[:3] == ("p1", "p2", "p3")
    assert release.mechanism == "weighted"
    assert release.complete
    assert release.weighted is not None
    assert list(release.weighted) == sorted(release.weighted, reverse=True)
    assert release.epsilon <= 2
    assert release.title == "Values safe to name of 'place' in events.csv, by weighted people"
    receipt = dict(release.receipt)
    named = f"holds the {len(release.items)} items that passed the threshold with noise. "
    assert receipt["The list"].startswith(named)
    assert "The order is by weighted people, not by the number of people" in receipt["The list"]
    assert receipt["At least"].startswith(
        "each item has at least the number of distinct people shown: all numbers hold together"
    )
    assert "at least" in str(release)
    assert "at least" in release._repr_html_()


def test_at_least_keeps_what_surely_has_so_many(events: Path) -> None:
    release = top_k(events, k="all", at_least=300, **ASKED)
    assert release.items[0] == "p1"
    assert release.at_least is not None
    assert min(release.at_least) >= 300
    assert release.ending == (
        f"holds the {len(release.items)} {'item' if len(release.items) == 1 else 'items'} shown to "
        "have at least 300 people, by bounds that all hold together with 95% probability."
    )
    assert "listed that are shown to have at least 300 people" in release.threshold
    assert not top_k(events, k=3, at_least=10**6, **ASKED).items


def test_large_sums_bring_their_names(events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum that several persons reach and one or two labels have: no second row for its names."""
    query = CountQuery("place", "user", rows=10)
    with weighted_labels(FileSource(events), [query], Weights.share().table) as [labels]:
        groups = labels.counts()
        wanted = [(total, place) for total, number in groups for place in range(number)]
        fetched = labels._fetched(wanted)
        monkeypatch.setattr(DuckSession, "run", lambda *_: pytest.fail("a second statement"))
        few = {total for total, number in groups if number <= 2 and total >= 8 * 1024}
        large = [(total, place) for total, place in wanted if total in few]
        assert len(large) > 10
        assert labels.items_at(large) == [fetched[key] for key in large]


def test_a_list_of_k_and_a_cap(events: Path) -> None:
    release = top_k(events, k=2, mechanism="weighted", weighting="cap", max_items=2, **ASKED)
    assert set(release.items) == {"p1", "p2"}
    assert release.parameters["weighting"] == "cap"
    assert release.parameters["most_items"] == 2


def test_a_public_domain_has_no_threshold(events: Path) -> None:
    domain = [f"p{n}" for n in range(1, 40)]
    release = top_k(events, k=3, mechanism="weighted", domain=domain, **ASKED)
    assert set(release.items) <= set(domain)
    assert "threshold" not in release.parameters
    surely = top_k(events, k="all", at_least=200, domain=domain, **ASKED)
    assert surely.items[:1] == ("p1",)


def test_unknown_groups_are_part_of_the_label(events: Path) -> None:
    release = top_k(events, k="all", **ASKED | {"item": ["city", "place"]})
    assert {city for city, _ in release.items} == {"A", "B"}  # type: ignore[misc,str-unpack]


def test_known_groups_have_lists_of_their_own(events: Path) -> None:
    both = top_k_by(events, by="city", groups=["A", "B"], k="all", **ASKED)
    assert both["A"].items[:1] == ("p1",)
    assert both.epsilon <= 2
    with pytest.raises(InvalidParameter, match="disjoint=True is not offered with weighted"):
        top_k_by(events, by="city", groups=["A", "B"], disjoint=True, k="all", **ASKED)


def test_a_stored_answer_comes_back_whole(events: Path) -> None:
    release = top_k(events, k="all", **ASKED)
    again = from_record(json.loads(json.dumps(to_record(release))))
    assert isinstance(again, Release)
    assert (again.items, again.weighted, again.at_least) == (
        release.items,
        release.weighted,
        release.at_least,
    )
    assert release.rows()[0] == ["rank", "place", "at_least"]


def test_a_ledger_charges_the_parts(events: Path, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("shop", Flexible.of(epsilon=6, delta=1e-4), person="user")
    asked = {**ASKED, "ledger": ledger, "dataset": "shop", "k": "all"}
    first = top_k(events, **asked)
    assert top_k(events, **asked).items == first.items
    other = top_k(events, **asked, at_least=5)
    assert other.charge is not None
    assert not other.charge.stored


def test_what_is_asked_is_in_the_fingerprint() -> None:
    plain = Question.of(**ASKED, k=5).fingerprint()
    assert "at_least" not in plain
    assert "weighting" not in plain
    asked = Question.of(**ASKED, k=5, at_least=7, max_items=3, weighting="cap").fingerprint()
    assert (asked["at_least"], asked["weighting"]) == (7, "cap")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"k": "all", "mechanism": "tested"}, "k='all' needs mechanism='weighted'"),
        ({"k": 5, "at_least": 9, "mechanism": "gumbel"}, "at_least=9 needs mechanism='weighted'"),
        ({"k": 5, "at_least": 0}, "at_least=0 must be at least 1"),
        ({"k": 5, "weighting": "cap"}, "weighting='cap' needs the cap"),
        ({"k": 5, "weighting": "half"}, "weighting='half' must be 'share' or 'cap'"),
        ({"k": "all", "domain": ["p1", "p2"]}, "would name the whole public domain"),
        ({"k": "all", "counts": True}, "counts=True is not offered beside weighted people"),
        ({"k": 3, "mechanism": "weighted", "domain": range(9)}, "a domain that is listed"),
        ({"k": "every"}, "must be a whole number, 'auto' or 'all'"),
    ],
)
def test_what_cannot_be_is_refused(events: Path, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        top_k(events, **ASKED, **asked)


def test_the_command_line_asks_the_same(events: Path) -> None:
    command = ["top", str(events), "--item", "place", "--person", "user", "--epsilon", "2"]
    words = [*command, "-k", "all", "--at-least", "100", "--json"]
    shown = run(*words)
    answer = json.loads(shown.stdout)
    assert answer["k"] == "all"
    assert answer["items"][0] == "p1"
    assert min(answer["at_least"]) >= 100


def test_a_plan_says_what_weighted_persons_need() -> None:
    made = plan(k=10, epsilon=1.0)
    assert made["weighted"].needed_lead == 54
    assert "Over nobody: weighted people" in " ".join(str(made).split())
    everything = plan(k="all", epsilon=1.0)
    assert everything.recommended == "weighted"
    assert "all safe items" in str(everything)
