"""From votes to labels: the rules that answer one query, and what one answer costs.

n teachers, trained on disjoint parts of the private data, each vote for any subset of c public
labels. One changed training record changes one teacher, hence one ballot: under ``replace``, the
honest relation, each of the c counts moves by at most 1, in either direction. Zhu & Wang 2022 add
or remove a teacher instead; ``adjacency="add-remove"`` is kept to reproduce them.

- `StableLabels`: the leading labels down to the largest gap, if that gap is wide (``StableTopK``,
  proof in ``mechanisms/stability.py``). Gap sensitivity s = 2 under replace, 1 under add-remove.
  One answer costs picks(1, 2s/τ) + gaussian((s/σ)²) + failure(δ_t), with no dependence on c.
- `NoisyMajority`: every label whose count + N(0, σ²) exceeds half the teachers. The c noisy counts
  are a Gaussian mechanism of L2 sensitivity √c: gaussian(c/σ²). With ``max_votes`` = τ (PATE-τ)
  each ballot is cut to τ labels first: at most τ counts move under add-remove, at most 2τ under
  replace (τ votes go, τ come), so the L2 sensitivity is √min(c, 2τ).
- *Only the bits are drawn.* count + N(0, σ²) > n/2 has probability Φ((count − n/2)/σ), so each
  label is a coin of known chance (``noise/coins.py``): the noise itself is never drawn. *Half the
  teachers* is half of the declared, public number: a threshold that followed a number of teachers
  which is itself secret would move all c comparisons by ½ under add-remove, and √τ would be too
  small where c > 4τ (a test shows it).

The label set is all that is released; which of the c − 1 gaps was chosen stays hidden unless it
passes, and how sure an answer was is not told.

>>> from topsecret.noise.bits import SystemBits
>>> rule = StableLabels(labels=4, teachers=100, selection_scale=5, test_scale=5, failure=1e-9)
>>> chosen, answered = rule.decide(np.array([[98, 97, 3, 1], [50, 50, 50, 50]]), SystemBits())
>>> chosen.tolist()[0], answered.tolist()
([True, True, False, False], [True, False])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from flint import arb
from numpy.typing import NDArray

from topsecret.accounting import Loss, gaussian
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, ball, exact, precision
from topsecret.mechanisms import parameters
from topsecret.mechanisms.largest_gap import LargestGap
from topsecret.mechanisms.propose_test_release import GaussianTest, Quantile
from topsecret.noise.bits import BitSource
from topsecret.noise.coins import Coins
from topsecret.noise.distributions import GAUSSIAN, GUMBEL
from topsecret.noise.many import winners
from topsecret.pate.ballots import Counts

__all__ = ["Decision", "NoisyMajority", "StableLabels", "VoteRule"]

Decision = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""For each query its label set as truth values, and whether it was answered at all."""


class VoteRule(Protocol):
    """What the aggregator needs: public sizes, the cost of one answer, and the draw."""

    @property
    def labels(self) -> int:
        """How many labels there are."""
        ...

    @property
    def teachers(self) -> int:
        """How many teachers vote."""
        ...

    @property
    def max_votes(self) -> int | None:
        """To how many labels a ballot is cut; None for no cut."""
        ...

    @property
    def adjacency(self) -> parameters.Adjacency:
        """The relation under which ``loss`` holds."""
        ...

    @property
    def loss(self) -> Loss:
        """What one answer costs, whatever the votes."""
        ...

    def decide(self, counts: Counts, bits: BitSource) -> Decision:
        """Answer queries × labels of counts, independently row by row."""
        ...


