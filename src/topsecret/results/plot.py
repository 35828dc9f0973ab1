"""Ranked bars, with matplotlib (the extra ``plot``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from topsecret.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def ranked_bars(
    title: str,
    labels: Sequence[str],
    counts: Sequence[int] | None,
    half_width: int | None,
    guesses: Sequence[float] | None = None,
) -> Figure:
    """One bar for each item, the first on top: its noisy count, or without counts its rank.

    ``guesses`` are smoothed counts, shown as dots without an interval.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra(
            "plot() needs matplotlib; install it with: pip install '.[plot]' in the checkout"
        ) from None
    figure = Figure(figsize=(7, 1.4 + 0.32 * max(1, len(labels))), layout="constrained")
    axes = figure.subplots()
    places = range(len(labels))
    # A dollar sign would be read as mathematics.
    names = [label.replace("$", r"\$") for label in labels]
    if counts is None:
        axes.barh(places, [len(labels) - place for place in places], color="#4c72b0")
        axes.set_xticks([])
        axes.set_xlabel("rank; the lengths mean nothing else")
    else:
        error = None if half_width is None else [half_width] * len(labels)
        axes.barh(places, counts, xerr=error, color="#4c72b0", ecolor="#444444", capsize=2)
        dots = "" if guesses is None else ", dots smoothed estimates"
        axes.set_xlabel(f"people, with noise; lines are 95% intervals{dots}")
        if guesses is not None:
            axes.plot(guesses, places, "o", color="#dd8452", markersize=4, zorder=3)
        axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set_title(title.replace("$", r"\$"), fontsize=9)
    return figure
