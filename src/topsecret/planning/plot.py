"""A plan as a picture, with matplotlib (the extra ``plot``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topsecret.errors import MissingExtra
from topsecret.planning.leads import LIKELY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from topsecret.planning.plan_result import Plan


def figure(plan: Plan) -> Figure:
    """Bars of the needed leads, and of the simulated recalls beside them."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra(
            "plot() needs matplotlib; install it with: pip install '.[plot]' in the checkout"
        ) from None
    options = [option for option in plan.options if option.needed_lead is not None]
    panels = 2 if plan.recalls else 1
    drawn = Figure(figsize=(5.5 * panels, 1.2 + 0.35 * len(options)), layout="constrained")
    axes = drawn.subplots(1, panels, squeeze=False)[0]
    names = [option.name for option in options]
    colours = ["#dd8452" if name == plan.recommended else "#4c72b0" for name in names]
    bars = axes[0].barh(names, [option.needed_lead or 0 for option in options], color=colours)
    axes[0].bar_label(bars, padding=3)
    axes[0].set_xlabel(f"{plan.noun} more than the rest, for {LIKELY:.0%} probability")
    axes[0].set_title("needed lead")
    if plan.recalls:
        recalls = [row.name for row in plan.recalls]
        axes[1].barh(
            recalls,
            [row.mean for row in plan.recalls],
            xerr=[2 * row.error for row in plan.recalls],
            color=["#dd8452" if name == plan.recommended else "#4c72b0" for name in recalls],
        )
        axes[1].set_xlim(0, 1)
        axes[1].set_title("recall on the example" if plan.question.k != "auto" else "answered")
    for axis in axes:
        axis.invert_yaxis()
        axis.margins(x=0.15)
    drawn.suptitle(plan.title, fontsize=9)
    return drawn