@dataclass(frozen=True)
class StableLabels:
    """The leading labels that the votes set apart from the rest, or nothing.

    ``selection_scale`` is the scale of the noise on the gaps (the standard deviation for
    ``selection="gaussian"``), ``test_scale`` the standard deviation of the test's, ``failure`` the
    probability with which the test may pass wrongly. ``regulariser`` holds r(1), …, r(k̄), public.

    Guarantee: one answer has the ``loss`` stated, under ``adjacency``.
    """

    labels: int
    """How many labels there are."""
    teachers: int
    """How many teachers vote."""
    selection_scale: Number
    """The scale of the noise on the gaps."""
    test_scale: Number
    """The standard deviation of the test's noise."""
    failure: Number
    """The probability with which the test may pass wrongly."""
    selection: Literal["gumbel", "gaussian"] = "gumbel"
    """Which noise is on the gaps."""
    adjacency: parameters.Adjacency = "replace"
    """Which votes are neighbours."""
    k_bar: int | None = None
    """At most how many labels one answer has; all but one by default."""
    regulariser: Sequence[Number] | None = None
    """A public bonus for each number of labels."""
    quantile: Quantile = "exact"
    """How the test's margin is found: "exact", or the larger one of the "paper"."""

    def __post_init__(self) -> None:
        parameters.whole(self.labels, "labels", at_least=2)
        parameters.whole(self.teachers, "teachers")
        parameters.positive(self.selection_scale, "selection_scale")
        parameters.positive(self.test_scale, "test_scale")
        parameters.probability(self.failure, "failure")
        parameters.one_of(self.selection, "selection", ("gumbel", "gaussian"))
        parameters.one_of(self.quantile, "quantile", ("exact", "paper"))
        parameters.adjacency(self.adjacency)
        if self.k_bar is not None:
            parameters.whole(self.k_bar, "k_bar")
            parameters.at_most(self.k_bar, "k_bar", self.labels - 1, "labels - 1")
        if self.regulariser is not None and len(self.regulariser) != self._places:
            raise InvalidParameter(
                f"regulariser has {len(self.regulariser)} entries; it must have {self._places}, "
                "one for each length that an answer may have"
            )

    @property
    def max_votes(self) -> None:
        """Ballots are never cut: the cost does not depend on how many labels a teacher names."""

    @property
    def _places(self) -> int:
        return self.labels - 1 if self.k_bar is None else self.k_bar

    @property
    def _sensitivity(self) -> int:
        return parameters.directions(self.adjacency)  # of a gap: 1 under add-remove, else 2

    @cached_property
    def chooser(self) -> LargestGap:
        """The first step: after which label the counts drop most."""
        bonus = None
        if self.regulariser is not None:
            bonus = tuple(exact(value, "regulariser") for value in self.regulariser)
        noise = GUMBEL if self.selection == "gumbel" else GAUSSIAN
        scale = exact(self.selection_scale)
        return LargestGap(self._places, scale, noise, bonus, self._sensitivity)

    @cached_property
    def tester(self) -> GaussianTest:
        """The second step: whether that drop is wide enough."""
        scale, failure = exact(self.test_scale), exact(self.failure)
        return GaussianTest(scale, failure, self._sensitivity, self.quantile)

    @cached_property
    def loss(self) -> Loss:
        """The choice and the test."""
        return self.chooser.loss + self.tester.loss

    @cached_property
    def _coins(self) -> Coins:
        return Coins(self.tester.chance)

    def decide(self, counts: Counts, bits: BitSource) -> Decision:
        """Draw the label sets; equal counts rank in the order of the labels, which is public."""
        order = np.argsort(-counts, axis=1, kind="stable")
        ranked = np.take_along_axis(counts, order, axis=1)
        gaps = (ranked[:, :-1] - ranked[:, 1:])[:, : self._places]
        places = self._choose(gaps, bits)
        chosen_gaps = np.take_along_axis(gaps, places[:, None], axis=1)[:, 0]
        answered = self._coins.flip(chosen_gaps, bits)
        leading = np.arange(self.labels)[None, :] <= places[:, None]
        chosen = np.zeros(counts.shape, dtype=np.bool_)
        np.put_along_axis(chosen, order, leading & answered[:, None], axis=1)
        return chosen, answered

    def _choose(self, gaps: Counts, bits: BitSource) -> NDArray[np.int64]:
        chooser = self.chooser
        if chooser.bonus is None:
            return winners(gaps, chooser.noise, chooser.scale, bits)
        unit = math.lcm(*(extra.denominator for extra in chooser.bonus))
        extras = [int(extra * unit) for extra in chooser.bonus]
        if self.teachers * unit + max(map(abs, extras)) >= 2**62:  # no int64 holds the scores
            rows = [chooser.choose(row.tolist(), bits) - 1 for row in gaps]
            return np.array(rows, dtype=np.int64)
        scores = gaps * unit + np.array(extras, dtype=np.int64)
        return winners(scores, chooser.noise, chooser.scale * unit, bits)


@dataclass(frozen=True)
class NoisyMajority:
    """All labels for which a noisy majority of the teachers votes: PATE, and PATE-τ.

    Parameters: ``labels``: how many there are; ``teachers``: how many vote; ``sigma``: the standard
    deviation of the noise, in votes; ``max_votes``: cuts every ballot to so many labels, which the
    aggregator enforces; ``adjacency``: whether a teacher is replaced, or added and removed;
    ``counts``: votes, queries × labels; ``bits``: where randomness comes from.

    Guarantee: one answer has the ``loss`` stated, under ``adjacency``.
    """

    labels: int
    teachers: int
    sigma: Number
    max_votes: int | None = None
    adjacency: parameters.Adjacency = "replace"

    def __post_init__(self) -> None:
        parameters.whole(self.labels, "labels")
        parameters.whole(self.teachers, "teachers")
        parameters.positive(self.sigma, "sigma")
        parameters.cap(self.max_votes)
        parameters.adjacency(self.adjacency)

    @property
    def moved(self) -> int:
        """How many counts one teacher can move, each by 1."""
        if self.max_votes is None:
            return self.labels
        return min(self.labels, parameters.directions(self.adjacency) * self.max_votes)

    @cached_property
    def loss(self) -> Loss:
        """The Gaussian mechanism on all counts."""
        return gaussian(self.moved / exact(self.sigma) ** 2)

    @cached_property
    def _coins(self) -> Coins:
        return Coins(self.chance)

    def chance(self, count: int) -> MajorityChance:
        """The probability that a label with this count is in the answer."""
        lead = (count - Fraction(self.teachers, 2)) / exact(self.sigma)
        return MajorityChance(lead)

    def decide(self, counts: Counts, bits: BitSource) -> Decision:
        """Draw the label sets; every query is answered, perhaps by no label."""
        return self._coins.flip(counts, bits), np.ones(len(counts), dtype=np.bool_)


@dataclass(frozen=True, slots=True, repr=False)
class MajorityChance:
    """Φ(``lead``) as a computable real. Secret."""

    lead: Fraction

    def ball(self, bits: int) -> arb:
        """A ball around Φ(lead)."""
        with precision(bits + 32):
            return GAUSSIAN.tail(-ball(self.lead))
