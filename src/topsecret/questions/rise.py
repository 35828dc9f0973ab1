"""Rises: the items of a public domain by how many persons more they have than in an earlier period.

What a person moves, and why it is private, is stated in ``sources.domains.rises``.
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
    if counted.domain is None or isinstance(counted.domain, Interval):
        raise InvalidParameter(
            "rise_from needs a public domain that is listed: of items that were only seen in the "
            "data, those of single persons rise; list them, or ask for the top lists of both "
            "periods first and pass what they name as the domain"
        )
    number = not isinstance(numbers.k, str) and numbers.at_least is None
    if counted.measure is not None or not (number and alone):
        raise InvalidParameter(
            "rise_from ranks by persons, with a number k, without counts, at_least and groups, and "
            "from a budget that is not metered; leave the rest out"
        )
    if mechanism not in ("auto", *MECHANISMS):
        raise InvalidParameter(
            f"rise_from needs one of the mechanisms {', '.join(MECHANISMS)}; leave it out"
        )
    return numbers.ranked_by(Scores(2, 1, "people"))


def described(earlier: Sequence[object]) -> str:
    """What the items are ranked by, in words."""
    return f"rise from {' and '.join(map(str, earlier))}"
