"""Scores that one person moves by up to c: laws in units of c, and wrong units are caught."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from flint import arb
from planted import Stated
from tests.mechanisms.tested_variants import Variant, by_hand

from topsecret import Histogram
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import precision
from topsecret.mechanisms import (
    GumbelTopK,
    LimitedDomain,
    Mechanism,
    OneshotExponential,
    PermuteAndFlip,
    PrunedTopK,
    TestedTopK,
)
from topsecret.mechanisms.pick_prune_test import own_variances, spread_cost
from topsecret.mechanisms.tested_schedule import Length
from topsecret.noise.bits import ReplayableBits
from topsecret.verify import Neighbourhood, check_privacy
from topsecret.verify.sampler import check_sampler

COUNTS = {"a": 9, "b": 6, "c": 6, "d": 3}
DOMAIN = tuple(COUNTS)


def with_unit(unit: int) -> list[Mechanism]:
    return [
        GumbelTopK(2, Fraction(10 * unit, 7), sensitivity=unit),
        PrunedTopK(2, 0.7, sensitivity=unit),
        PermuteAndFlip(2, 2.0 * unit, unit),
        OneshotExponential(2, 1.0, unit),
        LimitedDomain(2, 3, 0.7, 0.01, sensitivity=unit),
        LimitedDomain(2, 2, 0.7, 0.01, max_items=1, strict=True, sensitivity=unit),
        TestedTopK(2, 2.0, 0.2, k_bar=3, sensitivity=unit),
        TestedTopK(2, 2.0, 0.2, k_bar=3, lengths="fixed", sensitivity=unit),
    ]


WHICH = range(len(with_unit(1)))
PUBLIC = 4
"""So many of them, the first ones, are for a public domain."""


@pytest.mark.parametrize("unit", [2, 3])
@pytest.mark.parametrize("which", WHICH)
def test_scores_in_units_have_the_law_of_counts(which: int, unit: int) -> None:
    """Counts that are all multiples of c have the law that counts of persons have."""
    public = which < PUBLIC
    one, many = with_unit(1)[which], with_unit(unit)[which]
    counts = {item: unit * count for item, count in COUNTS.items()}
    of = Histogram.of(COUNTS, DOMAIN) if public else Histogram.of(COUNTS)
    scaled = Histogram.of(counts, DOMAIN) if public else Histogram.of(counts)
    expected, found = one.distribution(of), many.distribution(scaled)
    assert found == pytest.approx(expected, abs=1e-15)
    assert many.loss.epsilon(0.3) == one.loss.epsilon(0.3)


def test_the_tested_law_is_that_of_an_enumeration_written_apart() -> None:
    """Leads below one unit, ties, null slots."""
    mechanism = TestedTopK(k=3, epsilon=2.0, delta=0.4, k_bar=5, sensitivity=3)
    apart = Variant(mechanism.schedule, 5, sensitivity=3)
    for counts in ({"a": 1}, {"a": 8, "b": 4, "c": 2, "d": 2}):
        histogram = Histogram.of(counts)
        with precision(128):
            expected, found = apart.probabilities(histogram), mechanism.probabilities(histogram)
        assert all(p.overlaps(expected[outcome]) for outcome, p in found.items())


@pytest.mark.parametrize("mechanism", with_unit(2) + with_unit(3), ids=str)
def test_the_claim_is_kept(mechanism: Mechanism) -> None:
    """``topsecret verify`` looks at more items and taller counts."""
    unit = mechanism.sensitivity  # type: ignore[attr-defined]
    report = check_privacy(mechanism, items=3, max_count=2 * unit, tall=8).require()
    assert report.neighbourhood.sensitivity == unit


@pytest.mark.parametrize("unit", [2, 3])
@pytest.mark.parametrize("which", WHICH)
def test_a_claim_for_less_than_a_person_moves_is_broken(which: int, unit: int) -> None:
    """The mechanism for c − 1 where a person moves c: for 2 that is scores not in units at all."""
    mechanism = with_unit(unit - 1)[which]
    moves = Neighbourhood(max_items=getattr(mechanism, "max_items", None), sensitivity=unit)
    size = {
        "items": 2 if isinstance(mechanism, TestedTopK) else 3,
        "max_count": 2 * unit,
        "tall": 10,
    }
    assert check_privacy(mechanism, **size, neighbourhood=moves).broken is not None


@pytest.mark.parametrize("unit", [2, 3])
@pytest.mark.parametrize("more", [{}, {"strict": True}, {"adjacency": "replace"}], ids=str)
def test_a_threshold_of_plus_one_is_caught(more: dict[str, Any], unit: int) -> None:
    """t = h + 1 + … where it must be h + c + …, at the same claim."""
    right = LimitedDomain(1, 2, 3.0, 0.01, sensitivity=unit, **more)
    # ln(M/δ) less ε₀·(1 − 1/c) is the threshold of a larger δ.
    lower = replace(right, delta=0.01 * math.exp(3 - 3 / unit))
    wrong = Stated(lower.probabilities, right.loss)
    moves = Neighbourhood(right.adjacency, sensitivity=unit)
    size = {"items": 3, "max_count": 2 * unit - 1, "tall": 8, "neighbourhood": moves}
    assert check_privacy(right, **size).passed
    assert check_privacy(wrong, **size).broken is not None


@pytest.mark.parametrize("unit", [2, 3])
def test_an_edge_that_counts_for_one_is_caught(unit: int) -> None:
    """a = max(1, lead) and A − 1 where c belongs: what enters the list at the edge shows."""
    schedule = by_hand((1,), Fraction(1, 40), Fraction(1), Fraction(1, 100))
    right = Variant(schedule, 2, sensitivity=unit)

    def minus_one_index(length: Length, strengths: Sequence[Fraction]) -> Sequence[arb]:
        """A − 1 in place of A − c, in units of c."""
        return length.test.law([strength + 1 - Fraction(1, unit) for strength in strengths])

    wrong = replace(right, index=minus_one_index, least=Fraction(1, unit))
    size = {"items": 3, "max_count": unit, "tall": 4}
    assert check_privacy(right, **size).passed
    assert check_privacy(wrong, **size).broken is not None


def test_moves_of_mixed_signs_within_one_unit_cost_no_more() -> None:
    """T may rise by a part of c: leads then move within [−τ, 1 − τ], and v'S⁻¹v stays below κ."""
    for lists, tenth in product((2, 3, 4), range(11)):
        weights = [1 / variance for variance in own_variances(lists)]
        for corner in product((0, 1), repeat=lists):
            moves = [v - Fraction(tenth, 10) for v in corner]
            # S = ½·11ᵀ + diag(1/w), by Sherman and Morrison.
            linear = sum(w * v for w, v in zip(weights, moves, strict=True))
            square = sum(w * v * v for w, v in zip(weights, moves, strict=True))
            assert square - linear**2 / (2 + sum(weights)) <= spread_cost(lists)


