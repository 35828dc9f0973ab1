"""What every mechanism offers: one protocol, no base class.

The constructor takes public parameters and checks them; the methods take the secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from flint import arb

from topsecret.accounting import Loss
from topsecret.counts.histogram import Histogram
from topsecret.mechanisms.selection import Outcome, Selection
from topsecret.noise.bits import BitSource


@runtime_checkable
class Mechanism(Protocol):
    """A private selection: a pure function of a histogram and random bits.

    Parameters: ``histogram``: the secret counts; ``bits``: where random bits come from; the
    operating system's cryptographic source unless given; ``k``: how many items are asked for;
    ``k_bar``: how many leading items it may look at; ``max_k_bar``: the most leading items that it
    may look at; ``epsilon``: of the whole release; ``delta``: of the whole release;
    ``epsilon_per_pick``: the epsilon of each pick; ``adjacency``: which datasets are neighbours:
    "add-remove" or "replace"; ``sensitivity``: the most that one person moves a score by;
    ``max_items``: how many items of one person are counted; None, where it may be left out, for no
    cap; ``strict``: whether items level with the next count are left out; ``smallest``: whether the
    items with the least are named; ``scale``: the scale of the noise on each score; ``fill``:
    whether a set is completed to k items at random; ``ranks``: the public ranks at which the choice
    of a size looks at the counts; ``naming``: what names the items of each period; ``rho``: what it
    costs, as zCDP; ``failure``: the probability with which its test may pass wrongly;
    ``regulariser``: a public bonus for each length; ``selection``: the noise of the choice of a
    length; ``test``: the noise of the test; ``quantile``: how the test's margin is found: "exact",
    or the larger one of the "paper"; ``closeness``: how many people of gap one place away from k is
    worth; ``epsilon_refine``: the epsilon of the picks inside the stable set; ``lengths``: whether
    the length is chosen privately or fixed at k; ``behind``: mu² of Gaussian steps that follow and
    that the budget covers; ``weights``: how people with many items count; ``domain``: whether the
    list of all items is public; ``at_least``: name labels that surely have so many people; None for
    any; ``mechanism``: the mechanism for counts of people; ``bounds``: the bounds on one person, of
    which one is chosen; ``rank``: the rank at which what is cut off is looked at; ``target``: how
    many people may be cut off there; ``handicap``: what each larger bound loses of its score;
    ``counts``: the release that is clamped; ``items``: the items that are counted; ``window``: the
    least and the largest count that is kept apart; ``persons``: the secret number of all people;
    None if it is not asked for; ``released``: how many counts are released; ``touched``: how many
    of them one person can change; ``confidence``: the probability that the interval holds;
    ``ranked``: the groups of equal counts, best first; ``size``: how many items the domain has;
    ``m``: the size of the set.
    """

    def __hash__(self) -> int:
        """Public parameters tell one from another."""
        ...

    @property
    def ordered(self) -> bool:
        """Whether the order of the released items is part of the answer."""
        ...

    @property
    def loss(self) -> Loss:
        """What one answer costs, from the public parameters alone."""
        ...

    def select(self, histogram: Histogram, bits: BitSource | None = None) -> Selection:
        """Draw one answer; ``bits`` defaults to the operating system's cryptographic source."""
        ...

    def probabilities(self, histogram: Histogram) -> Mapping[Outcome, arb]:
        """The exact law of the answer on a small histogram, as balls."""
        ...

    def distribution(self, histogram: Histogram) -> dict[Outcome, float]:
        """The exact law of the answer on a small histogram, each number the nearest float."""
        ...
