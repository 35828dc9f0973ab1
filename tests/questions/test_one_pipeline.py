"""Every part of a question reaches the source."""

from pathlib import Path

import pytest

from topsecret import top_k, top_k_by
from topsecret.errors import InvalidParameter
from topsecret.questions.question import Groups, Question
from topsecret.sources import CountQuery, LeadingCounts
from topsecret.sources.engines.duckdb import FileSource

SALT = bytes(range(16))


def file_of(folder: Path, rows: list[str]) -> Path:
    path = folder / "visits.csv"
    path.write_text("\n".join(["user,country,place,colour", *rows, ""]), encoding="utf-8")
    return path


class Recording:
    """A source that keeps what it was asked."""

    does = frozenset({"max_items"})

    name = "recording"

    def __init__(self) -> None:
        self.asked: list[CountQuery] = []

    def leading_counts(self, query: CountQuery) -> LeadingCounts:
        self.asked.append(query)
        return [("park", 10_000)]


@pytest.mark.parametrize("disjoint", [True, False])
def test_the_callers_conditions_hold_in_every_group(tmp_path: Path, disjoint: bool) -> None:
    rows = [f"a{n},FR,park,blue" for n in range(3000)] + [f"b{n},FR,pier,red" for n in range(2000)]
    answer = top_k_by(
        file_of(tmp_path, rows),
        by="country",
        groups=["FR"],
        disjoint=disjoint,
        where=[("colour", "=", "red")],
        item="place",
        person="user",
        k=1,
        epsilon=5,
        mechanism="limited-domain",
    )
    assert answer["FR"].items == ("pier",)  # nobody with park is left to be counted


@pytest.mark.parametrize("disjoint", [True, False])
def test_the_cap_holds_in_every_group(tmp_path: Path, disjoint: bool) -> None:
    places = ["park", "pier", "zoo"]
    rows = [f"u{n},FR,{place},red" for n in range(1000) for place in places]
    answer = top_k_by(
        file_of(tmp_path, rows),
        by="country",
        groups=["FR"],
        disjoint=disjoint,
        max_items=1,
        domain=places,
        counts=True,
        item="place",
        person="user",
        k=3,
        epsilon=20,
    )
    counts = answer["FR"].counts
    assert counts is not None
    assert abs(sum(counts) - 1000) < 200  # 3,000 without the cap; the noise has a scale of 1 or so


def test_a_given_salt_reaches_the_source() -> None:
    source = Recording()
    asked = {"item": "place", "person": "user", "k": 1, "epsilon": 1.0, "max_items": 2}
    top_k(source, **asked, salt=SALT)  # type: ignore[arg-type]
    top_k(source, **asked)  # type: ignore[arg-type]
    assert source.asked[0].salt == SALT
    assert source.asked[1].salt not in (SALT, b"")


def test_the_salt_decides_what_is_kept_of_a_person(tmp_path: Path) -> None:
    rows = [f"u{n},FR,{place},red" for n in range(100) for place in ("park", "pier")]
    source = FileSource(file_of(tmp_path, rows))
    kept = [
        source.leading_counts(CountQuery("place", "user", 9, max_items=1, salt=salt))
        for salt in (SALT, SALT, bytes(16))
    ]
    assert kept[0] == kept[1] != kept[2]


def test_a_question_of_groups_asks_once_for_each() -> None:
    groups = Groups("country", ("FR", "DE"), disjoint=True)
    question = Question.of(None, groups, item="place", person="user", k=3, epsilon=1, max_items=2)
    asked = question.queries(61)
    assert [query.home.group for query in asked if query.home is not None] == ["FR", "DE"]
    assert {(query.rows, query.max_items, query.salt) for query in asked} == {
        (61, 2, question.counted.salt)
    }


def test_help_shows_the_keywords() -> None:
    import inspect

    shown = inspect.signature(top_k).parameters
    assert shown["k_bar"].default is None
    assert shown["delta"].default is None
    assert shown["counts"].default is False
    assert "asked" not in shown
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilom'"):
        top_k("x.csv", item="a", person="b", k=1, epsilom=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("cap", [0, -1, True, "2", 1.5])
def test_a_wrong_cap_has_one_wording(cap: object) -> None:
    with pytest.raises(
        InvalidParameter, match=r"must be (a whole number of )?at least 1|must be a whole number"
    ):
        Question.of(item="a", person="b", k=1, epsilon=1, max_items=cap)  # type: ignore[arg-type]
