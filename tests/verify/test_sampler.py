"""The sampler test accepts right samplers, at a stated rate, and rejects wrong ones."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from flint import arb
from planted import Planted

from topsecret import NOTHING, Histogram
from topsecret.accounting import NO_LOSS, Loss
from topsecret.errors import InvalidParameter, VerificationFailed
from topsecret.mechanisms import GumbelTopK, LimitedDomain, Mechanism
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.bits import BitSource, ReplayableBits
from topsecret.verify import check_sampler

TIES = Histogram.of({"a": 6, "b": 4, "c": 4, "d": 3}, domain="abcd")
OBSERVED = Histogram.of({"a": 16, "b": 13, "c": 13, "d": 10, "e": 3})


@dataclass(frozen=True)
class Scripted:
    """Draws what a list says and states a law of its own."""

    law: dict[Outcome, arb]
    answers: Iterator[Outcome] = field(compare=False)

    @property
    def ordered(self) -> bool:
        return True

    @property
    def loss(self) -> Loss:
        return NO_LOSS

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        outcome = next(self.answers)
        return Selection(
            tuple(item for item in outcome if item is not NOTHING), NOTHING not in outcome
        )

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        return self.law

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        return {outcome: float(p) for outcome, p in self.law.items()}


def multinomial(law: dict[Outcome, arb], chances: list[float], samples: int, seed: int) -> Scripted:
    """A sampler with other chances than its law; NumPy draws fast enough for thousands of runs."""
    outcomes = list(law)
    drawn = np.random.default_rng(seed).choice(len(outcomes), samples, p=chances)
    return Scripted(law, (outcomes[i] for i in drawn))


def replayed() -> ReplayableBits:
    """A wrong sampler is rejected on every run, whatever ran before."""
    return ReplayableBits(b"a wrong sampler is rejected on every run")


@pytest.mark.parametrize("scale", [2 / 3, 3 / 7, 3 / 2, 10 / 7])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_gumbel_draws_its_law(scale: float, k: int) -> None:
    """Alarm rate 10⁻⁶ each. With ties, k > 1 and k = d; gap over scale 2/3 among them."""
    check_sampler(GumbelTopK(k, scale), TIES, 2_000).require()


@pytest.mark.parametrize("mechanism", LimitedDomain.verification_cases(), ids=str)
def test_limited_domain_draws_its_law(mechanism: LimitedDomain) -> None:
    check_sampler(mechanism, OBSERVED, 2_000).require()


@pytest.mark.parametrize(("scale", "factor"), [(2 / 3, 0.95), (3 / 7, 1.05)])
def test_a_noise_scale_off_by_five_percent_is_rejected(scale: float, factor: float) -> None:
    """Expected: two to three times the rejection limit."""
    right, wrong = GumbelTopK(4, scale), GumbelTopK(4, scale * factor)
    report = check_sampler(
        Planted(claims=right, law=right, draws=wrong), TIES, 25_000, bits=replayed()
    )
    assert not report.passed


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_limited_domain_with_a_noise_scale_off_by_five_percent_is_rejected(factor: float) -> None:
    right = LimitedDomain(3, 4, 0.7, 0.01)
    wrong = LimitedDomain(3, 4, 0.7 / factor, 0.01)
    report = check_sampler(
        Planted(claims=right, law=right, draws=wrong), OBSERVED, 8_000, bits=replayed()
    )
    with pytest.raises(VerificationFailed, match="does not draw what it states"):
        report.require()


def test_small_deviations_of_many_outcomes_are_gathered() -> None:
    """No single event deviates enough, all together do: this is what sharpness is for."""
    law = GumbelTopK(4, 2 / 3).probabilities(TIES)
    wrong = list(GumbelTopK(4, 0.95 * 2 / 3).distribution(TIES).values())
    report = check_sampler(multinomial(law, wrong, 15_000, seed=1), TIES, 15_000)
    assert report.deviation < report.deviation_limit
    assert report.sharpness > report.sharpness_limit
    assert report.rejection == "the frequencies are sharper or flatter than the law"


def test_a_swap_of_two_answers_is_seen_although_sharpness_is_blind_to_it() -> None:
    law: dict[Outcome, arb] = {("a",): arb(0.5), ("b",): arb(0.375), ("c",): arb(0.125)}
    report = check_sampler(multinomial(law, [0.375, 0.5, 0.125], 2_000, seed=2), TIES, 2_000)
    assert report.rejection is not None
    assert "came" in report.rejection
    assert "expected" in report.rejection


def test_a_wrong_beginning_of_the_list_is_seen() -> None:
    names = [(first, second) for first in "ab" for second in map(str, range(50))]
    law: dict[Outcome, arb] = {name: arb(0.01) for name in names}
    chances = [0.01 * (1.15 if first == "a" else 0.85) for first, _ in names]
    report = check_sampler(multinomial(law, chances, 2_000, seed=3), TIES, 2_000)
    assert report.rejection is not None
    assert "a list that begins with" in report.rejection


def test_an_impossible_answer_rejects_at_once() -> None:
    law: dict[Outcome, arb] = {("a",): arb(0.5), (NOTHING,): arb(0.5)}
    report = check_sampler(Scripted(law, iter([("z",)])), TIES, 1)
    assert report.impossible == ("('z',)",)
    assert report.rejection == "it drew ('z',), which has probability 0"
    assert not report.to_dict()["passed"]


def test_a_sure_answer_is_accepted_and_its_absence_is_not() -> None:
    law: dict[Outcome, arb] = {("a",): arb(1)}
    assert check_sampler(Scripted(law, iter([("a",)] * 5)), TIES, 5).passed


def test_alarms_are_as_rare_as_stated() -> None:
    """At a rate of .2 a thousand right samplers raise at most 200 alarms (in fact far fewer)."""
    law = LimitedDomain(2, 3, 1.5, 0.1).probabilities(OBSERVED)
    chances = np.array([float(p) for p in law.values()])
    alarms = sum(
        not check_sampler(
            multinomial(law, list(chances / chances.sum()), 100, seed),
            OBSERVED,
            100,
            alarm_rate=0.2,
        ).passed
        for seed in range(1000)
    )
    assert 1 <= alarms <= 200


def test_the_g_statistic_is_shown() -> None:
    law: dict[Outcome, arb] = {("a",): arb(0.5), ("b",): arb(0.5)}
    report = check_sampler(Scripted(law, iter([("a",)] * 60 + [("b",)] * 40)), TIES, 100)
    assert report.g_statistic == pytest.approx(2 * (60 * np.log(1.2) + 40 * np.log(0.8)))
    assert report.degrees_of_freedom == 1
    assert report.p_value == pytest.approx(math.erfc(math.sqrt(report.g_statistic / 2)))


@pytest.mark.parametrize(("samples", "rate"), [(0, 1e-6), (10, 0.0), (10, 1.0)])
def test_parameters_are_checked(samples: int, rate: float) -> None:
    mechanism: Mechanism = GumbelTopK(1, 1.0)
    with pytest.raises(InvalidParameter, match="must be at least 1 and alarm_rate="):
        check_sampler(mechanism, TIES, samples, alarm_rate=rate)
