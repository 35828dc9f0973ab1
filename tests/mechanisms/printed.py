"""Mechanisms that are wrong on purpose: as papers printed them, or with a defect planted."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import log

from flint import arb

from topsecret.accounting import Loss, picks
from topsecret.counts.histogram import Histogram
from topsecret.errors import DomainRequired
from topsecret.exact.rounding import ball, exact, precision, root_up
from topsecret.mechanisms import (
    FixedThreshold,
    LimitedDomainLaplace,
    OptimalThreshold,
    StableFixedK,
    StableTopK,
    TopStable,
)
from topsecret.mechanisms.largest_gap import LargestGap
from topsecret.mechanisms.propose_test_release import LaplaceChance
from topsecret.mechanisms.stability import gaps_of
from topsecret.mechanisms.top_stable import tail_argument
from topsecret.noise.bits import Log
from topsecret.noise.distributions import GUMBEL


@dataclass(frozen=True)
class OnPublicDomain:
    """A mechanism that takes both kinds of domain, held to a public one."""

    mechanism: StableTopK
    ordered = False

    @property
    def adjacency(self):
        return self.mechanism.adjacency

    @property
    def meets_claim_exactly(self):
        return self.mechanism.meets_claim_exactly

    @property
    def loss(self):
        return self.mechanism.loss

    def probabilities(self, histogram):
        if histogram.domain_size is None:
            raise DomainRequired("a public domain is wanted here")
        return self.mechanism.probabilities(histogram)


class PrintedAlgorithm4(LimitedDomainLaplace):
    """Durfee & Rogers: h₍k̄₊₁₎ + 1 + ln(Δ/ε), in counts; δ does not occur."""

    def _threshold(self):
        price = float(self.epsilon_per_pick)
        return Log(Fraction((self.max_items / price) ** price), plus=exact(price))


class LaplaceWithoutOne(LimitedDomainLaplace):
    """The threshold without + 1."""

    def _threshold(self):
        return Log(self.max_items / exact(self.delta))


@dataclass(frozen=True)
class PrintedAlgorithm6:
    """Durfee & Rogers: k̄ as argmin of h₍ᵢ₎ + ln(i/δ)/ε + Gumbel(1/ε); the choice alone.

    With arrival times S the value is a − ln S, smallest where S·e^(−a) is largest: the largest
    of independent exponentials of rates e^(a), by inclusion and exclusion.
    """

    k: int
    max_k_bar: int
    epsilon: float
    delta: float
    ordered = True

    @property
    def loss(self) -> Loss:
        return picks(1, self.epsilon)

    def rates(self, histogram):
        counts = [count for _, count in histogram.ranked(self.max_k_bar)]
        counts += [0] * (self.max_k_bar - len(counts))
        price = exact(self.epsilon)
        return {
            i: ball(price * counts[i - 1]).exp() * i / ball(exact(self.delta))
            for i in range(self.k, self.max_k_bar + 1)
        }

    def probabilities(self, histogram):
        with precision(256):
            rates = self.rates(histogram)
            return {(i,): _is_largest(i, rates) for i in rates}


class CorrectAlgorithm6(PrintedAlgorithm6):
    """The same choice as argmax of minus the value + Gumbel: the exponential mechanism."""

    def probabilities(self, histogram):
        with precision(256):
            weights = {i: 1 / rate for i, rate in self.rates(histogram).items()}
            total = sum(weights.values(), arb(0))
            return {(i,): weight / total for i, weight in weights.items()}


def _is_largest(i, rates):
    others = [j for j in rates if j != i]
    total = arb(0)
    for size in range(len(others) + 1):
        for chosen in combinations(others, size):
            rate = rates[i] + sum((rates[j] for j in chosen), arb(0))
            total += (-1) ** size * rates[i] / rate
    return total


class PrintedAlgorithm8(FixedThreshold):
    """Durfee & Rogers: a draw only for h₍ᵢ₎ > h_⊥, the threshold itself."""

    def _chances(self, histogram):
        rows = histogram.ranked(self.k + 1)
        next_count = rows[self.k][1] if len(rows) > self.k else 0
        price, delta = float(self.epsilon_per_pick), float(self.delta)
        threshold = next_count + 1 + log(1 / (2 * delta)) / price
        counts = dict(rows)
        return [(i, chance) for i, chance in super()._chances(histogram) if counts[i] > threshold]


class FixedWithoutOne(FixedThreshold):
    """The threshold without + 1."""

    def _chances(self, histogram):
        price = exact(self.epsilon_per_pick)
        return [
            (item, LaplaceChance(chance.odds, chance.lead + price))
            for item, chance in super()._chances(histogram)
        ]


class OptimalForOnePick(OptimalThreshold):
    """The price is not multiplied by the number of picks."""

    @property
    def loss(self) -> Loss:
        honest = super().loss
        return Loss(
            picks(1, self.epsilon_per_pick).pick_runs,
            failures=honest.failures,
            slack=honest.slack,
        )


class OffByOneTopStable(TopStable):
    """The authors' public code: the gap of the next place decides about the top i."""

    def _leads(self, rows):
        gaps = gaps_of(rows, self.k_bar + 1)[1:]
        return [self._unit * max(0, gap - 1) for gap in gaps]


