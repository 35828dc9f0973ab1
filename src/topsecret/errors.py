"""Everything that topsecret raises on purpose.

::

    TopSecretError
    ├── InvalidParameter (ValueError)      a public parameter breaks a rule
    ├── DomainRequired (InvalidParameter)  the mechanism needs a public domain of items
    ├── TooLarge (InvalidParameter)        an exact enumeration was asked of too large a case
    ├── MissingExtra (ImportError)         an optional package is not installed
    ├── SourceError (OSError)              the data cannot be reached or read
    │   └── UnknownColumn (SourceError)    a named column does not exist
    ├── BudgetExceeded (ValueError)        a query does not fit into what is left of a budget
    └── VerificationFailed (AssertionError) a mechanism breaks its own claim

A message says what was given, the rule and the fix. It is built from public parameters alone:
nothing that a person's data can influence appears in it or decides that it is raised.
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


class TooLarge(InvalidParameter):
    """An exact enumeration would be too large to finish."""


class MissingExtra(TopSecretError, ImportError):
    """An optional package is needed and not installed; the message says how to install it."""


class SourceError(TopSecretError, OSError):
    """The data cannot be reached, read or counted."""


class UnknownColumn(SourceError):
    """A column that was named does not exist in the source."""


class BudgetExceeded(TopSecretError, ValueError):
    """A query does not fit into what is left of a budget. Nothing was spent or read."""

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


class VerificationFailed(TopSecretError, AssertionError):
    """A mechanism breaks its own claim."""
