"""Hidden picks with rising prices, hidden prunes, one test: what `TestedTopK` is made of.

Pick i draws an item ∝ e^(ε_i·count) without replacement; a prune removes one of the picked ∝
e^(−e·strength). Picks of one price in a row are one Gumbel race, and so are all prunes
(Durfee & Rogers 2019, Lemma 4.2). `PrunedTopK` picks and prunes, too, and needs no test.

The test is one of several nested lists: Gaussian noise with a common part, the longest that passes.
List j has the least strength A_j ≥ 1, and A_1 ≤ A_2 ≤ … since shorter lists are parts of longer
ones. With independent standard normals G, Z_1, …, Z_J and N_j = σ·(G/√2 + √(s_j² − ½)·Z_j) the
answer is the smallest j with A_j − 1 + N_j > σ·s_j·z, or none.

Guarantee: if the moves of all A_j lie in one interval of length 1 that contains 0, the answer is
post-processing of one Gaussian step of μ = √κ/σ; a list with A_j = 1 passes with probability
Φ(−z). (Strengths are in units of what one person moves, so they may be fractions.) The
proof is in docs/proofs/tested-top-k.md.

>>> [float(round(spread_cost(lists), 3)) for lists in (1, 2, 3, 4)]
[1.0, 1.21, 1.417, 1.525]
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache, partial
from itertools import combinations
from typing import Any

from flint import acb, arb, ctx
from numpy.typing import NDArray

from topsecret.exact.rounding import ball, precision
from topsecret.noise.bits import BitSource, Noisy, Rational, bernoulli, is_less
from topsecret.noise.distributions import GAUSSIAN, GUMBEL
from topsecret.noise.race import race, races_in_turn
from topsecret.noise.screening import ScoreGroups

Levels = tuple[tuple[int, Fraction], ...]
"""Runs of picks with one epsilon each, in the order of time."""

NULL = -1
"""A null slot among the picks of a law, which name the other slots by their place."""

GROWTH = Fraction(6, 5)
"""s_j = 1.2^(j − 1): shorter lists, which lead by more, are tested with more noise."""
COMMON = Fraction(1, 2)
"""The variance of the common part of the noise."""
_ZERO = Rational(Fraction(0))


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


@lru_cache(maxsize=16)
def spreads(lists: int) -> tuple[Fraction, ...]:
    """s_1, …, s_J."""
    return tuple(GROWTH**j for j in range(lists))


@lru_cache(maxsize=16)
def own_variances(lists: int) -> tuple[Fraction, ...]:
    """s_j² − ½: what the noise of list j has beside the common part; 1 for a single list."""
    return tuple(s * s - COMMON for s in spreads(lists)) if lists > 1 else (Fraction(1),)


@lru_cache(maxsize=16)
def spread_cost(lists: int) -> Fraction:
    """κ: the largest vᵀS⁻¹v over v ∈ {0, 1}^J, S = ½·11ᵀ + diag(s_j² − ½).

    With w_j = 1/(s_j² − ½), X = Σ_{v_j=1} w_j and W = Σw_j it is X − X²/(1/½ + W) (Sherman and
    Morrison). A convex function of v: its maximum over [0, 1]^J is at a corner.
    """
    if lists == 1:
        return Fraction(1)
    weights = [1 / variance for variance in own_variances(lists)]
    whole = 1 / COMMON + sum(weights)
    sums = [
        sum(chosen, Fraction(0))
        for size in range(1, lists + 1)
        for chosen in combinations(weights, size)
    ]
    return max(part - part * part / whole for part in sums)


@dataclass(frozen=True, slots=True)
class NestedTest:
    """The test of ``lists`` nested lists at σ and z, both public."""

    lists: int
    sigma: Fraction
    quantile: Fraction

    def __post_init__(self) -> None:
        assert self.lists >= 1

    def levels(self, strengths: Sequence[int | Fraction]) -> tuple[Fraction, ...]:
        """What N_j/σ must exceed for list j to pass."""
        places = zip(spreads(self.lists), strengths, strict=True)
        return tuple(self._level(spread, strength) for spread, strength in places)

    def _level(self, spread: Fraction, strength: int | Fraction) -> Fraction:
        return spread * self.quantile - (strength - 1) / self.sigma

    def draw(self, strengths: Sequence[int | Fraction], bits: BitSource) -> int | None:
        """The place of the longest list that passes, from 0; None if none does."""
        if self.lists == 1:
            return 0 if bernoulli(Above(self.levels(strengths)[0]), bits) else None
        common = Noisy(_ZERO, GAUSSIAN, Fraction(1), bits)
        owns = own_variances(self.lists)
        tests = zip(spreads(self.lists), strengths, owns, strict=True)
        for place, (spread, strength, own) in enumerate(tests):
            noise = Noisy(_ZERO, GAUSSIAN, Fraction(1), bits)
            if is_less(Rational(self._level(spread, strength)), _Mixed(common, noise, own)):
                return place
        return None

    def law(self, strengths: Sequence[int | Fraction]) -> tuple[arb, ...]:
        """The probability of each place, and last that of none, at the current precision."""
        return _law(self.levels(strengths), ctx.prec)


@dataclass(frozen=True, slots=True)
class Above:
    """P[Z > level] of a standard normal Z."""

    level: Fraction

    def ball(self, bits: int) -> arb:
        """A ball around the chance."""
        with precision(bits + 64):
            return GAUSSIAN.tail(ball(self.level))


@dataclass(frozen=True, slots=True)
class _Mixed:
    """N_j/σ = G/√2 + √own·Z_j."""

    common: Noisy
    noise: Noisy
    own: Fraction

    def ball(self, bits: int) -> arb:
        """A ball around the noise, from this many bits of both normals."""
        with precision(bits + 32):
            common = _root(COMMON, bits + 32) * self.common.ball(bits)
            return common + _root(self.own, bits + 32) * self.noise.ball(bits)


@lru_cache(maxsize=64)
def _root(value: Fraction, bits: int) -> arb:
    with precision(bits):
        return ball(value).sqrt()


@lru_cache(maxsize=4096)
def _law(levels: tuple[Fraction, ...], bits: int) -> tuple[arb, ...]:
    """Given G the lists pass independently: one integral over G for each place."""
    with precision(bits + 32):
        if len(levels) == 1:
            passes = GAUSSIAN.tail(ball(levels[0]))
            return passes, 1 - passes
        # Φ(−reach) < 2^(−bits − 16): the integrand is at most the density of G.
        reach = arb(2 * (bits + 16)).sqrt().ceil()
        missing = GAUSSIAN.tail(reach)
        root = ball(COMMON).sqrt()
        owns = [ball(own).sqrt() for own in own_variances(len(levels))]
        fails = [(ball(level), own) for level, own in zip(levels, owns, strict=True)]

        def density(common: acb, _: bool, place: int) -> acb:
            value = (-common * common / 2).exp() / (2 * arb.pi()).sqrt()
            for before, (level, own) in enumerate(fails[: place + 1]):
                above = (level - common * root) / own / arb(2).sqrt()
                value *= (above if before == place else -above).erfc() / 2
            return value

        found = []
        for place in range(len(levels)):
            whole = acb.integral(partial(density, place=place), acb(-reach), acb(reach)).real
            found.append(whole + missing * arb(1, 1))
        return *found, 1 - sum(found, arb(0))
