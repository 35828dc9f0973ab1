"""A bound chosen privately and then a list: the joint law against its claim, and wrong versions."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topsecret import Histogram
from topsecret.accounting import Loss
from topsecret.calibration import Question, prepare
from topsecret.calibration.question import Scores
from topsecret.errors import InvalidParameter
from topsecret.mechanisms import ChosenBound, GumbelTopK, LimitedDomain, TestedTopK
from topsecret.mechanisms.chosen_bound_law import BoundOfRows
from topsecret.mechanisms.private_choice import STEPS, PrivateChoice
from topsecret.verify import check_privacy
from topsecret.verify.sampler import check_sampler

LIMITED = LimitedDomain(1, 2, 0.5, 0.05)
SIZE: dict[str, Any] = {"items": 3, "max_count": 2, "tall": 4}


@pytest.mark.parametrize("case", ChosenBound.verification_cases(), ids=range(5))
def test_it_keeps_its_claim(case: BoundOfRows) -> None:
    check_privacy(case, **SIZE).require()


def test_the_draw_follows_the_law() -> None:
    persons = {
        f"{n} {i}": [*n] for n, many in {"a": 3, "b": 2, "abc": 2}.items() for i in range(many)
    }
    for case in ChosenBound.verification_cases()[:2]:
        check_sampler(case, case.counted(persons, None), 600).require()


# --- the scores ------------------------------------------------------------------------------

PERSONS = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 40), max_size=3)


@settings(max_examples=80)
@given(
    st.lists(PERSONS, max_size=6),
    PERSONS,
    st.lists(st.integers(1, 50), min_size=2, max_size=5, unique=True).map(sorted),
    st.integers(1, 3),
    st.integers(1, 4),
)
def test_a_further_person_moves_a_score_by_one_person_at_most(
    persons: list[dict[str, int]], more: dict[str, int], bounds: list[int], rank: int, target: int
) -> None:
    """What lies beyond each bound rises, falls along the bounds, and moves by one person."""
    made = ChosenBound.of(LIMITED, tuple(bounds), 1.0, rank, target, 1)
    everybody = dict(enumerate(persons))
    before = Histogram.of_amounts(everybody, bounds)
    after = Histogram.of_amounts({**everybody, "new": more}, bounds)
    moved = [b - a for a, b in zip(made.scores(before), made.scores(after), strict=True)]
    assert all(-STEPS <= move <= STEPS for move in moved)
    widths = [high - low for low, high in pairwise(bounds)]
    beyond = [h.at_bounds(made.bounds).beyond(rank) for h in (before, after)]
    rises = [b - a for a, b in zip(*beyond, strict=True)]
    assert all(0 <= rise <= width for rise, width in zip(rises, widths, strict=True))
    cut = [added / width for added, width in zip(beyond[1], widths, strict=True)]
    assert cut == sorted(cut, reverse=True)


def test_the_best_bound_is_the_smallest_that_cuts_few_persons_off() -> None:
    """100 persons with 3 rows, 20 with 30: a target of 50 takes 5, one of 10 takes 20."""
    rows = {person: {"tea": 3 if person < 100 else 30} for person in range(120)}
    bounds = (1, 2, 5, 10, 20, 50)
    for target, best in ((50, 5), (10, 20), (150, 1)):
        made = ChosenBound.of(LIMITED, bounds, 1.0, 1, target)
        scores = made.scores(Histogram.of_amounts(rows, bounds))
        assert bounds[scores.index(max(scores))] == best


# --- wrong versions ---------------------------------------------------------------------------


class Uncharged(ChosenBound):
    """The list alone is charged."""

    @property
    def loss(self) -> Loss:  # type: ignore[override]
        return self.options[0].loss


class OneWay(ChosenBound):
    """As if a new person raised all scores."""

    @property
    def choice(self) -> PrivateChoice:
        return PrivateChoice(self.epsilon, STEPS)


class Undivided(ChosenBound):
    """What lies beyond a bound, not in units of the distance to the next."""

    def scores(self, histogram: Histogram) -> list[int]:
        beyond = histogram.at_bounds(self.bounds).beyond(self.rank)
        cut, target = [STEPS * added for added in beyond], self.target * STEPS
        small = [max(0, persons - target) for persons in cut] + [0]
        large = [0] + [max(0, target - persons) for persons in cut]
        return [-max(pair) for pair in zip(small, large, strict=True)]


@dataclass(frozen=True)
class FromData(BoundOfRows):
    """The last bound is the largest amount of anybody; it is published."""

    def counted(self, holdings: Any, domain: Any) -> Histogram:
        found = super().counted(holdings, domain)
        amounts = found._table.scores_by_bound._amounts.values()  # type: ignore[attr-defined]
        largest = max((n for own in amounts for n in own.values()), default=1)
        first = self.release.bounds[0]
        return Histogram.of_amounts(
            dict(enumerate(amounts)), (first, max(first + 1, largest)), domain and ["x", "y"]
        )

    def probabilities(self, histogram: Histogram) -> Any:
        bounds = histogram._table.scores_by_bound.bounds  # type: ignore[attr-defined]
        release = self.release
        return ChosenBound.of(
            LIMITED, bounds, release.epsilon, release.rank, release.target
        ).probabilities(histogram)


@pytest.mark.parametrize("wrong", [Uncharged, OneWay, Undivided])
def test_a_wrong_choice_is_caught(wrong: type[ChosenBound]) -> None:
    # Of three bounds the first can be too small and the last too large at once.
    right = ChosenBound.of(LIMITED, (1, 2, 4), 3.0, 1, 2)
    check_privacy(BoundOfRows(right), **SIZE).require()
    planted = wrong(right.options, right.bounds, right.epsilon, right.rank, right.target)
    assert check_privacy(BoundOfRows(planted), **SIZE).broken is not None


def test_bounds_from_the_data_are_caught() -> None:
    release = ChosenBound.of(LIMITED, (1, 4), 1.0, 1, 1)
    assert check_privacy(FromData(release), **SIZE).broken is not None


def test_a_list_in_the_units_of_a_smaller_bound_is_caught() -> None:
    right = ChosenBound.of(LIMITED, (1, 4), 0.1, 1, 1)
    wrong = replace(right)
    # The constructor refuses it, so it is put in behind its back.
    object.__setattr__(wrong, "options", (right.options[0], right.options[0]))
    assert check_privacy(BoundOfRows(wrong), **SIZE).broken is not None
    with pytest.raises(InvalidParameter, match="at the bound 4 must be built with sensitivity=4"):
        ChosenBound((LIMITED, LIMITED), (1, 4), 0.1)


# --- parameters -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"bounds": (1,)}, "two whole numbers or more"),
        ({"bounds": (2, 1)}, "rising from 1"),
        ({"bounds": (0, 1)}, "rising from 1"),
        ({"epsilon": 0}, "epsilon=0"),
        ({"rank": 0}, "rank=0"),
        ({"target": 0}, "target=0"),
        ({"handicap": -1}, "handicap=-1 must not be negative"),
    ],
)
def test_parameters_are_checked(given: dict[str, Any], says: str) -> None:
    usual: dict[str, Any] = {"bounds": (1, 2), "epsilon": 1.0, "rank": 1, "target": 1}
    with pytest.raises(InvalidParameter, match=says):
        ChosenBound.of(LIMITED, **usual | given)


def test_options_are_checked() -> None:
    with pytest.raises(InvalidParameter, match="every bound needs an option"):
        ChosenBound((LIMITED,), (1, 2), 1.0)
    with pytest.raises(InvalidParameter, match="must cost the same"):
        ChosenBound((LIMITED, LimitedDomain(1, 2, 0.7, 0.05, sensitivity=2)), (1, 2), 1.0)
    with pytest.raises(InvalidParameter, match="built for counts of people"):
        ChosenBound.of(replace(LIMITED, sensitivity=2), (1, 2), 1.0)
    made = ChosenBound.of(LIMITED, (1, 2), 1.0)
    with pytest.raises(InvalidParameter, match="counted with the bounds"):
        made.select(Histogram.of({"a": 3}))
    with pytest.raises(InvalidParameter, match="scores at several bounds"):
        LIMITED.select(Histogram.of_amounts({}, (1, 2)))
    for asked in ("field", "scores"):
        with pytest.raises(InvalidParameter, match="scores at several bounds"):
            getattr(Histogram.of_amounts({}, (1, 2)), asked)()
    for asked in ("names", "counts_of"):
        arguments = ([], None) if asked == "names" else ([],)
        with pytest.raises(InvalidParameter, match="scores at several bounds"):
            getattr(Histogram.of_amounts({}, (1, 2)), asked)(*arguments)
    assert isinstance(ChosenBound.of(GumbelTopK(1, 2.0), (1, 3), 1.0).options[1], GumbelTopK)


@pytest.mark.parametrize(
    ("name", "more"),
    [("tested", {}), ("limited-domain", {}), ("pruned", {"domain_size": 99})],
)
def test_choice_and_list_spend_the_budget(name: str, more: dict[str, Any]) -> None:
    question = Question.of(k=5, epsilon=1.0, **more).ranked_by(Scores(5, 1, "rows", (1, 2, 5)))
    mechanism = prepare(name, question).mechanism
    assert isinstance(mechanism, ChosenBound)
    assert 0.98 < mechanism.loss.epsilon(1e-6) <= 1
    assert mechanism.options[0].loss.epsilon(1e-6) < 0.985
    if isinstance(mechanism.options[0], TestedTopK):
        # Sharper than the sum of both, and never more.
        both = mechanism.choice.loss + mechanism.options[0].loss
        assert mechanism.loss.epsilon(1e-6) <= both.epsilon(1e-6)
