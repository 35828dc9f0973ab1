"""Everything that topsecret raises on purpose.

::

    TopSecretError
    ├── InvalidParameter (ValueError)      a public parameter breaks a rule
    ├── DomainRequired (InvalidParameter)  the mechanism needs a public domain of items
    ├── QueryRefused (InvalidParameter)    a pasted query that no rule accepts
    ├── TooLarge (InvalidParameter)        an exact enumeration was asked of too large a case
    ├── MissingExtra (ImportError)         an optional package is not installed
    ├── SourceError (OSError)              the data cannot be reached or read
    │   ├── UnknownColumn                  a named column does not exist
    │   └── DataIndependentFailure         the failure is certain not to depend on any row
    │       ├── NotInSchema (UnknownColumn) a named column is not in a schema apart from the rows
    │       ├── WrongForSchema (InvalidParameter) a parameter does not suit the columns' types
    │       ├── RulesChanged               what was asked may not be asked any more
    │       └── Closing                    the program stops before the data were read
    ├── BudgetExceeded (ValueError)        a query does not fit into what is left of a budget
    ├── ServiceError (OSError)             a service does not answer, or refuses
    ├── LedgerError (OSError)              the ledger cannot be reached, read or written
    │   ├── InDoubt                        a reservation has no known end
    │   └── Taken                          a name that must be new is there already
    └── VerificationFailed (AssertionError) a mechanism breaks its own claim

A message says what was given, the rule and the fix. It is built from public parameters alone:
nothing that a person's data can influence appears in it. That a question failed at all may depend
on a row only where the error is no `DataIndependentFailure`: then a budget stays charged.

There is one warning, ``WeakPrivacy`` (UserWarning), of a budget that protects little.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction


class TopSecretError(Exception):
    """The root of the tree: catch this to catch them all."""


class InvalidParameter(TopSecretError, ValueError):
    """A public parameter breaks a rule; the message names the rule and the fix."""


class DomainRequired(InvalidParameter):
    """The mechanism may name any item of a public domain, and the histogram has none."""


class QueryRefused(InvalidParameter):
    """A pasted query that no rule accepts; ``reason`` is one word, the text names the clause.

    Raised from the text, the schema and the privacy file alone, before any row is read.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class TooLarge(InvalidParameter):
    """An exact enumeration would be too large to finish."""


class MissingExtra(TopSecretError, ImportError):
    """An optional package is needed and not installed; the message says how to install it."""


class SourceError(TopSecretError, OSError):
    """The data cannot be reached, read or counted."""


class UnknownColumn(SourceError):
    """A column that was named does not exist in the source."""


class DataIndependentFailure(SourceError):
    """The source failed for a reason that no row can influence, before any row was read.

    The only failure for which a ledger gives a reservation back, so be strict. It may be raised
    when the source cannot be connected to, when the file does not exist or may not be opened, when
    a column is not in the schema, when the engine cannot parse the *query*. It must not be raised
    for anything met while reading rows: a malformed row, a full memory or disk, a time limit, a
    connection that was lost on the way.
    """


class NotInSchema(UnknownColumn, DataIndependentFailure):
    """A column that was named is not in the schema, which stands apart from all rows."""


class WrongForSchema(InvalidParameter, DataIndependentFailure):
    """A parameter does not suit the columns' types. Found before any row was read: it is free."""


class RulesChanged(DataIndependentFailure):
    """An owner withdrew what a question asks before it was read: nothing was spent."""


class Closing(DataIndependentFailure):
    """The program stops before this question was read: nothing was spent, ask again later."""


class BudgetExceeded(TopSecretError, ValueError):
    """A query does not fit into what is left of a budget. Nothing was spent or read.

    ``needed`` is what the query may cost at most and ``left`` what the budget of ``dataset``, or
    the analyst's share of it, still has, both as exact fractions by resource: ``queries`` and
    ``picks`` of a metered budget, ``rho``, ``delta`` and ``slack`` of a flexible one. They come
    from public parameters and the ledger, and are empty where no budget was asked.
    """

    def __init__(
        self,
        message: str,
        *,
        dataset: str = "",
        needed: Mapping[str, Fraction] | None = None,
        left: Mapping[str, Fraction] | None = None,
    ) -> None:
        super().__init__(message)
        self.dataset = dataset
        self.needed = dict(needed or {})
        self.left = dict(left or {})


class ServiceError(TopSecretError, OSError):
    """A service does not answer, or refuses; the message is the service's."""


class LedgerError(TopSecretError, OSError):
    """The ledger cannot be reached, read or written. No answer is shown without it."""


class InDoubt(LedgerError):
    """A reservation has no known end: it is under way elsewhere, or a crash cut it short."""


class Taken(LedgerError):
    """A row with this key is there already."""


class VerificationFailed(TopSecretError, AssertionError):
    """A mechanism breaks its own claim."""


class WeakPrivacy(UserWarning):
    """A budget protects little: epsilon above 10 or delta above 0.001.

    To accept that, call ``warnings.simplefilter("ignore", WeakPrivacy)``; the receipt still says
    that it is weak.
    """
