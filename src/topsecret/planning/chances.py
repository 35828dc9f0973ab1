"""How likely a mechanism names an item that leads the rest by so many people.

Two scenes, both with the items after the top k tied, the hardest case for a given lead over them.
``one``: the last item of the top k has this lead, and the other k − 1 are far ahead. ``every``: all
k items have this lead. In both, every mechanism's law has a closed form or one integral: no
sampling. Numbers are floats for planning; no guarantee rests on them.

>>> from topsecret.mechanisms import GumbelTopK
>>> chances = of(GumbelTopK(k=1, scale=10.0), lead=0, k=1, others=3)
>>> round(chances.one, 4), round(chances.every, 4)
(0.25, 0.25)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch

from topsecret.exact.rounding import exact
from topsecret.mechanisms import (
    CanonicalSet,
    ChosenBound,
    ClippedSums,
    FixedThreshold,
    GumbelTopK,
    LimitedDomain,
    LimitedDomainLaplace,
    OneshotExponential,
    OneshotLaplace,
    OneshotPrivateLength,
    OptimalThreshold,
    PermuteAndFlip,
    PrunedTopK,
    StableFixedK,
    StableTopK,
    TestedOrWeighted,
    TestedTopK,
    TopStable,
    WeightedHistogram,
)
from topsecret.planning import races
from topsecret.planning.hidden_picks import last_is_kept, unwanted_left


@dataclass(frozen=True, slots=True)
class Chances:
    """The probabilities of being named in the two scenes."""

    one: float
    """That the last item of the top k is named, the others being far ahead."""
    every: float
    """That all k items are named, all having the same lead."""


@singledispatch
def of(mechanism: object, lead: int, k: int, others: int) -> Chances:
    """The chances of k items that lead ``others`` items by ``lead`` people."""
    raise TypeError(f"no chances are known for a {type(mechanism).__name__}")


@of.register
def _(mechanism: GumbelTopK, lead: int, k: int, others: int) -> Chances:
    odds = races.gumbel_odds(lead / float(mechanism.scale), others)
    return Chances(1 / (1 + odds), races.gumbel_all(odds, k))


@of.register
def _(mechanism: LimitedDomain, lead: int, k: int, others: int) -> Chances:
    price, delta = float(mechanism.epsilon_per_pick), exact(mechanism.delta)
    cap = mechanism.k_bar if mechanism.max_items is None else mechanism.max_items
    bar = price + math.log(min(cap, mechanism.k_bar) / delta)
    odds = races.gumbel_odds(price * lead, others, bar)
    return Chances(1 / (1 + odds), races.gumbel_all(odds, k))


@of.register
def _(mechanism: OptimalThreshold, lead: int, k: int, others: int) -> Chances:
    """Each k̄ has the weight 1/min(Δ, k̄), since all next counts are tied."""
    depths = range(mechanism.k, mechanism.max_k_bar + 1)
    cap = mechanism.max_k_bar if mechanism.max_items is None else mechanism.max_items
    total = sum(1 / min(cap, depth) for depth in depths)
    price, delta = float(mechanism.epsilon_per_pick), exact(mechanism.delta)
    one = every = 0.0
    for depth in depths:
        reach = min(cap, depth)
        bar = price + math.log(reach / delta)
        odds = races.gumbel_odds(price * lead, min(others, depth - k), bar)
        one += 1 / reach / total / (1 + odds)
        every += 1 / reach / total * races.gumbel_all(odds, k)
    return Chances(one, every)


@of.register
def _(mechanism: LimitedDomainLaplace, lead: int, k: int, others: int) -> Chances:
    price, delta = float(mechanism.epsilon_per_pick), exact(mechanism.delta)
    bar = price + math.log(mechanism.max_items / delta)
    return _both(k, lambda number: races.laplace(price * lead, others, number, bar))


@of.register
def _(mechanism: OneshotLaplace, lead: int, k: int, others: int) -> Chances:
    scale = float(mechanism.scale(k + others))
    if scale == 0:
        return Chances(1.0, 1.0)
    return _both(k, lambda number: races.laplace(lead / scale, others, number))


@of.register
def _(mechanism: OneshotExponential, lead: int, k: int, others: int) -> Chances:
    scale = float(mechanism.scale)
    return _both(k, lambda number: races.exponential(lead / scale, others, number))


@of.register
def _(mechanism: PermuteAndFlip, lead: int, k: int, others: int) -> Chances:
    scale = float(mechanism.scale)
    rounds = [races.one_round(lead / scale, others, left) for left in range(1, k + 1)]
    return Chances(rounds[0], math.prod(rounds))


@of.register
def _(mechanism: PrunedTopK, lead: int, k: int, others: int) -> Chances:
    prunes, strength = min(mechanism.prunes, others), float(mechanism.epsilon_per_pick) * lead
    prices = [price for count, price in mechanism.levels for _ in range(count)]
    left = unwanted_left(k, others, mechanism.levels, prunes, lead, strength)
    return Chances(last_is_kept(others, prices[k - 1 :], prunes, lead, strength), float(left[0]))


@of.register
def _(mechanism: CanonicalSet, lead: int, k: int, others: int) -> Chances:
    from topsecret.planning.private_length import set_chances

    return Chances(*set_chances(mechanism, lead, k, others))


@of.register
def _(mechanism: OneshotPrivateLength, lead: int, k: int, others: int) -> Chances:
    from topsecret.planning.private_length import list_chances

    return Chances(*list_chances(mechanism, lead, k, others))


@of.register
def _(mechanism: TestedTopK, lead: int, k: int, others: int) -> Chances:
    from topsecret.planning.tested import tested_chances

    return Chances(*tested_chances(mechanism.schedule, mechanism.slots, lead, k))


@of.register
def _(mechanism: TestedOrWeighted, lead: int, k: int, others: int) -> Chances:
    """Those of its picks: being ahead of rank k̄ + 1 says nothing about weighted people."""
    return of(mechanism.branches.tested, lead, k, others)


@of.register
def _(mechanism: ChosenBound, lead: int, k: int, others: int) -> Chances:
    """Those of its list, in multiples of the bound that is chosen."""
    first = mechanism.options[0]
    return of(
        first, lead * (mechanism.bounds[0] if isinstance(first, GumbelTopK) else 1), k, others
    )


@of.register
def _(mechanism: ClippedSums, lead: int, k: int, others: int) -> Chances:
    """Above the threshold, in multiples of the bound on one item; or above all public others."""
    sigma, threshold = float(mechanism.sigma), mechanism.threshold
    units = lead * mechanism.most
    if threshold is not None:
        one = races.normal_below((units - float(threshold)) / sigma)
        return Chances(one, one**k)
    return _both(k, lambda number: races.gaussian(units / sigma, others, number))


@of.register
def _(mechanism: WeightedHistogram, lead: int, k: int, others: int) -> Chances:
    """Above the threshold, in weighted people; on a public domain above all others."""
    sigma, threshold = float(mechanism.sigma), mechanism.threshold
    if threshold is not None:
        one = races.normal_below((lead - float(threshold)) / sigma)
        return Chances(one, one**k)
    return _both(k, lambda number: races.gaussian(lead / sigma, others, number))


@of.register
def _(mechanism: FixedThreshold, lead: int, k: int, others: int) -> Chances:
    price, delta = float(mechanism.epsilon_per_pick), float(mechanism.delta)
    one = races.laplace_tail(-math.log(2 * delta) - price * (lead - 1)) if lead > 0 else 0.0
    return Chances(one, one**k)


@of.register
def _(mechanism: TopStable, lead: int, k: int, others: int) -> Chances:
    """A gap after rank k: the set stops at k, unless noise alone stopped it before (at most δ)."""
    from topsecret.mechanisms.top_stable import RATIO, tail_argument

    unit = 0.63 * float(mechanism.epsilon) / 2
    level = -math.log(tail_argument(exact(mechanism.delta) / mechanism.k_bar))
    passes = races.two_laplaces_tail(level - unit * max(0, lead - 1), 1.0, 1 / float(RATIO))
    stops = max(0.0, passes - float(mechanism.delta))
    return Chances(stops, stops)


@of.register
def _(mechanism: StableTopK, lead: int, k: int, others: int) -> Chances:
    """The only gap comes after rank k: the set is named as a whole."""
    released = _stable(mechanism, lead, k, min(mechanism.k_bar, k + others))
    return Chances(released, released)


@of.register
def _(mechanism: StableFixedK, lead: int, k: int, others: int) -> Chances:
    """The only gap comes after rank k: it is found and passes, or k picks follow.

    Both chances are those of level items: with others far ahead the gap would come earlier.
    Other sets have at most δ_t.
    """
    places = mechanism.k_bar if mechanism.delta is not None else k + others - 1
    drop = _stable(mechanism.stable, lead, k, min(mechanism.k_bar, places))
    scale = float(mechanism.scale_of(k))
    if mechanism.delta is None:
        picking = of(GumbelTopK(k, scale), lead, k, others)
    else:
        limited = LimitedDomain(k, mechanism.k_bar, 1 / scale, mechanism.delta)
        picking = of(limited, lead, k, others)
    return Chances(drop + (1 - drop) * picking.one, drop + (1 - drop) * picking.every)


def _stable(mechanism: StableTopK, gap: int, k: int, places: int) -> float:
    """The chance that the only gap, after k items, is chosen and passes."""
    scale, bonus = float(mechanism.chooser.scale), mechanism.chooser.bonus
    rivals = math.fsum(
        math.exp((float(bonus[j] - bonus[k - 1]) if bonus else 0.0) / scale - gap / scale)
        for j in range(places)
        if j != k - 1
    )
    passing = float(mechanism.tester.chance(gap).ball(64))
    return passing / (1 + rivals)


def _both(k: int, chance: races.Chance) -> Chances:
    return Chances(chance(1), chance(k))
