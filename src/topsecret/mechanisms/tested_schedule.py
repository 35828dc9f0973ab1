"""The public numbers of `TestedTopK`: lengths, prices, test noise, all from (k, ε, δ).

Every number is fixed before any data is seen. Whatever they are, the cost is computed from the
numbers themselves (:class:`~topsecret.accounting.tested.TestedSteps`): a poor choice would cost
utility, never privacy. docs/tested-top-k.md says how the constants were chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb

from topsecret.accounting import calibrate, gaussian
from topsecret.accounting.profile import LARGEST_PICK
from topsecret.accounting.tested import ROUGH, Branch, TestedSteps
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import ball, down, precision, up
from topsecret.mechanisms.pick_and_prune import Levels, rising


@dataclass(frozen=True)
class Constants:
    """The shape of the mechanism, the same for all uses."""

    prune: Fraction = Fraction(1, 5)
    """How many more picks than the length, as a share of it; they are pruned again."""
    levels: int = 4
    """In how many steps the price of a pick rises."""
    exponent: int = 2
    """A pick at the share x of all picks has the price x^(1/exponent), rounded up to a level."""
    ratio: Fraction = Fraction(17, 20)
    """Each length is this share of the next longer one."""
    length_share: Fraction = Fraction(1, 10)
    """The part of the budget (as zCDP) for choosing the length."""
    test_share: Fraction = Fraction(1, 5)
    """The part of the budget for the test."""
    test_failure: Fraction = Fraction(1, 10)
    """The part of delta that the test may fail with."""
    margin: int = 4
    """How many noise scales of the last pick a length keeps away from the threshold."""
    width: int = 20
    """k̄ over k."""


CONSTANTS = Constants()
SMALLEST_DELTA = Fraction(1, 10**200)
"""Below it the accountant's floats have no room."""


@dataclass(frozen=True)
class Length:
    """One possible length of the list and what its hidden steps cost."""

    size: int
    prunes: int
    price: Fraction
    """e_m: the epsilon of a prune and of the last picks."""
    levels: Levels
    """Runs of picks with one epsilon each, in the order of time."""
    offset: int
    """What the m-th count must exceed T by for this length to be comfortable, in 1/1024."""

    @property
    def branch(self) -> Branch:
        """The hidden steps as the accountant sees them: the picks, then the prunes."""
        return Branch((*self.levels, (self.prunes, self.price)))


UNIT = 1024
"""Scores of lengths are whole multiples of 1/1024, so that the race sees integers."""


@dataclass(frozen=True)
class Schedule:
    """All public numbers of one mechanism."""

    lengths: tuple[Length, ...]
    """Longest first."""
    choice: Fraction
    """ε_u: the epsilon of choosing the length; 0 when there is only one."""
    sigma: Fraction
    quantile: Fraction
    """z: at least Φ⁻¹(1 − failure)."""
    failure: Fraction

    @property
    def steps(self) -> TestedSteps:
        """What the accountant charges."""
        branches = tuple(length.branch for length in self.lengths)
        return TestedSteps(self.choice, branches, 1 / self.sigma**2)


def sizes(k: int, constants: Constants = CONSTANTS) -> tuple[int, ...]:
    """The possible lengths, longest first: k, .85·k, .85²·k, … down to 1.

    >>> sizes(10)
    (10, 8, 7, 6, 5, 4, 3, 2, 1)
    """
    found = []
    length = Fraction(k)
    while length >= Fraction(1, 2):
        found.append(max(1, round(length)))
        length *= constants.ratio
    return tuple(dict.fromkeys(found))


def picks_of(size: int, price: Fraction, constants: Constants = CONSTANTS) -> Length:
    """A length with its rising prices: pick i of n has price·⌈L·(i/n)^(1/p)⌉/L."""
    prunes = math.ceil(constants.prune * size)
    levels = rising(size + prunes, price, constants.levels, constants.exponent)
    return Length(size, prunes, price, levels, 0)


