"""The exact law of picking without replacement in proportion to weights, for small cases."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import perm

from flint import arb

from topsecret.errors import TooLarge
from topsecret.mechanisms.selection import NOTHING, Outcome

_MOST = 200_000


def plackett_luce(
    weights: Sequence[tuple[Hashable, arb]], k: int, nothing: arb | None = None
) -> dict[Outcome, arb]:
    """The law of the ordered list of k picks; with ``nothing``, a pick of it ends the list.

    >>> law = plackett_luce([("a", arb(2)), ("b", arb(1))], 1)
    >>> {outcome: float(p) for outcome, p in law.items()}
    {('a',): 0.6666666666666666, ('b',): 0.3333333333333333}
    """
    length = min(k, len(weights))
    if sum(perm(len(weights), j) for j in range(length + 1)) > _MOST:
        raise TooLarge(
            f"the law of {k} picks among {len(weights)} items has more than {_MOST} outcomes; "
            "ask for it on a smaller histogram"
        )
    law: dict[Outcome, arb] = {}

    def descend(taken: Outcome, left: Sequence[tuple[Hashable, arb]], chance: arb) -> None:
        if len(taken) == k or (not left and nothing is None):
            law[taken] = chance
            return
        total = sum((weight for _, weight in left), arb(0) if nothing is None else nothing)
        if nothing is not None:
            law[(*taken, NOTHING)] = chance * nothing / total
        for place, (item, weight) in enumerate(left):
            rest = [*left[:place], *left[place + 1 :]]
            descend((*taken, item), rest, chance * weight / total)

    descend((), list(weights), arb(1))
    return law


def as_floats(probabilities: Mapping[Outcome, arb]) -> dict[Outcome, float]:
    """The same law with each ball's nearest float."""
    return {outcome: float(chance) for outcome, chance in probabilities.items()}
