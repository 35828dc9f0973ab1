"""A mechanism and its counts, calibrated together: what they cost and what they need.

>>> from topsecret.calibration import Question
>>> calibrated("gumbel", Question.of(k=5, epsilon=1, domain_size=50), counts_share=0.25).rows
101
"""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType

from topsecret.calibration import Question, prepare, prepare_at
from topsecret.calibration.counts import PreparedCounts, with_counts
from topsecret.calibration.prepared import Calibrated
from topsecret.exact.rounding import ball, up


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
        MappingProxyType(parameters),  # shared by all releases of the question
        loss,
        loss.epsilon(delta),
        delta,
        loss.bound_used(delta),
        selection.rows,
    )
