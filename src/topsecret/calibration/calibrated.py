"""A mechanism and its counts, calibrated together: what they cost and what they need.

>>> from topsecret.calibration import Question
>>> calibrated("gumbel", Question.of(k=5, epsilon=1, domain_size=50), counts_share=0.25).rows
101
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from topsecret.accounting import Loss
from topsecret.calibration import Prepared, Question, prepare, prepare_at
from topsecret.calibration.counts import PreparedCounts, with_counts
from topsecret.counts.histogram import Histogram
from topsecret.counts.weights import Weights
from topsecret.exact.rounding import ball, up
from topsecret.results.release import Public


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a mechanism released about one histogram: private, free to be shown."""

    items: tuple[Hashable, ...]
    complete: bool
    ordered: bool
    chosen: int | None
    ending: str
    """How the list ended, going on after "The list"."""
    counts: tuple[int, ...] | None
    values: tuple[int, ...] | None
    """Noisy weighted persons, in 1/1024, where the selection releases them."""
    at_least: tuple[int, ...] | None
    """How many persons each item surely has, where the selection tells."""
    symbols: int
    """How many symbols were released, for budgets that pay by the symbol."""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What answers one list: a selection and, where they were asked for, noisy counts.

    *Guarantee.* ``draw`` costs ``loss``, which is (``epsilon``, ``delta``)-DP by the bound named.
    """

    question: Question
    selection: Prepared
    counts: PreparedCounts | None
    parameters: Mapping[str, Public]
    loss: Loss
    epsilon: float
    """What the loss proves at ``delta``, rounded up."""
    delta: float
    bound: str

    @property
    def rows(self) -> int:
        """How many leading counts are needed from a source."""
        return self.selection.rows

    @property
    def weights(self) -> Weights | None:
        """The weights with which persons are to be counted; None for plain counts."""
        return getattr(self.selection.mechanism, "weights", None)

    def draw(self, histogram: Histogram) -> Drawn:
        """The answer about secret counts, drawn once."""
        selection, asked_for = self.selection.mechanism.select(histogram), self.question.k
        items = selection.items
        return Drawn(
            items,
            selection.complete and (isinstance(asked_for, str) or len(items) == asked_for),
            selection.ordered,
            selection.chosen,
            self.selection.told(selection),
            None if self.counts is None else self.counts.release(histogram, items),
            selection.values,
            selection.at_least,
            len(items) + (not selection.complete) + (selection.chosen is not None),
        )


@lru_cache(maxsize=256)
def calibrated(
    mechanism: str,
    question: Question,
    counts_share: float | None = None,
    at: tuple[float, float] | None = None,
) -> Calibrated:
    """The mechanism with its counts for the question's (ε, δ), or ``at`` a metered price and δ."""
    counts: PreparedCounts | None = None
    if at is not None:
        selection = prepare_at(mechanism, question, *at)
    elif counts_share is None:
        selection = prepare(mechanism, question)
    else:
        selection, counts = with_counts(mechanism, question, counts_share)
    loss, parameters = selection.mechanism.loss, dict(selection.parameters)
    if counts is not None:
        loss = loss + counts.loss
        sigma = up(ball(counts.variance).sqrt())
        parameters |= {"counts_share": counts_share, "counts_sigma": sigma}
    delta = question.delta
    return Calibrated(
        question,
        selection,
        counts,
        parameters,
        loss,
        loss.epsilon(delta),
        delta,
        loss.bound_used(delta),
    )
