"""The public numbers of `TestedTopK`: lengths, prices, tests, all from (k, ε, δ).

Every number is fixed before any data is seen. Whatever they are, the cost is computed from the
numbers themselves (:class:`~topsecret.accounting.tested.TestedSteps`): a poor choice would cost
utility, never privacy. docs/tested-top-k.md says how the constants were chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from flint import arb

from topsecret.accounting import calibrate_gaussian
from topsecret.accounting.tested import Branch, TestedSteps
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import ball, down, precision, root_up, up
from topsecret.mechanisms.pick_prune_test import Levels, NestedTest, rising, spread_cost
from topsecret.mechanisms.tested_prices import Target, price_of


@dataclass(frozen=True)
class Constants:
    """The shape of the mechanism, the same for all uses."""

    prune: Fraction = Fraction(1, 5)
    """How many more picks than the length, as a share of it; they are pruned again."""
    levels: int = 4
    """In how many steps the price of a pick rises."""
    exponent: int = 2
    """A pick at the share x of all picks has the price x^(1/exponent), rounded up to a level."""
    lists: tuple[Fraction, ...] = (Fraction(1), Fraction(3, 4), Fraction(1, 2), Fraction(3, 10))
    """The sizes of the nested lists, as shares of the length."""
    later: Fraction = Fraction(1, 2)
    """The price of the prunes from list to list, as a share of that of the first prunes."""
    longest: int = 1000
    """The longest list whose length is chosen privately."""
    ratio: Fraction = Fraction(17, 20)
    """The possible lengths are longest·ratio^j and k itself."""
    nearest: Fraction = Fraction(93, 100)
    """No length but k is larger than this share of k."""
    length_share: Fraction = Fraction(1, 10)
    """The part of the budget (as zCDP) for choosing the length."""
    test_share: Fraction = Fraction(22, 100)
    """The part of the budget for the test."""
    test_failure: Fraction = Fraction(1, 5)
    """The part of delta that the test may fail with."""
    test_ease: Fraction = Fraction(2, 5)
    """How many deviations below a chance of one half to pass a length may lie to be comfortable."""
    margin: Fraction = Fraction(3)
    """How many noise scales of the last pick a length keeps away from the threshold."""
    margin_growth: Fraction = Fraction(2, 5)
    """How many noise scales more it keeps away for each factor e between k and the length."""


CONSTANTS = Constants()
SMALLEST_DELTA = Fraction(1, 10**200)
"""Below it the accountant's floats have no room."""
SPENT, _AIM = Fraction(998, 1000), 0.9994
"""What is spent of epsilon at least, and about how much where the choice takes the rest."""
UNIT = 1024
"""Scores of lengths are whole multiples of 1/1024, so that the race sees integers."""


@dataclass(frozen=True)
class Length:
    """One possible length of the list, its hidden steps and its test."""

    size: int
    """How many items the list has."""
    prunes: int
    """How many picks are taken away again."""
    price: Fraction
    """e_m: the epsilon of a prune and of the last picks."""
    levels: Levels
    """Runs of picks with one epsilon each, in the order of time."""
    list_sizes: tuple[int, ...]
    """The sizes of the nested lists, longest first; the first is the length itself."""
    later_price: Fraction
    """The epsilon of a prune from one list to the next."""
    test: NestedTest
    """The test of the nested lists."""
    offset: int = 0
    """What the m-th count must exceed T by for this length to be comfortable, in 1/1024."""

    @property
    def branch(self) -> Branch:
        """The hidden steps as the accountant sees them: the picks, then the prunes."""
        later = self.size - self.list_sizes[-1]
        return Branch((*self.levels, (self.prunes, self.price), (later, self.later_price)))

    @property
    def needed_lead(self) -> Fraction:
        """1 + σz + 4/e: the lead over T at which the whole list is named about every other time.

        An item of this lead stands four noise scales of a pick above what the test asks for to
        be passed half of the time.
        """
        return 1 + self.test.sigma * self.test.quantile + 4 / self.price


@dataclass(frozen=True)
class Schedule:
    """All public numbers of one mechanism."""

    lengths: tuple[Length, ...]
    """Longest first."""
    choice: Fraction
    """ε_u: the epsilon of choosing the length; 0 when there is only one."""
    mu_squared: Fraction
    """What the test costs as a Gaussian step, whatever the length."""
    failure: Fraction
    """The probability with which the test may pass wrongly."""

    @property
    def steps(self) -> TestedSteps:
        """What the accountant charges."""
        branches = tuple(length.branch for length in self.lengths)
        return TestedSteps(self.choice, branches, self.mu_squared)


def default_k_bar(k: int) -> int:
    """How many leading items to look at: max(1600, 5k, min(20k, 3000)).

    >>> [default_k_bar(k) for k in (1, 100, 200, 1000)]
    [1600, 2000, 3000, 5000]
    """
    return max(1600, 5 * k, min(20 * k, 3000))


def sizes(k: int, constants: Constants = CONSTANTS) -> tuple[int, ...]:
    """The possible lengths, longest first: k and those of the series that are clearly smaller.

    The series is the same for all k, so that a longer list asked for never makes a shorter one
    impossible.

    >>> sizes(10)
    (10, 9, 8, 6, 5, 4, 3, 2, 1)
    """
    below, ratio = k * constants.nearest, constants.ratio
    found = [k]
    length = Fraction(constants.longest)
    while round(length / ratio) <= below:
        length /= ratio
    while length >= Fraction(1, 2):
        if round(length) <= below:
            found.append(max(1, round(length)))
        length *= ratio
    return tuple(dict.fromkeys(found))