@lru_cache(maxsize=256)
def schedule(
    k: int,
    epsilon: Fraction,
    delta: Fraction,
    private_length: bool,
    constants: Constants = CONSTANTS,
    known: tuple[float, ...] | None = None,
) -> Schedule:
    """The schedule that spends (epsilon, delta): every price as large as the budget allows.

    ``known`` prices, from the table that comes with the package, spare the search.
    """
    failure = Fraction(down(delta * constants.test_failure))
    budget = delta - failure
    mu_squared = Fraction(calibrate(gaussian, epsilon, budget))
    if mu_squared == 0 or delta < SMALLEST_DELTA:
        raise InvalidParameter(
            f"epsilon={float(epsilon)} and delta={float(delta)} leave nothing for a test; "
            "raise them"
        )
    share = constants.test_share + (0 if private_length else constants.length_share)
    sigma = Fraction(up(ball(1 / (share * mu_squared)).sqrt()))
    with precision(128):
        quantile = Fraction(up(_quantile(failure)))
    choice = Fraction(0)
    wanted = sizes(k, constants) if private_length else (k,)
    if len(wanted) > 1:
        choice = Fraction(down(2 * ball(constants.length_share * mu_squared).sqrt()))
    mu = Fraction(1) / sigma**2
    if known is not None:
        priced = zip(wanted, map(Fraction, known), strict=True)
        lengths = tuple(_length(m, price, sigma, quantile, constants) for m, price in priced)
        return Schedule(lengths, choice, sigma, quantile, failure)
    remaining = (1 - share - (constants.length_share if choice else 0)) * mu_squared / 2
    prices = [_price(size, remaining, choice, mu, epsilon, budget, constants) for size in wanted]

    def scaled(factor: float) -> Schedule:
        """All prices times the factor: one branch at a time fits, their maximum may not."""
        lengths = tuple(
            _length(size, _capped(float(price) * factor), sigma, quantile, constants)
            for size, price in zip(wanted, prices, strict=True)
        )
        return Schedule(lengths, choice, sigma, quantile, failure)

    factor, target = 1.0, float(epsilon)
    for _ in range(12):
        found = scaled(factor)
        spent = found.steps.profile(budget).epsilon(budget)
        enough = spent >= target * (1 - 2e-4) or factor < 0.5 or spent == 0
        if spent <= epsilon and enough:
            break
        factor *= (target * (1 - 1e-4) / spent) ** 1.2
    while found.steps.profile(budget).epsilon(budget) > epsilon:
        factor *= 0.998
        found = scaled(factor)
    return found


def _length(
    size: int, price: Fraction, sigma: Fraction, quantile: Fraction, constants: Constants
) -> Length:
    """The length with its offset 1 + σz + 4/e_m, rounded to a multiple of 1/1024."""
    plain = picks_of(size, price, constants)
    offset = round(UNIT * (1 + sigma * quantile + constants.margin / price))
    return Length(size, plain.prunes, price, plain.levels, offset)


def _price(
    size: int,
    remaining: Fraction,
    choice: Fraction,
    mu_squared: Fraction,
    epsilon: Fraction,
    budget: Fraction,
    constants: Constants,
) -> Fraction:
    """The largest e_m for which this branch alone keeps to the budget, within 10⁻³ or so."""

    def spent(price: Fraction) -> float:
        branch = picks_of(size, price, constants)
        whole = Branch((*branch.levels, (branch.prunes, price)))
        steps = TestedSteps(choice, (whole,), mu_squared)
        return steps.profile(budget, ROUGH).epsilon(budget)

    unit = picks_of(size, Fraction(1), constants)
    start = float(remaining / Branch((*unit.levels, (unit.prunes, Fraction(1)))).rho()) ** 0.5
    price, target = start, float(epsilon)
    low = 0.0
    for _ in range(8):
        value = spent(Fraction(price))
        if value <= target:
            low = max(low, price)
            if value >= target * (1 - 1e-3):
                break
        slope = target / max(value, target / 4)
        # epsilon grows a little faster than the price, whose part of the budget is about .7
        price *= slope ** (1.3 if math.isfinite(value) else 1) * (1 - 2e-4)
        price = float(_capped(price))
    while low == 0.0 or spent(Fraction(low)) > target:
        low = price = price * 0.98
    return Fraction(low)


def _capped(price: float) -> Fraction:
    return min(Fraction(price), Fraction(LARGEST_PICK))


def _quantile(failure: Fraction) -> arb:
    """Φ⁻¹(1 − failure)."""
    return arb(2).sqrt() * (2 * ball(failure)).erfcinv()


@dataclass(frozen=True, slots=True)
class Pass:
    """The chance Φ(lead/σ − z) that a list with this least lead over T + 1 passes the test."""

    lead: int
    sigma: Fraction
    quantile: Fraction

    def ball(self, bits: int) -> arb:
        """A ball around the chance."""
        with precision(bits + 64):
            place = ball(self.lead / self.sigma - self.quantile)
            return (-place / arb(2).sqrt()).erfc() / 2


def length_scores(schedule: Schedule, leads: Sequence[int]) -> list[int]:
    """s(m) for each length, in units of 1/1024; the m-th lead is 0 past the named items."""
    comfort = [
        UNIT * (leads[length.size - 1] if length.size <= len(leads) else 0) - length.offset
        for length in schedule.lengths
    ]
    return [-max(0, -comfort[i], comfort[i - 1] if i > 0 else 0) for i in range(len(comfort))]
