"""LimitedDomain: law, threshold, ordinary answers on odd inputs."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret import NOTHING, Histogram
from topsecret.errors import InvalidParameter
from topsecret.mechanisms import LimitedDomain

COUNTS = st.dictionaries(st.text(max_size=3), st.integers(0, 2**63), max_size=8)


def mechanism(**changes):
    return LimitedDomain(**{"k": 2, "k_bar": 3, "epsilon_per_pick": 0.7, "delta": 0.01, **changes})


def test_the_law_is_plackett_luce_stopped_by_nothing():
    """Counts 5, 3, 2 and the next one 1: the threshold is 2 + ln(3/.01)/.7."""
    law = mechanism().distribution(Histogram.of({"a": 5, "b": 3, "c": 2, "d": 1}))
    weights = {"a": math.exp(3.5), "b": math.exp(2.1), "c": math.exp(1.4)}
    nothing = math.exp(1.4) * 300
    total = sum(weights.values()) + nothing
    assert law[(NOTHING,)] == pytest.approx(nothing / total, rel=1e-12)
    first = weights["a"] / total
    assert law[("a", NOTHING)] == pytest.approx(first * nothing / (total - weights["a"]))
    assert law[("a", "b")] == pytest.approx(first * weights["b"] / (total - weights["a"]))
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)
    assert not any("d" in outcome for outcome in law)


def test_a_cap_lowers_the_threshold_unless_strict():
    h = Histogram.of({"a": 5, "b": 5, "c": 1})
    chance = {
        (cap, strict): mechanism(k=1, k_bar=2, max_items=cap, strict=strict).distribution(h)[
            (NOTHING,)
        ]
        for cap in (None, 1, 2)
        for strict in (False, True)
    }
    assert chance[1, False] < chance[2, False] == chance[None, False]
    assert chance[1, True] == chance[2, True] == chance[None, True]


def test_strict_drops_ties_with_the_edge():
    h = Histogram.of({"a": 5, "b": 2, "c": 2})
    assert any("b" in outcome for outcome in mechanism(k_bar=2).distribution(h))
    assert not any("b" in outcome for outcome in mechanism(k_bar=2, strict=True).distribution(h))


@settings(max_examples=60)
@given(COUNTS, st.integers(1, 4), st.integers(0, 6), st.sampled_from([1e-9, 3 / 7, 50.0]))
def test_ordinary_answers_on_all_inputs(counts, k, more, epsilon):
    answer = mechanism(k=k, k_bar=k + more, epsilon_per_pick=epsilon).select(Histogram.of(counts))
    assert len(answer.items) <= k
    assert answer.complete == (len(answer.items) == k)
    assert all(counts[item] > 0 for item in answer.items)


def test_nothing_observed_gives_nothing():
    answer = mechanism().select(Histogram.of({}))
    assert (answer.items, answer.complete) == ((), False)
    assert mechanism().distribution(Histogram.of({"a": 0})) == {(NOTHING,): 1.0}


def test_clear_leaders_are_named_in_order():
    answer = mechanism(k=3, k_bar=3).select(Histogram.of({"a": 900, "b": 600, "c": 300, "d": 1}))
    assert answer.items == ("a", "b", "c")
    assert answer.complete


def test_leading_rows_and_full_counts_have_one_law():
    full = Histogram.of({"a": 5, "b": 3, "c": 2, "d": 1, "e": 1})
    rows = Histogram.leading([("a", 5), ("b", 3), ("c", 2), ("d", 1)], limit=4)
    assert mechanism().distribution(full) == mechanism().distribution(rows)


def test_a_public_domain_is_not_used():
    one = mechanism().distribution(Histogram.of({"a": 5}, domain=["a", "b"]))
    assert one == mechanism().distribution(Histogram.of({"a": 5}))


def test_cost_has_all_three_parts():
    loss = mechanism(k=2, delta=1e-8).loss
    assert loss.epsilon(1e-9) == math.inf  # less than the threshold's own failure
    assert loss.delta(100.0) >= 1e-8
    assert mechanism(k=2).loss.epsilon(1e-2 + 1e-6) > 2 * math.log(1.01)


def test_replace_doubles_the_noise():
    h = Histogram.of({"a": 9, "b": 0})
    law = mechanism(k=1, k_bar=1, adjacency="replace").distribution(h)
    weight, nothing = math.exp(9 * 0.35), math.exp(2 * 0.35) * 100
    assert law[("a",)] == pytest.approx(weight / (weight + nothing), rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 20, "k_bar": 10}, "k=20 must be at most k_bar=10; raise k_bar or lower k"),
        ({"epsilon_per_pick": 0}, "epsilon_per_pick=0 must be above 0"),
        ({"delta": 0}, "delta=0 must lie between 0 and 1, such as 1e-6"),
        ({"delta": 1.0}, "delta=1.0 must lie between 0 and 1"),
        ({"max_items": 0}, "max_items=0 must be at least 1"),
        ({"k": 0}, "k=0 must be at least 1"),
    ],
)
def test_bad_parameters_name_the_rule(changes, message):
    with pytest.raises(InvalidParameter, match=message):
        mechanism(**changes)


def test_selection_is_drawn_from_the_law():
    """Each of the cells within 5 deviations of its binomial, and 6: alarm rate below 10⁻⁶."""
    h = Histogram.of({"a": 9, "b": 9, "c": 6, "d": 1})
    m = mechanism(epsilon_per_pick=2 / 3)
    samples = 8_000
    seen = Counter(m.select(h).outcome for _ in range(samples))
    law = m.distribution(h)
    assert set(seen) <= set(law)
    for outcome, chance in law.items():
        spread = math.sqrt(samples * chance * (1 - chance))
        assert abs(seen[outcome] - samples * chance) < 5 * spread + 6, outcome
