"""Mechanisms that say one thing and do another, for verification to catch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flint import arb

from topsecret import Histogram
from topsecret.accounting import Loss
from topsecret.exact.rounding import ball, exact, precision
from topsecret.mechanisms import LimitedDomain, Mechanism
from topsecret.mechanisms.plackett_luce import plackett_luce
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.bits import BitSource

Law = Callable[[Histogram], Mapping[Outcome, arb]]


@dataclass(frozen=True)
class Planted:
    """The claim of one mechanism, the law of a second, the sampler of a third."""

    claims: Mechanism
    law: Mechanism
    draws: Mechanism
    adjacency: str = "add-remove"
    max_items: int | None = None

    @property
    def ordered(self) -> bool:
        return True

    @property
    def loss(self) -> Loss:
        return self.claims.loss

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        return self.draws.select(histogram, bits)

    def probabilities(self, histogram: Histogram) -> Mapping[Outcome, arb]:
        return self.law.probabilities(histogram)

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        return {outcome: float(p) for outcome, p in self.probabilities(histogram).items()}


@dataclass(frozen=True)
class Stated:
    """A mechanism that is nothing but a law and a claim."""

    law: Law
    claim: Loss
    adjacency: str = "add-remove"
    max_items: int | None = None
    meets_claim_exactly: bool = False

    @property
    def ordered(self) -> bool:
        return True

    @property
    def loss(self) -> Loss:
        return self.claim

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        raise NotImplementedError

    def probabilities(self, histogram: Histogram) -> Mapping[Outcome, arb]:
        return self.law(histogram)

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        return {outcome: float(p) for outcome, p in self.law(histogram).items()}


def limited_domain_law(mechanism: LimitedDomain, *, plus: int, reach: int) -> Law:
    """Durfee & Rogers' law written out again, with another "+1" and another M."""

    def law(histogram: Histogram) -> Mapping[Outcome, arb]:
        rows = histogram.ranked(mechanism.k_bar + 1)
        next_count = rows[mechanism.k_bar][1] if len(rows) > mechanism.k_bar else 0
        kept = rows[: mechanism.k_bar]
        if mechanism.strict:
            kept = [(item, count) for item, count in kept if count > next_count]
        with precision(128):
            price = ball(exact(mechanism.epsilon_per_pick))
            threshold = next_count + plus + (reach / ball(exact(mechanism.delta))).log() / price
            weights = [(item, (price * count).exp()) for item, count in kept]
            return plackett_luce(weights, mechanism.k, (price * threshold).exp())

    return law
