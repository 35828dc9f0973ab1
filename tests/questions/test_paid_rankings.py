"""Rankings are paid for from a ledger, once."""

from dataclasses import replace
from pathlib import Path

import pytest

from topsecret.errors import BudgetExceeded, InvalidParameter
from topsecret.ledger import Flexible, Ledger
from topsecret.questions.rank_file import rank_file
from topsecret.ranking import Ranking, StrengthRanking


@pytest.fixture
def games(tmp_path: Path) -> Path:
    rows = ["ada,bob"] * 900 + ["bob,eve"] * 500 + ["ada,eve"] * 950
    path = tmp_path / "games.csv"
    path.write_text("winner,loser\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("method", ["strength", "counting"])
def test_a_ranking_is_paid_for_once(tmp_path: Path, games: Path, method: str) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    budget = Flexible.of(epsilon=2, delta=1e-6)
    ledger.open_budget("league", budget, person="each comparison", adjacency="outcomes")
    ledger.open_budget("persons", budget, person="user")

    def ask(dataset: str = "league", epsilon: float = 0.2) -> Ranking | StrengthRanking:
        return rank_file(
            games,
            winner="winner",
            loser="loser",
            epsilon=epsilon,
            method=method,  # type: ignore[arg-type]
            ledger=ledger,
            dataset=dataset,
        )

    first = ask()
    spent = ledger.account("league").spent
    assert spent["rho"] > 0
    again = ask()
    assert replace(again, charge=first.charge) == first
    assert dict(first.receipt)["Budget"] == (
        "24% of the budget of dataset 'league' (entry 2), not 24% of epsilon: many answers "
        "together cost less than the sum of their epsilons; all answers from it together, this one "
        "included: epsilon at most 2, delta at most 1e-06."
    )
    assert dict(again.receipt)["Budget"].startswith("nothing: this is the stored answer")
    assert first.to_dict()["charge"]["dataset"] == "league"  # type: ignore[index]
    assert ledger.account("league").spent == spent
    with pytest.raises(InvalidParameter, match="protects people identified by 'user'"):
        ask("persons")
    with pytest.raises(BudgetExceeded):
        ask(epsilon=5.0)
    assert ledger.check().faults == ()
    ledger.close()
