"""Rankings that a ledger pays for: once, under their own relation, whatever their length."""

from pathlib import Path

import pytest

from topsecret.errors import BudgetExceeded, InvalidParameter, TopSecretError
from topsecret.ledger import Flexible, Ledger
from topsecret.questions.rank_file import EACH_COMPARISON, rank_file
from topsecret.ranking import StrengthRanking


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.csv"
    rows = [f"v{n % 90},a,b" for n in range(400)] + [f"v{n % 90},b,c" for n in range(300)]
    path.write_text("\n".join(["voter,won,lost", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.db")


def ask(path: Path, ledger: Ledger, **more: object) -> StrengthRanking:
    asked = {"winner": "won", "loser": "lost", "epsilon": 1.0, "ledger": ledger, **more}
    found = rank_file(path, dataset="votes", **asked)  # type: ignore[arg-type]
    assert isinstance(found, StrengthRanking)
    return found


def test_a_ranking_is_paid_once_and_shorter_ones_are_free(votes: Path, ledger: Ledger) -> None:
    ledger.open_budget(
        "votes", Flexible.of(epsilon=8, delta=1e-6), person="voter", adjacency="outcomes"
    )
    person = {"person": "voter", "comparisons_per_person": 4}
    first = ask(votes, ledger, **person)
    again = ask(votes, ledger, **person, k=2)
    assert again.items == first.items[:2]
    assert again.strengths == first.strengths[:2]
    assert "of data set 'votes'" in dict(first.receipt)["Charged"]
    assert dict(again.receipt)["Charged"].startswith("nothing: this is the stored answer")
    with pytest.raises(BudgetExceeded):
        ask(votes, ledger, **person, tie=None, epsilon=5.0)


def test_another_relation_is_refused(votes: Path, ledger: Ledger) -> None:
    ledger.open_budget("votes", Flexible.of(epsilon=9, delta=1e-6), person="voter")
    with pytest.raises(TopSecretError, match="under add-remove; ask with these"):
        ask(votes, ledger, person="voter", comparisons_per_person=4)


def test_without_a_person_each_comparison_stands_for_itself(votes: Path, ledger: Ledger) -> None:
    ledger.open_budget(
        "votes", Flexible.of(epsilon=9, delta=1e-6), person=EACH_COMPARISON, adjacency="outcomes"
    )
    assert len(ask(votes, ledger).items) == 3
    with pytest.raises(InvalidParameter, match="a ledger pays for method='strength' alone"):
        ask(votes, ledger, method="counting")
    with pytest.raises(InvalidParameter, match="needs a ledger"):
        rank_file(votes, winner="won", loser="lost", epsilon=1, dataset="votes")
