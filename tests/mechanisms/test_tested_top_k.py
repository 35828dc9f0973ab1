"""TestedTopK: exact law, exhaustive privacy, and wrong variants that must be caught."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import pytest
from flint import arb

from topsecret import NOTHING, Histogram
from topsecret.accounting import failure, rdp
from topsecret.errors import InvalidParameter
from topsecret.mechanisms import LimitedDomain, PrunedTopK, TestedTopK
from topsecret.mechanisms.pick_and_prune import NULL, survivor_law
from topsecret.mechanisms.tested_law import tested_law
from topsecret.mechanisms.tested_schedule import (
    UNIT,
    Pass,
    Schedule,
    picks_of,
    schedule,
    sizes,
)
from topsecret.mechanisms.tested_table import known_prices
from topsecret.noise import screening
from topsecret.verify import check_privacy

LOUD = TestedTopK(k=2, epsilon=3.0, delta=0.6, k_bar=3)


@dataclass(frozen=True)
class Wrong:
    """A mechanism that claims the loss of ``right`` but draws from another law."""

    right: TestedTopK
    law: object
    ordered: bool = True

    @property
    def loss(self):
        return self.right.loss

    def probabilities(self, histogram):
        return self.law(self.right, histogram)


def with_schedule(change):
    def law(right, histogram):
        slots = right._slots(histogram)
        changed = change(right.schedule)
        return tested_law(changed, slots.items, slots.ranked, slots.nulls, publish_length=True)

    return law


def halved_charges(schedule):
    """Picks and prunes at twice the price that is charged."""
    lengths = tuple(
        replace(
            length,
            price=2 * length.price,
            levels=tuple((count, 2 * price) for count, price in length.levels),
        )
        for length in schedule.lengths
    )
    return replace(schedule, lengths=lengths)


def without_null_slots(right, histogram):
    """The slots are not filled up: as many picks as there are named items."""
    slots = right._slots(histogram)
    (length,) = right.schedule.lengths
    leads = [Fraction(lead) for lead in slots.ranked]
    removals = max(0, min(len(leads), length.size + length.prunes) - length.size)
    law = defaultdict(lambda: arb(0))
    hidden = survivor_law(leads, 0, length.levels, removals, length.price)
    for survivors, chance in hidden.items():
        passes = _passes(right, slots, survivors)
        law[tuple(slots.items[place] for place in survivors)] += chance * passes
        law[(NOTHING,)] += chance * (1 - passes)
    return dict(law)


def nulls_skipped(right, histogram):
    """A list is released without the null slots that survived in it."""
    slots = right._slots(histogram)
    (length,) = right.schedule.lengths
    leads = [Fraction(lead) for lead in slots.ranked]
    law = defaultdict(lambda: arb(0))
    hidden = survivor_law(leads, slots.nulls, length.levels, length.prunes, length.price)
    for survivors, chance in hidden.items():
        named = [place for place in survivors if place != NULL]
        passes = _passes(right, slots, named)
        law[tuple(slots.items[place] for place in named)] += chance * passes
        law[(NOTHING,)] += chance * (1 - passes)
    return dict(law)


def _passes(right, slots, places):
    least = min((slots.ranked[place] for place in places), default=1)
    return Pass(least - 1, right.schedule.sigma, right.schedule.quantile).ball(128)


def off_by_one(right, histogram):
    """The test looks at A instead of A − 1: edge items pass with Φ(1/σ − z)."""
    slots = right._slots(histogram)
    sigma, quantile = right.schedule.sigma, right.schedule.quantile
    moved = replace(right.schedule, quantile=quantile - 1 / sigma)
    return tested_law(moved, slots.items, slots.ranked, slots.nulls, publish_length=True)


WRONG = {
    "pick and prune charges halved": with_schedule(halved_charges),
    "sigma overstated": with_schedule(lambda s: replace(s, sigma=s.sigma / 3)),
    "no null slots": without_null_slots,
    "nulls skipped": nulls_skipped,
    "test off by one": off_by_one,
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_variants_are_rejected(name):
    fixed = TestedTopK(k=2, epsilon=3.0, delta=0.6, k_bar=3, lengths="fixed")
    right = fixed if "null" in name else LOUD
    assert not check_privacy(Wrong(right, WRONG[name]), items=4, max_count=4).passed


def test_the_whole_length_price_in_place_of_half_is_rejected():
    """One person raises the score of a long list and lowers that of a short one: range 2, not 1.

    All prices but that of the length are tiny, so that nothing else covers for it.
    """
    tiny = Fraction(1, 40)
    offsets = {3: 2 * UNIT, 2: 11 * UNIT // 2, 1: 0}
    lengths = tuple(replace(picks_of(m, tiny), offset=offset) for m, offset in offsets.items())
    numbers = Schedule(lengths, Fraction(1), Fraction(50), Fraction(2), Fraction(1, 40))
    loss = rdp("tested picks", numbers.steps) + failure(numbers.failure)
    histogram, neighbour = {"a": 6, "b": 6, "c": 1}, {"a": 7, "b": 7, "c": 2}

    def divergence(choice, x):
        first, second = (
            tested_law(
                replace(numbers, choice=choice),
                list(counts),
                list(counts.values()),
                1,
                publish_length=True,
            )
            for counts in (histogram, neighbour)
        )
        outcomes = set(first) | set(second)
        return max(
            sum(max(0.0, float(p.get(o, 0) - math.exp(x) * q.get(o, 0))) for o in outcomes)
            for p, q in ((first, second), (second, first))
        )

    grid = [i / 20 for i in range(20)]
    assert all(divergence(numbers.choice, x) <= loss.delta(x) for x in grid)
    assert any(divergence(2 * numbers.choice, x) > loss.delta(x) + 0.01 for x in grid)


@pytest.mark.parametrize("case", TestedTopK.verification_cases(), ids=str)
def test_the_law_keeps_to_the_claim_on_five_items(case):
    report = check_privacy(case, items=5, max_count=2)
    assert report.passed
    assert report.pairs > 1000


@pytest.mark.parametrize("lengths", ["private", "fixed"])
@pytest.mark.parametrize(
    "counts", [{}, {"a": 3}, {"a": 2, "b": 2, "c": 2}, {"a": 9, "b": 5, "c": 5, "d": 1}]
)
def test_draws_agree_with_the_law(counts, lengths, monkeypatch):
    """Each cell within 6.5 deviations of its binomial, or 12: alarm rate below 10⁻⁸."""
    monkeypatch.setattr(screening, "_BY_HAND", 1)  # as for long lists: floats screen first
    mechanism = TestedTopK(k=2, epsilon=3.0, delta=0.6, k_bar=4, lengths=lengths)
    law = mechanism.distribution(Histogram.of(counts))
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)
    samples = 4000
    seen = Counter(mechanism.select(Histogram.of(counts)).outcome for _ in range(samples))
    assert set(seen) <= set(law)
    for outcome, chance in law.items():
        spread = math.sqrt(samples * chance * (1 - chance))
        assert abs(seen[outcome] - samples * chance) < 6.5 * spread + 12, outcome


def test_the_loss_keeps_to_the_budget_and_to_its_parts():
    mechanism = TestedTopK(k=5, epsilon=1.0, delta=1e-6)
    assert mechanism.loss.epsilon(1e-6) <= 1.0
    assert mechanism.loss.epsilon(1e-6) > 0.99
    assert mechanism.loss.failures == mechanism.schedule.failure <= Fraction(1, 10**7)
    assert mechanism.loss.rho() is not None
    assert (2 * mechanism.loss).epsilon(2e-6) > 1.0


def test_a_schedule_depends_on_public_numbers_only():
    """σ, z, prices: all from k, ε and δ; the test's failure is what is charged."""
    numbers = TestedTopK(k=10, epsilon=1.0, delta=1e-6).schedule
    assert [length.size for length in numbers.lengths] == list(sizes(10))
    assert all(a.price <= b.price for a, b in pairwise(numbers.lengths))
    at_the_edge = Pass(0, numbers.sigma, numbers.quantile).ball(128)
    assert at_the_edge <= arb(float(numbers.failure))


