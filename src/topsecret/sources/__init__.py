"""Where counts come from: an engine does the counting and sends the leading rows, no more."""

from topsecret.sources.domain import Column, FileColumn, domain_of
from topsecret.sources.source import CountQuery, Home, Item, LeadingCounts, Source
from topsecret.sources.where import Condition, Expression

__all__ = [
    "Column",
    "Condition",
    "CountQuery",
    "Expression",
    "FileColumn",
    "Home",
    "Item",
    "LeadingCounts",
    "Source",
    "domain_of",
]
