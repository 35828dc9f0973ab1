"""The items with the least, and groups by an expression."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from command import run
from topsecret import Expression, top_k, top_k_by
from topsecret.errors import DomainRequired, InvalidParameter
from topsecret.mechanisms import GumbelTopK
from topsecret.questions.question import Question
from topsecret.results.record import from_record, to_record

DOMAIN = ["many", "some", "few", "nobody"]
ASKED: dict[str, Any] = {"item": "place", "person": "user", "k": 2, "epsilon": 4}
LEAST: dict[str, Any] = {**ASKED, "order": "least", "domain": DOMAIN}


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On the first day most are at one place, on the second at another."""
    path = tmp_path_factory.mktemp("events") / "events.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["user", "time", "place"])
        for user in range(900):
            rows.writerow([user, "2024-05-01T10:00", "many"])
            rows.writerow([user, "2024-05-02T11:00", "some" if user < 600 else "it's late"])
            if user < 300:
                rows.writerow([user, "2024-05-02T12:00", "few"])
    return path


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"mechanism": "gumbel", "counts": True},
        {"mechanism": "permute-and-flip", "delta": 0},
        {"mechanism": "oneshot-exponential", "delta": 0},
        {"mechanism": GumbelTopK(2, 2.0, smallest=True)},
        {"measure": "rows", "max_per_item": 2},
    ],
)
def test_the_least_come_first(events: Path, more: dict[str, Any]) -> None:
    release = top_k(events, **LEAST, **more)
    assert release.items == ("nobody", "few")
    assert release.title.startswith("Bottom 2 of 'place'")
    assert release.smoothed is None
    assert from_record(json.loads(json.dumps(to_record(release)))) == release


def test_the_receipt_speaks_of_the_least(events: Path) -> None:
    receipt = dict(top_k(events, **LEAST).receipt)
    assert "among the 2 smallest of the 4 items" in receipt["Named when"]
    assert "one that is not listed has more" in receipt["Missing items"]


def test_it_is_another_question() -> None:
    plain = Question.of(**ASKED, domain=DOMAIN).fingerprint()
    assert Question.of(**ASKED, domain=DOMAIN, order="most").fingerprint() == plain
    assert Question.of(**LEAST).fingerprint() == plain | {"order": "least"}


@pytest.mark.parametrize(
    ("more", "error", "says"),
    [
        ({"domain": None}, DomainRequired, r"order='least' needs a public domain: of items that"),
        ({"domain": None, "k": "all"}, DomainRequired, r"needs a public domain"),
        ({"mechanism": "pruned"}, InvalidParameter, r"'pruned' names the items with the most"),
        ({"order": "fewest"}, InvalidParameter, r"order='fewest' must be 'most' or 'least'"),
        ({"mechanism": GumbelTopK(2, 2.0)}, InvalidParameter, r"build it with smallest=True"),
    ],
)
def test_what_cannot_name_the_least_is_refused(
    events: Path, more: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        top_k(events, **LEAST | more)


def test_the_command_names_the_least(events: Path, tmp_path: Path) -> None:
    items = tmp_path / "items.txt"
    items.write_text("\n".join(DOMAIN))
    words = ["top", str(events), "--item", "place", "--person", "user", "-k", "1"]
    done = run(*words, "--epsilon", "4", "--order", "least", "--domain", str(items), "--csv")
    assert done.stdout.splitlines()[1] == "1,nobody"


def test_groups_by_an_expression(events: Path) -> None:
    days = ["2024-05-01", "2024-05-02"]
    asked = {**ASKED, "k": 1, "epsilon": 20}
    found = top_k_by(events, by=Expression("substr(time, 1, 10)"), groups=days, **asked)
    assert [found[day].items for day in days] == [("many",), ("some",)]
    assert found.by == "substr(time, 1, 10)"
    assert "2024-05-02" in found["2024-05-02"].title
    hours = top_k_by(events, by=Expression("length(place)"), groups=[9], **asked)
    assert hours[9].items == ("it's late",)
    late = top_k_by(events, by=Expression("lower(place)"), groups=["it's late"], **asked)
    assert late["it's late"].items == ("it's late",)


def test_disjoint_groups_need_a_column(events: Path) -> None:
    with pytest.raises(InvalidParameter, match="disjoint=True needs groups by a column"):
        top_k_by(events, by=Expression("lower(place)"), groups=["a"], disjoint=True, **ASKED)
