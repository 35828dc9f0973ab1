"""The arithmetic of budgets, and that a ledger never admits more than it says."""

import math
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from asking import request
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret.accounting import (
    NO_LOSS,
    Loss,
    approximate,
    failure,
    gaussian,
    limited_domain_loss,
    picks,
    pure,
    slack,
    zcdp,
)
from topsecret.errors import BudgetExceeded, InvalidParameter
from topsecret.exact.rounding import exact
from topsecret.ledger import Flexible, Ledger, Metered, Picks, Price, Reservation
from topsecret.ledger.amounts import as_text, from_text, on_grid
from topsecret.ledger.budget import PriceAtEpsilon, from_record

TOTAL = {"epsilon": 1, "delta": 1e-6}


def test_the_price_spends_the_total_and_no_more() -> None:
    budget = Metered.of(**TOTAL, queries=10, picks=50)
    assert budget.holds()
    assert budget.query_delta * 10 <= Fraction(1e-6) / 2
    # .0671 is the largest for all of δ; half of it goes to the thresholds.
    assert 0.0645 < budget.price < 0.0671
    dearer = Metered(
        budget.epsilon,
        budget.delta,
        budget.queries,
        budget.picks,
        budget.price * Fraction(100_005, 100_000),
        budget.query_delta,
    )
    assert not dearer.holds()


def test_a_flexible_budget_spends_the_total_and_no_more() -> None:
    budget = Flexible.of(**TOTAL)
    assert budget.holds()
    terms = (budget.epsilon, budget.delta, budget.rho * Fraction(10_001, 10_000))
    assert not Flexible(*terms, budget.failures, budget.slack).holds()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0}, "epsilon=0 must be above 0; 1 is a common choice"),
        ({"delta": 0}, "delta=0 must be above 0 and below 1, such as 1e-6"),
        ({"queries": 0}, "queries=0 must be a whole number, 1 or more"),
        ({"picks": 2.5}, "picks=2.5 must be a whole number, 1 or more"),
        ({"picks": 3}, "picks=3 must be at least queries=4: every query costs one or more"),
        (
            {"epsilon": 1e-9},
            "epsilon=1e-09 with delta=1e-06 is too small to be divided among 9 picks; "
            "raise it or lower picks",
        ),
    ],
)
def test_terms_are_checked(changes: dict[str, object], message: str) -> None:
    terms: dict[str, object] = {**TOTAL, "queries": 4, "picks": 9}
    with pytest.raises(InvalidParameter) as caught:
        Metered.of(**(terms | changes))  # type: ignore[arg-type]
    assert str(caught.value) == message


@pytest.mark.parametrize("budget", [Metered.of(**TOTAL, queries=2, picks=4), Flexible.of(**TOTAL)])
def test_terms_are_stored_exactly(budget: Metered | Flexible) -> None:
    assert from_record(budget.to_record()) == budget


@given(st.fractions(min_value=0, max_value=10))
def test_the_grid_rounds_up_and_by_next_to_nothing(value: Fraction) -> None:
    assert value <= on_grid(value) < value + Fraction(1, 2**256)
    assert from_text(as_text({"rho": on_grid(value)})) == ({"rho": on_grid(value)} if value else {})


def test_the_advice_of_a_flexible_budget_fits_and_is_nearly_the_largest() -> None:
    budget = Flexible.of(**TOTAL)

    def price_at(epsilon: float) -> Price:
        return Price(zcdp(exact(epsilon) ** 2 / 40) + failure(1e-8))

    left = {**budget.limits, "rho": budget.rho / 3}
    best = math.sqrt(40 * budget.rho / 3)
    advice = budget.advice(left, PriceAtEpsilon(0.9, price_at))
    shown = float(advice.removeprefix("the largest epsilon that fits is "))
    assert 0.97 * best < shown <= best
    spent = {**left, "rho": Fraction(0)}
    assert budget.advice(spent, PriceAtEpsilon(0.9, price_at)) == "nothing more fits"
    no_delta = {**left, "delta": Fraction(0)}
    assert budget.advice(no_delta, PriceAtEpsilon(0.9, price_at)) == (
        "its delta is used up; only questions without one fit, about a public domain"
    )
    third = {**left, "delta": Fraction(1, 3 * 10**8)}
    assert budget.advice(third, PriceAtEpsilon(0.9, price_at)) == (
        "no epsilon fits at this delta; ask with a delta that is at least 4 times smaller"
    )
    assert budget.advice(left, None) == "a smaller epsilon or delta may fit"


# Random adaptive sequences: each query depends on the answers so far and on what is left.

