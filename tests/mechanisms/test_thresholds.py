"""The threshold mechanisms: laws by independent means, samplers, claims, parameters."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise, permutations, product

import pytest
from scipy import integrate

from topsecret.accounting import approximate, failure, picks
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter
from topsecret.mechanisms import (
    FixedThreshold,
    LimitedDomainLaplace,
    OptimalThreshold,
    TopStable,
)
from topsecret.mechanisms.selection import NOTHING
from topsecret.mechanisms.top_stable import tail_argument
from topsecret.noise.bits import ReplayableBits
from topsecret.verify import check_privacy, check_sampler

COUNTS = {"a": 7, "b": 4, "c": 4, "d": 2}
HISTOGRAMS = [COUNTS, {}, {"a": 1}, {"a": 3, "b": 3, "c": 3, "d": 3}, {"c": 5, "b": 1, "a": 1}]
MECHANISMS = [
    OptimalThreshold(2, 4, 0.7, 0.1),
    OptimalThreshold(3, 6, 0.7, 0.1, max_items=3),
    LimitedDomainLaplace(2, 3, 0.9, 0.2, 1),
    LimitedDomainLaplace(2, 6, 0.9, 0.4, 2),
    FixedThreshold(2, 0.7, 0.1),
    FixedThreshold(6, 0.7, 0.3),
    TopStable(2, 3, 3.0, 0.3, 1.0),
    TopStable(1, 6, 4.0, 0.4, 2.0),
]


class Laplace:
    """centre + Lap(scale), in floats."""

    def __init__(self, centre=0.0, scale=1.0):
        self.centre, self.scale = centre, scale

    def pdf(self, x):
        return math.exp(-abs(x - self.centre) / self.scale) / (2 * self.scale)

    def sf(self, x):
        far = math.exp(-abs(x - self.centre) / self.scale) / 2
        return far if x > self.centre else 1 - far

    def cdf(self, x):
        return self.sf(2 * self.centre - x)


def ranked(counts):
    return sorted(
        ((item, count) for item, count in counts.items() if count),
        key=lambda pair: (-pair[1], pair[0]),
    )


def leading(counts, k_bar):
    rows = ranked(counts)
    edge = rows[k_bar][1] if len(rows) > k_bar else 0
    return rows[:k_bar], edge


def optimal_law(m, counts):
    def reach(k_bar):
        return k_bar if m.max_items is None else min(k_bar, m.max_items)

    price = m.epsilon_per_pick
    candidates = range(m.k, m.max_k_bar + 1)
    scores = {
        k_bar: math.exp(-price * leading(counts, k_bar)[1]) * m.delta / reach(k_bar)
        for k_bar in candidates
    }
    law = {}
    for k_bar, score in scores.items():
        rows, edge = leading(counts, k_bar)
        weights = {item: math.exp(price * count) for item, count in rows}
        nothing = math.exp(price * (edge + 1)) * reach(k_bar) / m.delta
        for length in range(m.k):
            for order in permutations(weights, length):
                left, chance = sum(weights.values()) + nothing, score / sum(scores.values())
                for item in order:
                    chance *= weights[item] / left
                    left -= weights[item]
                if length < m.k - 1:
                    law[(k_bar, *order, NOTHING)] = chance * nothing / left
                else:
                    law[(k_bar, *order)] = chance
    return law


def laplace_law(m, counts):
    """k = 2: the first two of items and ⊥ by nested quadrature."""
    rows, edge = leading(counts, m.k_bar)
    price = m.epsilon_per_pick
    threshold = price * (edge + 1) + math.log(m.max_items / m.delta)
    centres = {item: price * count for item, count in rows} | {NOTHING: threshold}
    noise = {name: Laplace(centre) for name, centre in centres.items()}
    points = sorted(centres.values())

    def integral(function, high):
        inner = [x for x in points if x < high]
        ends = [points[0] - 40, *inner, high]
        return sum(integrate.quad(function, a, b, epsabs=1e-12)[0] for a, b in pairwise(ends))

    def below(x, names):
        return math.prod(noise[name].cdf(x) for name in names)

    top = points[-1] + 40
    law = {}
    for first in centres:
        others = [name for name in centres if name != first]
        if first is NOTHING:
            law[(NOTHING,)] = integral(lambda x: noise[NOTHING].pdf(x) * below(x, others), top)  # noqa: B023
            continue
        for second in others:
            rest = [name for name in others if name != second]

            def inner(y, second=second, rest=rest):
                return noise[second].pdf(y) * below(y, rest)

            # First above second: exchange the order, so that one integral is a tail.
            law[(first, second)] = integral(lambda y, f=first, g=inner: noise[f].sf(y) * g(y), top)
    return law


def fixed_law(m, counts):
    rows, edge = leading(counts, m.k)
    threshold = edge + 1 + math.log(1 / (2 * m.delta)) / m.epsilon_per_pick
    chances = {
        item: Laplace(count, 1 / m.epsilon_per_pick).sf(threshold)
        for item, count in rows
        if count > edge
    }
    law = {}
    for bits in product((0, 1), repeat=len(chances)):
        chance = math.prod(p if b else 1 - p for p, b in zip(chances.values(), bits, strict=True))
        items = tuple(sorted(item for item, b in zip(chances, bits, strict=True) if b))
        law[items if len(items) == m.k else (*items, NOTHING)] = chance
    return law


def stable_law(m, counts):
    rows = ranked(counts)
    values = [count for _, count in rows[: m.k_bar + 1]]
    values += [0] * (m.k_bar + 1 - len(values))
    scores = [max(0, a - b - 1) for a, b in pairwise(values)]
    first, second = 0.37 * m.epsilon, 0.63 * m.epsilon
    centre = math.log(1 / float(tail_argument(Fraction(m.delta) / m.k_bar))) * 2 / second

    level = Laplace(centre, 1 / first)
    noisy = [Laplace(score, 2 / second) for score in scores]

    def chance(i):
        def density(t):
            value = level.pdf(t) * math.prod(gap.cdf(t) for gap in noisy[i:])
            return value * noisy[i - 1].sf(t) if i else value

        ends = sorted({-60.0, *map(float, scores), centre, centre + 60})
        return sum(integrate.quad(density, a, b, epsabs=1e-12)[0] for a, b in pairwise(ends))

    law = defaultdict(float)
    for i in range(m.k_bar + 1):
        names = dict(rows[:i])
        if len(names) <= m.k:
            key = tuple(sorted(names)) + (() if len(names) == m.k else (NOTHING,))
            law[key] += chance(i)
            continue
        stopped = chance(i)
        weights = {item: math.exp(count * m.epsilon_refine / m.k) for item, count in names.items()}
        for order in permutations(weights, m.k):
            left, more = sum(weights.values()), stopped
            for item in order:
                more *= weights[item] / left
                left -= weights[item]
            law[tuple(sorted(order))] += more
    return law


LAWS = {
    OptimalThreshold: optimal_law,
    LimitedDomainLaplace: laplace_law,
    FixedThreshold: fixed_law,
    TopStable: stable_law,
}


@pytest.mark.parametrize("counts", HISTOGRAMS, ids=range(len(HISTOGRAMS)))
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_the_law_is_the_definition(mechanism, counts):
    law = mechanism.distribution(Histogram.of(counts))
    expected = LAWS[type(mechanism)](mechanism, counts)
    assert set(law) == set(expected)
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    for outcome, chance in expected.items():
        assert law[outcome] == pytest.approx(chance, abs=1e-8), outcome


@pytest.mark.parametrize("counts", HISTOGRAMS, ids=range(len(HISTOGRAMS)))
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_the_sampler_draws_the_law(mechanism, counts):
    """Alarm rate 10⁻⁸ for each of forty; fewer items than k̄, ties, and nobody at all."""
    samples = 2000 if counts is COUNTS else 600
    check_sampler(mechanism, Histogram.of(counts), samples, alarm_rate=1e-8).require()


@pytest.mark.parametrize(
    ("mechanism", "louder"),
    [
        (OptimalThreshold(2, 4, 0.7, 0.5), OptimalThreshold(2, 4, 1.2, 0.5)),
        (LimitedDomainLaplace(2, 3, 0.9, 0.2, 1), LimitedDomainLaplace(2, 3, 1.5, 0.2, 1)),
        (FixedThreshold(2, 0.7, 0.1), FixedThreshold(2, 1.0, 0.1)),
        (TopStable(2, 3, 3.0, 0.3, 1.0), TopStable(2, 3, 4.5, 0.3, 1.0)),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_a_sampler_of_another_scale_is_rejected(mechanism, louder):
    class Mixed:
        ordered, loss = mechanism.ordered, mechanism.loss
        probabilities, select = mechanism.probabilities, louder.select

    assert not check_sampler(Mixed(), Histogram.of(COUNTS), 4000).passed


@pytest.mark.parametrize("kind", LAWS, ids=lambda kind: kind.__name__)
def test_the_claims_hold(kind):
    for case in kind.verification_cases():
        check_privacy(case, items=3, max_count=4).require()


def test_optimal_threshold_chooses_the_lowest_threshold():
    """After five large counts the sixth is 0: k̄ = 5 gives the lowest threshold by far."""
    counts = {f"item {i}": 10_000 - i for i in range(5)}
    mechanism = OptimalThreshold(3, 50, 1.0, 1e-6)
    answer = mechanism.select(Histogram.of(counts))
    assert answer.chosen is not None
    assert answer.chosen >= 5
    assert answer.outcome == (answer.chosen, *answer.items)


def test_the_thinned_race_follows_the_logarithm():
    """With equal counts k̄ is drawn ∝ 1/k̄ (alarm below 10⁻⁸: 6 deviations)."""
    mechanism = OptimalThreshold(2, 7, 0.5, 0.1)
    bits = ReplayableBits(b"thin")
    drawn = [mechanism._choose([3] * 6, bits) for _ in range(6000)]
    total = sum(1 / j for j in range(2, 8))
    for k_bar in range(2, 8):
        p = 1 / k_bar / total
        assert abs(drawn.count(k_bar) - 6000 * p) < 6 * math.sqrt(6000 * p * (1 - p))


def test_losses():
    loss = OptimalThreshold(4, 9, 0.5, 0.125).loss
    assert loss.pick_runs == picks(4, 0.5).pick_runs
    assert loss.failures == Fraction(1, 8)
    assert 3 * math.log(1.125) <= loss.slack < 3 * math.log(1.125) + 1e-12
    assert FixedThreshold(3, 0.5, 0.125).loss == 3 * approximate(0.5, 0.125)
    stable = TopStable(2, 5, 1.0, 0.125, 0.5).loss
    assert stable == approximate(1, 0.125) + picks(2, 0.25)
    limited = LimitedDomainLaplace(5, 9, 0.25, 2.0**-10, 2).loss
    assert limited.pure_runs == approximate(0.5, 0).pure_runs
    tail = 2.0**-10 / 4 * (2 + math.log(2 * 2**10))
    assert limited.failures == pytest.approx((math.exp(0.5) + 1) * tail)
    assert LimitedDomainLaplace(1, 9, 9.0, 0.9, 9).loss.failures == failure(1).failures


@pytest.mark.parametrize("limit", [Fraction(1, 10**9), Fraction(1, 100), Fraction(1, 3)])
def test_the_tail_argument_is_the_largest_that_is_safe(limit):
    c = 74 / 63
    x = float(tail_argument(limit))

    def tail(y):
        return (c * c * y - y**c) / 2 / (c * c - 1)

    assert tail(x) == pytest.approx(float(limit), rel=1e-9)
    level = math.log(1 / x)
    quad = integrate.quad(
        lambda t: Laplace(level, 1 / c).pdf(t) * Laplace().sf(t),
        level - 60,
        level + 60,
        points=[0, level],
        epsabs=1e-16,
        limit=500,
    )[0]
    assert quad == pytest.approx(float(limit), rel=1e-6)
    assert tail_argument(Fraction(3, 4)) == 1


def test_top_stable_stops_at_the_last_wide_gap():
    counts = {f"item {i}": 900 for i in range(3)} | {"d": 500, "e": 20, "f": 19}
    answer = TopStable(5, 6, 1.0, 1e-6, 1.0).select(Histogram.of(counts))
    assert answer.items == ("d", "item 0", "item 1", "item 2")
    assert not answer.complete
    assert not answer.ordered


BAD = [
    (OptimalThreshold, {"k": 1}, "k=1 must be at least 2; raise k"),
    (OptimalThreshold, {"max_k_bar": 1}, "k=2 must be at most max_k_bar=1"),
    (OptimalThreshold, {"epsilon_per_pick": 0}, "epsilon_per_pick=0 must be above 0"),
    (OptimalThreshold, {"delta": 2}, "delta=2 must lie between 0 and 1, such as 1e-6"),
    (OptimalThreshold, {"max_items": 0}, "max_items=0 must be at least 1"),
    (LimitedDomainLaplace, {"k": 9}, "k=9 must be at most k_bar=4; raise k_bar or lower k"),
    (LimitedDomainLaplace, {"max_items": 5}, "max_items=5 must be at most k_bar=4"),
    (LimitedDomainLaplace, {"max_items": None}, "max_items=None must be a whole number"),
    (LimitedDomainLaplace, {"epsilon_per_pick": math.nan}, "epsilon_per_pick=nan must be finite"),
    (FixedThreshold, {"k": 0}, "k=0 must be at least 1"),
    (FixedThreshold, {"delta": 0}, "delta=0 must lie between 0 and 1"),
    (TopStable, {"k_bar": 1}, "k=2 must be at most k_bar=1"),
    (TopStable, {"epsilon": -1}, "epsilon=-1 must be above 0; raise epsilon"),
    (TopStable, {"epsilon_refine": 0}, "epsilon_refine=0 must be above 0"),
]
GOOD = {
    OptimalThreshold: {"k": 2, "max_k_bar": 4, "epsilon_per_pick": 1, "delta": 0.1},
    LimitedDomainLaplace: {
        "k": 2,
        "k_bar": 4,
        "epsilon_per_pick": 1,
        "delta": 0.1,
        "max_items": 1,
    },
    FixedThreshold: {"k": 2, "epsilon_per_pick": 1, "delta": 0.1},
    TopStable: {"k": 2, "k_bar": 4, "epsilon": 1, "delta": 0.1, "epsilon_refine": 1},
}


@pytest.mark.parametrize(("kind", "change", "message"), BAD)
def test_bad_parameters(kind, change, message):
    with pytest.raises(InvalidParameter, match=message):
        kind(**(GOOD[kind] | change))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_counts_of_any_size_are_ordinary(mechanism):
    huge = Histogram.of({"a": 10**30, "b": 10**29, "c": 3})
    assert set(mechanism.select(huge).items) <= {"a", "b", "c"}
