""" "auto" asks the data whether picks or weights suit them, at a fixed price, unless it may not."""

from pathlib import Path

import pandas as pd
import pytest

from topsecret import top_k
from topsecret.counts.weights import Weights
from topsecret.errors import InvalidParameter
from topsecret.ledger import Flexible, Ledger
from topsecret.questions.answer import counted
from topsecret.questions.question import Question
from topsecret.results.release import Release
from topsecret.sources import CountQuery
from topsecret.sources.open_source import open_source

ASKED = {"item": "item", "person": "person", "k": 10, "epsilon": 1.0}
FEW = pd.DataFrame([(n, f"i{n % 12}") for n in range(700)], columns=["person", "item"])
MANY = pd.DataFrame(
    [(n, f"i{i}") for n in range(160) for i in range(80)], columns=["person", "item"]
)


def ask(source: object, **more: object) -> Release:
    return top_k(source, **(ASKED | more))  # type: ignore[arg-type]


def test_the_receipt_says_what_was_chosen_and_what_the_choice_cost() -> None:
    few, many = ask(FEW), ask(MANY)
    for release in (few, many):
        assert release.mechanism == "tested-or-weighted"
        assert 0 < release.parameters["epsilon_of_the_choice"] < 0.2  # type: ignore[operator]
        assert 0.99 < release.epsilon <= 1
    assert few.ending.endswith("chose one of two methods: the one by weighted people.")
    assert few.threshold.startswith(
        "its weighted people, with noise added, exceed a threshold of 45. With that many an item "
        "passes half of the time, and 98% of the time with 61. A person with up to 3 items counts"
    )
    capped = ask(FEW, max_items=2)
    assert "√" not in capped.threshold
    if capped.weighted is not None:
        assert "At most 2 items of a person count, each in full" in capped.threshold
    assert few.at_least is not None
    assert many.ending.endswith("chose one of two methods: the one that tests the whole list.")
    assert (
        "Only the 1600 largest items can be named. An item's lead is what it has more than the "
        "item ranked 1601 (0 people where there are fewer items)." in many.threshold
    )
    assert many.at_least is None
    assert many.items
    assert few.items


def test_the_charge_is_the_same_whatever_was_chosen(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    spent = []
    for name, frame in (("few", FEW), ("many", MANY)):
        ledger.open_budget(name, Flexible.of(epsilon=4, delta=1e-5), person="person")
        release = ask(frame, ledger=ledger, dataset=name, version="1")
        assert release.charge is not None
        spent.append(release.charge.to_dict() | {"dataset": "", "entry": 0})
        again = ask(frame, ledger=ledger, dataset=name, version="1")
        assert again.items == release.items
    assert spent[0] == spent[1]
    ledger.close()


def test_what_nobody_asked_for_is_not_in_the_fingerprint() -> None:
    """An answer that was stored before there was a choice is found again."""

    def fingerprint(**more: object) -> dict[str, object]:
        return dict(Question.of(**(ASKED | more)).fingerprint())  # type: ignore[arg-type]

    assert "choose" not in fingerprint()
    assert fingerprint(choose="private") == fingerprint()
    assert fingerprint(choose="public") == fingerprint() | {"choose": "public"}
    named = fingerprint(mechanism="tested")
    assert fingerprint(mechanism="tested", choose="public") == named


class Ranks:
    """A source that ranks and does nothing else."""

    name = "a ranking"

    def leading_counts(self, query: CountQuery) -> list[tuple[str, int]]:
        return [(f"i{n}", 900 - n) for n in range(20)]


@pytest.mark.parametrize(
    ("source", "more", "expected"),
    [
        (FEW, {"choose": "public"}, "tested"),
        (FEW, {"counts": True}, "tested"),
        (FEW, {"mechanism": "weighted"}, "weighted"),
        (Ranks(), {}, "tested"),
        (FEW, {"max_items": 2}, "weighted"),
        (FEW, {"k": 3}, "limited-domain"),
        (FEW, {"domain": [f"i{n}" for n in range(99)], "max_items": 2}, "weighted"),
        (FEW, {"domain": [f"i{n}" for n in range(99)], "max_items": 2, "counts": True}, "pruned"),
    ],
)
def test_where_the_data_are_not_asked(
    source: object, more: dict[str, object], expected: str
) -> None:
    assert ask(source, **more).mechanism == expected


def test_a_wrong_word_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="choose='both' must be 'private' or 'public'"):
        ask(FEW, choose="both")


@pytest.mark.parametrize("cap", [None, 105, 3])
def test_persons_are_counted_up_to_their_own_cap_and_not_that_of_the_weights(
    cap: int | None,
) -> None:
    """110 items of one person: weights know 100 of them, picks all of them or those of the cap."""
    items = [f"i{n:03}" for n in range(110)]
    frame = pd.DataFrame([("ada", item) for item in items], columns=["person", "item"])
    weights = Weights.share(cap)
    query = CountQuery("item", "person", 200, max_items=cap)
    with counted(open_source(frame, None), [query], weights=weights) as (histograms, _):
        [histogram] = histograms
        assert len(histogram.ranked(200)) == min(110, cap or 110)
        sums = histogram.weighted(weights).field()
        assert sums.sizes is not None
        kept = {int(s): int(n) for s, n in zip(sums.scores, sums.sizes, strict=True)}
    most = min(100, cap or 100)
    assert kept.pop(weights.of(most)) == most
    assert kept == ({0: min(110, cap or 110) - most} if (cap or 110) > 100 else {})


def test_a_label_of_sum_zero_is_never_named_by_weights() -> None:
    ledgerless = ask(
        pd.DataFrame(
            [(n, f"i{i}") for n in range(3) for i in range(110)], columns=["person", "item"]
        ),
        k="all",
        mechanism="weighted",
    )
    assert ledgerless.items == ()
