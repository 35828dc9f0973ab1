"""Whatever is tampered with is found, with its position."""

from fractions import Fraction

import pytest
from asking import metered, request
from sqlalchemy import create_engine, exc, text

from topsecret.ledger import Ledger, Reservation

UNLOCK = {
    "sqlite": ["DROP TRIGGER entries_no_update", "DROP TRIGGER entries_no_delete"],
    "postgresql": ["DROP TRIGGER entries_append_only ON entries"],
}


@pytest.fixture
def told(ledger: Ledger) -> Ledger:
    """Entries: 1 opened, 2 allowed, 3 reserved, 4 settled, 5 reserved, 6 failed, 7 reserved."""
    ledger.open_budget("d", metered(), person="user")
    ledger.allow("d", "ann", {"picks": Fraction(9), "queries": Fraction(4)})
    for turn in range(3):
        held = ledger.reserve(request(2, turn, analyst="ann", request_id=str(turn)))
        assert isinstance(held, Reservation)
        if turn == 0:
            ledger.settle(held, {"items": ["park"]}, symbols=1)
        elif turn == 1:
            ledger.fail(held)
    report = ledger.check()
    assert (report.entries, report.faults) == (7, ())
    return ledger


def tamper(place: str, *statements: str, unlock: bool = True) -> None:
    """Change the store behind the ledger's back, as its administrator could."""
    engine = create_engine(f"sqlite:///{place}" if "://" not in place else place)
    try:
        with engine.begin() as connection:
            for statement in (*(UNLOCK[engine.dialect.name] if unlock else ()), *statements):
                connection.execute(text(statement))
    finally:
        engine.dispose()


@pytest.mark.parametrize(
    ("statement", "position", "what"),
    [
        (
            "UPDATE entries SET body = replace(body, '\"2\"', '\"1\"') WHERE position = 3",
            3,
            "it was changed: its hash is not that of its content",
        ),
        (
            "UPDATE entries SET time = '2020-01-01' WHERE position = 5",
            5,
            "it was changed: its hash is not that of its content",
        ),
        (
            "UPDATE entries SET body = 'x' WHERE position = 2",
            2,
            "its content is not that of an entry 'allowed'",
        ),
        ("DELETE FROM entries WHERE position = 4", 5, "entry 4 is missing before it"),
        (
            "DELETE FROM entries WHERE position = 7",
            6,
            "the chain must end with entry 7: entries are missing or added",
        ),
        (
            "INSERT INTO entries SELECT dataset, 8, time, event, body, previous, hash "
            "FROM entries WHERE position = 7",
            8,
            "it was changed: its hash is not that of its content",
        ),
        ("UPDATE datasets SET spent = '{}'", 7, "the dataset's row has another sum"),
        ("UPDATE datasets SET state = 'closed'", 7, "the dataset's row has another state"),
        ("UPDATE datasets SET person = 'row'", 1, "the dataset's row has other terms"),
        (
            'UPDATE datasets SET terms = replace(terms, \'"picks":"20"\', \'"picks":"99"\')',
            1,
            "the dataset's row has other terms",
        ),
        ("DELETE FROM datasets", 7, "the dataset's row is missing"),
        ("UPDATE allowances SET spent = '{}'", 2, "the allowance of 'ann' is another"),
        ("DELETE FROM allowances", 2, "the allowance of 'ann' is another"),
        (
            "UPDATE reservations SET state = 'released' WHERE position = 7",
            7,
            "the row of reservation",
        ),
        ("UPDATE reservations SET cost = '{}' WHERE position = 5", 6, "the row of reservation"),
        ("UPDATE reservations SET cost = 'x' WHERE position = 5", 6, "the row of reservation"),
        ("DELETE FROM reservations WHERE position = 3", 4, "the row of reservation"),
        ("UPDATE answers SET answer = '{}'", 4, "the stored answer of reservation"),
        ("DELETE FROM answers", 4, "the stored answer of reservation"),
    ],
)
def test_a_tampered_row_is_found(
    told: Ledger, place: str, statement: str, position: int, what: str
) -> None:
    tamper(place, statement)
    found = [fault for fault in told.check().faults if fault.position == position]
    assert any(what in fault.what for fault in found)
    assert str(found[0]).startswith(f"dataset 'd', entry {position}: ")


def test_a_rewritten_chain_has_another_end(told: Ledger, place: str) -> None:
    """Whoever forges everything is found by the end that was noted elsewhere."""
    from topsecret.ledger import Entry

    noted = told.check().heads
    last = told.history("d")[-1]
    forged = Entry.at(
        "d", last.position, last.previous, "reserved", last.record, "2020-01-01T00:00:00"
    )
    tamper(
        place,
        f"UPDATE entries SET hash = '{forged.hash}', time = '{forged.time}' WHERE position = 7",
        f"UPDATE datasets SET head = '{forged.hash}'",
        f"UPDATE reservations SET time = '{forged.time}' WHERE position = 7",
    )
    report = told.check()
    assert report.faults == ()
    assert report.heads != noted


def test_terms_that_do_not_keep_to_the_total_are_found(ledger: Ledger) -> None:
    from dataclasses import replace

    ledger.open_budget("d", replace(metered(), price=Fraction(1)), person="user")
    (fault,) = ledger.check().faults
    assert str(fault) == ("dataset 'd', entry 1: the terms of the budget do not keep to its total")


@pytest.mark.parametrize("statement", ["UPDATE entries SET time = ''", "DELETE FROM entries"])
def test_entries_are_append_only(told: Ledger, place: str, statement: str) -> None:
    with pytest.raises(exc.DBAPIError, match="entries are append-only"):
        tamper(place, statement, unlock=False)
    assert told.check().faults == ()
