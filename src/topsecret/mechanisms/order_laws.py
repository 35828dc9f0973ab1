"""The exact law of sorting independent noisy values: of lists, of lists ended by ⊥, of sets.

A runner is an independent noisy value, given by its density and its distribution function as
``Piecewise`` functions. The runners i₁, …, i_j come first in this order with probability

    ∫ f_{i₁}(x₁) ∫_{x₂ < x₁} f_{i₂}(x₂) … ∫_{x_j < x_{j−1}} f_{i_j}(x_j)·Π_{others} F(x_j),

from the inside: G_j = Π F, G_{l−1}(x) = ∫_{−∞}^x f_{i_l}·G_l, and the answer is G_0(∞). A *set*
comes first when the largest of the others lies below all its members:
∫ (Π_{others} F)′·Π_{members}(1 − F).

Make the runners at the precision at which the law is wanted: their coefficients are balls.

>>> law = list_law({"a": laplace(at(1)), "b": laplace(at(0))}, 1)
>>> {outcome: round(float(p), 4) for outcome, p in law.items()}
{('a',): 0.7241, ('b',): 0.2759}
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, permutations
from math import comb, perm

from flint import arb, ctx

from topsecret.errors import TooLarge
from topsecret.exact.ordering import canonical_key
from topsecret.exact.rounding import precision
from topsecret.mechanisms.piecewise import (
    Piecewise,
    Rate,
    at,
    constant,
    exponential_cdf,
    exponential_density,
    guard_bits,
    laplace_cdf,
    laplace_density,
    product,
)
from topsecret.mechanisms.selection import NOTHING, Outcome
from topsecret.noise.bits import Log

__all__ = [
    "Runner",
    "at",
    "exponential",
    "in_canonical_order",
    "laplace",
    "list_law",
    "score_list_law",
    "score_set_law",
    "set_law",
]

_MOST = 20_000


@dataclass(frozen=True, slots=True)
class Runner:
    """One noisy value: its density and its distribution function."""

    density: Piecewise
    cdf: Piecewise


RunnerOf = Callable[[Log], Runner]
"""The noisy value at a place."""


def exponential(start: Log, scale: Rate = 1) -> Runner:
    """start + scale·Exp(1)."""
    return Runner(exponential_density(start, scale), exponential_cdf(start, scale))


def laplace(centre: Log, scale: Rate = 1) -> Runner:
    """centre + Lap(scale)."""
    return Runner(laplace_density(centre, scale), laplace_cdf(centre, scale))


def list_law(runners: Mapping[Hashable, Runner], k: int) -> dict[Outcome, arb]:
    """The law of the k largest in order; a runner called ``NOTHING`` ends the list.

    >>> race = {"a": exponential(at(1)), NOTHING: exponential(at(0))}
    >>> {outcome: round(float(p), 4) for outcome, p in list_law(race, 2).items()}
    {(NOTHING,): 0.1839, ('a', NOTHING): 0.8161}
    """
    items = [item for item in runners if item is not NOTHING]
    sizes = range(1, min(k, len(items)) + 1)
    if sum(perm(len(items), j) for j in sizes) > _MOST:
        raise _too_large(k, len(items))
    everyone = frozenset(runners)
    tails: dict[tuple[Outcome, frozenset[Hashable]], Piecewise] = {}

    def tail(ending: Outcome, before: frozenset[Hashable]) -> Piecewise:
        """P[the ending comes in this order above the rest, all below x], ``before`` left out."""
        known = tails.get((ending, before))
        if known is None:
            if ending:
                inner = tail(ending[1:], before | {ending[0]})
                known = (runners[ending[0]].density * inner).integral()
            else:
                known = product(runners[item].cdf for item in runners if item not in before)
            tails[ending, before] = known
        return known

    nobody: frozenset[Hashable] = frozenset()
    return {
        outcome: tail(outcome, nobody).limit()
        for outcome in _lists(items, k, ended=NOTHING in everyone)
    }


def _lists(items: list[Hashable], k: int, *, ended: bool) -> Iterator[Outcome]:
    if ended:
        for length in range(min(k, len(items) + 1)):
            for beginning in permutations(items, length):
                yield (*beginning, NOTHING)
        if k > len(items):
            return
    yield from permutations(items, min(k, len(items)))


def set_law(runners: Mapping[Hashable, Runner], k: int) -> dict[Outcome, arb]:
    """The law of the set of the k largest, each set in the order in which the runners are given.

    >>> law = set_law({"a": laplace(at(1)), "b": laplace(at(0)), "c": laplace(at(0))}, 2)
    >>> {outcome: round(float(p), 3) for outcome, p in law.items()}
    {('a', 'b'): 0.429, ('a', 'c'): 0.429, ('b', 'c'): 0.142}
    """
    if comb(len(runners), k) > _MOST:
        raise _too_large(k, len(runners))
    law: dict[Outcome, arb] = {}
    above = {item: constant(1) - runner.cdf for item, runner in runners.items()}
    for chosen in combinations(runners, k):
        others = [runners[item].cdf for item in runners if item not in chosen]
        if others:
            highest_other = product(others).derivative()
            all_above = product(above[item] for item in chosen)
            law[chosen] = (highest_other * all_above).integral().limit()
        else:
            law[chosen] = arb(1)
    return law


def score_list_law(
    kind: RunnerOf, scores: Sequence[tuple[Hashable, Fraction]], scale: Fraction, k: int
) -> dict[Outcome, arb]:
    """The law of the ordered k largest of score + scale·noise."""
    items, places = _relative(scores, scale)
    law = _place_list_law(kind, places, k, max(128, ctx.prec))
    return {tuple(items[i] for i in ranks): chance for ranks, chance in law.items()}


def score_set_law(
    kind: RunnerOf, scores: Sequence[tuple[Hashable, Fraction]], scale: Fraction, k: int
) -> dict[Outcome, arb]:
    """The law of the set of the k largest of score + scale·noise, in canonical order."""
    items, places = _relative(scores, scale)
    law = _place_set_law(kind, places, k, max(128, ctx.prec))
    return {in_canonical_order(items[i] for i in ranks): chance for ranks, chance in law.items()}


def in_canonical_order(items: Iterable[Hashable]) -> Outcome:
    """The items of a set, in an order that carries nothing.

    >>> in_canonical_order({"b", "a"})
    ('a', 'b')
    """
    return tuple(sorted(items, key=canonical_key))


def _relative(
    scores: Sequence[tuple[Hashable, Fraction]], scale: Fraction
) -> tuple[dict[Hashable, Hashable], tuple[Fraction, ...]]:
    """Items by their rank in falling score, and their scores over the scale, the best at 0.

    Only differences matter, so all histograms with the same ranked differences share one law.
    """
    ranked = sorted(scores, key=lambda pair: -pair[1])
    best = ranked[0][1] if ranked else Fraction(0)
    items: dict[Hashable, Hashable] = dict(enumerate(item for item, _ in ranked))
    return items, tuple((score - best) / scale for _, score in ranked)


@lru_cache(maxsize=1024)
def _place_list_law(
    kind: RunnerOf, places: tuple[Fraction, ...], k: int, bits: int
) -> Mapping[Outcome, arb]:
    runners = [at(place) for place in places]
    with precision(bits + guard_bits(runners, len(runners))):
        return list_law({rank: kind(place) for rank, place in enumerate(runners)}, k)


@lru_cache(maxsize=1024)
def _place_set_law(
    kind: RunnerOf, places: tuple[Fraction, ...], k: int, bits: int
) -> Mapping[Outcome, arb]:
    runners = [at(place) for place in places]
    with precision(bits + guard_bits(runners, len(runners))):
        return set_law({rank: kind(place) for rank, place in enumerate(runners)}, k)


def _too_large(k: int, size: int) -> TooLarge:
    return TooLarge(
        f"the law of the {k} largest of {size} has more than {_MOST} outcomes; "
        "ask for it on a smaller histogram"
    )
