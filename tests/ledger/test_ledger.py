"""What a ledger does, on every store."""

import threading
from fractions import Fraction

import pytest
from asking import flexible, limited, metered, request

from topsecret.accounting import GaussianSelection, approximate, pure, rdp
from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.errors import BudgetExceeded, InDoubt, InvalidParameter
from topsecret.ledger import Ledger, Price, Reservation, Stored
from topsecret.ledger.publications import Publications

ANSWER = {"items": ["park", "pier"]}


def reserved(found: Reservation | Stored) -> Reservation:
    assert isinstance(found, Reservation)
    return found


def left(ledger: Ledger) -> dict[str, Fraction]:
    return dict(ledger.account("d").left)


def test_a_query_pays_for_the_symbols_it_returned(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(), person="user")
    held = reserved(ledger.reserve(request(10)))
    assert left(ledger) == {"picks": 10, "queries": 3}
    stored = ledger.settle(held, ANSWER, symbols=3)
    assert left(ledger) == {"picks": 17, "queries": 3}
    assert (stored.answer, stored.fresh) == (ANSWER, True)
    assert ledger.account("d").summary == "17 of 20 items left, 3 of 4 queries left"


def test_a_flexible_query_gets_unused_picks_back_and_no_delta(ledger: Ledger) -> None:
    budget = flexible()
    ledger.open_budget("d", budget, person="user")
    price = limited(10, Fraction(1, 16))
    ledger.settle(reserved(ledger.reserve(request(price=price))), ANSWER, symbols=4)
    spent = ledger.account("d").spent
    assert spent["rho"] == 4 * Fraction(1, 16) ** 2 / 8
    assert spent["delta"] == price.loss.failures
    assert spent["slack"] == price.loss.slack


def test_a_flexible_budget_takes_whatever_has_a_rho(ledger: Ledger) -> None:
    ledger.open_budget("d", flexible(), person="user")
    price = Price(approximate(Fraction(1, 100), Fraction(1, 2**20)))
    ledger.settle(reserved(ledger.reserve(request(price=price))), ANSWER, symbols=2)
    assert ledger.account("d").spent["rho"] == Fraction(price.loss.rho() or 0)
    other = request(question="other", price=Price(rdp("selection", GaussianSelection(1.0, 5))))
    with pytest.raises(InvalidParameter, match="counts in zCDP, and this mechanism has none"):
        ledger.reserve(other)


def test_a_metered_budget_takes_picks_at_its_price_alone(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(), person="user")
    with pytest.raises(InvalidParameter, match="pays for limited-domain picks alone"):
        ledger.reserve(request(price=Price(pure(Fraction(1, 100)))))
    with pytest.raises(InvalidParameter, match="must be at most the budget's"):
        ledger.reserve(request(price=limited(1, Fraction(1, 100))))
    with pytest.raises(InvalidParameter, match="must be at most the budget's"):
        ledger.reserve(request(price=limited(1, delta=Fraction(1, 100))))
    assert left(ledger) == {"picks": 20, "queries": 4}


def test_a_query_that_does_not_fit_says_what_would(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(picks=12), person="user")
    ledger.settle(reserved(ledger.reserve(request(5, 0))), ANSWER, symbols=5)
    with pytest.raises(BudgetExceeded) as caught:
        ledger.reserve(request(8, 1))
    assert str(caught.value) == (
        "the query may need 8 items, and dataset 'd' has 7 items left for it; "
        "the largest k that fits is 7"
    )
    assert caught.value.needed == {"picks": 8, "queries": 1}
    assert caught.value.left == {"picks": 7, "queries": 3}
    assert len(ledger.history("d")) == 3


def test_no_query_left(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(queries=1), person="user")
    ledger.settle(reserved(ledger.reserve(request(1, 0))), ANSWER, symbols=1)
    with pytest.raises(BudgetExceeded) as caught:
        ledger.reserve(request(1, 1))
    assert str(caught.value) == (
        "the query may need 1 query, and dataset 'd' has 0 queries left for it; nothing more fits"
    )


def test_the_same_question_is_answered_for_nothing(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(), person="user")
    first = ledger.settle(reserved(ledger.reserve(request())), ANSWER, symbols=3)
    before = left(ledger)
    again = ledger.reserve(request())
    assert isinstance(again, Stored)
    assert (again.answer, again.fresh, again.position) == (first.answer, False, first.position)
    assert left(ledger) == before
    assert isinstance(ledger.reserve(request(4)), Reservation)