def list_sizes(size: int, constants: Constants = CONSTANTS) -> tuple[int, ...]:
    """The sizes of the nested lists, longest first.

    >>> list_sizes(10), list_sizes(2), list_sizes(1)
    ((10, 8, 5, 3), (2, 1), (1,))
    """
    return tuple(dict.fromkeys(max(1, round(size * share)) for share in constants.lists))


def length_at(
    size: int, price: Fraction, test: NestedTest, constants: Constants = CONSTANTS, offset: int = 0
) -> Length:
    """A length with its rising prices: pick i of n has price·⌈L·(i/n)^(1/p)⌉/L."""
    prunes = math.ceil(constants.prune * size)
    levels = rising(size + prunes, price, constants.levels, constants.exponent)
    lists, later = list_sizes(size, constants), price * constants.later
    return Length(size, prunes, price, levels, lists, later, test, offset)


@lru_cache(maxsize=256)
def schedule(
    k: int,
    epsilon: Fraction,
    delta: Fraction,
    private_length: bool,
    constants: Constants = CONSTANTS,
    behind: Fraction = Fraction(0),
) -> Schedule:
    """The schedule that spends (epsilon, delta): every price as large as the budget allows.

    ``behind`` is the mu² of Gaussian steps that will follow within the same budget. A price depends
    on its length, epsilon, delta and that alone, never on k or the other lengths.

    *Guarantee.* ``steps``, then Gaussian steps of ``behind``, and the failure keep to (epsilon,
    delta), compared without tolerance.
    """
    found = planned(k, epsilon, delta, private_length, price_of, constants, behind)
    budget = delta - found.failure

    def spent(numbers: Schedule) -> float:
        return numbers.steps.followed_by(behind).profile(budget).epsilon(budget)

    factor = Fraction(1)
    # The search compared every branch with one Gaussian on a grid of its own; what is returned
    # is certified as a whole.
    while (cost := spent(found)) > epsilon:
        factor *= Fraction(998, 1000)
        less = factor

        def lower(unit: Branch, target: Target, less: Fraction = less) -> Fraction:
            return price_of(unit, target) * less

        found = planned(k, epsilon, delta, private_length, lower, constants, behind)
    if cost >= SPENT * epsilon or not found.choice:
        return found
    return _choosier(found, cost, epsilon, spent)


def _choosier(
    found: Schedule, start: float, epsilon: Fraction, spent: Callable[[Schedule], float]
) -> Schedule:
    """The same prices with a larger epsilon for the choice, which takes what they leave.

    Short branches are no Gaussians: held against one, a few of them leave up to 1% of epsilon. The
    prices must not depend on k, so the choice, which does, is where it can go.
    """
    best, slope = found, float(epsilon) / 10
    for _ in range(5):
        step = (float(epsilon) * _AIM - start) / slope
        factor = 1 + Fraction(round(step * 2**12), 2**12)
        tried = replace(found, choice=found.choice * factor)
        cost = spent(tried)
        if cost <= epsilon:
            best = tried
            if cost >= SPENT * epsilon:
                break
        slope = max((cost - start) / float(factor - 1), slope / 4)
    return best


def planned(
    k: int,
    epsilon: Fraction,
    delta: Fraction,
    private_length: bool,
    pricing: Callable[[Branch, Target], Fraction],
    constants: Constants = CONSTANTS,
    behind: Fraction = Fraction(0),
) -> Schedule:
    """The schedule with these prices, not yet certified."""
    failure = Fraction(down(delta * constants.test_failure))
    budget = delta - failure
    whole = Fraction(calibrate_gaussian(epsilon, budget)) - behind
    if whole <= 0 or delta < SMALLEST_DELTA:
        raise InvalidParameter(
            f"epsilon={float(epsilon)} and delta={float(delta)} leave nothing for a test; "
            "raise them"
        )
    if not private_length:  # k items or nothing: one list
        constants = replace(constants, lists=(Fraction(1),))
    share = constants.test_share + (0 if private_length else constants.length_share)
    mu_squared = share * whole
    wanted = sizes(k, constants) if private_length else (k,)
    choice = Fraction(0)
    if len(wanted) > 1:
        choice = Fraction(down(2 * ball(constants.length_share * whole).sqrt()))
    target = Target(epsilon, budget, choice, mu_squared + behind)
    lengths = []
    for size in wanted:
        test = _test(len(list_sizes(size, constants)), mu_squared, failure)
        price = pricing(length_at(size, Fraction(1), test, constants).branch, target)
        lengths.append(_length(k, size, price, test, constants))
    return Schedule(tuple(lengths), choice, mu_squared, failure)


@lru_cache(maxsize=256)
def _test(lists: int, mu_squared: Fraction, failure: Fraction) -> NestedTest:
    """σ = √κ/μ and z = Φ⁻¹(1 − failure/J), both rounded up."""
    with precision(128):
        quantile = Fraction(up(_quantile(failure / lists)))
    return NestedTest(lists, root_up(spread_cost(lists) / mu_squared), quantile)


def _length(k: int, size: int, price: Fraction, test: NestedTest, constants: Constants) -> Length:
    """The length with its offset, rounded to a multiple of 1/1024."""
    if not price:
        raise InvalidParameter(
            "epsilon is too small beside delta for picks that are tested; raise epsilon or lower "
            "delta"
        )
    scales = float(constants.margin) + float(constants.margin_growth) * math.log(k / size)
    level = test.sigma * (test.quantile - constants.test_ease)
    offset = round(UNIT * (1 + level + Fraction(scales) / price))
    return length_at(size, price, test, constants, offset)


def _quantile(failure: Fraction) -> arb:
    """Φ⁻¹(1 − failure)."""
    return arb(2).sqrt() * (2 * ball(failure)).erfcinv()
