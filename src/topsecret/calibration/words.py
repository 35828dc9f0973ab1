"""Words that several entries of the catalogue share."""

from __future__ import annotations

import math
from fractions import Fraction

from topsecret.calibration.question import Question, Scores
from topsecret.counts.clip import Clip
from topsecret.counts.weights import Weights
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import exact, rounded_up, up
from topsecret.results.export import Public


def about(value: float) -> str:
    """A number of people with four digits, rounded up."""
    return rounded_up(value, 4)


def amount(question: Question, persons: float) -> str:
    """As much as so many people can add, rounded up, in what the items are ranked by."""
    return f"{scaled(question, persons)} {noun(question)}"


def scaled(question: Question, persons: float) -> str:
    """The number of :func:`amount` alone."""
    per_unit = 1 if question.scores is None else question.scores.per_unit
    return about(persons * question.sensitivity / per_unit)


def lead(question: Question, persons: float) -> str:
    """How far an item is ahead, rounded up: whole people, or what the items are ranked by."""
    if question.scores is None:
        return f"{math.ceil(persons * question.sensitivity):,}"
    return scaled(question, persons)


def noun(question: Question) -> str:
    """What the items are ranked by: people, rows, or the amounts of a column."""
    return "people" if question.scores is None else question.scores.noun


def weighted_rule(
    weights: Weights, sigma: Fraction, threshold: Fraction | None, at_least: int | None = None
) -> str:
    """By which rule an item is named by its weighted people."""
    weighted = "its weighted people, with noise added,"
    if weights.full_items == weights.most_items:
        how = f"At most {_items(weights.most_items)} of a person count, each in full"
    else:
        full = weights.full_items
        how = (
            f"A person with up to {_items(full)} counts in full for each; one with more, say n, "
            f"counts less for each, about √({full}/n), and at most {weights.most_items} items of a "
            "person count"
        )
    noise = f"the noise has a standard deviation of {about(up(sigma))}"
    if threshold is None and at_least is not None:
        return (
            f"{weighted} show that it has at least {at_least:,} people, as 'At least' says; "
            f"{noise}. {how}"
        )
    if threshold is None:
        rule = f"{weighted} are among the most; {noise}"
    else:
        rule = (
            f"{weighted} exceed a threshold of {_people(threshold)}. With that many an item passes "
            f"half of the time, and 98% of the time with {_people(threshold + LIKELY * sigma)}"
        )
    if at_least is not None:
        rule += (
            f". Of those that pass, the items are listed that are shown to have at least "
            f"{at_least:,} people, as 'At least' says"
        )
    return f"{rule}. {how}"


def half_and_likely(scores: Scores, sigma: Fraction, threshold: Fraction) -> str:
    """A threshold of rows or sums, and how often an item passes it."""
    least, likely = (
        about(up(number / scores.per_unit)) for number in (threshold, threshold + LIKELY * sigma)
    )
    return (
        f"a threshold of {least} {scores.noun}. With that much an item passes half of the time, "
        f"and 98% of the time with {likely}"
    )


LIKELY = exact(2.054)
"""Standard deviations: Gaussian noise is above their negative 98% of the time."""


def _people(number: Fraction) -> str:
    return f"{math.ceil(number):,}"


def _items(number: int) -> str:
    return f"{number} item" if number == 1 else f"{number} items"


def scaled_down(question: Question, clip: Clip) -> str:
    """How all that one person adds is bounded together, in what the items are ranked by."""
    scores = question.scores
    assert scores is not None
    length = up(Fraction(clip.total * clip.bound, clip.most * scores.per_unit))
    return (
        "where the root of the sum of squares of all that a person adds exceeds "
        f"{about(length)} {scores.noun} it is scaled down together, and rounded down, and at most "
        f"{clip.items} items of a person count"
    )


def unit_of(question: Question) -> dict[str, Public]:
    """The parameter that says what one person can add, where it is not one."""
    return {} if question.scores is None else {"sensitivity": question.sensitivity}


def too_small(question: Question) -> InvalidParameter:
    """The error for a budget that leaves nothing for one step."""
    if question.k == "auto":
        return InvalidParameter(
            f"epsilon={question.epsilon} is too small for a test; raise epsilon"
        )
    return InvalidParameter(
        f"epsilon={question.epsilon} is too small to be divided among k={question.k} picks; "
        "raise epsilon or lower k"
    )
