"""docs/results/pate.md and pate.png from the rows that ``experiments.pate`` wrote."""

from __future__ import annotations


def write() -> None:
    """Later."""
