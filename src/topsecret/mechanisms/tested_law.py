"""The exact law of `TestedTopK` on a small histogram, by enumerating everything hidden."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from fractions import Fraction

from flint import arb, ctx

from topsecret.exact.rounding import ball, precision
from topsecret.mechanisms.pick_and_prune import NULL, survivor_law
from topsecret.mechanisms.selection import NOTHING, Outcome
from topsecret.mechanisms.tested_schedule import UNIT, Pass, Schedule, length_scores


def tested_law(
    schedule: Schedule,
    items: Sequence[Hashable],
    leads: Sequence[int],
    nulls: int,
    publish_length: bool,
) -> dict[Outcome, arb]:
    """The probability of every (length, list or ⊥), from the same numbers that the draw uses."""
    law: dict[Outcome, arb] = defaultdict(lambda: arb(0))
    bits = max(128, ctx.prec)
    with precision(bits):
        scores = length_scores(schedule, list(leads))
        weights = [ball(score * schedule.choice / (2 * UNIT)).exp() for score in scores]
        total = sum(weights, arb(0))
        for length, weight in zip(schedule.lengths, weights, strict=True):
            first: Outcome = (length.size,) if publish_length else ()
            hidden = survivor_law(
                [Fraction(lead) for lead in leads],
                nulls,
                length.levels,
                length.prunes,
                length.price,
            )
            for survivors, chance in hidden.items():
                chance = chance * weight / total
                if NULL in survivors:
                    law[(*first, NOTHING)] += chance
                    continue
                least = min(leads[place] for place in survivors)
                passes = Pass(least - 1, schedule.sigma, schedule.quantile).ball(bits)
                law[(*first, *(items[place] for place in survivors))] += chance * passes
                law[(*first, NOTHING)] += chance * (1 - passes)
    return dict(law)
