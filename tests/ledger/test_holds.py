"""What is held for questions to come, on every store: paid in advance, and never twice."""

from collections.abc import Sequence
from fractions import Fraction

import pytest
from asking import flexible, metered, request
from sqlalchemy import Connection, update

from topsecret.cli import main
from topsecret.errors import BudgetExceeded, InvalidParameter
from topsecret.ledger import Ledger, Reservation, Stored
from topsecret.ledger import ledger as ledger_module
from topsecret.ledger.holds import Holds
from topsecret.ledger.schema import RESERVATIONS

ANSWER = {"items": ["park"]}
COST = {"picks": Fraction(3), "queries": Fraction(1)}
SHARE = {"picks": Fraction(12), "queries": Fraction(4)}


def left(ledger: Ledger) -> tuple[int, int]:
    """Of the dataset and of ann's share, which are alike as long as she alone spends."""
    account = ledger.account("d")
    (ann,) = account.allowances
    assert ledger.check().faults == ()
    assert account.spent.get("picks", 0) == ann.spent.get("picks", 0)
    return int(account.left["picks"]), int(account.left["queries"])


def reserved(ledger: Ledger, held: str, k: int = 3, question: str = "q") -> Reservation | Stored:
    return ledger.paying_from(held).reserve(request(k, question, analyst="ann"))


@pytest.fixture
def held(ledger: Ledger) -> list[str]:
    ledger.open_budget("d", metered(picks=12, queries=4), person="user")
    ledger.allow("d", "ann", SHARE)
    return Holds(ledger).hold("d", "ann", COST, 3)


def test_what_is_held_is_spent_once_and_what_is_not_needed_is_given_back(
    ledger: Ledger, held: list[str]
) -> None:
    assert left(ledger) == (3, 1)
    account = ledger.account("d")
    assert ([one.id for one in account.held], account.pending) == (held, ())
    with pytest.raises(BudgetExceeded):  # nobody else spends it
        ledger.reserve(request(4, "other", analyst="ann"))
    first = reserved(ledger, held[0])
    assert isinstance(first, Reservation)
    assert left(ledger) == (3, 1)  # it took the place of what was held
    ledger.settle(first, ANSWER, symbols=1)
    assert left(ledger) == (5, 1)
    # The same question again is free, and what was held for it is given back with the answer.
    assert isinstance(reserved(ledger, held[1]), Stored)
    assert left(ledger) == (8, 2)
    # What was used or given back pays for nothing more, and is not given back again.
    for one in (held[0], held[1]):
        Holds(ledger).give_back("d", lambda _, one=one: [one])  # type: ignore[misc]
        found = reserved(ledger, one, 3, f"more of {one}")
        assert isinstance(found, Reservation)
        ledger.release(found)
    assert left(ledger) == (8, 2)
    Holds(ledger).give_back("d", lambda _: held)
    assert left(ledger) == (11, 3)


def test_what_is_given_back_unread_is_held_again(ledger: Ledger, held: list[str]) -> None:
    told: list[str] = []
    paying = ledger.paying_from(held[0], lambda _, name: told.append(name))
    first = paying.reserve(request(3, "q", analyst="ann"))
    assert isinstance(first, Reservation)
    paying.release(first)
    assert left(ledger) == (3, 1)  # nobody else spends it meanwhile
    assert [one.id for one in ledger.account("d").held] == [*held[1:], *told]
    second = reserved(ledger, told[0])
    assert isinstance(second, Reservation)
    ledger.settle(second, ANSWER, symbols=3)
    assert left(ledger) == (3, 1)
    # A question that had nothing held, or no longer, leaves nothing held.
    for nothing in (None, held[0]):
        paying = ledger.paying_from(nothing, lambda _, name: told.append(name))
        found = paying.reserve(request(3, "other", analyst="ann"))
        assert isinstance(found, Reservation)
        paying.release(found)
        assert (left(ledger), len(told)) == ((3, 1), 1)


def test_a_question_that_needs_more_takes_the_rest_from_what_is_left(
    ledger: Ledger, held: list[str]
) -> None:
    found = reserved(ledger, held[0], 6)
    assert isinstance(found, Reservation)
    assert left(ledger) == (0, 1)
    # What does not fit even so is refused, and what was held for it is given back.
    with pytest.raises(BudgetExceeded):
        reserved(ledger, held[1], 4, "too much")
    assert left(ledger) == (3, 2)


def test_a_process_that_dies_leaves_it_held(
    ledger: Ledger, held: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ledger_module, "admitted", killed)
        with pytest.raises(KeyboardInterrupt):
            reserved(ledger, held[0])
    assert [one.id for one in ledger.account("d").held] == held

    def killed_while_noting(*_: object) -> Sequence[str]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Holds(ledger).give_back("d", killed_while_noting)
    with pytest.raises(KeyboardInterrupt):
        Holds(ledger).hold("d", "ann", COST, 1, killed_while_noting)  # type: ignore[arg-type]
    assert left(ledger) == (3, 1)


def test_all_of_it_is_held_or_nothing(ledger: Ledger, held: list[str]) -> None:
    with pytest.raises(BudgetExceeded, match="2 times may need 6 items and 2 queries") as error:
        Holds(ledger).hold("d", "ann", COST, 2)
    assert error.value.left["picks"] == 3
    for cost, times in ((COST, 0), ({"picks": Fraction(-1)}, 1)):
        with pytest.raises(InvalidParameter):
            Holds(ledger).hold("d", "ann", cost, times)
    with pytest.raises(InvalidParameter, match="no allowance"):
        Holds(ledger).hold("d", "bob", COST, 1)
    with pytest.raises(InvalidParameter, match="is held, not in doubt"):
        ledger.write_off(held[0])
    assert left(ledger) == (3, 1)
    # A share that was lowered below what is spent of it admits nothing.
    ledger.allow("d", "ann", {"picks": Fraction(2), "queries": Fraction(4)})
    with pytest.raises(BudgetExceeded):
        reserved(ledger, held[0])
    ledger.close_budget("d")
    with pytest.raises(InvalidParameter, match="closed"):
        Holds(ledger).hold("d", "ann", COST, 1)
    with pytest.raises(InvalidParameter, match="closed"):
        reserved(ledger, held[1])
    Holds(ledger).give_back("d", lambda _: held)  # also from a closed budget
    assert not any(ledger.account("d").spent.values())
    assert ledger.check().faults == ()


def test_the_audit_knows_what_is_held(ledger: Ledger, held: list[str]) -> None:
    def changed(connection: Connection) -> list[str]:
        one = RESERVATIONS.c.id == held[0]
        connection.execute(update(RESERVATIONS).where(one).values(state="reserved"))
        return []

    Holds(ledger).give_back("d", changed)
    (fault,) = ledger.check().faults
    assert fault.what == f"the row of reservation {held[0]} is another"


def test_a_flexible_budget_holds_rho(
    ledger: Ledger, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger.open_budget("d", flexible(), person="user")
    cost = {"rho": Fraction(1, 1000), "delta": Fraction(1, 2**40)}
    Holds(ledger).hold("d", "", cost, 10)
    assert ledger.account("d").left["rho"] == 0
    assert ledger.check().faults == ()
    with pytest.raises(SystemExit, match=r"^0$"):
        main(("budget", "show", "d", "--ledger", place))
    assert "paid in advance: 10 questions" in capsys.readouterr().out