def test_a_stored_answer_outlives_a_closed_and_a_spent_budget(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(picks=3, queries=1), person="user")
    ledger.settle(reserved(ledger.reserve(request())), ANSWER, symbols=3)
    ledger.close_budget("d")
    assert isinstance(ledger.reserve(request()), Stored)
    with pytest.raises(InvalidParameter, match=r"'d' is closed and .*; ask its owner"):
        ledger.reserve(request(1))
    with pytest.raises(InvalidParameter, match="is closed already; nothing is left to do"):
        ledger.close_budget("d")


def test_a_request_id_makes_a_retry_safe(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(), person="user")
    held = reserved(ledger.reserve(request(request_id="r1")))
    with pytest.raises(InDoubt, match="request_id='r1' is under way elsewhere or was cut short"):
        ledger.reserve(request(request_id="r1"), wait=0)
    ledger.settle(held, ANSWER, symbols=3)
    again = ledger.reserve(request(request_id="r1"))
    assert isinstance(again, Stored)
    assert again.answer == ANSWER
    with pytest.raises(InvalidParameter, match="request_id='r1' was used for another question"):
        ledger.reserve(request(5, request_id="r1"))
    assert left(ledger) == {"picks": 17, "queries": 3}


def test_clients_with_one_request_id_get_one_answer(ledger: Ledger) -> None:
    """Whoever comes second waits for the first."""
    ledger.open_budget("d", metered(), person="user")
    answers: list[object] = []
    start = threading.Barrier(8)

    def client(number: int) -> None:
        start.wait()
        found = ledger.reserve(request(request_id="r"))
        if isinstance(found, Reservation):
            found = ledger.settle(found, {"drawn by": number}, symbols=3)
        answers.append(found.answer["drawn by"])

    threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert len(set(answers)) == 1
    assert left(ledger) == {"picks": 17, "queries": 3}


def test_request_ids_of_two_analysts_do_not_meet(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(), person="user")
    assert isinstance(ledger.reserve(request(1, analyst="ann", request_id="1")), Reservation)
    assert isinstance(ledger.reserve(request(2, analyst="bob", request_id="1")), Reservation)


def test_an_unsettled_reservation_is_in_doubt_until_the_owner_writes_it_off(
    ledger: Ledger,
) -> None:
    ledger.open_budget("d", metered(), person="user")
    held = reserved(ledger.reserve(request(request_id="r")))
    (pending,) = ledger.account("d").pending
    assert (pending.id, pending.cost) == (held.id, {"picks": 3, "queries": 1})
    ledger.write_off(held.id)
    assert left(ledger) == {"picks": 20, "queries": 4}
    assert ledger.account("d").pending == ()
    with pytest.raises(InDoubt, match="is written off by now; its answer is not shown"):
        ledger.settle(held, ANSWER, symbols=3)
    with pytest.raises(InvalidParameter, match="is written off, not in doubt"):
        ledger.write_off(held.id)
    assert isinstance(ledger.reserve(request(request_id="r")), Reservation)
    assert ledger.check().faults == ()


def test_only_a_reservation_in_doubt_is_written_off(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(), person="user")
    held = reserved(ledger.reserve(request()))
    ledger.settle(held, ANSWER, symbols=3)
    with pytest.raises(InvalidParameter, match="is settled, not in doubt"):
        ledger.write_off(held.id)
    with pytest.raises(InvalidParameter, match="'none'; topsecret budget show lists"):
        ledger.write_off("none")


def test_a_failure_stays_charged_and_a_release_does_not(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(), person="user")
    ledger.fail(reserved(ledger.reserve(request(3, request_id="f"))))
    assert left(ledger) == {"picks": 17, "queries": 3}
    with pytest.raises(InvalidParameter, match="request_id='f' failed after it was charged"):
        ledger.reserve(request(3, request_id="f"))
    ledger.release(reserved(ledger.reserve(request(4, request_id="g"))))
    assert left(ledger) == {"picks": 17, "queries": 3}
    assert isinstance(ledger.reserve(request(4, request_id="g")), Reservation)


