"""A private choice among options: its law, its price, and choices that cost more than they say."""

import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret.accounting import failure, gaussian, picks, rdp, zcdp
from topsecret.accounting.chosen import ChosenSteps
from topsecret.accounting.tested import TestedSteps
from topsecret.errors import InvalidParameter
from topsecret.mechanisms import TestedTopK
from topsecret.mechanisms.private_choice import STEPS, PrivateChoice, spread_of, whole_score
from topsecret.noise.bits import ReplayableBits

moves = st.lists(st.fractions(Fraction(1, 50), 2, max_denominator=50), min_size=2, max_size=4)


def ranges(choice: PrivateChoice, before: list[int], after: list[int]) -> float:
    """The spread of the log-ratios of two laws."""
    ratios = [
        float((p / q).log()) for p, q in zip(choice.law(after), choice.law(before), strict=True)
    ]
    return max(ratios) - min(ratios)


@settings(max_examples=60)
@given(st.data(), moves, st.fractions(Fraction(1, 10), 1, max_denominator=20))
def test_a_choice_is_bounded_range(
    data: st.DataObject, most: list[Fraction], price: Fraction
) -> None:
    """Whatever the scores, and however a person raises each by at most its move."""
    scores = [data.draw(st.fractions(0, 3, max_denominator=97)) for _ in most]
    rises = [data.draw(st.fractions(0, move, max_denominator=1000)) for move in most]
    choice = PrivateChoice(price, spread_of(most))
    before = [whole_score(score) for score in scores]
    after = [whole_score(score + rise) for score, rise in zip(scores, rises, strict=True)]
    assert ranges(choice, before, after) <= price * (1 + 1e-9)
    falls = [data.draw(st.fractions(0, move, max_denominator=1000)) for move in most]
    replaced = [
        whole_score(score + rise - fall)
        for score, rise, fall in zip(scores, rises, falls, strict=True)
    ]
    either_way = PrivateChoice(price, spread_of(most, "replace"))
    assert ranges(either_way, before, replaced) <= price * (1 + 1e-9)


def test_the_price_is_met_exactly_and_less_spread_would_cost_more() -> None:
    most = [Fraction(1, 4), Fraction(1)]
    choice = PrivateChoice(Fraction(1, 2), spread_of(most))
    before, after = [0, 0], [0, STEPS]
    assert ranges(choice, before, after) == pytest.approx(0.5)
    for wrong in (Fraction(1, 4), Fraction(5, 8)):  # the smaller move, and the mean
        assert ranges(PrivateChoice(0.5, whole_score(wrong)), before, after) > 0.79
    # Under replace one score may fall while the other rises.
    apart = [-STEPS // 4, STEPS]
    assert ranges(choice, before, apart) > 0.6
    assert ranges(PrivateChoice(0.5, spread_of(most, "replace")), before, apart) <= 0.5 + 1e-12


def test_the_draw_follows_the_law() -> None:
    choice, scores = PrivateChoice(1, STEPS), [0, STEPS, -STEPS // 2]
    bits = ReplayableBits(b"choice")
    drawn = Counter(choice.draw(scores, bits) for _ in range(3000))
    for place, chance in enumerate(choice.law(scores)):
        expected = 3000 * float(chance)
        assert abs(drawn[place] - expected) < 5 * math.sqrt(expected)


@pytest.mark.parametrize("options", [2, 40])
def test_no_score_is_too_large(options: int) -> None:
    """An error at 2⁶³ would tell which of two neighbours it was."""
    choice, bits = PrivateChoice(1, STEPS), ReplayableBits(b"large")
    for worst in (-(2**63), -(2**63) - 1, -(2**70)):
        assert choice.draw([worst] * (options - 1) + [0], bits) == options - 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: PrivateChoice(0, 1), "epsilon=0 must be above 0"),
        (lambda: PrivateChoice(1, 0), "spread=0 must be at least 1"),
        (lambda: spread_of([Fraction(1)]), "two options or more"),
        (lambda: PrivateChoice(1, 1).draw([0]), "two options or more"),
    ],
)
def test_wrong_choices_are_refused(wrong: object, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        wrong()  # type: ignore[operator]


def test_choosing_among_equal_gaussians_costs_a_pick_before_a_gaussian() -> None:
    release = TestedSteps(Fraction(0), (), Fraction(1, 25))
    chosen = rdp("choice", ChosenSteps(Fraction(1, 10), (release, release)))
    known = picks(1, 0.1).then_gaussian(Fraction(1, 25))
    for delta in (1e-9, 1e-6, 1e-2):
        assert chosen.epsilon(delta) == pytest.approx(known.epsilon(delta), rel=2e-3)
    assert chosen.rho() == known.rho() == pytest.approx(0.01 / 8 + 0.02)
    # An option's own choice is charged, too, whatever comes behind it.
    nested = TestedSteps(Fraction(1, 10), (), Fraction(1, 25))
    dearer = rdp("choice", ChosenSteps(Fraction(1, 10), (nested, nested)))
    for delta in (1e-9, 1e-6, 1e-2):
        assert dearer.epsilon(delta) > chosen.epsilon(delta)


def test_the_dearer_option_is_charged() -> None:
    tested = TestedTopK(3, 1.0, 1e-6).schedule.steps
    for mu_squared in (Fraction(1, 1000), Fraction(1, 4)):
        options = (tested, TestedSteps(Fraction(0), (), mu_squared))
        loss = rdp("choice", ChosenSteps(Fraction(1, 10), options)) + failure(1e-7)
        for part in (rdp("alone", tested), gaussian(mu_squared), picks(1, 0.1)):
            assert loss.epsilon(1e-6) > part.epsilon(9e-7)
            assert loss.delta(0.5) >= part.delta(0.5)
        total = loss.rho()
        assert total is not None
        assert loss.epsilon(1e-6) <= (zcdp(total) + failure(1e-7)).epsilon(1e-6)
        assert (2 * loss).epsilon(1e-6) > loss.epsilon(1e-6)
