"""Words that several entries of the catalogue share."""

from __future__ import annotations

import math
from fractions import Fraction

from topsecret.calibration.question import Question
from topsecret.counts.clip import Clip
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import rounded_up, up
from topsecret.results.export import Public


def about(value: float) -> str:
    """A number of persons with four digits, rounded up."""
    return rounded_up(value, 4)


def amount(question: Question, persons: float) -> str:
    """As much as so many persons can add, rounded up, in what the items are ranked by."""
    noun = "people" if question.scores is None else question.scores.noun
    return f"{scaled(question, persons)} {noun}"


def scaled(question: Question, persons: float) -> str:
    """The number of :func:`amount` alone."""
    per_unit = 1 if question.scores is None else question.scores.per_unit
    return about(persons * question.sensitivity / per_unit)


def lead(question: Question, persons: float) -> str:
    """How far an item is ahead, rounded up: whole people, or what the items are ranked by."""
    if question.scores is None:
        return f"{math.ceil(persons * question.sensitivity):,}"
    return scaled(question, persons)


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
