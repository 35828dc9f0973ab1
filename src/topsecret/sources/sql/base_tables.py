"""Which tables a relation reads, through its views: whether a public list is made of the events."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from topsecret.sources.sql.identifier_case import folded
from topsecret.sources.sql.stored_definitions import (
    Catalogue,
    Stored,
    is_plain_name,
    name_of,
    parsed_view,
)
from topsecret.sources.sql.view_columns import Name

UNREAD: Name = ("",)
"""Stands for what a definition reads and nobody can tell: a function's rows, say."""


def base_tables(start: Stored, catalogue: Catalogue, dialect: str) -> frozenset[Name]:
    """The tables that a relation reads, through however many views; `UNREAD` among them."""
    found: set[Name] = set()
    waiting, seen = [start], {start.name}
    while waiting:
        one = waiting.pop()
        if one.definition is None:
            found.update({one.name, UNREAD} if one.refused else {one.name})
            continue
        tree: Any = parsed_view(one, dialect) or exp.Anonymous()
        if one.refused or tree.find(exp.Anonymous, exp.Unnest, exp.Lateral):
            found.add(UNREAD)
        own = {(folded(cte.alias),) for cte in tree.find_all(exp.CTE)}
        for node in tree.find_all(exp.Table):
            stored = catalogue.find(name_of(node), one) if is_plain_name(node) else None
            if stored is not None and stored.name not in seen:
                seen.add(stored.name)
                waiting.append(stored)
            elif stored is None and tuple(map(folded, name_of(node))) not in own:
                found.add(UNREAD)
    return frozenset(found)
