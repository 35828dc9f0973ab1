"""Strengths with their error bars, with matplotlib (the extra ``plot``)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from topsecret.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def strength_intervals(
    items: Sequence[Hashable], strengths: Sequence[float], standard_errors: Sequence[float]
) -> Figure:
    """One point and one 95% interval for each item, the best on top."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra(
            "plot() needs matplotlib; install it with: pip install '.[plot]' in the checkout"
        ) from None
    figure = Figure(figsize=(7, 1.4 + 0.24 * max(1, len(items))), layout="constrained")
    axes = figure.subplots()
    places = range(len(items))
    bars = [1.959964 * error for error in standard_errors[: len(items)]]
    axes.errorbar(
        strengths[: len(items)], places, xerr=bars, fmt="o", markersize=4, color="#4c72b0",
        ecolor="#444444", capsize=2,
    )  # fmt: skip
    axes.axvline(0, color="#999999", linewidth=0.8)
    # A dollar sign would be read as mathematics.
    axes.set_yticks(places, [str(item).replace("$", r"\$") for item in items])
    axes.invert_yaxis()
    axes.set_xlabel("strength: log odds against the average item; lines are 95% intervals")
    axes.grid(axis="x", alpha=0.3)
    return figure
