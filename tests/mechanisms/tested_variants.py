"""Mechanisms with hand-made public numbers, right and wrong, for the checks of `TestedTopK`.

Each wrong variant claims the loss of the right one but draws from another law. All of them share
the enumeration below, which is written apart from the package's own law: a slip in either shows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations

from flint import arb

from topsecret import NOTHING, Histogram
from topsecret.accounting import Loss, failure, rdp
from topsecret.exact.rounding import ball, precision
from topsecret.mechanisms.pick_prune_test import NestedTest, spread_cost, spreads
from topsecret.mechanisms.tested_schedule import Length, Schedule, length_at

NULL = "null"
IndexLaw = Callable[[Length, Sequence[Fraction]], Sequence[arb]]


def by_hand(
    sizes: Sequence[int],
    price: Fraction,
    mu: Fraction,
    test_failure: Fraction,
    choice: Fraction = Fraction(0),
    offsets: Sequence[int] | None = None,
) -> Schedule:
    """A schedule with these lengths, every one at this price, and the test as it should be."""
    lengths = []
    for place, size in enumerate(sizes):
        lists = len(length_at(size, price, NestedTest(1, Fraction(1), Fraction(0))).list_sizes)
        with precision(128):
            sigma = Fraction(float((ball(spread_cost(lists)).sqrt() / ball(mu)).upper()))
            tail = (2 * ball(test_failure / lists)).erfcinv() * arb(2).sqrt()
            test = NestedTest(lists, sigma * (1 + Fraction(1, 2**50)), Fraction(float(tail)))
        offset = 0 if offsets is None else offsets[place]
        test = replace(test, quantile=test.quantile + Fraction(1, 2**40))
        lengths.append(length_at(size, price, test, offset=offset))
    return Schedule(tuple(lengths), choice, mu**2, test_failure)


def right_index(length: Length, strengths: Sequence[Fraction]) -> Sequence[arb]:
    """The product's own test."""
    return length.test.law(strengths)


def independent_index(length: Length, strengths: Sequence[Fraction]) -> Sequence[arb]:
    """A noise of its own for every list, charged as one Gaussian step of 1/σ."""
    sigma = length.test.sigma / _root(spread_cost(length.test.lists))
    found, failed = [], arb(1)
    for spread, strength in zip(spreads(length.test.lists), strengths, strict=True):
        level = length.test.quantile - (strength - 1) / (sigma * spread)
        passes = _above(level)
        found.append(failed * passes)
        failed *= 1 - passes
    return [*found, failed]


def common_index(length: Length, strengths: Sequence[Fraction]) -> Sequence[arb]:
    """One noise for all lists: S = 11ᵀ."""
    sigma = length.test.sigma / _root(spread_cost(length.test.lists))
    levels = [length.test.quantile - (strength - 1) / sigma for strength in strengths]
    found, lowest = [], None
    for level in levels:
        reached = arb(0) if lowest is None else _above(lowest)
        found.append((_above(level) - reached).nonnegative_part())
        lowest = level if lowest is None else min(lowest, level)
    assert lowest is not None
    return [*found, 1 - _above(lowest)]


def cheap_index(length: Length, strengths: Sequence[Fraction]) -> Sequence[arb]:
    """The right covariance, charged with κ = 1."""
    test = length.test
    sigma = test.sigma / _root(spread_cost(test.lists))
    return replace(test, sigma=sigma).law(strengths)


def unsplit_index(length: Length, strengths: Sequence[Fraction]) -> Sequence[arb]:
    """Every list may fail with the whole of δ_t."""
    chance = float(_above(length.test.quantile)) * length.test.lists
    with precision(128):
        tail = (2 * ball(Fraction(chance))).erfcinv() * arb(2).sqrt()
    return replace(length.test, quantile=Fraction(float(tail))).law(strengths)


def off_by_one_index(length: Length, strengths: Sequence[Fraction]) -> Sequence[arb]:
    """A in place of A − 1."""
    return length.test.law([strength + 1 for strength in strengths])


def noiseless_index(length: Length, strengths: Sequence[Fraction]) -> Sequence[arb]:
    """No noise in the test."""
    for place, strength in enumerate(strengths):
        if strength - 1 > length.test.sigma * length.test.quantile:
            return [arb(int(i == place)) for i in range(length.test.lists + 1)]
    return [*(arb(0) for _ in strengths), arb(1)]


