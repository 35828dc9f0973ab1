"""Why a query is not answered: a short reason for programs, a sentence for people."""

from __future__ import annotations

from typing import Any

from topsecret.errors import InvalidParameter
from topsecret.sources.sql.expressions import shown


class QueryRefused(InvalidParameter):
    """A query that no rule accepts; ``reason`` is one word of a fixed list, the text says why.

    Raised from the text, the schema and the privacy file alone, before any row is read.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def quoted(node: Any) -> str:
    """The caller's own words, on one line and cut."""
    return shown(node if isinstance(node, str) else node.sql())
