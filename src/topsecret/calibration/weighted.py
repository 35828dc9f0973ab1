"""Weighted people: for people who have few items, and for everything that can be named safely."""

from __future__ import annotations

from topsecret.calibration.prepared import Prepared, list_ended, list_weighted
from topsecret.calibration.question import Question, Scores
from topsecret.calibration.words import about, half_and_likely, weighted_rule
from topsecret.counts.weights import MOST_ITEMS, Weights
from topsecret.exact.rounding import up
from topsecret.mechanisms import ClippedSums, WeightedHistogram


def weights_of(question: Question) -> Weights:
    """The public table: shares, or whole people up to the cap."""
    if question.weighting == "cap":
        assert question.max_items is not None
        return Weights.cap(question.max_items)
    return Weights.share(question.max_items)


def weighted(question: Question) -> Prepared:
    """`WeightedHistogram`, on a public domain without its threshold."""
    if question.scores is not None:
        return _clipped(question, question.scores)
    weights = weights_of(question)
    mechanism = WeightedHistogram(
        None if question.k == "all" else question.length,
        question.epsilon,
        question.delta,
        weights,
        "unknown" if question.domain_size is None else "public",
        at_least=question.at_least,
    )
    sigma, threshold = up(mechanism.sigma), mechanism.threshold
    return Prepared(
        "weighted",
        question,
        mechanism,
        {
            "weighting": weights.weighting,
            "full_items": weights.full_items,
            "most_items": weights.most_items,
            "sigma": sigma,
            **({} if threshold is None else {"threshold": up(threshold)}),
        },
        sigma,
        weighted_rule(weights, mechanism.sigma, threshold, question.at_least),
        "all items that can be named safely, in order"
        if question.k == "all"
        else f"up to {question.length} items in order",
        "stands for items with too few weighted people",
        list_weighted,
        0 if threshold is not None or question.k == "all" else question.length + 1,
    )


def _clipped(question: Question, scores: Scores) -> Prepared:
    """`ClippedSums`: rows or sums, all that one person adds bounded."""
    items = MOST_ITEMS if question.max_items is None else min(question.max_items, MOST_ITEMS)
    mechanism = ClippedSums(
        question.length,
        question.epsilon,
        question.delta,
        scores.sensitivity,
        scores.total,
        items,
        "unknown" if question.domain_size is None else "public",
    )
    sigma, threshold = up(mechanism.sigma / scores.per_unit), mechanism.threshold
    ranked = (
        f"is among the largest; the noise has a standard deviation of {about(sigma)} {scores.noun}"
    )
    if threshold is not None:
        ranked = f"exceeds {half_and_likely(scores, mechanism.sigma, threshold)}"
    return Prepared(
        "weighted",
        question,
        mechanism,
        {
            "sensitivity": scores.sensitivity,
            "total": scores.total,
            "most_items": items,
            "sigma": sigma,
            **({} if threshold is None else {"threshold": up(threshold / scores.per_unit)}),
        },
        up(mechanism.sigma / scores.sensitivity),
        f"what people add to the item, with noise added, {ranked}",
        f"up to {question.length} items in order",
        "stands for items with too little to be named safely",
        list_ended,
        0 if threshold is not None else question.length + 1,
    )
