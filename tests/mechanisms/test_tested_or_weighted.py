"""Picks or weights, chosen privately: the joint law against its claim, and wrong versions of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from flint import arb

from topsecret.accounting import Loss, failure, rdp
from topsecret.accounting.chosen import ChosenSteps
from topsecret.accounting.tested import TestedSteps
from topsecret.counts.clip import UNITS, Clip
from topsecret.counts.histogram import Histogram
from topsecret.counts.weights import UNIT, Weights
from topsecret.mechanisms import TestedOrWeighted, TestedTopK
from topsecret.mechanisms.chosen_bound_law import amounts_of_rows
from topsecret.mechanisms.chosen_law import BinnedChoice
from topsecret.mechanisms.private_choice import PrivateChoice, spread_of, whole_score
from topsecret.mechanisms.tested_or_weighted import Branches, bonus
from topsecret.noise.bits import ReplayableBits
from topsecret.verify import check_privacy
from topsecret.verify.persons import PersonSets
from topsecret.verify.sampler import check_sampler

SHARE = Weights("share", 3, 1)
RELEASE = TestedOrWeighted(1, 2.0, 0.2, 2, SHARE)
CLIP = Clip(2, 3, 1)
MEASURED = TestedOrWeighted(1, 2.0, 0.2, 2, CLIP)
"""By rows of which two of a person count for an item."""


@pytest.mark.parametrize("case", TestedOrWeighted.verification_cases()[::4], ids=str)
def test_it_keeps_its_claim(case: BinnedChoice) -> None:
    check_privacy(case, items=3, max_count=2, tall=4).require()


def test_the_draw_follows_the_law() -> None:
    persons = {
        f"{n} {i}": [*n] for n, many in {"a": 3, "b": 2, "abc": 2}.items() for i in range(many)
    }
    case = RELEASE.binned(3 * UNIT)
    check_sampler(case, case.counted(persons, None), 600).require()


@pytest.mark.parametrize("weights", [Weights.share(), Clip.of(5)], ids=str)
def test_it_spends_its_budget(weights: Weights | Clip) -> None:
    mechanism = TestedOrWeighted(100, 1.0, 1e-6, weights=weights)
    loss = mechanism.loss
    assert 0.99 < loss.epsilon(1e-6) <= 1
    assert loss.failures <= Fraction(1e-6) / 5
    # Each branch alone would cost less than the whole, since the choice is charged too.
    for branch in (mechanism.branches.tested, mechanism.branches.weighted):
        assert branch.loss.epsilon(1e-6) < 0.98


# --- the scores ------------------------------------------------------------------------------


def neighbours(mechanism: TestedOrWeighted) -> list[tuple[Histogram, Histogram]]:
    """All sets of persons with three items against those with one person more."""
    sets = PersonSets(3, (0, 1, 2, 5))
    first, second = sets.pairs("add-remove")
    case = mechanism.binned()
    counted = [case.counted(sets.persons(place), None) for place in range(len(sets))]
    size = [len(sets.persons(place)) for place in range(len(sets))]
    return [
        (counted[a], counted[b]) for a, b in zip(first, second, strict=True) if size[a] < size[b]
    ]


TWO, MEASURED_TWO = (TestedOrWeighted(2, 3.0, 0.4, 3, weights) for weights in (SHARE, CLIP))


@pytest.mark.parametrize("mechanism", [RELEASE, TWO, MEASURED_TWO], ids=str)
def test_a_further_person_raises_both_scores_by_at_most_their_moves(
    mechanism: TestedOrWeighted,
) -> None:
    most = [spread_of([move, Fraction(0)]) for move in mechanism.branches.moves]
    largest = [0, 0]
    for less, more in neighbours(mechanism):
        rises = [b - a for a, b in zip(mechanism.scores(less), mechanism.scores(more), strict=True)]
        assert all(0 <= rise <= limit for rise, limit in zip(rises, most, strict=True))
        largest = [max(old, new) for old, new in zip(largest, rises, strict=True)]
    # A count of 5 is within reach of both; their moves are no larger than they must be.
    assert all(found > 0.99 * limit for found, limit in zip(largest, most, strict=True))


@pytest.mark.parametrize("k", [5, 10, 100])
def test_large_counts_are_left_to_picks(k: int) -> None:
    """Weights would name k items too, but those of people who hold few things."""
    branches = TestedOrWeighted(k, 1.0, 1e-6).branches
    most = 3 * int(branches.tested.schedule.lengths[0].needed_lead)
    scores = [branches.picks_score([count] * k) for count in range(most)]
    rises = [after - before for before, after in pairwise(scores)]
    assert 0 <= min(rises) <= max(rises) <= branches.moves[0]
    best_sums = branches.weights_score([10**6 * UNIT] * k)
    whole = [whole_score(scores[-1] + bonus(k)), whole_score(best_sums)]
    _, weights = branches.choice.law(whole)
    assert weights < 0.001


# --- wrong versions ---------------------------------------------------------------------------


@dataclass(frozen=True)
class ChoiceAlone:
    """Nothing but which branch is drawn, at the price of the choice."""

    release: TestedOrWeighted
    ordered: bool = True

    @property
    def choice(self) -> PrivateChoice:
        return self.release.branches.choice

    @property
    def loss(self) -> Loss:
        return self.release.branches.choice.loss

    def counted(
        self, holdings: Mapping[str, Sequence[str]], domain: Sequence[str] | None
    ) -> Histogram:
        return self.release.binned().counted(holdings, domain)

    def scores(self, histogram: Histogram) -> tuple[int, int]:
        return self.release.scores(histogram)

    def probabilities(self, histogram: Histogram) -> dict[tuple[str, ...], arb]:
        picks, weights = self.choice.law(self.scores(histogram))
        return {("tested",): picks, ("weighted",): weights}


def broken(mechanism: object) -> bool:
    return check_privacy(mechanism, items=3, max_count=4, tall=8).broken is not None  # type: ignore[arg-type]


def test_the_choice_alone_is_worth_its_price() -> None:
    report = check_privacy(ChoiceAlone(RELEASE), items=3, max_count=4, tall=8)  # type: ignore[arg-type]
    report.require()
    assert report.tightest is not None
    assert report.tightest.divergence > 0.6 * report.tightest.claim


@pytest.mark.parametrize("release", [RELEASE, MEASURED], ids=str)
def test_a_spread_of_the_smaller_move_is_caught(release: TestedOrWeighted) -> None:
    class Smaller(ChoiceAlone):
        @property
        def choice(self) -> PrivateChoice:
            branches = self.release.branches
            least = min(branches.moves)
            return PrivateChoice(branches.epsilon, spread_of([least, least]))

    assert broken(Smaller(release))


@pytest.mark.parametrize("release", [TWO, MEASURED_TWO], ids=str)
def test_a_move_of_one_label_for_persons_with_several_is_caught(release: TestedOrWeighted) -> None:
    class OneLabel(ChoiceAlone):
        @property
        def choice(self) -> PrivateChoice:
            branches = self.release.branches
            by_count, by_weight = branches.moves
            together = max(min(n, 2) * w for n, w in enumerate(SHARE.table, 1))
            one = by_weight * SHARE.table[0] / together
            if release is MEASURED_TWO:
                one = by_weight * CLIP.together(1) / CLIP.together(2)
            return PrivateChoice(branches.epsilon, spread_of([by_count, one]))

    assert broken(OneLabel(release))


def test_parts_that_are_not_scaled_are_caught() -> None:
    """Each part is clipped, and their length is believed."""

    class Believed(BinnedChoice):
        def counted(
            self, holdings: Mapping[str, Sequence[str]], domain: Sequence[str] | None
        ) -> Histogram:
            right, wide = super().counted(holdings, domain), replace(CLIP, full_items=3)
            sums = Histogram.of_parts(amounts_of_rows(holdings), wide).weighted(wide)
            return Histogram(right._table, (CLIP, sums._table))

    loud = replace(MEASURED.branches.weighted, epsilon=6.0)
    mechanism = with_branches(replace(MEASURED.branches, weighted=loud), MEASURED)
    size: dict[str, Any] = {"items": 3, "max_count": 2, "tall": 4}
    assert check_privacy(mechanism.binned(4 * UNITS), **size).broken is None
    assert check_privacy(Believed(mechanism, (4 * UNITS,)), **size).broken is not None


@dataclass(frozen=True)
class Charged(BinnedChoice):
    """The right law at another price."""

    steps: ChosenSteps | TestedSteps | None = None
    fails: Fraction = Fraction(0)

    @property
    def loss(self) -> Loss:
        assert self.steps is not None
        return rdp("another price", self.steps) + failure(self.fails)


def with_branches(branches: Branches, of: TestedOrWeighted = RELEASE) -> TestedOrWeighted:
    """The same mechanism with parts that its calibration would not give it, so that they show."""
    mechanism = replace(of)
    mechanism.__dict__["branches"] = branches
    return mechanism


def charged(mechanism: TestedOrWeighted, steps: ChosenSteps, fails: Fraction) -> bool:
    """Whether that price is shown to be too low."""
    report = check_privacy(
        Charged(mechanism, (3 * UNIT,), steps, fails), items=2, max_count=4, tall=4
    )
    return report.broken is not None


@pytest.mark.parametrize("forgotten", ["choice", "picks", "weights", "failure"])
def test_a_charge_that_forgets_a_part_is_caught(forgotten: str) -> None:
    branches = RELEASE.branches
    more: dict[str, dict[str, Any]] = {
        "choice": {"epsilon": branches.epsilon * 4},
        "picks": {"tested": TestedTopK(1, 9.0, 0.2, 2)},
        "weights": {"weighted": replace(branches.weighted, epsilon=12.0)},
        "failure": {},
    }
    loud = replace(branches, **more[forgotten])
    [(_, named)] = loud.loss.curves
    right, fails = named.curve, loud.loss.failures
    assert isinstance(right, ChosenSteps)
    picks, weights = right.options
    wrong = {
        "choice": replace(right, choice=Fraction(1, 50)),
        "picks": replace(right, options=(weights,)),
        "weights": replace(right, options=(picks,)),
        "failure": right,
    }[forgotten]
    assert not charged(with_branches(loud), right, fails)
    assert charged(with_branches(loud), wrong, Fraction(0) if forgotten == "failure" else fails)


# --- what it answers --------------------------------------------------------------------------


def test_people_with_few_items_are_weighted_and_people_with_many_picked() -> None:
    mechanism = TestedOrWeighted(10, 1.0, 1e-6)
    bits = ReplayableBits(b"geometry")
    few = Histogram.of_holdings({n: [n % 12] for n in range(700)}, Weights.share())
    many = Histogram.of_holdings({n: list(range(80)) for n in range(160)}, Weights.share())
    named = {mechanism.select(few, bits).branch for _ in range(12)}
    assert named == {"weighted"}
    assert {mechanism.select(many, bits).branch for _ in range(12)} == {"tested"}
    drawn = mechanism.select(few, bits)
    assert drawn.values is not None
    assert drawn.at_least is not None
    assert drawn.chosen is None


@pytest.mark.parametrize("bound", [1, 3, 10_000])
def test_in_units_of_the_bound_rows_are_chosen_for_as_persons(bound: int) -> None:
    """Everybody adds the bound: the chances of both methods are those of the same persons."""
    clip = Clip.of(bound)
    persons, rows = TestedOrWeighted(10, 1.0, 1e-6), TestedOrWeighted(10, 1.0, 1e-6, weights=clip)
    for held in ({n: [n % 12] for n in range(600)}, {n: list(range(80)) for n in range(120)}):
        amounts = {person: dict.fromkeys(items, bound) for person, items in held.items()}
        scores = (
            persons.scores(Histogram.of_holdings(held, Weights.share())),
            rows.scores(Histogram.of_parts(amounts, clip)),
        )
        by_persons, by_rows = (
            float(one.branches.choice.law(found)[0])
            for one, found in zip((persons, rows), scores, strict=True)
        )
        assert by_rows == pytest.approx(by_persons, abs=0.02)
