"""The rules draw their stated laws, and the laws keep the stated loss."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb

from topsecret.accounting import Loss, gaussian, zhu_wang
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import precision
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.mechanisms.stability import StableTopK
from topsecret.noise.bits import ReplayableBits
from topsecret.pate import NoisyMajority, StableLabels, noisy_majority, stable_labels
from topsecret.pate.ballots import as_ballots, count_votes
from topsecret.verify import check_privacy

ROWS = 40_000
COUNTS = np.array([9, 8, 3, 1])


def frequencies(rule: StableLabels | NoisyMajority) -> dict[tuple[int, ...] | None, float]:
    chosen, answered = rule.decide(np.tile(COUNTS, (ROWS, 1)), ReplayableBits(b"law"))
    found: dict[tuple[int, ...] | None, float] = {}
    for row, passed in zip(chosen, answered, strict=True):
        key = tuple(np.flatnonzero(row).tolist()) if passed else None
        found[key] = found.get(key, 0) + 1 / ROWS
    return found


def close(law: dict[tuple[int, ...] | None, float], found: dict, margin: float = 6.0) -> bool:
    """Within 6 standard deviations everywhere: alarm rate below 2e-9 for each outcome."""
    if set(found) - set(law):
        return False
    return all(
        abs(found.get(key, 0.0) - p) <= margin * math.sqrt(p * (1 - p) / ROWS) + 1e-9
        for key, p in law.items()
    )


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("selection", ["gumbel", "gaussian"])
def test_stable_labels_are_stable_top_k(adjacency: str, selection: str) -> None:
    mechanism = StableTopK(3, 0.5, 0.05, selection=selection, adjacency=adjacency)  # type: ignore[arg-type]
    rule = StableLabels(
        4,
        20,
        mechanism.chooser.scale,
        mechanism.tester.scale,
        0.05,
        selection,  # type: ignore[arg-type]
        adjacency,  # type: ignore[arg-type]
    )
    assert rule.loss == mechanism.loss
    law = {
        outcome if len(outcome) == 0 or isinstance(outcome[-1], int) else None: chance
        for outcome, chance in mechanism.distribution(Histogram.from_counts(COUNTS)).items()
    }
    found = frequencies(rule)
    assert close(law, found)  # type: ignore[arg-type]
    wrong = frequencies(replace(rule, test_scale=2 * Fraction(rule.test_scale)))
    assert not close(law, wrong)  # type: ignore[arg-type]


def test_a_regulariser_counts_wherever_it_is_added() -> None:
    rule = StableLabels(4, 20, 1, 1, 0.01, regulariser=(0, 0, 40))
    awkward = replace(rule, regulariser=(0.1, 0.1, 40.1 - 2**-40))  # needs more than 64 bits
    for each in (rule, awkward):
        chosen, answered = each.decide(np.tile([90, 0, 0, 0], (50, 1)), ReplayableBits(b"r"))
        assert answered.all()
        assert chosen.sum(axis=1).tolist() == [1] * 50
    chosen, answered = rule.decide(np.tile([9, 8, 8, 0], (300, 1)), ReplayableBits(b"s"))
    assert set(chosen.sum(axis=1)[answered].tolist()) == {3}


def test_noisy_majority_is_one_coin_per_label() -> None:
    rule = NoisyMajority(4, 12, sigma=3)

    def law(sigma: float) -> dict[tuple[int, ...] | None, float]:
        chances = [0.5 * math.erfc(-(count - 6) / sigma / math.sqrt(2)) for count in COUNTS]
        return {
            tuple(np.flatnonzero(bits).tolist()): math.prod(
                p if bit else 1 - p for bit, p in zip(bits, chances, strict=True)
            )
            for bits in product((0, 1), repeat=4)
        }

    found = frequencies(rule)
    assert close(law(3.0), found)
    assert not close(law(3.2), found)


@dataclass(frozen=True)
class MajorityAsMechanism:
    """The rule as the exhaustive check takes it."""

    rule: NoisyMajority
    claimed: Loss
    adjacency: str
    max_items: int | None

    ordered = False

    @property
    def loss(self) -> Loss:
        return self.claimed

    def select(self, histogram: Histogram, bits: object = None) -> Selection:
        raise NotImplementedError

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        histogram.require_domain("NoisyMajority", 1)
        with precision(128):
            chances = [self.rule.chance(int(score)).ball(128) for _, score in histogram.scores()]
            return {
                bits: math.prod(
                    (p if bit else 1 - p for bit, p in zip(bits, chances, strict=True)),
                    start=arb(1),
                )
                for bits in product((0, 1), repeat=len(chances))
            }

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        raise NotImplementedError


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("max_votes", [None, 1])
def test_noisy_majority_keeps_its_claim_on_all_neighbours(
    adjacency: str, max_votes: int | None
) -> None:
    rule = NoisyMajority(3, 4, 1, max_votes, adjacency)  # type: ignore[arg-type]
    mechanism = MajorityAsMechanism(rule, rule.loss, adjacency, max_votes)
    assert check_privacy(mechanism, items=3, max_count=4, tall=4).passed  # type: ignore[arg-type]


def test_a_claim_that_forgets_the_number_of_labels_is_rejected() -> None:
    rule = NoisyMajority(3, 4, 1)
    mechanism = MajorityAsMechanism(rule, gaussian(Fraction(1, 2)), "replace", None)
    assert not check_privacy(mechanism, items=3, max_count=4, tall=4).passed  # type: ignore[arg-type]


def test_a_threshold_that_follows_a_secret_number_of_teachers_would_break_the_cut() -> None:
    """100 labels, one vote each: a teacher without votes moves the threshold for all of them."""
    labels, sigma = 100, 10
    claim = NoisyMajority(labels, 20, sigma, max_votes=1, adjacency="add-remove").loss.delta(0)
    before, after = 0.5, 0.5 * math.erfc(-0.5 / sigma / math.sqrt(2))  # counts at the threshold

    def law(chance: float, heads: int) -> float:
        return math.comb(labels, heads) * chance**heads * (1 - chance) ** (labels - heads)

    divergence = sum(max(0.0, law(after, k) - law(before, k)) for k in range(labels + 1))
    assert divergence > 3 * claim


def test_sensitivities() -> None:
    assert NoisyMajority(22, 9, 1).moved == 22
    assert NoisyMajority(22, 9, 1, max_votes=4).moved == 8
    assert NoisyMajority(22, 9, 1, max_votes=4, adjacency="add-remove").moved == 4
    assert NoisyMajority(5, 9, 1, max_votes=4).moved == 5


def test_the_run_of_zhu_and_wang_costs_what_the_accountant_says() -> None:
    """Table 2: 600 queries, 40 labels, sigma 50 and 60, delta_t = 1e-9; 3.6 is printed."""
    failure = Fraction(1, 10**9)
    gaussian_rule = StableLabels(40, 300, 50, 60, failure, "gaussian", "add-remove")
    assert 20.4 < (600 * gaussian_rule.loss).epsilon(1e-6) < 20.5
    scale = 50 * math.sqrt(6) / math.pi  # a Gumbel of the same standard deviation
    gumbel_rule = StableLabels(40, 300, scale, 60, failure, "gumbel", "add-remove")
    last = zhu_wang.table().charges[-1].epsilon
    assert (600 * gumbel_rule.loss).epsilon(1e-6) == pytest.approx(last, rel=1e-4)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_calibrated_rules_spend_the_budget_and_no_more(adjacency: str) -> None:
    common = {"queries": 40, "epsilon": 2, "delta": 1e-6, "adjacency": adjacency}
    for rule in (
        stable_labels(6, 50, **common),  # type: ignore[arg-type]
        stable_labels(6, 50, selection="gaussian", **common),  # type: ignore[arg-type]
        noisy_majority(6, 50, **common),  # type: ignore[arg-type]
        noisy_majority(6, 50, max_votes=2, **common),  # type: ignore[arg-type]
    ):
        assert 1.99 < (40 * rule.loss).epsilon(1e-6) <= 2


def test_mistakes_are_named() -> None:
    with pytest.raises(InvalidParameter, match="labels=1 must be at least 2; raise labels"):
        StableLabels(1, 10, 1, 1, 1e-6)
    with pytest.raises(InvalidParameter, match="regulariser has 2 entries; it must have 3"):
        StableLabels(4, 10, 1, 1, 1e-6, regulariser=(0, 0))
    with pytest.raises(InvalidParameter, match="k_bar=4 must be at most labels - 1=3"):
        StableLabels(4, 10, 1, 1, 1e-6, k_bar=4)
    with pytest.raises(InvalidParameter, match="sigma=0 must be above 0"):
        NoisyMajority(4, 10, 0)


def test_a_truth_value_of_any_byte_is_one_vote():
    """A file or another language may leave any byte in a truth value."""
    bytes_ = np.zeros((200, 3), dtype=np.uint8)
    bytes_[0, 1] = 200
    bytes_[1, 2] = 1
    ballots = bytes_.view(np.bool_)
    assert count_votes(ballots).tolist() == [0, 1, 1]
    assert count_votes(as_ballots(ballots, 200, 3)).tolist() == [0, 1, 1]
    assert as_ballots(ballots, 200, 3).view(np.uint8).max() == 1
