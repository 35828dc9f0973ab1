"""Which way of publishing over time is expected to serve, from public numbers alone."""

import json

import pytest

from command import run
from topsecret.errors import InvalidParameter
from topsecret.questions.compare_over_time import compare_over_time

GUESS = {"persons": 3000, "items_per_person": 4.0, "kth_count": 300, "k": 3, "periods": 12}


def test_few_items_per_person_are_for_a_series_and_large_counts_for_lists_drawn_anew() -> None:
    few = compare_over_time(**GUESS, epsilon=1.0, max_counts=4)  # type: ignore[arg-type]
    assert few.best.name == "series"
    many = GUESS | {"persons": 10**6, "kth_count": 200_000}
    assert compare_over_time(**many, epsilon=1.0).best.name == "independent"  # type: ignore[arg-type]


def test_more_counts_per_person_mean_more_noise_and_a_larger_share() -> None:
    found = compare_over_time(**GUESS, epsilon=1.0)  # type: ignore[arg-type]
    limits = found.limits
    assert [one.max_counts for one in limits] == [1, 3, 10, 30, 100]
    assert sorted(one.deviation for one in limits) == [one.deviation for one in limits]
    assert sorted(one.share for one in limits) == [one.share for one in limits]
    assert limits[-1].deviation == pytest.approx(10 * limits[0].deviation, rel=1e-4)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"persons": 0}, "persons=0 must be a whole number"),
        ({"kth_count": 4000}, "kth_count=4000 must be at most persons=3000"),
        ({"items_per_person": 0}, "items_per_person=0 must be above 0"),
        ({"kind": "sliding"}, "kind='sliding' must be"),
    ],
)
def test_a_mistake_is_told(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        compare_over_time(**GUESS | wrong, epsilon=1.0)  # type: ignore[arg-type]


def test_the_command_shows_all_three() -> None:
    words = "series plan --persons 3000 --items-per-person 4 --kth-count 300 --periods 12 -k 3"
    told = run(*words.split(), "--epsilon", "1", "--kind", "window", "--window", "4")
    assert told.returncode == 0, told.stderr
    assert all(way in told.stdout for way in ("independent", "schedule", "series"))
    plain = run(*words.split(), "--epsilon", "1", "--json")
    assert {way["name"] for way in json.loads(plain.stdout)["ways"]} == {
        "independent",
        "schedule",
        "series",
    }
