"""Where a paid query waits: a program that shows answers at fixed times brings its own pace.

How long an engine counts depends on the data, and so would the moment at which a reservation ends
and gives back what was not used. ``Ledger.paced`` makes that moment the program's to choose.

>>> from topsecret.ledger.settlement_time import SettlementTime
>>> SettlementTime().longer
0.0
"""

from __future__ import annotations

import time


class SettlementTime:
    """No waiting but for others; override what is needed. It never sees the data or an answer."""

    longer: float = 0.0
    """Seconds that a reservation may live longer than usual because of this pace."""

    def polling(self, seconds: float) -> None:
        """Another client has the same question under way: look again after so many seconds."""
        time.sleep(seconds)

    def outwaited(self, analyst: str, request_id: str | None) -> None:
        """Another client's reservation for the same question, or request, is older than usual.

        Without an exception from here it counts as in doubt, and the question is paid for again.

        Parameters: ``analyst``: whose it is; ``request_id``: its name; None for none.
        """

    def reading(self) -> None:
        """The reservation is durable and no row was read yet.

        A ``DataIndependentFailure`` raised here gives the reservation back.
        """

    def drawn(self) -> None:
        """The answer is drawn, and nobody has it yet. What is raised here fails the query."""

    def ending(self) -> None:
        """The query has its end, good or bad, and the ledger is not told yet."""
