"""`StableTopK`: as many leading items as the data itself sets apart from the rest.

>>> from topsecret import Histogram
>>> counts = {f"item {i}": 500 for i in range(4)} | {f"other {i}": 20 for i in range(9)}
>>> answer = StableTopK(k_bar=10, rho=0.1, failure=1e-6).select(Histogram.of(counts))
>>> answer.items, answer.complete
(('item 0', 'item 1', 'item 2', 'item 3'), True)

**Statement** (Zhu & Wang 2022, Alg. 2, its test sharpened). Choose k as the place of the largest
noisy gap q_j + r(j) among j ≤ k̄ (``largest_gap.py``), test that gap (``propose_test_release.py``),
and release the *unordered* set of the top k, or nothing. The loss is picks(1, 2/τ) + gaussian(1/σ²)
+ failure(δ_t) with τ = σ = 1/√ρ, so that the choice and the test cost ρ/2 of zCDP each.

**Preconditions.** Counts of distinct people: one person moves each by at most 1. k̄ and r are
fixed before seeing data.

**Why each line matters.**
- *The gap's sensitivity* is 1 under add-remove though two counts take part: both move in the same
  direction. Under replace it is 2; a gap is then stable only above 2, and all noise doubles.
- *Gaps are not monotone*, so a choice with Gumbel(τ) costs picks(1, 2/τ) and never picks(1, 1/τ).
- *max(1, q)*: a set that differs between neighbours has q ≤ 1 on both, hence passes with
  probability exactly δ_t on both, whatever q is. Testing the gap at k − 1 or k + 1 instead
  releases sets that one person decides.
- *The set has no order*: the ranking within the top k is not protected by the gap below it.
- Only the set is released. With nothing, the chosen k stays hidden (it would be private too).
- Past the observed items counts are 0. If k is larger than the number of observed items the gap is
  0, and a passed set (probability δ_t) holds the observed names only. On a public domain of
  m items j ≤ m − 1, since the set of all m tells nothing; names are of observed items there too.
- 1/√ρ is rounded up to a fraction: slightly more noise, and the loss is that of the fraction.

``test="laplace"`` is Alg. 5 with scale 1/√ρ, i.e. approximate(√ρ, δ_t), also ρ/2 of zCDP.
``selection="gaussian"`` has variance min(k̄, 4)/ρ, so that the linear part of its Rényi curve is
αρ/2; beyond k̄ = 4 the part ln(k̄)/(α − 1) comes on top and it is the worse choice.

**Printed wrongly**: the conversion of Theorem 11, ρ + √(2ρ·ln(1/δ)), which is not implied; the
accountant converts by its own bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Literal

from flint import arb, ctx

from topsecret.accounting import Loss
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter
from topsecret.exact.ordering import as_a_set
from topsecret.exact.rounding import Number, exact, precision, root_up
from topsecret.mechanisms import parameters
from topsecret.mechanisms.largest_gap import LargestGap
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.propose_test_release import GaussianTest, LaplaceTest, Quantile
from topsecret.mechanisms.selection import NOTHING, Outcome, Selection
from topsecret.noise.bits import BitSource, SystemBits, bernoulli
from topsecret.noise.distributions import GAUSSIAN, GUMBEL

Regulariser = Callable[[int], Number] | Sequence[Number]
Rows = list[tuple[Hashable, int]]


@dataclass(frozen=True)
class StableTopK:
    """The unordered top k for a k ≤ ``k_bar`` that the counts suggest, or nothing.

    ``regulariser`` adds r(j) to the gap after j items: a function of j, or r(1), …, r(k̄).
    It must not depend on the data.

    Guarantee: a ``failure``-approximate ``rho``-zCDP release; ``loss`` keeps its stronger form.
    """

    k_bar: int
    rho: Number
    failure: Number
    regulariser: Regulariser | None = None
    selection: Literal["gumbel", "gaussian"] = "gumbel"
    test: Literal["gaussian", "laplace"] = "gaussian"
    adjacency: parameters.Adjacency = "add-remove"
    quantile: Quantile = "exact"

    def __post_init__(self) -> None:
        parameters.whole(self.k_bar, "k_bar")
        parameters.positive(self.rho, "rho")
        parameters.probability(self.failure, "failure")
        parameters.one_of(self.selection, "selection", ("gumbel", "gaussian"))
        parameters.one_of(self.test, "test", ("gaussian", "laplace"))
        parameters.one_of(self.quantile, "quantile", ("exact", "paper"))
        if self.test == "laplace" and self.quantile == "paper":
            raise InvalidParameter(
                "quantile='paper' belongs to test='gaussian'; leave it at 'exact'"
            )
        parameters.adjacency(self.adjacency)
        if self.regulariser is not None and not callable(self.regulariser):
            object.__setattr__(self, "regulariser", tuple(self.regulariser))
        self._bonus  # noqa: B018  # evaluated here so that a bad regulariser is a bad parameter

    @cached_property
    def _bonus(self) -> tuple[Fraction, ...] | None:
        if self.regulariser is None:
            return None
        places = range(1, self.k_bar + 1)
        if callable(self.regulariser):
            return tuple(exact(self.regulariser(j), f"regulariser({j})") for j in places)
        if len(self.regulariser) != self.k_bar:
            raise InvalidParameter(
                f"regulariser has {len(self.regulariser)} entries; it must have k_bar={self.k_bar}"
            )
        return tuple(exact(self.regulariser[j - 1], f"regulariser({j})") for j in places)

    @property
    def ordered(self) -> bool:
        """The answer is a set."""
        return False

    @property
    def meets_claim_exactly(self) -> bool:
        """Where all sets differ, the passes of one side, δ_t in all, are impossible on the other.

        The divergence is then δ_t for every large epsilon, and so is the claim when the choice
        and the test are pure but for their failure (the Laplace test).
        """
        return True

    @property
    def _sensitivity(self) -> int:
        return 1 if self.adjacency == "add-remove" else 2

    @cached_property
    def chooser(self) -> LargestGap:
        """The first step: which k."""
        variance = 1 if self.selection == "gumbel" else min(self.k_bar, 4)
        scale = self._sensitivity * root_up(variance / exact(self.rho))
        noise = GUMBEL if self.selection == "gumbel" else GAUSSIAN
        return LargestGap(self.k_bar, scale, noise, self._bonus, self._sensitivity)

    @cached_property
    def tester(self) -> GaussianTest | LaplaceTest:
        """The second step: whether its gap is wide enough."""
        scale = self._sensitivity * root_up(1 / exact(self.rho))
        failure = exact(self.failure)
        if self.test == "laplace":
            return LaplaceTest(scale, failure, self._sensitivity)
        return GaussianTest(scale, failure, self._sensitivity, self.quantile)

    @property
    def loss(self) -> Loss:
        """The choice and the test."""
        return self.chooser.loss + self.tester.loss

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the set."""
        bits = SystemBits() if bits is None else bits
        rows = histogram.ranked(self.k_bar + 1)
        length = propose(self, gaps_of(rows, places(self.k_bar, histogram)), bits)
        if length is None:
            return Selection((), complete=False, ordered=False)
        items = as_a_set(item for item, _ in rows[:length])
        return Selection(items, complete=True, ordered=False)

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """Each k's chance to be chosen times its chance to pass."""
        rows = histogram.ranked(self.k_bar + 1)
        law: dict[Outcome, arb] = {}
        with precision(max(128, ctx.prec)):
            gaps = gaps_of(rows, places(self.k_bar, histogram))
            for length, chance in proposal_law(self, gaps).items():
                items = as_a_set(item for item, _ in rows[: length or 0])
                outcome = (NOTHING,) if length is None else items
                law[outcome] = law.get(outcome, arb(0)) + chance
        return law

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the answer on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[StableTopK, ...]:
        """The parameters that ``topsecret verify`` checks: k̄ below, at and above the items."""
        return (
            cls(1, 0.5, 0.05),
            cls(2, 0.5, 0.01),
            cls(4, 1.0, 0.05),
            cls(6, 0.3, 0.01, regulariser=(0.5, 0, 0, 1, 0, 0)),
            cls(3, 0.5, 0.05, selection="gaussian"),
            cls(3, 0.5, 0.05, test="laplace"),
            cls(3, 0.5, 0.05, quantile="paper"),
            cls(3, 0.5, 0.05, adjacency="replace"),
            cls(5, 2.0, 0.05, selection="gaussian", test="laplace", adjacency="replace"),
        )


