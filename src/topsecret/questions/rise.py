"""Rises: items by how many more people they have than in an earlier period.

Of a public domain all items are candidates; without one those that private lists of both periods
name. What a person moves, and why it is private, is stated in ``sources.domains.rises`` and in
``mechanisms.leading_rises``.
"""

from __future__ import annotations

from collections.abc import Sequence

from topsecret.calibration.question import Question as Numbers
from topsecret.calibration.question import Scores
from topsecret.errors import InvalidParameter
from topsecret.mechanisms.mechanism import Mechanism
from topsecret.sources import CountQuery
from topsecret.sources.domains.domain import Interval

MECHANISMS = ("pruned", "gumbel", "permute-and-flip", "oneshot-exponential")
"""Those whose law stays the same when a number is added to all scores."""

CLIPPING = (
    "each person counts at most once for an item in each of the two periods, and the noise is for "
    "a person who raises some items and lowers others; rises of less than a few times its scale "
    "are chance"
)


def rising(
    numbers: Numbers, counted: CountQuery, mechanism: str | Mechanism, alone: bool
) -> Numbers:
    """The numbers for rises: what one person moves up by 1, or down, costs as scores of 2 do."""
    if isinstance(counted.domain, Interval):
        raise InvalidParameter(
            "rise_from needs a public domain that is listed, or none: items of neither are named "
            "by private lists of both periods; list the items, or leave the domain out"
        )
    number = not isinstance(numbers.k, str) and numbers.at_least is None
    if counted.measure is not None or not (number and alone):
        raise InvalidParameter(
            "rise_from ranks by people, with a number k, without counts, at_least and groups, and "
            "from a budget that is not metered; leave the rest out"
        )
    known = () if counted.domain is None else MECHANISMS
    if mechanism not in ("auto", *known):
        choice = f"needs one of the mechanisms {', '.join(known)}" if known else "has its own lists"
        raise InvalidParameter(f"rise_from {choice}; leave the mechanism out")
    scored = numbers.ranked_by(Scores(2, 1, "people"))
    if counted.domain is not None:
        return scored
    if numbers.fill or numbers.k_bar_given:
        raise InvalidParameter(
            "rise_from without a public domain has no k_bar and no fill; leave them out"
        )
    return scored.of_two_periods()


def described(earlier: Sequence[object]) -> str:
    """What the items are ranked by, in words."""
    return f"rise from {' and '.join(map(str, earlier))}"
