"""`TestedOrWeighted`: tested picks or weighted people, whichever a private choice prefers.

>>> from topsecret.counts.histogram import Histogram
>>> holdings = {person: ["tea"] if person % 3 else ["jam"] for person in range(900)}
>>> drawn = TestedOrWeighted(k=4, epsilon=1.0, delta=1e-6).select(
...     Histogram.of_holdings(holdings, Weights.share())
... )
>>> drawn.branch in ("tested", "weighted"), set(drawn.items) <= {"tea", "jam"}
(True, True)

Picks win where people have many items, weights where they have few, and public numbers do not tell
which it is. So a twentieth of the budget (as zCDP) finds out: one pick between the two, each
scored by about how much of the top k it would find. The answer says which was drawn. The proof is
the last section of docs/proofs/weighted-histogram.md.

**Scores.** With h the ranked counts, S the ranked sums of weights, T the threshold of the weights
and L(m) the lead that a tested list of m items needs:

- picks: max over the lengths m of (m/k)·clip((.85·h₍m₎/L(m) − .3)/.9), and a public bonus,
- weights: .9 times the mean over i ≤ k of clip(S₍i₎/T − ½).

Clips are to [0, 1], that of the whole list (m = k) to [0, 2]. Where counts are large both would
find k items, but by weights other ones: those of people with few items. There picks lead by
so much that the noise hardly ever chooses the weights.

**Statement.** The answer (which of the two, and its list) is (x, δ_c(x) + δ_t)-DP under add-remove
for every x, δ_c the profile of one ε_a-bounded-range step in front of the larger of the two
branches' profiles without their failures, δ_t the larger failure. ``loss`` is exactly that.

**Preconditions.** Those of `TestedTopK` for the counts and of `WeightedHistogram` for the sums, of
the same people.

**Rows and sums.** With a :class:`~topsecret.counts.clip.Clip` in place of weights both are of what
people add: scores of which one person moves each by at most c, and parts, of which one person adds
a vector of at most the length C (`ClippedSums`). Counts are then scores divided by c, and n·w(n) in
the second score's move is the most that a vector within the bounds adds to n labels.

**Why each line matters.**
- *A new person raises both scores*, the first by at most max (m/k)·(.85/.9)/L(m) (no ranked count
  rises by more than 1), the second by at most .9·max_n min(n, k)·w(n)/(k·T) (the k largest sums
  grow together by no more than the person adds to k labels). Their difference therefore moves by
  at most the larger of the two; with the smaller one, or the mean, it would be charged too little.
- *h₍m₎, not its distance to rank k̄ + 1*: that could fall with a new person while the sums rise.
- *Every sum, not only those of the labels that are named*: names are not known yet.
- *The charge is that of the more expensive branch, whichever is drawn*: a refund would tell which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from flint import arb

from topsecret.accounting import Loss, failure, rdp
from topsecret.accounting.chosen import ChosenSteps
from topsecret.accounting.classical import gaussian_epsilon
from topsecret.accounting.tested import TestedSteps
from topsecret.counts.clip import UNITS, Clip
from topsecret.counts.histogram import Histogram
from topsecret.counts.weights import UNIT, Weights
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, ball, down, exact
from topsecret.mechanisms.clipped_sums import ClippedSums
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.private_choice import PrivateChoice, spread_of, whole_score
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.mechanisms.tested_prices import Target
from topsecret.mechanisms.tested_schedule import CONSTANTS
from topsecret.mechanisms.tested_top_k import TestedTopK
from topsecret.mechanisms.weighted_histogram import WeightedHistogram
from topsecret.noise.bits import BitSource, SystemBits

if TYPE_CHECKING:
    from topsecret.mechanisms.chosen_law import BinnedChoice

CHOICE_SHARE = Fraction(1, 20)
"""The part of the budget (as zCDP) for the choice."""
TESTED, WEIGHTED = "tested", "weighted"
"""What the answer calls its branches."""
_ROOM = Fraction(1004, 1000)
"""`WeightedHistogram`, not `ClippedSums`, has this much more noise than the least."""
_SHRINK = 0.9995
"""What is left of the Gaussian after a try that spent too much, beside what it overspent."""


@dataclass(frozen=True)
class TestedOrWeighted:
    """At most k items in order, by tested picks or by weighted people; which is chosen privately.

    Guarantee: (epsilon, delta)-DP under add-remove, the choice included.
    """

    __test__ = False  # not a test case, whatever its name begins with

    k: int
    epsilon: Number
    delta: Number
    k_bar: int | None = None
    weights: Weights | Clip = Weights.share()  # noqa: RUF009  # frozen, the same for everybody

    def __post_init__(self) -> None:
        # The other parameters are checked by the two mechanisms, whose they are.
        TestedTopK(self.k, self.epsilon, self.delta, self.k_bar)

    @property
    def ordered(self) -> bool:
        """Both branches publish an order."""
        return True

    @property
    def sensitivity(self) -> int:
        """The most that one person moves a score by."""
        return self.weights.bound if isinstance(self.weights, Clip) else 1

    @cached_property
    def branches(self) -> Branches:
        """Both mechanisms and the choice between them, from public numbers alone."""
        return _branches(self.k, exact(self.epsilon), exact(self.delta), self.k_bar, self.weights)

    @cached_property
    def slots(self) -> int:
        """k̄ of the picks."""
        return self.branches.tested.slots

    @property
    def loss(self) -> Loss:
        """The choice, the more expensive branch, the larger failure: the same for every answer."""
        return self.branches.loss

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw which of the two, and then its answer."""
        bits = SystemBits() if bits is None else bits
        tested, weighted, choice = self.branches.parts
        leading = histogram.ranked(self.slots + 1)
        drawn = choice.draw(self._scores(leading, histogram), bits)
        if drawn == 0:
            ranked = Histogram.leading(leading, limit=self.slots + 1)
            return replace(tested.select(ranked, bits), branch=TESTED)
        summed = histogram if isinstance(weighted, WeightedHistogram) else self.sums(histogram)
        return replace(weighted.select(summed, bits), branch=WEIGHTED)

    def sums(self, histogram: Histogram) -> Histogram:
        """What the second score looks at. Secret."""
        return histogram.weighted(self.weights)

    def scores(self, histogram: Histogram) -> tuple[int, int]:
        """The scores of picks and of weights, whole. Secret."""
        return self._scores(histogram.ranked(self.slots + 1), histogram)

    def _scores(
        self, leading: Sequence[tuple[object, int]], histogram: Histogram
    ) -> tuple[int, int]:
        counts = [count for _, count in leading]
        sums = _largest(self.sums(histogram), self.k)
        return (
            whole_score(self.branches.picks_score(counts) + bonus(self.k)),
            whole_score(self.branches.weights_score(sums)),
        )

    def binned(self, *cuts: int) -> BinnedChoice:
        """The same release with weighted people known only as how many ``cuts`` they reach."""
        from topsecret.mechanisms.chosen_law import BinnedChoice

        return BinnedChoice(self, tuple(cuts))

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The exact law; of weighted people that of the *set* of named labels alone."""
        return self.binned().probabilities(histogram)

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The law on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[BinnedChoice, ...]:
        """The parameters that ``topsecret verify`` checks: budgets so large that errors show."""
        share, cut = Weights("share", 3, 1), Weights("share", 2, 1)
        return (
            cls(1, 2.0, 0.2, 2, share).binned(3 * UNIT),
            cls(2, 3.0, 0.4, 3, share).binned(2 * UNIT),
            cls(1, 3.0, 0.5, 2, cut).binned(),
            cls(1, 2.0, 0.3, 2, Weights.cap(2)).binned(3 * UNIT),
            cls(1, 2.0, 0.2, 2, Clip(2, 3, 1)).binned(3 * UNITS),
            cls(2, 3.0, 0.4, 3, Clip(3, 2, 2)).binned(2 * UNITS),
        )


@dataclass(frozen=True)
class Branches:
    """Two calibrated mechanisms and the choice between them. All public."""

    tested: TestedTopK
    """The mechanism of picks."""
    weighted: WeightedHistogram | ClippedSums
    """The mechanism of weighted people, or of bounded sums."""
    epsilon: Fraction
    """ε_a: the price of the choice."""
    weights: Weights | Clip
    """What the sums are of."""

    @property
    def parts(self) -> tuple[TestedTopK, WeightedHistogram | ClippedSums, PrivateChoice]:
        """Both mechanisms, and the choice."""
        return self.tested, self.weighted, self.choice

    @cached_property
    def choice(self) -> PrivateChoice:
        """The choice, its spread covering what a person can do to either score."""
        return PrivateChoice(self.epsilon, spread_of(self.moves))

    @cached_property
    def slopes(self) -> tuple[tuple[int, Fraction], ...]:
        """Each length, and how far one person at its place moves the score of its list."""
        lengths = self.tested.schedule.lengths
        return tuple((length.size, _PICKS_SLOPE / length.needed_lead) for length in lengths)

    @property
    def moves(self) -> tuple[Fraction, Fraction]:
        """By how much a new person raises the score of picks, and that of weights, at most."""
        k, weights = self.tested.k, self.weights
        by_count = max(Fraction(size, k) * slope for size, slope in self.slopes)
        if isinstance(weights, Clip):
            together = weights.together(k)
        else:
            together = Fraction(max(min(n, k) * w for n, w in enumerate(weights.table, 1)))
        return by_count, _WEIGHTS_FACTOR * together / (k * self.level)

    @property
    def threshold(self) -> Fraction:
        """T of the weights: in people, or in units of the scores."""
        return self.level / self._per_score

    @property
    def sigma(self) -> Fraction:
        """The noise of the weights, in what the threshold is in."""
        sigma = self.weighted.sigma
        return sigma / self._per_score if isinstance(self.weights, Clip) else sigma

    @cached_property
    def level(self) -> Fraction:
        """T, in units of the sums."""
        assert self.weighted.threshold is not None
        return self.weighted.threshold * (1 if isinstance(self.weights, Clip) else UNIT)

    @property
    def _per_score(self) -> Fraction:
        """How many units of the sums one person, or one unit of a score, is."""
        weights = self.weights
        if isinstance(weights, Clip):
            return Fraction(weights.most, weights.bound)
        return Fraction(UNIT)

    def picks_score(self, counts: Sequence[int]) -> Fraction:
        """About the share of the top k that picks would find, from the ranked counts. Secret."""
        found, unit = Fraction(0), self.tested.sensitivity
        for size, slope in self.slopes:
            if size <= len(counts):
                most = _WHOLE_LIST if size == self.tested.k else 1
                share = _clip(slope * counts[size - 1] / unit - _PICKS_START, most)
                found = max(found, Fraction(size, self.tested.k) * share)
        return found

    def weights_score(self, sums: Sequence[int]) -> Fraction:
        """About the share of the top k that weights would find, from the k largest sums. Secret."""
        level = self.level
        total = sum((_clip(total / level - Fraction(1, 2)) for total in sums), Fraction(0))
        return _WEIGHTS_FACTOR * total / self.tested.k

    @cached_property
    def loss(self) -> Loss:
        """One pick, then the more expensive of the two; the larger failure."""
        by_weights = self.weighted.loss
        options = (
            self.tested.schedule.steps,
            TestedSteps(Fraction(0), (), by_weights.mu_squared),
        )
        fails = max(self.tested.schedule.failure, by_weights.failures)
        return rdp("choice and branch", ChosenSteps(self.epsilon, options)) + failure(fails)


_PICKS_SLOPE = Fraction(85, 90)
_PICKS_START = Fraction(30, 90)
_WHOLE_LIST = 2
_WEIGHTS_FACTOR = Fraction(9, 10)


def bonus(k: int) -> Fraction:
    """What is added to the score of picks: a public number."""
    return Fraction(1, 10) if k <= 20 else Fraction(1, 50)


def _clip(value: Fraction, most: int = 1) -> Fraction:
    return min(max(value, Fraction(0)), Fraction(most))


def _largest(sums: Histogram, k: int) -> list[int]:
    """The k largest sums, fewer where fewer labels were observed."""
    field = sums.field()
    found: list[int] = []
    for group in np.argsort(field.scores)[::-1].tolist():
        if len(found) >= k or field.scores[group] <= 0:
            break
        size = 1 if field.sizes is None else int(field.sizes[group])
        found += [int(field.scores[group])] * min(size, k - len(found))
    return found


@lru_cache(maxsize=256)
def _branches(
    k: int, epsilon: Fraction, delta: Fraction, k_bar: int | None, weights: Weights | Clip
) -> Branches:
    """Both mechanisms at the largest budgets, or nearly, that the choice leaves.

    *Guarantee.* Choice and branch keep to (epsilon, delta), compared without tolerance.
    """
    fails = Fraction(down(delta * CONSTANTS.test_failure))
    left = delta - fails
    whole = Target(epsilon, left, Fraction(0), Fraction(0)).limit
    choice = Fraction(down(2 * ball(CHOICE_SHARE).sqrt() * ball(Fraction(whole))))
    if choice == 0:
        raise InvalidParameter(
            f"epsilon={float(epsilon)} and delta={float(delta)} leave nothing for a choice; "
            "raise them"
        )
    mu = Fraction(Target(epsilon, left, choice, Fraction(0)).limit * (1 - _room(k, epsilon, delta)))
    while True:
        # Each branch may cost what a Gaussian of mu costs; its own (ε, δ) says that to it.
        within = Fraction(gaussian_epsilon(mu**2, left))
        more = 1 if isinstance(weights, Clip) else _ROOM
        noise = Fraction(gaussian_epsilon((more * mu) ** 2, fails))
        if not within or not noise:
            raise InvalidParameter(
                "epsilon is too small beside delta for a choice of methods; raise epsilon, lower "
                "delta, or name a method"
            )
        if isinstance(weights, Clip):
            limits, half = (weights.most, weights.total, weights.items), Fraction(1, 2)
            unit = weights.bound
            second: WeightedHistogram | ClippedSums = ClippedSums(
                k, noise, 2 * fails, *limits, failure=half
            )
        else:
            unit, second = 1, WeightedHistogram(k, noise, fails, weights)
        picks = TestedTopK(k, within, delta, k_bar, sensitivity=unit)
        found = Branches(picks, second, choice, weights)
        if found.loss.keeps_to(epsilon, delta):
            return found
        spent = min(max(found.loss.epsilon(delta) / float(epsilon), 1.0), 2.0)
        mu *= Fraction(_SHRINK / spent)


_LEAST_ROOM = ((20, -0.0017), (7, -0.0006), (4, 0.001), (3, 0.0017), (2, 0.003), (1, 0.007))
"""From which k on, how much room at least."""


def _room(k: int, epsilon: Fraction, delta: Fraction) -> float:
    """By how much the branches stay below the Gaussian that the choice leaves.

    Beside a choice picks lie a little above a Gaussian, the more the larger epsilon and the smaller
    delta and k are. Fitted so that the first try spends about 99.9% of epsilon: more might be too
    much, and would have to be tried again.
    """
    least = next(room for most, room in _LEAST_ROOM if k >= most)
    large = min(max(math.log(epsilon), -2.5), 1.5)
    return min(max(least + 0.0003 * large - 0.00028 * math.log(delta), 0.0), 0.1)