@dataclass(frozen=True)
class Variant:
    """`TestedTopK` at hand-made numbers, perhaps wrong in one place."""

    schedule: Schedule
    slots: int
    index: IndexLaw = right_index
    null_slots: bool = True
    skip_nulls: bool = False
    noisy_later_prunes: bool = True
    choice_factor: int = 1
    charge_later_prunes: bool = True
    charge_prunes: bool = True
    ordered: bool = True
    sensitivity: int = 1
    least: Fraction = Fraction(1)
    """What a slot at the edge counts for in prunes and test, in units of the sensitivity."""

    @property
    def loss(self) -> Loss:
        """What the product charges for these numbers, unless something is left out."""
        steps = self.schedule.steps
        if not (self.charge_later_prunes and self.charge_prunes):
            branches = []
            for branch in steps.branches:
                *picks, prunes, later = branch.runs
                runs = [*picks, *([prunes] if self.charge_prunes else [])]
                runs += [later] if self.charge_later_prunes else []
                branches.append(replace(branch, runs=tuple(runs)))
            steps = replace(steps, branches=tuple(branches))
        return rdp("tested picks", steps) + failure(self.schedule.failure)

    def probabilities(self, histogram: Histogram) -> dict[tuple[object, ...], arb]:
        """By brute force: every order of picks, every order of prunes."""
        rows = histogram.ranked(self.slots + 1)
        threshold = rows[self.slots][1] if len(rows) > self.slots else 0
        unit = self.sensitivity
        leads = {
            item: Fraction(count - threshold, unit) for item, count in rows if count > threshold
        }
        nulls = self.slots - len(leads) if self.null_slots else 0
        law: dict[tuple[object, ...], arb] = defaultdict(lambda: arb(0))
        for length, weight in zip(self.schedule.lengths, self._weights(leads), strict=True):
            for answer, chance in self._branch(length, leads, nulls):
                law[(length.size, *answer)] += weight * chance
        return dict(law)

    def _weights(self, leads: dict[object, Fraction]) -> list[arb]:
        ranked = sorted(leads.values(), reverse=True) + [Fraction(0)] * 10
        comfort = [ranked[n.size - 1] - Fraction(n.offset, 1024) for n in self.schedule.lengths]
        scores = [
            -max(0, -u, comfort[place - 1] if place else 0) for place, u in enumerate(comfort)
        ]
        rate = self.choice_factor * self.schedule.choice / 2
        weights = [ball(rate * score).exp() for score in scores]
        return [weight / sum(weights, arb(0)) for weight in weights]

    def _branch(
        self, length: Length, leads: dict[object, Fraction], nulls: int
    ) -> Iterator[tuple[tuple[object, ...], arb]]:
        prices = [price for count, price in length.levels for _ in range(count)]
        for picked, chance in _picks(leads, nulls, prices):
            for lists, share in self._lists(length, leads, picked):
                total = chance * share
                if not all(lists):
                    yield (NOTHING,), total
                    continue
                strengths = [min(self._strength(leads, slot) for slot in kept) for kept in lists]
                if self.skip_nulls:
                    strengths = [
                        min((leads[slot] for slot in kept if slot is not NULL), default=1)
                        for kept in lists
                    ]
                *passes, none = self.index(length, strengths)
                yield (NOTHING,), total * none
                for kept, passing in zip(lists, passes, strict=True):
                    named = tuple(slot for slot in kept if slot is not NULL)
                    complete = len(named) == len(kept) or self.skip_nulls
                    yield (named if complete else (NOTHING,)), total * passing

    def _strength(self, leads: dict[object, Fraction], slot: object) -> Fraction:
        return max(self.least, leads.get(slot, self.least))

    def _lists(
        self, length: Length, leads: dict[object, Fraction], picked: tuple[object, ...]
    ) -> Iterator[tuple[list[tuple[object, ...]], arb]]:
        first = max(0, len(picked) - length.size)
        later = max(0, len(picked) - first - length.list_sizes[-1])
        strengths = [self._strength(leads, slot) for slot in picked]
        for order in permutations(range(len(picked)), first + later):
            chance = _order_chance(strengths, order[:first], (), length.price)
            if self.noisy_later_prunes:
                chance *= _order_chance(strengths, order[first:], order[:first], length.later_price)
            else:
                chance *= _greedy(strengths, order[first:], order[:first])
            lists = []
            for size in length.list_sizes:
                gone = set(order[: max(first, len(picked) - size)])
                lists.append(tuple(slot for turn, slot in enumerate(picked) if turn not in gone))
            yield lists, chance


def _picks(
    leads: dict[object, Fraction], nulls: int, prices: Sequence[Fraction]
) -> Iterator[tuple[tuple[object, ...], arb]]:
    if not prices or not (leads or nulls):
        yield (), arb(1)
        return
    weights = {item: ball(prices[0] * lead).exp() for item, lead in leads.items()}
    total = sum(weights.values(), arb(nulls))
    for item, weight in weights.items():
        rest = {other: lead for other, lead in leads.items() if other != item}
        for later, chance in _picks(rest, nulls, prices[1:]):
            yield (item, *later), chance * weight / total
    if nulls:
        for later, chance in _picks(leads, nulls - 1, prices[1:]):
            yield (NULL, *later), chance * nulls / total


def _order_chance(
    strengths: Sequence[Fraction], order: Sequence[int], gone: Sequence[int], price: Fraction
) -> arb:
    left = [turn for turn in range(len(strengths)) if turn not in gone]
    chance = arb(1)
    for turn in order:
        weights = {other: ball(-price * strengths[other]).exp() for other in left}
        chance *= weights[turn] / sum(weights.values(), arb(0))
        left.remove(turn)
    return chance


def _greedy(strengths: Sequence[Fraction], order: Sequence[int], gone: Sequence[int]) -> arb:
    """The weakest goes first, the earlier of two equal ones: no noise at all."""
    left = [turn for turn in range(len(strengths)) if turn not in gone]
    for turn in order:
        if turn != min(left, key=lambda other: (strengths[other], other)):
            return arb(0)
        left.remove(turn)
    return arb(1)


def _above(level: Fraction) -> arb:
    with precision(128):
        return (ball(level) / arb(2).sqrt()).erfc() / 2


def _root(value: Fraction) -> Fraction:
    return Fraction(math.sqrt(value))