METERED = Metered.of(epsilon=1, delta=1e-6, queries=6, picks=14)
FLEXIBLE = Flexible.of(epsilon=1, delta=1e-6)
ENDS = ("settle", "settle", "settle", "fail", "release", "forget", "write off")


def end(ledger: Ledger, held: Reservation, how: str, symbols: int) -> bool:
    """Bring the reservation to an end; whether it may have released something."""
    if how == "settle":
        ledger.settle(held, {"symbols": symbols}, symbols)
    elif how == "fail":
        ledger.fail(held)
    elif how == "release":
        ledger.release(held)
    elif how == "write off":
        ledger.write_off(held.id)
    return how not in ("release", "write off")


@given(st.data())
@settings(max_examples=16)
def test_a_metered_sequence_loses_at_most_what_is_shown(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.db")
        ledger.open_budget("d", METERED, person="user")
        taken = asked = 0
        answers = 0
        for turn in range(data.draw(st.integers(1, 14))):
            left = int(ledger.account("d").left["picks"])
            k = max(1, data.draw(st.sampled_from([1, 2, 5, left, left + 1])) - answers % 2)
            terms = Picks(k, METERED.price, METERED.query_delta)
            price = Price(limited_domain_loss(k, METERED.price, METERED.query_delta), terms)
            try:
                held = ledger.reserve(request(k, turn, price=price))
            except BudgetExceeded:
                continue
            assert isinstance(held, Reservation)
            symbols = data.draw(st.integers(1, k))
            how = data.draw(st.sampled_from(ENDS))
            if end(ledger, held, how, symbols):
                taken += symbols if how == "settle" else k
                asked += 1
                answers += symbols
        account = ledger.account("d")
        epsilon, delta = account.budget.guarantee
        extra = Fraction(math.nextafter(taken * math.log1p(float(METERED.query_delta)), 1))
        lost = picks(taken, METERED.price) + slack(extra) + asked * failure(METERED.query_delta)
        assert lost.epsilon(delta) <= epsilon
        assert account.left == {"picks": 14 - taken, "queries": 6 - asked}
        assert min(account.left.values()) >= 0
        assert ledger.check().faults == ()
        ledger.close()


def offered(kind: str, size: float) -> tuple[Price, int]:
    """A query of some mechanism, and its most symbols."""
    if kind == "limited":
        k = 1 + round(9 * size)
        step, share = Fraction(size / 4 + 0.001), Fraction(3e-8)
        return Price(limited_domain_loss(k, step, share), Picks(k, step, share)), k
    loss: Loss = {
        "pure": pure(size / 3),
        "gaussian": gaussian(size / 40),
        "tested": zcdp(size / 80) + failure(size * 3e-7),
        "approximate": approximate(size / 3, size * 1e-7),
    }[kind]
    return Price(loss), 1


@given(st.data())
@settings(max_examples=16)
def test_a_flexible_sequence_loses_at_most_what_is_shown(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.db")
        ledger.open_budget("d", FLEXIBLE, person="user")
        lost, rho = NO_LOSS, 0.0
        shrink = 1.0
        for turn in range(data.draw(st.integers(1, 12))):
            kinds = ["limited", "pure", "gaussian", "tested", "approximate"]
            kind = data.draw(st.sampled_from(kinds))
            price, most = offered(kind, shrink * data.draw(st.floats(0.01, 1.0)))
            try:
                held = ledger.reserve(request(1, turn, price=price))
            except BudgetExceeded:
                shrink /= 2
                continue
            assert isinstance(held, Reservation)
            symbols = data.draw(st.integers(1, most))
            how = data.draw(st.sampled_from(ENDS))
            if end(ledger, held, how, symbols):
                if kind == "limited" and how == "settle":
                    assert price.picks is not None
                    true = picks(symbols, price.picks.epsilon)
                    lost += true + slack(price.loss.slack) + failure(price.loss.failures)
                    rho += symbols * float(price.picks.epsilon) ** 2 / 8
                else:
                    lost += price.loss
                    rho += price.loss.rho() or 0.0
                shrink = 1.0 if symbols % 2 else shrink
        account = ledger.account("d")
        epsilon, delta = account.budget.guarantee
        assert lost.epsilon(delta) <= epsilon
        assert lost.failures <= account.spent.get("delta", 0) <= FLEXIBLE.failures
        assert account.spent.get("rho", 0) == pytest.approx(rho, rel=1e-12)
        assert account.spent.get("rho", 0) <= FLEXIBLE.rho
        assert min(account.left.values()) >= 0
        assert ledger.check().faults == ()
        ledger.close()
