"""Rises among what lists of two periods name: the joint law against its claim, wrong versions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from flint import arb

from topsecret import NOTHING, Histogram
from topsecret.accounting import Loss, picks
from topsecret.calibration import Question, prepare
from topsecret.calibration.question import Scores
from topsecret.calibration.rises import names_of_each
from topsecret.counts.two_periods import TwoPeriods
from topsecret.errors import InvalidParameter
from topsecret.mechanisms import GumbelTopK, LeadingRises, LimitedDomain, TestedTopK
from topsecret.mechanisms.leading_rises_law import PeriodsOfCounts
from topsecret.mechanisms.selection import Outcome
from topsecret.noise.bits import ReplayableBits
from topsecret.verify import check_privacy
from topsecret.verify.sampler import check_sampler

LIMITED = LimitedDomain(1, 2, 0.5, 0.05)
RELEASE = LeadingRises(1, LIMITED, 2.0)
SIZE: dict[str, Any] = {"items": 4, "max_count": 2, "tall": 6}
"""Two items in two periods, and one of them up to a count of 6 in both."""


@pytest.mark.parametrize("case", LeadingRises.verification_cases(), ids=range(4))
def test_it_keeps_its_claim(case: PeriodsOfCounts) -> None:
    check_privacy(case, **SIZE).require()


def test_the_draw_follows_the_law() -> None:
    counts = Histogram.of({"a": 9, "b": 12, "c": 10, "d": 4, "e": 7})
    for case in LeadingRises.verification_cases()[1:3]:
        check_sampler(case, counts, 600, bits=ReplayableBits(b"rises")).require()


def test_an_item_that_nobody_has_any_more_is_a_candidate() -> None:
    found = LeadingRises(3, TestedTopK(4, 8.0, 1e-3), 4.0, smallest=True).select(
        Histogram.of_periods({"tea": 900, "jam": 800}, {"tea": 800, "rye": 900})
    )
    assert (found.items, found.complete) == (("rye", "tea", "jam"), True)


def test_what_the_lists_do_not_name_is_not_named() -> None:
    law = RELEASE.probabilities(Histogram.of_periods({}, {}))
    assert {outcome: float(p) for outcome, p in law.items()} == {(NOTHING,): 1.0}
    assert RELEASE.select(Histogram.of_periods({}, {})).items == ()


# --- wrong versions ---------------------------------------------------------------------------


class OneList(LeadingRises):
    """The list of one period is charged."""

    @property
    def loss(self) -> Loss:
        return self.naming.loss.then(picks(self.k, self.epsilon_per_pick))


class NamesForNothing(LeadingRises):
    """The lists are not charged."""

    @property
    def loss(self) -> Loss:
        return picks(self.k, self.epsilon_per_pick)


class Listed(NamesForNothing):
    """Right: the names do not come from the data, and nothing is paid for them."""

    def _named(self, counts: Histogram) -> dict[Outcome, arb]:
        return {("x", "y"): arb(1)}


class OneWay(Listed):
    """Noise for counts that move by 1."""

    def _picks(self, names: Any) -> GumbelTopK:
        return replace(super()._picks(names), scale=self.scale / 2)


class Untold(LeadingRises):
    """Whatever somebody has is a candidate."""

    def _named(self, counts: Histogram) -> dict[Outcome, arb]:
        return {tuple(item for item, _ in counts.ranked(2)): arb(1)}


class StillThere(LeadingRises):
    """Items that nobody has any more are left out."""

    def _law(self, periods: TwoPeriods, names: Any) -> dict[Outcome, arb]:
        present = {item for item, _ in periods.leading[0].ranked(2)}
        left = tuple(name for name in names if name in present)
        return super()._law(periods, left) if left else {(): arb(1)}


@pytest.mark.parametrize("wrong", [OneList, NamesForNothing, OneWay, Untold, StillThere])
def test_a_wrong_version_is_caught(wrong: type[LeadingRises]) -> None:
    planted = wrong(RELEASE.k, RELEASE.naming, RELEASE.epsilon_per_pick)
    assert check_privacy(PeriodsOfCounts(planted, joint=True), **SIZE).broken is not None


@pytest.mark.parametrize("right", [LeadingRises, Listed])
def test_the_right_ones_beside_them_are_not(right: type[LeadingRises]) -> None:
    sound = right(RELEASE.k, RELEASE.naming, RELEASE.epsilon_per_pick)
    check_privacy(PeriodsOfCounts(sound, joint=True), **SIZE).require()


# --- its budget -------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "epsilon"), [(1, 0.3), (10, 1.0)])
def test_the_three_parts_spend_the_budget(k: int, epsilon: float) -> None:
    asked = Question.of(k=k, epsilon=epsilon).ranked_by(Scores(2, 1, "people")).of_two_periods()
    prepared = prepare("auto", asked)
    mechanism = prepared.mechanism
    assert isinstance(mechanism, LeadingRises)
    assert 0.97 * epsilon < mechanism.loss.epsilon(1e-6) <= epsilon
    assert prepared.rows == mechanism.naming.slots + 1  # type: ignore[union-attr]
    assert f"up to {names_of_each(k)} items of the later" in prepared.named_when


def test_histograms_of_two_periods_are_for_rises_alone() -> None:
    both = Histogram.of_periods({"tea": 3}, {"tea": 1, "jam": 2})
    assert both.domain_size is None
    with pytest.raises(InvalidParameter, match="the counts of two periods"):
        LIMITED.select(both)
    for asked in ("field", "scores"):
        with pytest.raises(InvalidParameter, match="the counts of two periods"):
            getattr(both, asked)()
    with pytest.raises(InvalidParameter, match="counted for two periods"):
        RELEASE.select(Histogram.of({"tea": 3}))
    with pytest.raises(InvalidParameter, match="epsilon_per_pick=0"):
        LeadingRises(1, LIMITED, 0)
