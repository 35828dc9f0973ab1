"""What a budget will buy, from public numbers only.

>>> from topsecret import plan
>>> preview = plan(k=1, epsilon=1.0)
>>> preview.recommended, preview["limited-domain"].needed_lead
('limited-domain', 21)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex

from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number
from topsecret.planning.shape import PublicCounts, Shape, Zipf

if TYPE_CHECKING:
    from topsecret.planning.plan_result import Plan
    from topsecret.planning.simulation import Progress

__all__ = ["Zipf", "plan"]


def plan(
    *,
    k: SupportsIndex | str,
    epsilon: Number | None = None,
    delta: Number = 1e-6,
    k_bar: SupportsIndex | None = None,
    max_items: SupportsIndex | None = None,
    domain_size: SupportsIndex | None = None,
    ordered: bool = False,
    fill: bool = False,
    choose: str | None = None,
    at_least: SupportsIndex | None = None,
    needed_lead: int | None = None,
    shape: Zipf | None = None,
    public_counts: Sequence[int] | None = None,
    runs: int = 50,
    progress: Progress | None = None,
) -> Plan:
    """What each mechanism would need and give for a top-k question, before anything is spent.

    Give ``epsilon``, or ``needed_lead``: then the plan is for the smallest epsilon at which an
    item with that many persons more than the rest is named with 95% probability. ``max_items`` is
    the cap on one person's items, ``domain_size`` the size of a public list of all items; with one
    ``delta`` may be 0. ``ordered``, ``fill``, ``choose`` and ``at_least`` are those of ``top_k``. A
    ``shape`` (or ``public_counts``, counts that are public already) is an example on which the
    expected recall is simulated.

    *Guarantee.* A plan is made of the numbers given here. There is no way to give it a private
    source, so it costs nothing and may be shown to anyone.
    """
    from topsecret.calibration import Question
    from topsecret.planning.make_plan import make_plan, tried

    if (epsilon is None) == (needed_lead is None):
        raise InvalidParameter("give either epsilon=1.0, say, or needed_lead=200, say")
    if shape is not None and public_counts is not None:
        raise InvalidParameter("give either shape=… or public_counts=…, not both")
    question = Question.of(
        k=k,
        epsilon=1.0 if epsilon is None else epsilon,
        delta=delta,
        k_bar=k_bar,
        max_items=max_items,
        domain_size=domain_size,
        ordered=ordered,
        fill=fill,
        choose=choose,
        at_least=at_least,
    )
    example: Shape | None = shape
    if public_counts is not None:
        example = PublicCounts.of(public_counts)
    made = make_plan(question, needed_lead=needed_lead, progress=progress)
    return made if example is None else tried(made, example, runs=runs, progress=progress)
