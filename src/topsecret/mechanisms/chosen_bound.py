"""`ChosenBound`: a bound on what one person adds to an item, chosen privately, and then a list.

>>> from topsecret import Histogram
>>> from topsecret.mechanisms import TestedTopK
>>> picks = TestedTopK(k=2, epsilon=1.0, delta=1e-6)
>>> release = ChosenBound.of(picks, bounds=(1, 2, 5), epsilon=0.1)
>>> rows = {person: {"tea": 2, "jam": 1 + person % 2} for person in range(2000)}
>>> release.select(Histogram.of_amounts(rows, (1, 2, 5))).items
('tea', 'jam')

Rows and sums need a bound on one person. A small one cuts off what people add, a large one needs
noise for amounts that nobody adds. Where nobody knows a good bound, a small part of the budget asks
the data for one out of a public list c_0 < c_1 < … and publishes it.

**Scores.** For a bound c_i and the next one, c_i + w, let D_j be what all people add to item j
beyond c_i and up to c_i + w, and Q_i = (m-th largest D)/w: about how many people a bound of c_i
cuts off at an item of rank m. Q falls with i.

With a public target K, a few times the noise in people, the score of c_i is −max(0, Q_i − K, K −
Q_{i−1}), less a public handicap H for each smaller bound there is; the first bound has no last
term, the last one none with Q_i. It is highest for the smallest bound that cuts off at most K
people. Then the m-th score at c_i is at least c_i·Q_{i−1}, more than K·c_i: what is ranked stands
out from noise in units of c_i.

**Statement.** The bound and the list are what one ε-bounded-range step, followed by the list's own
steps, is: ``loss`` is exactly that. All options have the same loss.

**Preconditions.** Every person adds whole amounts of at least 0, and the scores at each bound are
sums of amounts cut to it. Option i is proven for scores that one person moves by c_i.

**Why.** One person more adds between 0 and w to each D_j, and so to the m-th largest of them
(an order statistic moves no further than what it is of). So every Q_i rises by a number of [0, 1],
and a score, −max of 0, something that rises with Q_i and something that falls with Q_{i−1}, moves
within [−1, 1]. The difference of two scores moves by at most 2, which is the ``spread`` of
`PrivateChoice`. The bound is published, so that what follows may depend on it; the list at c_i
costs the same for every i, and adaptive composition gives the sum.

**Why each line matters.**
- *Both directions*: a new person lowers the score of too small a bound and raises that of too
  large a one. Charged as if all scores rose, the choice costs twice its price.
- *D is divided by w*: undivided, one person moves it by w.
- *The bounds are public.* Taken from the data, the largest amount of one person would show.
- *The list is drawn in units of the bound that was chosen*, and the choice is charged beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from flint import arb, ctx

from topsecret.accounting import Loss, failure, picks, rdp
from topsecret.accounting.chosen import ChosenSteps
from topsecret.counts.histogram import Histogram
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, exact, precision
from topsecret.mechanisms import parameters
from topsecret.mechanisms.gumbel import GumbelTopK
from topsecret.mechanisms.limited_domain import LimitedDomain
from topsecret.mechanisms.mechanism import Mechanism
from topsecret.mechanisms.plackett_luce import as_floats
from topsecret.mechanisms.private_choice import STEPS, PrivateChoice
from topsecret.mechanisms.pruned_top_k import PrunedTopK
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.mechanisms.tested_top_k import TestedTopK
from topsecret.noise.bits import BitSource, SystemBits

if TYPE_CHECKING:
    from topsecret.mechanisms.chosen_bound_law import BoundOfRows

Picks = TestedTopK | LimitedDomain | PrunedTopK | GumbelTopK
"""What can be drawn in units of a bound."""


@dataclass(frozen=True)
class ChosenBound:
    """A bound out of ``bounds``, and the list of the option that belongs to it.

    Guarantee: ``loss`` under add-remove. Make one with :meth:`of`.
    """

    options: tuple[Mechanism, ...]
    """The mechanism at each bound: its scores move by at most that much."""
    bounds: tuple[int, ...]
    """Public, rising, in units of the scores."""
    epsilon: Number
    """The price of the choice."""
    rank: int = 1
    """At which rank what is cut off is looked at."""
    target: int = 1
    """How many people may be cut off there."""
    handicap: int = 0
    """By how many people a bound must be better than the one before it."""

    def __post_init__(self) -> None:
        parameters.positive(self.epsilon, "epsilon")
        parameters.whole(self.rank, "rank")
        parameters.whole(self.target, "target")
        if self.handicap < 0:
            raise InvalidParameter(f"handicap={self.handicap} must not be negative")
        bounds = _rising(self.bounds)
        if len(self.options) != len(bounds):
            raise InvalidParameter("every bound needs an option, and every option a bound")
        for option, bound in zip(self.options, bounds, strict=True):
            if exact(getattr(option, "sensitivity", 1)) < bound:
                raise InvalidParameter(
                    f"an option at the bound {bound} must be built with sensitivity={bound}"
                )
        if any(option.loss != self.options[0].loss for option in self.options):
            raise InvalidParameter("all options must cost the same; build them for one budget")

    @classmethod
    def of(
        cls,
        mechanism: Picks,
        bounds: tuple[int, ...],
        epsilon: Number,
        rank: int = 1,
        target: int = 1,
        handicap: int = 0,
    ) -> ChosenBound:
        """The mechanism, built for counts of people, in units of each bound.

        Parameters: ``epsilon``: the price of the choice; the list costs what ``mechanism`` does.
        """
        options = tuple(in_units_of(mechanism, bound) for bound in _rising(bounds))
        return cls(options, bounds, epsilon, rank, target, handicap)

    @property
    def ordered(self) -> bool:
        """As the list is."""
        return self.options[0].ordered

    @property
    def choice(self) -> PrivateChoice:
        """The pick of the bound: scores move by at most 1 up and 1 down."""
        return PrivateChoice(self.epsilon, 2 * STEPS)

    @cached_property
    def loss(self) -> Loss:
        """The choice, and the list behind it: the same for every answer."""
        behind = self.options[0]
        if isinstance(behind, TestedTopK):
            steps = ChosenSteps(exact(self.epsilon), (behind.schedule.steps,))
            return rdp("bound and picks", steps) + failure(behind.schedule.failure)
        return picks(1, self.epsilon).then(behind.loss)

    def scores(self, histogram: Histogram) -> list[int]:
        """The score of each bound, whole. Secret."""
        beyond = histogram.at_bounds(self.bounds).beyond(self.rank)
        target = self.target * STEPS
        widths = [high - low for low, high in zip(self.bounds[:-1], self.bounds[1:], strict=True)]
        cut = [STEPS * added // width for added, width in zip(beyond, widths, strict=True)]
        too_small = [max(0, persons - target) for persons in cut] + [0]
        too_large = [0] + [max(0, target - persons) for persons in cut]
        return [
            -max(small, large) - place * self.handicap * STEPS
            for place, (small, large) in enumerate(zip(too_small, too_large, strict=True))
        ]

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw the bound, and then the list in its units."""
        bits = SystemBits() if bits is None else bits
        place = self.choice.draw(self.scores(histogram), bits)
        scores = Histogram(histogram.at_bounds(self.bounds).at(place))
        drawn = self.options[place].select(scores, bits)
        return replace(drawn, branch=str(self.bounds[place]))

    def probabilities(self, histogram: Histogram) -> dict[Outcome, arb]:
        """The exact law: the bound first, then the list."""
        law: dict[Outcome, arb] = {}
        with precision(max(128, ctx.prec) + 64):
            chances = self.choice.law(self.scores(histogram))
            for place, chance in enumerate(chances):
                scores = Histogram(histogram.at_bounds(self.bounds).at(place))
                first = str(self.bounds[place])
                for outcome, share in self.options[place].probabilities(scores).items():
                    law[(first, *outcome)] = chance * share
        return law

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The law on a small histogram."""
        return as_floats(self.probabilities(histogram))

    @classmethod
    def verification_cases(cls) -> tuple[BoundOfRows, ...]:
        """The parameters that ``topsecret verify`` checks: prices so large that errors show."""
        from topsecret.mechanisms.chosen_bound_law import BoundOfRows

        tested = TestedTopK(k=1, epsilon=1.0, delta=0.1, k_bar=2)
        limited = LimitedDomain(1, 2, 0.5, 0.05)
        return (
            BoundOfRows(cls.of(tested, (1, 3), 1.0, 1, 2)),
            BoundOfRows(cls.of(limited, (1, 2, 4), 2.0, 1, 1, 1)),
            BoundOfRows(cls.of(limited, (1, 4), 1.5, 2, 1)),
            BoundOfRows(cls.of(GumbelTopK(1, 2.0), (1, 2, 4), 1.0, 1, 2)),
            BoundOfRows(cls.of(PrunedTopK(2, 0.4), (2, 3), 2.0, 1, 1)),
        )


def _rising(bounds: tuple[int, ...]) -> tuple[int, ...]:
    if len(bounds) < 2 or list(bounds) != sorted(set(bounds)) or bounds[0] < 1:
        raise InvalidParameter(
            f"bounds={list(bounds)} must be two whole numbers or more, rising from 1 or more"
        )
    return bounds


def in_units_of(mechanism: Picks, bound: int) -> Mechanism:
    """The mechanism for counts of people, made for scores that one person moves by ``bound``."""
    if mechanism.sensitivity != 1:
        raise InvalidParameter("the mechanism must be built for counts of people: sensitivity=1")
    if isinstance(mechanism, GumbelTopK):
        return replace(mechanism, scale=bound * exact(mechanism.scale), sensitivity=bound)
    changed: Any = replace(mechanism, sensitivity=bound)
    return changed  # type: ignore[no-any-return]  # replace keeps the type