@pytest.mark.parametrize("which", WHICH)
def test_draws_follow_the_law(which: int) -> None:
    mechanism = with_unit(3)[which]
    counts = {"a": 20, "b": 14, "c": 14, "d": 7}
    of = Histogram.of(counts, tuple(counts)) if which < PUBLIC else Histogram.of(counts)
    check_sampler(mechanism, of, 2_000).require()


def test_leads_within_one_unit_are_pruned_alike() -> None:
    """At a price that leaves no doubt: of leads of 9, 2 and 1 either of the small ones goes."""
    [length] = by_hand((2,), Fraction(1000), Fraction(1), Fraction(1, 100)).lengths
    mechanism = TestedTopK(2, 2.0, 0.2, k_bar=3, sensitivity=3)
    slots, bits = mechanism._slots(Histogram.of({"a": 9, "b": 2, "c": 1})), ReplayableBits(b"prune")
    drawn = [mechanism._nested_lists(slots, [0, 1, 2], length, bits) for _ in range(40)]
    assert {tuple(lists[0]) for lists in drawn} == {(0, 1), (0, 2)}


@pytest.mark.parametrize("kind", [PrunedTopK, LimitedDomain, TestedTopK])
@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, 2**31 + 1])
def test_a_sensitivity_is_a_positive_whole_number(kind: type, wrong: object) -> None:
    given = {PrunedTopK: (2, 0.7), LimitedDomain: (2, 3, 0.7, 0.01), TestedTopK: (2, 1.0, 1e-6)}
    with pytest.raises(InvalidParameter, match=r"sensitivity="):
        kind(*given[kind], sensitivity=wrong)
