"""The words of a refusal: the caller's own, cut to one line."""

from __future__ import annotations

from typing import Any

from topsecret.errors import QueryRefused
from topsecret.sources.sql.expressions import shown

__all__ = ["QueryRefused", "quoted"]


def quoted(node: Any) -> str:
    """The caller's own words, on one line and cut."""
    return shown(node if isinstance(node, str) else node.sql())
