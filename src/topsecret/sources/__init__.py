"""Where counts come from: an engine does the counting and sends the leading rows, no more."""

from topsecret.sources.domains.domain import Column, DomainLike, FileColumn, domain_of
from topsecret.sources.measures import Amount, BoundLike, Measure, MeasureLike, Sum, measure_of
from topsecret.sources.source import CountQuery, GroupAssignment, Item, LeadingCounts, Source
from topsecret.sources.sql.conditions import Condition, Expression, WhereLike

__all__ = [
    "Amount",
    "BoundLike",
    "Column",
    "Condition",
    "CountQuery",
    "DomainLike",
    "Expression",
    "FileColumn",
    "GroupAssignment",
    "Item",
    "LeadingCounts",
    "Measure",
    "MeasureLike",
    "Source",
    "Sum",
    "WhereLike",
    "domain_of",
    "measure_of",
]
