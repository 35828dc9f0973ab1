"""Where counts come from: an engine does the counting and sends the leading rows, no more."""

from topsecret.sources.source import CountQuery, Item, LeadingCounts, Source

__all__ = ["CountQuery", "Item", "LeadingCounts", "Source"]
