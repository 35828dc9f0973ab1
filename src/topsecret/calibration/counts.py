"""Counts behind a selection: which part of the budget they get, and what noise that buys.

The budget is divided as a Gaussian's: (ε, δ) is worth a squared signal-to-noise ratio mu², and the
counts get a share of it. They come last, so they absorb the picks before them
(docs/proofs/absorption.md), and what both cost together is one loss.

>>> from topsecret.calibration import Question
>>> selection, counts = with_counts("gumbel", Question.of(k=5, epsilon=1, domain_size=50))
>>> counts.total.epsilon(1e-6) <= 1
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from topsecret.accounting import (
    Loss,
    absorbed_after,
    calibrate,
    calibrate_absorbed,
    calibrate_gaussian,
    failure,
    gaussian,
    slack,
)
from topsecret.accounting.classical import Run
from topsecret.calibration import prepare, refusal
from topsecret.calibration.prepared import Prepared
from topsecret.calibration.public_domain import gumbel_at, pruned_at
from topsecret.calibration.question import Question
from topsecret.calibration.stability import TEST_SHARE, known_order_rho, stable_at
from topsecret.calibration.unknown_domain import limited_domain_at, tested_before
from topsecret.calibration.words import too_small
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, down, exact, up
from topsecret.mechanisms import CorrelatedCounts, StableTopK
from topsecret.mechanisms.count_noise import CountNoise
from topsecret.noise.bits import BitSource
from topsecret.results.intervals import Intervals

SHARE, SHARE_OF_FEW, FEW = 0.15, 0.2, 10
"""The counts' share of mu², and that of lists with fewer than ``FEW`` items."""

SHARPENED = 250
"""Up to so many items the recursion buys a higher price than the closed form, by .2% or more."""

ENDS_EARLY = 20
"""From so many items on a list's unused picks go to its counts. That needs the closed form, whose
price is then within 3% of the sharpened one."""

TOLERANCE = 1e-3
"""The share of epsilon that a sharpened calibration may leave unspent."""


@dataclass(frozen=True, slots=True)
class CountsBudget:
    """How much of a question's budget its noisy counts get."""

    part: float | None = None
    """A part of mu², or of epsilon; None for the default part of mu²."""
    of_epsilon: bool = False

    def fingerprint(self) -> object:
        """What tells it from another; the default stays the same when its number changes."""
        if self.of_epsilon:
            return self.part
        return "default" if self.part is None else {"part": self.part}


USUAL = CountsBudget()
"""The default part of mu²."""


@dataclass(frozen=True, slots=True)
class ToldCounts:
    """Noisy counts and what they tell: private, free to be shown."""

    counts: tuple[int, ...]
    persons: int | None
    intervals: Intervals | None
    """None where no item was released."""


@dataclass(frozen=True, slots=True)
class PreparedCounts:
    """Correlated noise for the items of one selection, at a price fixed beforehand.

    *Guarantee.* ``total`` is what the selection and its counts cost together, whatever comes out.
    """

    mu: Fraction
    """The signal-to-noise ratio that one person has in the counts of a whole list."""
    max_items: int | None
    total: Loss
    after: tuple[Fraction, ...] = ()
    """mu by the number of symbols that a list took, where unused picks go to the counts."""

    def behind(self, symbols: int) -> CorrelatedCounts:
        """The counts behind a list that took so many symbols, ⊥ included."""
        mu = self.after[symbols] if self.after else self.mu
        return CorrelatedCounts(mu, self.max_items)

    def intervals(self, released: int, symbols: int | None = None) -> Intervals:
        """What the counts of so many items tell; of a whole list unless it took fewer symbols."""
        counts = CorrelatedCounts(self.mu, self.max_items) if symbols is None else None
        return intervals_of((counts or self.behind(symbols or 0)).noise(released))

    def release(
        self,
        histogram: Histogram,
        items: Sequence[Hashable],
        symbols: int,
        persons: int | None = None,
        bits: BitSource | None = None,
    ) -> ToldCounts:
        """A noisy count for each item, and of ``persons`` where that is given. Secret: both."""
        noisy = self.behind(symbols).release(histogram, items, persons, bits)
        told = None if noisy.noise is None else intervals_of(noisy.noise)
        return ToldCounts(noisy.counts, noisy.persons, told)


def intervals_of(noise: CountNoise) -> Intervals:
    """The noise as floats, for whoever reads the counts."""
    common = None if noise.common_scale is None else up(noise.common_scale)
    return Intervals(noise.released, float(noise.weight), up(noise.item_scale), common)


def default_share(question: Question) -> float:
    """The share of mu² that the counts get unless another is asked for."""
    return SHARE if question.k == "auto" or question.length >= FEW else SHARE_OF_FEW


