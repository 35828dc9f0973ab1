"""Requests and budgets in few words."""

from fractions import Fraction

from topsecret.accounting import limited_domain_loss
from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.ledger import Flexible, Metered, Picks, Price, Request

USER = PrivacyUnit("user")
PRICE = Fraction(1, 2**12)
QUERY_DELTA = Fraction(1, 2**30)


def metered(*, picks: int = 20, queries: int = 4) -> Metered:
    """A metered budget whose price needs no calibration: basic composition proves it."""
    return Metered(Fraction(2), Fraction(1, 10), queries, picks, PRICE, QUERY_DELTA)


def flexible(*, rho: Fraction = Fraction(1, 100)) -> Flexible:
    return Flexible(Fraction(2), Fraction(1, 1000), rho, Fraction(1, 2000), Fraction(1, 100))


def limited(k: int, epsilon: Fraction = PRICE, delta: Fraction = QUERY_DELTA) -> Price:
    return Price(limited_domain_loss(k, epsilon, delta), Picks(k, epsilon, delta))


def request(
    k: int = 3,
    question: object = "q",
    *,
    dataset: str = "d",
    price: Price | None = None,
    analyst: str | None = None,
    request_id: str | None = None,
    unit: PrivacyUnit = USER,
) -> Request:
    return Request(
        dataset=dataset,
        price=limited(k) if price is None else price,
        question={"q": question, "k": k},
        unit=unit,
        analyst=analyst,
        request_id=request_id,
    )
