"""Where counts come from: an engine does the counting and sends the leading rows, no more."""

from topsecret.sources.source import CountQuery, Item, LeadingCounts, Source
from topsecret.sources.where import Condition, Expression

__all__ = ["Condition", "CountQuery", "Expression", "Item", "LeadingCounts", "Source"]