def with_counts(
    name: str, question: Question, budget: CountsBudget = USUAL
) -> tuple[Prepared, PreparedCounts]:
    """A selection and the counts behind it, which together spend (ε, δ).

    *Guarantee.* ``total.epsilon(delta) <= epsilon``, compared without tolerance.
    """
    if question.delta == 0:
        raise InvalidParameter(
            "counts=True needs a delta above 0: their noise is Gaussian; pass delta=1e-6"
        )
    if (reason := refusal(name, question)) is not None:
        raise reason
    selection, counts = _divided(name, question, budget)
    if not counts.total.epsilon(question.delta) <= question.epsilon:
        raise InvalidParameter(
            f"epsilon={question.epsilon} with delta={question.delta} cannot be met by {name} with "
            "counts; raise epsilon or delta, or lower k"
        )
    return selection, counts


def _divided(
    name: str, question: Question, budget: CountsBudget
) -> tuple[Prepared, PreparedCounts]:
    if budget.of_epsilon:
        return _for_epsilon(name, question, budget.part)
    part = _checked(default_share(question) if budget.part is None else budget.part, "counts_part")
    prices = _AT_PRICE.get(name)
    if prices is not None:
        return prices(question, part)
    whole = _mu_squared(question.epsilon, question.delta)
    delta = down(exact(question.delta) * Fraction(9, 10))
    epsilon = gaussian(whole * (1 - part)).epsilon(delta)
    return _rest(name, question, min(epsilon, question.epsilon), delta, float(whole * part))


def _for_epsilon(
    name: str, question: Question, share: float | None
) -> tuple[Prepared, PreparedCounts]:
    """A selection at (1 − share)·(ε, δ), and counts for what that leaves of (ε, δ)."""
    counted = _checked(share, "counts_share")
    part, start = down(1 - counted), float(counted * exact(question.epsilon)) ** 2 / 20
    return _rest(name, question, question.epsilon * part, question.delta * part, start)


def _checked(share: float | None, name: str) -> Fraction:
    if isinstance(share, bool) or not isinstance(share, float | int) or not 0 < share < 1:
        raise InvalidParameter(f"{name}={share!r} must be above 0 and below 1; leave it out, say")
    return exact(share)


def _mu_squared(epsilon: float, delta: float | Fraction) -> Fraction:
    return exact(calibrate_gaussian(epsilon, delta))


def _rest(
    name: str, question: Question, epsilon: float, delta: float, start: float
) -> tuple[Prepared, PreparedCounts]:
    """The selection at a smaller budget, and the counts for what is left of the whole."""
    selection = prepare(name, replace(question, epsilon=epsilon, delta=delta))
    before = _in_order(selection)

    def followed(mu_squared: Number) -> Loss:
        return before.then_gaussian(mu_squared)

    mu = _root_down(
        calibrate(followed, question.epsilon, question.delta, start, tolerance=TOLERANCE)
    )
    for _ in range(8):  # another mu has another grid: what is returned was itself evaluated
        total = followed(mu**2)
        if mu > 0 and total.epsilon(question.delta) <= question.epsilon:
            return selection, PreparedCounts(mu, question.max_items, total)
        mu *= Fraction(9995, 10000)
    raise InvalidParameter(
        f"epsilon={question.epsilon} leaves nothing for counts; raise epsilon or counts_part"
    )


def _in_order(selection: Prepared) -> Loss:
    """The selection's loss with what is known of the order of its steps."""
    mechanism, loss = selection.mechanism, selection.mechanism.loss
    if isinstance(mechanism, StableTopK) and mechanism.test == "gaussian":
        # The choice comes first and the test last (mechanisms/stability.py).
        return replace(loss, mu_squared=Fraction(0)).then_gaussian(loss.mu_squared)
    return loss


def _picks(
    question: Question,
    part: Fraction,
    unit: Callable[[Fraction], Sequence[Run]],
    build: Callable[[float], Prepared],
) -> tuple[Prepared, PreparedCounts]:
    """Picks on a public domain: the closed form, sharpened by the recursion for short lists."""
    whole = _mu_squared(question.epsilon, question.delta)
    mu = _root_down(whole * part)
    price = _positive(down(calibrate_absorbed(unit, mu**2, whole)), question)
    if question.length < SHARPENED:
        price = max(price, _sharpened(question, mu, price, lambda each: build(each).mechanism.loss))
    selection = build(price)
    loss = selection.mechanism.loss.then_gaussian(mu**2)
    return selection, PreparedCounts(mu, question.max_items, loss)


