"""Float bounds enclose the divergence; balls decide; equal numbers stay undecided."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import Stated

from topsecret import Histogram
from topsecret.accounting import NO_LOSS, pure
from topsecret.errors import VerificationFailed
from topsecret.exact.rounding import precision
from topsecret.mechanisms.selection import Outcome
from topsecret.verify import check_privacy
from topsecret.verify.divergence import (
    Verdict,
    decide,
    divergence_ball,
    lower_bounds,
    upper_bounds,
)
from topsecret.verify.laws import Family, Laws
from topsecret.verify.neighbours import Cube

BOTH = np.array([0, 1]), np.array([1, 0])


def laws_of(none: Mapping[str, arb], one: Mapping[str, arb]) -> Laws:
    """Laws on the two histograms "nobody has a" and "one person has a"."""

    def law(histogram: Histogram) -> Mapping[Outcome, arb]:
        chosen = one if histogram.ranked(1) else none
        return {(name,): probability for name, probability in chosen.items()}

    return Laws(Stated(law, NO_LOSS), Family(Cube(1, 1), public=False))


weights = st.lists(st.integers(0, 10**6), min_size=2, max_size=12).filter(any)


def as_law(numbers: list[int]) -> dict[str, arb]:
    return {str(i): arb(n) / sum(numbers) for i, n in enumerate(numbers) if n}


@given(weights, weights, st.floats(-20, 20))
@settings(max_examples=200)
def test_float_bounds_enclose_the_exact_divergence(
    first: list[int], second: list[int], epsilon: float
) -> None:
    laws = laws_of(as_law(first), as_law(second))
    upper = upper_bounds(laws, *BOTH, [epsilon])[:, 0]
    lower = lower_bounds(laws, *BOTH, [epsilon])[:, 0]
    for row, (i, j) in enumerate([(0, 1), (1, 0)]):
        exact = divergence_ball(laws.balls(i, 512), laws.balls(j, 512), epsilon, 512)
        assert arb(lower[row]) <= exact.upper()
        assert arb(upper[row]) >= exact.lower()
        assert upper[row] - lower[row] <= 1e-13


@given(weights, weights, st.floats(0, 20))
@settings(max_examples=50)
def test_a_negative_epsilon_says_what_the_mirror_says(
    first: list[int], second: list[int], epsilon: float
) -> None:
    """So comparing both directions at epsilon ≥ 0 is comparing at every epsilon."""
    with precision(256):
        law, other = ({(k,): p for k, p in as_law(n).items()} for n in (first, second))
        here = divergence_ball(law, other, -epsilon, 256)
        mirror = divergence_ball(other, law, epsilon, 256)
        assert here.overlaps(1 - arb(-epsilon).exp() * (1 - mirror))


def test_no_ratio_above_e_to_the_epsilon_is_a_divergence_of_exactly_zero() -> None:
    laws = laws_of({"x": arb(1) / 3, "y": 2 * arb(1) / 3}, {"x": arb(1) / 2, "y": arb(1) / 2})
    assert upper_bounds(laws, *BOTH, [0.5]).max() == 0.0


def test_an_outcome_that_the_other_law_never_gives_counts_at_every_epsilon() -> None:
    laws = laws_of({"x": arb(1)}, {"x": arb(3) / 4, "y": arb(1) / 4})
    assert lower_bounds(laws, *BOTH, [64.0])[1, 0] == pytest.approx(0.25)


def test_a_difference_far_below_the_last_float_is_decided() -> None:
    with precision(128):
        tiny = arb(2) ** -90
        one = {"x": arb(3) / 4 + tiny, "y": arb(1) / 4 - tiny}
    laws = laws_of({"x": arb(1) / 2, "y": arb(1) / 2}, one)
    assert decide(laws, 1, 0, 0.0, 0.25)[0] is Verdict.BROKEN
    assert decide(laws, 0, 1, 0.0, math.nextafter(0.25, 1))[0] is Verdict.HOLDS


def response(histogram: Histogram) -> Mapping[Outcome, arb]:
    """Randomized response to "does anybody have a?": its loss is exactly 1/2."""
    stay = arb(0.5).exp() / (1 + arb(0.5).exp())
    leave = 1 / (1 + arb(0.5).exp())
    return {
        ("yes",): stay if histogram.ranked(1) else leave,
        ("no",): leave if histogram.ranked(1) else stay,
    }


def test_equal_numbers_are_never_called_smaller() -> None:
    laws = Laws(Stated(response, pure(0.5)), Family(Cube(1, 1), public=False))
    assert decide(laws, 1, 0, 0.5, 0.0)[0] is Verdict.UNDECIDED


def test_a_claim_met_exactly_passes_only_where_the_mechanism_proves_the_equality() -> None:
    silent = check_privacy(Stated(response, pure(0.5)), items=1, max_count=1)
    assert not silent.passed
    assert silent.broken is None
    with pytest.raises(VerificationFailed, match="prove it in its note and set meets_claim"):
        silent.require()
    stated = check_privacy(
        Stated(response, pure(0.5), meets_claim_exactly=True), items=1, max_count=1
    )
    assert stated.passed
    assert stated.undecided
    assert {tie.epsilon for tie in stated.undecided} == {0.5}


def test_a_claim_one_float_too_small_is_broken_in_spite_of_the_stated_equality() -> None:
    claim = pure(math.nextafter(0.5, 0))
    report = check_privacy(Stated(response, claim, meets_claim_exactly=True), items=1, max_count=1)
    assert report.broken is not None
    assert report.broken.claim == 0.0
    assert report.broken.divergence > 0.0


def test_probabilities_that_do_not_add_up_to_one_are_refused() -> None:
    with pytest.raises(VerificationFailed, match="not to 1"):
        laws_of({"x": arb(1) / 2}, {"x": arb(1)})
