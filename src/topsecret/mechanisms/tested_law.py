"""The exact law of `TestedTopK` on a small histogram, by enumerating everything hidden."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from fractions import Fraction

from flint import arb, ctx

from topsecret.exact.rounding import ball, precision
from topsecret.mechanisms.pick_prune_test import NULL, nested_law
from topsecret.mechanisms.selection import NOTHING, Outcome
from topsecret.mechanisms.tested_schedule import UNIT, Length, Schedule


def tested_law(
    schedule: Schedule,
    scores: Sequence[int],
    items: Sequence[Hashable],
    leads: Sequence[int],
    nulls: int,
    publish_length: bool,
    sensitivity: int,
) -> dict[Outcome, arb]:
    """The probability of every (length, list or ⊥), from the same numbers that the draw uses."""
    law: dict[Outcome, arb] = defaultdict(lambda: arb(0))
    with precision(max(128, ctx.prec)):
        rate = schedule.choice / (2 * UNIT * sensitivity)
        weights = [ball(score * rate).exp() for score in scores]
        total = sum(weights, arb(0))
        in_units = [Fraction(lead, sensitivity) for lead in leads]
        for length, weight in zip(schedule.lengths, weights, strict=True):
            first: Outcome = (length.size,) if publish_length else ()
            for answer, chance in _branch_law(length, in_units, nulls).items():
                named = (NOTHING,) if answer is None else tuple(items[place] for place in answer)
                law[(*first, *named)] += chance * weight / total
    return dict(law)


def _branch_law(
    length: Length, leads: Sequence[Fraction], nulls: int
) -> dict[tuple[int, ...] | None, arb]:
    """The law of the released list, None for ⊥, once the length is chosen."""
    law: dict[tuple[int, ...] | None, arb] = defaultdict(lambda: arb(0))
    hidden = nested_law(
        leads, nulls, length.levels, length.list_sizes, length.price, length.later_price
    )
    least = Fraction(1)
    for lists, chance in hidden.items():
        strengths = [
            min(least if p == NULL else max(least, leads[p]) for p in kept) for kept in lists
        ]
        *passes, none = length.test.law(strengths)
        law[None] += chance * none
        for kept, share in zip(lists, passes, strict=True):
            law[None if NULL in kept else kept] += chance * share
    return dict(law)
