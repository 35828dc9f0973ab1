"""Mechanisms that name observed items only: no list of the possible items is needed."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from topsecret.accounting import calibrate, calibrate_limited_domain
from topsecret.calibration.prepared import (
    EMPTY_ADVICE,
    Prepared,
    list_ended,
    list_tested,
    set_ended,
)
from topsecret.calibration.question import Question
from topsecret.calibration.words import lead, noun, too_small, unit_of
from topsecret.exact.rounding import Number, ball, down, exact, precision, up
from topsecret.mechanisms import (
    FixedThreshold,
    LimitedDomain,
    LimitedDomainLaplace,
    OptimalThreshold,
    TestedTopK,
    TopStable,
)
from topsecret.mechanisms.tested_schedule import Length, default_k_bar

_ENDS_THE_LIST = "ends the list: the next items are, or seem with noise, too close together"
_STANDS_FOR_REST = "stands for the items that are, or seem with noise, too close together"
_GUMBEL = math.log(49)
_LAPLACE = 4.372
"""By how many scales a lead must exceed that of the line to be ahead of it 98% of the time: one of
two Gumbel variables is ahead of the other by x scales with probability 1/(1 + e^x), one of two
Laplace variables with (2 + x)/(4·e^x)."""


def limited_domain(question: Question) -> Prepared:
    """`LimitedDomain`, its delta divided for the lowest threshold."""
    k, k_bar = question.length, question.k_bar
    price, share = calibrate_limited_domain(
        k, k_bar, question.epsilon, question.delta, question.max_items
    )
    if price <= 0:
        raise too_small(question)
    return limited_domain_at(question, price, share)


def limited_domain_at(question: Question, price: float, share: float) -> Prepared:
    """`LimitedDomain` at a price per pick and a delta of its threshold that others fixed."""
    k, k_bar = question.length, question.k_bar
    reach = k_bar if question.max_items is None else min(question.max_items, k_bar)
    return Prepared(
        "limited-domain",
        question,
        LimitedDomain(k, k_bar, price, share, question.max_items, sensitivity=question.sensitivity),
        {
            "k_bar": k_bar,
            "epsilon_per_pick": price,
            "threshold_delta": share,
            **unit_of(question),
        },
        up(1 / exact(price)),
        _ahead_of_line(question, k_bar, _line(reach, price, share), _GUMBEL / price),
        f"up to {k} items in order",
        _ENDS_THE_LIST,
        list_ended,
        k_bar + 1,
    )


def optimal_threshold(question: Question) -> Prepared:
    """`OptimalThreshold` with one pick more, which chooses k̄."""
    k, deepest = question.length, question.k_bar
    price, share = calibrate_limited_domain(
        k + 1, deepest, question.epsilon, question.delta, question.max_items
    )
    if price <= 0:
        raise too_small(question)
    return optimal_threshold_at(question, price, share)


def optimal_threshold_at(question: Question, price: float, share: float) -> Prepared:
    """`OptimalThreshold` at a price per pick and a delta of its threshold that others fixed."""
    k, deepest = question.length, question.k_bar
    return Prepared(
        "optimal-threshold",
        question,
        OptimalThreshold(k + 1, deepest, price, share, question.max_items),
        {"max_k_bar": deepest, "epsilon_per_pick": price, "threshold_delta": share},
        up(1 / exact(price)),
        f"its noisy count is among the {k} largest and above a noisy line, up to "
        f"{lead(question, _line(deepest, price, share))} {noun(question)} above the first item "
        f"that cannot be named; which of those ranked {k + 2} to {deepest + 1} that is was chosen "
        "with noise and is published. An item with just that lead is above the line half of the "
        "time",
        f"up to {k} items in order",
        _ENDS_THE_LIST,
        list_ended,
        deepest + 1,
    )


def limited_domain_laplace(question: Question) -> Prepared:
    """`LimitedDomainLaplace`: its price grows with the cap, and neither with k nor with k̄."""
    k, cap = question.length, question.max_items
    assert cap is not None
    # Looking deeper is free here: the threshold knows the cap alone, and a later rank has less.
    k_bar = question.k_bar if question.k_bar_given else max(cap, default_k_bar(k))
    price, share = _laplace_split(cap, question.epsilon, question.delta)
    if price <= 0 or share <= 0:
        raise too_small(question)
    return Prepared(
        "limited-domain-laplace",
        question,
        LimitedDomainLaplace(k, k_bar, price, share, cap),
        {"k_bar": k_bar, "epsilon_per_pick": price, "threshold_delta": share, "max_items": cap},
        up(1 / exact(price)),
        _ahead_of_line(question, k_bar, _line(cap, price, share), _LAPLACE / price),
        f"up to {k} items in order",
        _ENDS_THE_LIST,
        list_ended,
        k_bar + 1,
        k_bar,
    )


def tested(question: Question) -> Prepared:
    """`TestedTopK` with a private length and, unless k̄ was given, a depth of its own."""
    return tested_before(question, 0)


def tested_before(question: Question, mu_squared: Number) -> Prepared:
    """`TestedTopK` that leaves room for Gaussian steps of ``mu_squared`` behind it."""
    k = question.length
    depth = question.k_bar if question.k_bar_given else default_k_bar(k)
    unit, budget = question.sensitivity, (question.epsilon, question.delta)
    mechanism = TestedTopK(k, *budget, depth, behind=mu_squared, sensitivity=unit)
    schedule = mechanism.schedule
    longest, shortest = schedule.lengths[0], schedule.lengths[-1]
    return Prepared(
        "tested",
        question,
        mechanism,
        {
            "k_bar": depth,
            "epsilon_of_the_length": up(schedule.choice),
            "epsilon_per_pick": up(longest.price),
            "test_sigma": up(longest.test.sigma),
            "test_lists": longest.test.lists,
            "test_failure": up(schedule.failure),
            **unit_of(question),
        },
        up(1 / longest.price),
        "the item is among the largest by noisy counts, and the list passes a noisy test as a "
        f"whole. A list of {k} passes it half of the time if its last item has "
        f"{lead(question, even_lead(longest))} {noun(question)} more than the item ranked "
        f"{depth + 1}, the first that cannot be named (0 where there are fewer items), and 98% of "
        f"the time with {lead(question, likely_lead(longest))} more. With fewer than "
        f"{lead(question, even_lead(longest))} more, a shorter list is likely: the shortest that "
        "is tried passes half of the time with "
        f"{lead(question, even_lead(shortest))} more and 98% of the time with "
        f"{lead(question, likely_lead(shortest))}. If no item has that many more, the answer is "
        "likely to be empty",
        f"a list in order, of a privately chosen length up to {k}, or nothing",
        f"stands for the whole list: no part of it passed the test; {EMPTY_ADVICE}",
        list_tested,
        depth + 1,
        depth,
    )


def even_lead(length: Length) -> float:
    """The lead at which the test of a list is passed every other time."""
    return up(1 + length.test.sigma * length.test.quantile)


def likely_lead(length: Length) -> float:
    """The lead at which it is passed 98% of the time: 2.054 standard deviations more."""
    return up(1 + length.test.sigma * (length.test.quantile + exact(2.054)))


def fixed_threshold(question: Question) -> Prepared:
    """`FixedThreshold`, half of delta for its thresholds."""
    k = question.length
    share = down(exact(question.delta) / (2 * k))
    price = calibrate(
        lambda each: FixedThreshold(k, each, share).loss,
        question.epsilon,
        question.delta,
        question.epsilon / k,
    )
    if price <= 0 or share <= 0:
        raise too_small(question)
    with precision(64):
        ahead = math.ceil(up(1 + ball(1 / (2 * exact(share))).log() / ball(exact(price))))
    return Prepared(
        "fixed-threshold",
        question,
        FixedThreshold(k, price, share),
        {"epsilon_per_pick": price, "threshold_delta": share},
        up(1 / exact(price)),
        f"the item is among the true top {k} and its noisy count exceeds that of the item ranked "
        f"{k + 1} by {ahead:,} people. An item that is just as far ahead passes half of the time",
        f"a set of up to {k} items, without order",
        _STANDS_FOR_REST,
        set_ended,
        k + 1,
    )


def top_stable(question: Question) -> Prepared:
    """`TopStable`, half of epsilon for the picks that may follow."""
    k, k_bar = question.length, question.k_bar
    each = calibrate(
        lambda part: TopStable(k, k_bar, part, question.delta, part).loss,
        question.epsilon,
        question.delta,
        question.epsilon / 2,
    )
    if each <= 0:
        raise too_small(question)
    return Prepared(
        "top-stable",
        question,
        TopStable(k, k_bar, each, question.delta, each),
        {"k_bar": k_bar, "epsilon_of_the_gaps": each, "epsilon_refine": each},
        up(Fraction(200, 63) / exact(each)),
        "the counts drop sharply, by more than the noise, after a group of leading items that it "
        "belongs to",
        f"a set of up to {k} items, without order",
        _STANDS_FOR_REST,
        set_ended,
        k + 1,
    )


def _line(reach: int, price: float, share: float) -> float:
    """How far the line is above the first item that cannot be named, in people."""
    with precision(64):
        return up(1 + ball(reach / exact(share)).log() / ball(exact(price)))


def _ahead_of_line(question: Question, k_bar: int, line: float, more: float) -> str:
    """The rule of a race that a noisy line takes part in; ``more`` makes 98% of one half."""
    k, counted = question.length, "count" if question.scores is None else "score"
    best = "the largest" if k == 1 else f"among the {k} largest"
    return (
        f"the item is among the {k_bar} that have most, and its noisy {counted} is {best} and "
        f"above a noisy line, {lead(question, line)} {noun(question)} above the item ranked "
        f"{k_bar + 1}, the first that cannot be named (above 0 where there are fewer items). An "
        "item with just that lead is above the line half of the time, and 98% of the time with a "
        f"lead of {lead(question, line + more)}"
    )


@lru_cache(maxsize=256)
def _laplace_split(cap: int, epsilon: float, delta: float) -> tuple[float, float]:
    """ε/Δ, and the largest threshold delta, or nearly, whose failures stay within delta."""
    price = down(exact(epsilon) / cap)
    if price <= 0:
        return 0.0, 0.0

    def fails(share: float) -> Fraction:
        return LimitedDomainLaplace(cap, cap, price, share, cap).loss.failures

    low, high = 0.0, delta
    for _ in range(60):
        middle = high / 2**4 if low == 0.0 else (low * high) ** 0.5
        if middle <= 0 or high <= low * (1 + 1e-9):
            break
        if fails(middle) <= exact(delta):
            low = middle
        else:
            high = middle
    return price, low
