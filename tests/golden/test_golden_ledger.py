"""Answers that an earlier version stored are found, and cost nothing."""

from contextlib import closing
from pathlib import Path

import pytest
from golden_questions import ask_all, place_data

from topsecret.ledger import Ledger
from topsecret.results.group_releases import Releases


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    place_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    return Ledger("ledger.db")


@pytest.mark.filterwarnings("ignore:counts_share")
def test_every_stored_answer_is_found_and_free(ledger: Ledger) -> None:
    with closing(ledger):
        before = {name: ledger.account(name).spent for name in ledger.datasets()}
        asked = 0
        for name, release in ask_all(ledger):
            one = next(iter(release.values())) if isinstance(release, Releases) else release
            assert one.charge is not None
            assert one.charge.stored, f"{name} was paid for again"
            asked += 1
        assert asked == 11
        assert {name: ledger.account(name).spent for name in ledger.datasets()} == before
        assert ledger.check().faults == ()
