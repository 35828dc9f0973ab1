"""What the receipt of a series' list says: of all lists together, and who paid."""

from pathlib import Path
from typing import Any

import continued
import pytest

from topsecret import Series
from topsecret.ledger import Flexible, Ledger

MONDAY = "2026-01-12"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    rows = "".join(f"2026-01-06,u{person},w0\n" for person in range(400))
    (tmp_path / "visits.csv").write_text("day,user,place\n" + rows)
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("visits", Flexible.of(epsilon=9, delta=1e-3), person="user")
    return ledger


def series(tmp_path: Path, ledger: Ledger, **other: Any) -> Series:
    given = continued.terms(tmp_path) | {"ledger": ledger} | other
    return Series(str(tmp_path / "visits.csv"), **given)


def test_a_receipt_speaks_of_all_lists_and_who_paid(tmp_path: Path, ledger: Ledger) -> None:
    shown = series(tmp_path, ledger, max_counts=4).run(MONDAY).release
    assert shown is not None
    assert shown.title.endswith("by number of people counted, each of whom has 4 counts for life")
    receipt = dict(shown.receipt)
    assert receipt["Budget"] == (
        "paid in advance from dataset 'visits', with all lists of series 'weekly'. Showing this "
        "list again costs nothing."
    )
    assert (
        "This holds also against someone who knows all rows of everybody else, for all lists of "
        "series 'weekly' together, 4 at most, under what 'Assumes' says; answers outside of the "
        "series weaken it." in receipt["Guarantee"]
    )
    assert "one answer" not in receipt["Guarantee"]
    assert "without the lists, is right at most" in receipt["Guarantee"]
    assert "people who have it may have had no counts left; or" in receipt["Missing items"]
    assert receipt["Named when"].startswith(
        "somebody had it, and its noisy number of counted people exceeded the threshold of a "
        "period, this one or an earlier one; it is known from then on. That of this period is "
    )
    assert receipt["The list"].startswith("has the one item that is known so far.")
    assert shown.to_dict()["paid_in_advance"]["dataset"] == "visits"  # type: ignore[index]
    window = series(tmp_path, ledger, kind="window", window=2, name="two").run(MONDAY).release
    assert window is not None
    assert "counted in the last 2 periods, each of whom has 3 counts for life" in window.title