def places(k_bar: int, histogram: Histogram) -> int:
    """How many places a gap may have: k̄, and on a public domain of m items m − 1."""
    size = histogram.domain_size
    if size is None:
        return k_bar
    if size < 2:
        raise InvalidParameter(
            f"the public domain has {size} items; a gap needs at least 2; enlarge the domain"
        )
    return min(k_bar, size - 1)


def gaps_of(rows: Rows, length: int) -> list[int]:
    """q_1, …, q_(length) of the ranked counts, which are 0 past the observed items. Secret."""
    counts = [count for _, count in rows[: length + 1]]
    counts += [0] * (length + 1 - len(counts))
    return [count - following for count, following in pairwise(counts)]


def propose(mechanism: StableTopK, gaps: Sequence[int], bits: BitSource) -> int | None:
    """The length whose gap was chosen and passed; None when it did not pass."""
    length = mechanism.chooser.choose(gaps, bits)
    chance = mechanism.tester.chance(gaps[length - 1])
    return length if bernoulli(chance, bits) else None


def proposal_law(mechanism: StableTopK, gaps: Sequence[int]) -> dict[int | None, arb]:
    """The law of :func:`propose` at the current precision."""
    law: dict[int | None, arb] = {None: arb(0)}
    for place, chosen in enumerate(mechanism.chooser.probabilities(gaps)):
        passed = mechanism.tester.chance(gaps[place]).ball(ctx.prec)
        law[place + 1] = chosen * passed
        law[None] += chosen * (1 - passed)
    return law