def test_a_clear_list_is_named_and_a_flat_one_is_not():
    mechanism = TestedTopK(k=3, epsilon=1.0, delta=1e-6)
    clear = Histogram.of({"a": 900, "b": 700, "c": 500, "d": 3})
    assert mechanism.select(clear).items == ("a", "b", "c")
    flat = Histogram.of({str(i): 100 for i in range(200)})
    answer = mechanism.select(flat)
    assert (answer.items, answer.complete) == ((), False)


def test_it_outdoes_the_limited_domain_on_long_lists():
    """Forty items in forty persons' steps over a tail: the threshold of 3.1 grows with √k."""
    counts = Histogram.of({f"i{i:02d}": 40 * (40 - i) if i < 40 else 1 for i in range(41)})
    tested = TestedTopK(k=10, epsilon=0.4, delta=1e-6)
    assert len(tested.select(counts).items) >= 8
    assert isinstance(LimitedDomain(10, 200, 0.05, 1e-8).select(counts).items, tuple)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k=0 must be at least 1"),
        ({"epsilon": 0}, "epsilon=0 must be above 0"),
        ({"delta": 1}, "delta=1 must lie between 0 and 1"),
        ({"k_bar": 5}, "k_bar=5 must be at least 6 for k=5, which picks 6 before it prunes"),
        ({"lengths": "any"}, "lengths='any' must be 'private' or 'fixed'"),
    ],
)
def test_bad_parameters_name_the_rule(arguments, message):
    with pytest.raises(InvalidParameter, match=message):
        TestedTopK(**{"k": 5, "epsilon": 1.0, "delta": 1e-6, **arguments})


