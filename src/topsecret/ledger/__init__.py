"""The ledger: what was asked, what it cost, what is left; durable, shared, paid in advance.

>>> from topsecret.ledger import Metered
>>> Metered.of(epsilon=1, delta=1e-6, queries=10, picks=50).limits
{'picks': Fraction(50, 1), 'queries': Fraction(10, 1)}
"""

from topsecret.errors import MissingExtra

try:
    import sqlalchemy  # noqa: F401  # asked for here, so that the error names the extra
except ImportError:
    raise MissingExtra(
        "the ledger needs SQLAlchemy: pip install '.[ledger]' in the checkout"
    ) from None

from topsecret.ledger.account import Account, Allowance, Pending
from topsecret.ledger.audit import Fault, Report
from topsecret.ledger.budget import Flexible, Metered, Picks, Price, PriceAtEpsilon
from topsecret.ledger.chain import Entry
from topsecret.ledger.ledger import Ledger
from topsecret.ledger.payment import FirstForm, Request, Reservation, Stored, paid
from topsecret.ledger.settlement_time import SettlementTime

__all__ = [
    "Account",
    "Allowance",
    "Entry",
    "Fault",
    "FirstForm",
    "Flexible",
    "Ledger",
    "Metered",
    "Pending",
    "Picks",
    "Price",
    "PriceAtEpsilon",
    "Report",
    "Request",
    "Reservation",
    "SettlementTime",
    "Stored",
    "paid",
]