class TopStableWithoutOne(TopStable):
    """The gap itself, not what is above one person."""

    def _leads(self, rows):
        return [self._unit * gap for gap in gaps_of(rows, self.k_bar)]


class TopStableForOneSet(TopStable):
    """δ for each of the k̄ sets, not for all together."""

    def _threshold(self):
        return Log(1 / tail_argument(exact(self.delta)))


class RefiningEachPick(TopStable):
    """ε_EM for each of the k picks."""

    def _refinement(self, released):
        where, picking = super()._refinement(released)
        return where, type(picking)(self.k, 1 / exact(self.epsilon_refine))


@dataclass(frozen=True)
class NextGapStableTopK(StableTopK):
    """Chooses by the right gap and tests the gap of the next place."""

    def probabilities(self, histogram: Histogram):
        rows = histogram.ranked(self.k_bar + 2)
        shifted = [(item, count) for item, count in rows]
        law = {}
        with precision(128):
            gaps = gaps_of(shifted, self.k_bar + 1)
            for place, chosen in enumerate(self.chooser.probabilities(gaps[:-1])):
                passed = self.tester.chance(gaps[place + 1]).ball(128)
                names = tuple(sorted(item for item, _ in rows[: place + 1]))
                for outcome, chance in ((names, passed), (("nothing",), 1 - passed)):
                    law[outcome] = law.get(outcome, arb(0)) + chosen * chance
        return law


@dataclass(frozen=True)
class OrderedStableTopK(StableTopK):
    """Releases the ranking within the top k as well."""

    def probabilities(self, histogram: Histogram):
        ranking = [item for item, _ in histogram.ranked(self.k_bar)]
        law = super().probabilities(histogram)
        return {
            tuple(sorted(outcome, key=lambda i: ranking.index(i) if i in ranking else 99)): chance
            for outcome, chance in law.items()
        }


@dataclass(frozen=True)
class MonotoneGaps(StableTopK):
    """Gumbel(1/ε) as if gaps were monotone; the loss is still that of Gumbel(2/ε)."""

    @cached_property
    def chooser(self):
        scale = root_up(1 / exact(self.rho)) / 2
        return LargestGap(self.k_bar, scale, GUMBEL, None, 1)

    @property
    def loss(self):
        return StableTopK(self.k_bar, self.rho, self.failure, test=self.test).loss


@dataclass(frozen=True)
class HalvedUnderReplace(StableTopK):
    """The noise of add-remove for the claim of replace."""

    @cached_property
    def chooser(self):
        return StableTopK(self.k_bar, self.rho, self.failure).chooser

    @cached_property
    def tester(self):
        return StableTopK(self.k_bar, self.rho, self.failure).tester

    @property
    def loss(self):
        return StableTopK(self.k_bar, self.rho, self.failure, adjacency="replace").loss


@dataclass(frozen=True)
class TestWithoutOne(StableTopK):
    """Pass iff q + noise − σz > 0: a gap of one person counts."""

    __test__ = False

    @cached_property
    def tester(self):
        return _ShiftedTest(super().tester)


@dataclass(frozen=True)
class _ShiftedTest:
    inner: object

    @property
    def loss(self):
        return self.inner.loss

    def chance(self, gap):
        return self.inner.chance(gap + 1)


class PrintedAlgorithm3(StableFixedK):
    """Zhu & Wang, read as ε_EM = 2√ρ for each of the n picks."""

    def scale_of(self, count):
        return root_up(1 / (4 * exact(self.rho)))


class PureBudgetAlgorithm3(StableFixedK):
    """Zhu & Wang, read literally: ε_EM = 2√ρ in all, so ε_EM/n for each pick."""

    def scale_of(self, count):
        return count * root_up(1 / (4 * exact(self.rho)))


class PicksOnAllItems(StableFixedK):
    """Zhu & Wang: for k̃ < k the other picks are made "on h", released items included."""

    def _completion(self, histogram, rows, length):
        found = super()._completion(histogram, rows, length)
        if length is None or length >= self.k:
            return found
        short = type(found.mechanism)(self.k - length, self.scale_of(self.k - length))
        return type(found)(found.kept, histogram, short, self.k)