def test_pruned_draws_agree_with_the_law():
    """As above; ties, and a domain smaller than the picks."""
    for counts, k in (([3, 3, 1, 0], 2), ([2, 0], 2), ([1], 1)):
        histogram = Histogram.from_counts(counts)
        mechanism = PrunedTopK(k, 2 / 3)
        law = mechanism.distribution(histogram)
        assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)
        samples = 5000
        seen = Counter(mechanism.select(histogram).outcome for _ in range(samples))
        assert set(seen) <= set(law)
        for outcome, chance in law.items():
            spread = math.sqrt(samples * chance * (1 - chance))
            assert abs(seen[outcome] - samples * chance) < 6.5 * spread + 12, outcome


def test_pruned_charges_rising_picks_and_prunes():
    loss = PrunedTopK(10, 0.8).loss
    assert sum(count for count, _ in loss.pick_runs) == 12
    assert loss.pick_runs[-1][1] == Fraction(0.8)
    assert PrunedTopK(10, 0.8).select(Histogram.from_counts(range(100))).complete


@pytest.mark.parametrize("budget", [(1, 2.0, 1e-8), (5, 0.1, 1e-6), (10, 1.0, 1e-6)])
def test_prices_of_the_table_keep_to_their_budget(budget):
    """``make soak`` looks at all of them."""
    k, epsilon, delta = budget
    assert known_prices(k, Fraction(epsilon), Fraction(delta)) is not None
    mechanism = TestedTopK(k, epsilon, delta)
    assert 0.99 * epsilon < mechanism.loss.epsilon(delta) <= epsilon


def test_the_table_was_made_for_the_constants_in_use():
    """The same search gives the same prices."""
    found = schedule(3, Fraction(0.5), Fraction(1e-6), private_length=True)
    prices = tuple(float(length.price) for length in found.lengths)
    assert prices == known_prices(3, Fraction(0.5), Fraction(1e-6))
