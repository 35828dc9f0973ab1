"""Words that several entries of the catalogue share."""

from __future__ import annotations

from topsecret.calibration.question import Question
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import rounded_up


def about(value: float) -> str:
    """A number of persons with four digits, rounded up."""
    return rounded_up(value, 4)


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
