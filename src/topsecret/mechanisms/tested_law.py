"""The exact law of `TestedTopK` on a small histogram, by enumerating everything hidden."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations

from flint import arb, ctx

from topsecret.mechanisms.tested_schedule import UNIT, Length, Schedule
from topsecret.rounding import ball, precision
from topsecret.selection import NOTHING, Outcome

_NULL = -1


def tested_law(
    schedule: Schedule,
    items: Sequence[Hashable],
    leads: Sequence[int],
    nulls: int,
    publish_length: bool,
) -> dict[Outcome, arb]:
    """The probability of every (length, list or ⊥), from the same numbers that the draw uses."""
    from topsecret.mechanisms.tested_top_k import Pass, length_scores

    law: dict[Outcome, arb] = defaultdict(lambda: arb(0))
    bits = max(128, ctx.prec)
    with precision(bits):
        scores = length_scores(schedule, list(leads))
        weights = [ball(score * schedule.choice / (2 * UNIT)).exp() for score in scores]
        total = sum(weights, arb(0))
        for length, weight in zip(schedule.lengths, weights, strict=True):
            first: Outcome = (length.size,) if publish_length else ()
            for survivors, chance in survivor_law(leads, nulls, length).items():
                chance = chance * weight / total
                if _NULL in survivors:
                    law[(*first, NOTHING)] += chance
                    continue
                least = min(leads[place] for place in survivors)
                passes = Pass(least - 1, schedule.sigma, schedule.quantile).ball(bits)
                law[(*first, *(items[place] for place in survivors))] += chance * passes
                law[(*first, NOTHING)] += chance * (1 - passes)
    return dict(law)


def survivor_law(leads: Sequence[int], nulls: int, length: Length) -> dict[tuple[int, ...], arb]:
    """The law of the survivors in pick order, null slots as −1."""
    law: dict[tuple[int, ...], arb] = defaultdict(lambda: arb(0))
    prices = [price for count, price in length.levels for _ in range(count)]
    for picked, chance in _pick_sequences(leads, nulls, prices):
        strengths = [1 if place == _NULL else leads[place] for place in picked]
        for removed, share in _removals(strengths, length.prunes, length.price):
            kept = tuple(place for turn, place in enumerate(picked) if turn not in removed)
            law[kept] += chance * share
    return dict(law)


def _pick_sequences(
    leads: Sequence[int], nulls: int, prices: Sequence[Fraction]
) -> Iterator[tuple[tuple[int, ...], arb]]:
    weights = {
        price: [ball(price * lead).exp() for lead in leads] for price in dict.fromkeys(prices)
    }

    def descend(
        picked: tuple[int, ...], left: tuple[int, ...], nulls: int, chance: arb
    ) -> Iterator[tuple[tuple[int, ...], arb]]:
        if len(picked) == len(prices):
            yield picked, chance
            return
        here = weights[prices[len(picked)]]
        total = sum((here[place] for place in left), arb(nulls))
        for place in left:
            rest = tuple(other for other in left if other != place)
            yield from descend((*picked, place), rest, nulls, chance * here[place] / total)
        if nulls:
            yield from descend((*picked, _NULL), left, nulls - 1, chance * nulls / total)

    yield from descend((), tuple(range(len(leads))), nulls, arb(1))


def _removals(
    strengths: Sequence[int], prunes: int, price: Fraction
) -> Iterator[tuple[frozenset[int], arb]]:
    """Which turns are removed, with its probability: summed over the orders of removal."""
    weights = [ball(-price * strength).exp() for strength in strengths]
    known: dict[frozenset[int], arb] = {frozenset(): arb(1)}
    for size in range(1, prunes + 1):
        known = {
            frozenset(turns): sum(
                (
                    known[frozenset(turns) - {last}]
                    * weights[last]
                    / sum(
                        (w for turn, w in enumerate(weights) if turn not in turns or turn == last),
                        arb(0),
                    )
                    for last in turns
                ),
                arb(0),
            )
            for turns in combinations(range(len(strengths)), size)
        }
    yield from known.items()