def test_allowances_bind_inside_the_total(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(picks=20, queries=10), person="user")
    ledger.settle(reserved(ledger.reserve(request(2, 0, analyst="ann"))), ANSWER, symbols=2)
    ledger.allow("d", "ann", {"picks": Fraction(8), "queries": Fraction(5)})
    ledger.allow("d", "bob", {"picks": Fraction(100), "queries": Fraction(5)})
    with pytest.raises(BudgetExceeded, match="has 6 items left for it"):
        ledger.reserve(request(7, 1, analyst="ann"))
    with pytest.raises(BudgetExceeded, match="has 18 items left for it"):
        ledger.reserve(request(19, 1, analyst="bob"))
    with pytest.raises(InvalidParameter, match="analyst 'eve' has no allowance"):
        ledger.reserve(request(1, 1, analyst="eve"))
    with pytest.raises(InvalidParameter, match="a query without analyst has no allowance"):
        ledger.reserve(request(1, 1))
    ledger.settle(reserved(ledger.reserve(request(6, 1, analyst="ann"))), ANSWER, symbols=1)
    ann, bob = ledger.account("d").allowances
    assert ann.left == {"picks": 5, "queries": 3}
    assert bob.spent == {}
    # Lists that are paid for at once are taken from the share, too.
    series = request(2, "series", analyst="ann")
    Publications(ledger).open(series, "weekly", {"k": 2})
    ann, _ = ledger.account("d").allowances
    assert ann.left == {"picks": 3, "queries": 2}
    assert ledger.check().faults == ()


@pytest.mark.parametrize(("picks", "queries"), [(0, 0), (0, 4), (20, 0)])
def test_an_allowance_of_nothing_allows_nothing(ledger: Ledger, picks: int, queries: int) -> None:
    ledger.open_budget("d", metered(), person="user")
    ledger.allow("d", "eve", {"picks": Fraction(picks), "queries": Fraction(queries)})
    with pytest.raises(BudgetExceeded, match=r"has 0 .*; nothing more fits"):
        ledger.reserve(request(1, analyst="eve"))
    (share,) = ledger.account("d").allowances
    assert share.limits == share.left == {"picks": picks, "queries": queries}
    assert left(ledger) == {"picks": 20, "queries": 4}
    assert ledger.check().faults == ()


def test_an_allowance_of_nothing_from_a_flexible_budget(ledger: Ledger) -> None:
    ledger.open_budget("d", flexible(), person="user")
    ledger.allow("d", "eve", dict.fromkeys(flexible().limits, Fraction(0)))
    with pytest.raises(BudgetExceeded, match="nothing more fits"):
        ledger.reserve(request(1, analyst="eve"))


def test_an_allowance_states_the_budgets_resources(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(), person="user")
    with pytest.raises(InvalidParameter, match="an allowance from dataset 'd' states picks, q"):
        ledger.allow("d", "ann", {"rho": Fraction(1)})


def test_a_budget_protects_one_unit(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(), person="user")
    for unit in (PrivacyUnit("session"), PrivacyUnit("user", adjacency="replace")):
        with pytest.raises(InvalidParameter, match="protects people identified by 'user'"):
            ledger.reserve(request(unit=unit))


def test_a_data_set_has_one_budget(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(), person="user")
    with pytest.raises(InvalidParameter, match="dataset 'd' has a budget already"):
        ledger.open_budget("d", metered(), person="user")
    with pytest.raises(InvalidParameter, match="dataset 'e' has no budget"):
        ledger.account("e")
    with pytest.raises(InvalidParameter, match="dataset 'e' has no budget"):
        ledger.reserve(request(dataset="e"))
    assert ledger.datasets() == ["d"]


@pytest.mark.parametrize("name", ["", "a\x00b", "a\nb", "x" * 201, 7])
def test_names_are_printable(ledger: Ledger, name: str) -> None:
    with pytest.raises(InvalidParameter, match="must be a printable text of 1 to 200 characters"):
        ledger.open_budget(name, metered(), person="user")


def test_what_was_written_is_there_for_the_next_program(place: str) -> None:
    first = Ledger(place)
    first.open_budget("d", flexible(), person="user")
    first.settle(reserved(first.reserve(request())), ANSWER, symbols=2)
    first.close()
    second = Ledger(place)
    assert second.account("d").budget == flexible()
    assert [entry.event for entry in second.history("d")] == ["opened", "reserved", "settled"]
    second.close()


def test_answers_keep_any_text(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(), person="user")
    answer: dict[str, object] = {"items": ["\x00", "\ud800", "é", 7, True, 10**30, "'; --"]}
    ledger.settle(reserved(ledger.reserve(request())), answer, symbols=2)
    again = ledger.reserve(request())
    assert isinstance(again, Stored)
    assert again.answer == answer
    assert ledger.check().faults == ()


def test_an_answer_has_at_most_the_symbols_that_were_reserved(ledger: Ledger) -> None:
    ledger.open_budget("d", metered(), person="user")
    held = reserved(ledger.reserve(request(3)))
    for symbols in (-1, 4):
        with pytest.raises(InvalidParameter, match=f"symbols={symbols} must lie between 0 and the"):
            ledger.settle(held, ANSWER, symbols)
