"""The order of events of a paid query, in one place (docs/ledger.md says why)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from topsecret.errors import DataIndependentFailure, LedgerError
from topsecret.ledger.ledger import Ledger
from topsecret.ledger.request import Request, Stored

Drawn = tuple[Mapping[str, object], int]
"""An answer and how many symbols it has."""


def paid(ledger: Ledger, request: Request, read_and_draw: Callable[[], Drawn]) -> Stored:
    """Reserve durably → read → draw → store and settle in one transaction → hand out.

    | it ends | the reservation | the answer |
    | --- | --- | --- |
    | before ``reserve`` returned | spent or not, in doubt if spent | none was drawn |
    | by a failure that no row can influence | given back | none was drawn |
    | by any other failure | charged in full, *failed* | not shown |
    | by a crash before ``settle`` returned | charged in full, *in doubt*, or settled | not shown |
    | in ``settle`` | as far as the answer went | stored, shown, and shown again free of charge |

    Between drawing and settling, ``Ledger.paced`` may wait: the ledger then moves at fixed times.
    """
    reserved = ledger.reserve(request)
    if isinstance(reserved, Stored):
        return reserved
    try:
        ledger.pace.reading()
        answer, symbols = read_and_draw()
        ledger.pace.drawn()
    except DataIndependentFailure:
        # Without the ledger it stays in doubt; the caller must hear of the first failure.
        with suppress(LedgerError):
            ledger.release(reserved)
        raise
    except BaseException:
        with suppress(LedgerError):
            ledger.fail(reserved)
        raise
    return ledger.settle(reserved, answer, symbols)
