"""A mechanism and its counts, calibrated together: what they cost and what they need.

>>> from topsecret.calibration import Question
>>> calibrated("gumbel", Question.of(k=5, epsilon=1, domain_size=50), CountsBudget()).rows
101
"""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType

from topsecret.calibration import Question, prepare, prepare_at
from topsecret.calibration.counts import (
    CountsBudget,
    PreparedCounts,
    default_share,
    with_counts,
)
from topsecret.calibration.prepared import Calibrated
from topsecret.errors import InvalidParameter
from topsecret.mechanisms.mechanism import Mechanism


@lru_cache(maxsize=256)
def calibrated(
    mechanism: str | Mechanism,
    question: Question,
    counts_for: CountsBudget | None = None,
    at: tuple[float, float] | tuple[float, float, float] | None = None,
) -> Calibrated:
    """The mechanism with its counts for the question's (ε, δ), or ``at`` a price and δ.

    A third number is the price of a private bound.
    """
    counts: PreparedCounts | None = None
    if at is not None and isinstance(mechanism, str):
        selection = prepare_at(mechanism, question, *at)
    elif counts_for is None:
        selection = prepare(mechanism, question)
    elif mechanism == "weighted":
        raise InvalidParameter(
            "counts=True is not offered beside weighted people, which tell how many each item "
            "has at least; leave it out, or pass mechanism='tested'"
        )
    elif isinstance(mechanism, str):
        selection, counts = with_counts(mechanism, question, counts_for)
    else:
        raise InvalidParameter("counts=True needs a mechanism by its name; leave one of them out")
    loss, parameters = selection.mechanism.loss, dict(selection.parameters)
    if counts is not None and counts_for is not None:
        loss = counts.total
        name = "counts_share" if counts_for.of_epsilon else "counts_part"
        part = default_share(question) if counts_for.part is None else counts_for.part
        parameters |= {name: part, "counts_mu": float(counts.mu)}
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
