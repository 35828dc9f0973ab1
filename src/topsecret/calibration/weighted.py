"""Weighted persons: for people who hold few things, and for everything that can be named safely."""

from __future__ import annotations

from topsecret.calibration.prepared import Prepared, list_weighted
from topsecret.calibration.question import Question
from topsecret.calibration.words import about
from topsecret.counts.weights import Weights
from topsecret.exact.rounding import up
from topsecret.mechanisms import WeightedHistogram


def weights_of(question: Question) -> Weights:
    """The public table: shares, or whole persons up to the cap."""
    if question.weighting == "cap":
        assert question.max_items is not None
        return Weights.cap(question.max_items)
    return Weights.share(question.max_items)


def weighted(question: Question) -> Prepared:
    """`WeightedHistogram`, on a public domain without its threshold."""
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
    how = f"at most {weights.most_items} items of a person count"
    if weights.weighting == "share":
        how = (
            f"persons with up to {weights.full_items} items count in full, those with n items "
            f"about √({weights.full_items}/n) for each, and {how}"
        )
    ranked = "are among the largest" if threshold is None else f"exceed {about(up(threshold))}"
    rule = f"its weighted persons and noise of {about(sigma)} {ranked}; {how}"
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
        rule,
        "all items that can be named safely, in order"
        if question.k == "all"
        else f"up to {question.length} items in order",
        "stands for items with too few weighted persons",
        list_weighted,
        0 if threshold is not None or question.k == "all" else question.length + 1,
    )
