"""Where counts come from: an engine does the counting and sends the leading rows, no more."""

from topsecret.sources.domains.domain import Column, DomainLike, FileColumn, domain_of
from topsecret.sources.source import CountQuery, GroupAssignment, Item, LeadingCounts, Source
from topsecret.sources.sql.conditions import Condition, Expression, WhereLike

__all__ = [
    "Column",
    "Condition",
    "CountQuery",
    "DomainLike",
    "Expression",
    "FileColumn",
    "GroupAssignment",
    "Item",
    "LeadingCounts",
    "Source",
    "WhereLike",
    "domain_of",
]