def _sharpened(
    question: Question, mu: Fraction, closed: float, loss_of: Callable[[float], Loss]
) -> float:
    """The price that the recursion allows; the closed form's is about half a pick too low."""
    return calibrate(
        lambda price: loss_of(price).then_gaussian(mu**2),
        question.epsilon,
        question.delta,
        closed * (1 + 0.52 / question.length),
        tolerance=TOLERANCE,
    )


def _gumbel(question: Question, part: Fraction) -> tuple[Prepared, PreparedCounts]:
    k = question.length
    return _picks(question, part, lambda e: ((k, e),), lambda price: gumbel_at(question, price))


def _pruned(question: Question, part: Fraction) -> tuple[Prepared, PreparedCounts]:
    def unit(price: Fraction) -> Sequence[Run]:
        return pruned_at(question, float(price)).mechanism.loss.pick_runs

    return _picks(question, part, unit, lambda price: pruned_at(question, price))


def _limited_domain(question: Question, part: Fraction) -> tuple[Prepared, PreparedCounts]:
    """The threshold's share of delta is the one of a few that gives the lowest threshold."""
    k, delta = question.length, exact(question.delta)
    affected = min(question.k_bar, question.max_items or question.k_bar)
    surprise = -math.log(question.delta)
    guess = 2 * surprise / (math.log(affected) + 3 * surprise)

    def closed(share: float) -> tuple[float, Fraction, float]:
        threshold = down(delta * Fraction(share))
        extra = limited_domain_at(question, 1.0, threshold).mechanism.loss.slack
        if extra >= question.epsilon:
            return 0.0, Fraction(0), threshold
        left = down(exact(question.epsilon) - extra)
        whole = _mu_squared(left, delta - exact(threshold))
        mu = _root_down(whole * part)
        return down(calibrate_absorbed(lambda e: ((k, e),), mu**2, whole)), mu, threshold

    def height(share: float) -> float:
        price, _, threshold = closed(share)
        return math.log(affected / threshold) / price if price > 0 else math.inf

    shares = (guess / 2, guess, (1 + guess) / 2, (1 + 3 * guess) / 4)
    price, mu, threshold = closed(min(shares, key=height))
    price = _positive(price, question)
    if k >= ENDS_EARLY:
        selection = limited_domain_at(question, price, threshold)
        after = absorbed_after(k, exact(price), mu)
        own = selection.mechanism.loss
        total = gaussian(after[0] ** 2) + slack(own.slack) + failure(own.failures)
        return selection, PreparedCounts(mu, question.max_items, total, after)

    def loss_of(each: float) -> Loss:
        return limited_domain_at(question, each, threshold).mechanism.loss

    price = max(price, _sharpened(question, mu, price, loss_of))
    selection = limited_domain_at(question, price, threshold)
    loss = selection.mechanism.loss.then_gaussian(mu**2)
    return selection, PreparedCounts(mu, question.max_items, loss)


def _tested(question: Question, part: Fraction) -> tuple[Prepared, PreparedCounts]:
    """The prices of the hidden steps leave room for the counts, which come behind the test."""
    mu = _root_down(_mu_squared(question.epsilon, question.delta) * part)
    selection = tested_before(question, mu**2)
    loss = selection.mechanism.loss.then_gaussian(mu**2)
    return selection, PreparedCounts(mu, question.max_items, loss)


def _stable(question: Question, part: Fraction) -> tuple[Prepared, PreparedCounts]:
    """A choice of k, its test and the counts: one pick before two Gaussians, exactly."""
    failing = down(exact(question.delta) / TEST_SHARE)
    left = exact(question.delta) - exact(failing)
    mu = _root_down(_mu_squared(question.epsilon, left) * part)
    low = known_order_rho(question.epsilon, left, failing, mu**2)
    if low <= 0:
        raise too_small(question)
    while True:  # the accountant's own grid is a little coarser: what it reports is what counts
        selection = stable_at(question, low, failing)
        loss = _in_order(selection).then_gaussian(mu**2)
        if loss.keeps_to(question.epsilon, question.delta):
            return selection, PreparedCounts(mu, question.max_items, loss)
        low *= 1 - 5e-4


_AT_PRICE = {
    "stable": _stable,
    "gumbel": _gumbel,
    "pruned": _pruned,
    "limited-domain": _limited_domain,
    "tested": _tested,
}
"""Those whose price is calibrated together with the counts behind them."""


def _positive(price: float, question: Question) -> float:
    if price <= 0:
        raise too_small(question)
    return price


def _root_down(value: float | Fraction) -> Fraction:
    """A short fraction whose square is at most the value."""
    square = exact(value)
    return Fraction(math.isqrt(square.numerator * 2**96 // square.denominator), 2**48)
