"""Hidden picks with rising prices, then hidden prunes: what `TestedTopK` and `PrunedTopK` share.

Pick i draws an item ∝ e^(ε_i·count) without replacement; a prune removes one of the picked ∝
e^(−e·strength). Picks of one price in a row are one Gumbel race, and so are all prunes
(Durfee & Rogers 2019, Lemma 4.2).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any

from flint import arb
from numpy.typing import NDArray

from topsecret.exact.rounding import ball
from topsecret.noise.bits import BitSource
from topsecret.noise.distributions import GUMBEL
from topsecret.noise.race import race, races_in_turn
from topsecret.noise.screening import ScoreGroups

Levels = tuple[tuple[int, Fraction], ...]
"""Runs of picks with one epsilon each, in the order of time."""

NULL = -1
"""A null slot among the picks of a law, which name the other slots by their place."""


def rising(total: int, price: Fraction, levels: int, exponent: int) -> Levels:
    """Pick i of n has the price·⌈L·(i/n)^(1/p)⌉/L for L levels and the exponent 1/p.

    >>> rising(4, Fraction(1), 4, 2)
    ((1, Fraction(1, 2)), (1, Fraction(3, 4)), (2, Fraction(1, 1)))
    """
    runs: list[tuple[int, Fraction]] = []
    before = 0
    for level in range(1, levels + 1):
        # i/n ≤ (level/L)^p, in integers.
        last = total * level**exponent // levels**exponent
        if last > before:
            runs.append((last - before, price * level / levels))
            before = last
    return tuple(runs)


def in_units(levels: Levels, unit: int) -> Levels:
    """The same picks of scores that one person moves by up to ``unit``: prices per unit."""
    return levels if unit == 1 else tuple((count, price / unit) for count, price in levels)


def pick(field: ScoreGroups, levels: Levels, bits: BitSource) -> list[int]:
    """The groups that the picks name, in order."""
    turns = [(count, 1 / price) for count, price in levels]
    return races_in_turn(field, turns, bits)


def prune(strengths: NDArray[Any], removals: int, price: Fraction, bits: BitSource) -> list[int]:
    """Which turns are left after the prunes, in order."""
    removed = set(removed_in_order(strengths, removals, price, bits))
    return [turn for turn in range(len(strengths)) if turn not in removed]


def removed_in_order(
    strengths: NDArray[Any], removals: int, price: Fraction, bits: BitSource
) -> list[int]:
    """The turns that the prunes remove, first to last."""
    return race(ScoreGroups(strengths).mirrored(), GUMBEL, 1 / price, removals, bits)


def survivor_law(
    leads: Sequence[Fraction], nulls: int, levels: Levels, removals: int, price: Fraction
) -> dict[tuple[int, ...], arb]:
    """The law of the survivors in pick order.

    Null slots have lead 0. With null slots a lead counts for at least 1 when it comes to pruning
    (docs/proofs/tested-top-k.md); without them leads may be any numbers, and only their differences
    matter.
    """
    law: dict[tuple[int, ...], arb] = defaultdict(lambda: arb(0))
    prices = [price for count, price in levels for _ in range(count)]
    for picked, chance in _pick_sequences(leads, nulls, prices):
        strengths = [Fraction(1) if place == NULL else leads[place] for place in picked]
        for removed, share in _removals(strengths, removals, price):
            kept = tuple(place for turn, place in enumerate(picked) if turn not in removed)
            law[kept] += chance * share
    return dict(law)


def nested_law(
    leads: Sequence[Fraction],
    nulls: int,
    levels: Levels,
    sizes: Sequence[int],
    price: Fraction,
    later_price: Fraction,
) -> dict[tuple[tuple[int, ...], ...], arb]:
    """The law of the nested lists of these sizes, longest first, each in pick order.

    The first list is left after prunes at ``price``, the others after further prunes at
    ``later_price``. A lead, in units of what one person moves, counts for at least 1 there, null
    slots included.
    """
    law: dict[tuple[tuple[int, ...], ...], arb] = defaultdict(lambda: arb(0))
    prices = [price for count, price in levels for _ in range(count)]

    @cache
    def chains(places: tuple[int, ...]) -> list[tuple[tuple[tuple[int, ...], ...], arb]]:
        """Which turns each list keeps; the prunes do not look at the order of the picks."""
        strengths = [max(Fraction(1), leads[p]) if p != NULL else Fraction(1) for p in places]
        found: list[tuple[tuple[tuple[int, ...], ...], arb]] = [((), arb(1))]
        for turn, size in enumerate(sizes):
            longer = []
            for kept, chance in found:
                left = kept[-1] if kept else tuple(range(len(places)))
                weak = [strengths[i] for i in left]
                for removed, share in _removals(
                    weak, len(left) - size, later_price if turn else price
                ):
                    stay = tuple(i for n, i in enumerate(left) if n not in removed)
                    longer.append(((*kept, stay), chance * share))
            found = longer
        return found

    for picked, chance in _pick_sequences(leads, nulls, prices):
        order = sorted(range(len(picked)), key=picked.__getitem__)
        for kept, share in chains(tuple(picked[turn] for turn in order)):
            lists = tuple(tuple(picked[t] for t in sorted(order[i] for i in stay)) for stay in kept)
            law[lists] += chance * share
    return dict(law)


def _pick_sequences(
    leads: Sequence[Fraction], nulls: int, prices: Sequence[Fraction]
) -> Iterator[tuple[tuple[int, ...], arb]]:
    weights = {
        price: [ball(price * lead).exp() for lead in leads] for price in dict.fromkeys(prices)
    }

    def descend(
        picked: tuple[int, ...], left: tuple[int, ...], nulls: int, chance: arb
    ) -> Iterator[tuple[tuple[int, ...], arb]]:
        if len(picked) == len(prices) or not (left or nulls):
            yield picked, chance
            return
        here = weights[prices[len(picked)]]
        total = sum((here[place] for place in left), arb(nulls))
        for place in left:
            rest = tuple(other for other in left if other != place)
            yield from descend((*picked, place), rest, nulls, chance * here[place] / total)
        if nulls:
            yield from descend((*picked, NULL), left, nulls - 1, chance * nulls / total)

    yield from descend((), tuple(range(len(leads))), nulls, arb(1))


def _removals(
    strengths: Sequence[Fraction], removals: int, price: Fraction
) -> Iterator[tuple[frozenset[int], arb]]:
    """Which turns are removed, with its probability: summed over the orders of removal."""
    weights = [ball(-price * strength).exp() for strength in strengths]
    known: dict[frozenset[int], arb] = {frozenset(): arb(1)}
    for size in range(1, removals + 1):
        larger: dict[frozenset[int], arb] = {}
        for turns in map(frozenset, combinations(range(len(strengths)), size)):
            outside = sum((w for turn, w in enumerate(weights) if turn not in turns), arb(0))
            larger[turns] = sum(
                (
                    known[turns - {last}] * weights[last] / (outside + weights[last])
                    for last in turns
                ),
                arb(0),
            )
        known = larger
    yield from known.items()
