"""Hidden picks and prunes in the two scenes: which items are left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from topsecret.mechanisms.pick_prune_test import Levels


def unwanted_left(
    k: int, others: int, levels: Levels, prunes: int, lead: int, prune_lead: float
) -> NDArray[np.float64]:
    """The law of the number of other items that survive picks and prunes.

    k items lead ``others`` items by ``lead`` people. A pick of price ε prefers a leading item
    by e^(ε·lead); a prune prefers another item by e^(prune_lead). A state is the number of
    others among the picked: how many leading ones there are follows from it.

    >>> from fractions import Fraction
    >>> unwanted_left(1, 1, ((1, Fraction(1)),), 0, 0, 0.0).tolist()
    [0.5, 0.5]
    """
    total = sum(count for count, _ in levels)
    wrong = np.arange(total + 1)
    law = np.zeros(total + 1)
    law[0] = 1.0
    made = 0
    for count, price in levels:
        shrink = np.exp(-float(price) * lead)
        for _ in range(count):
            leading = np.maximum(k - (made - wrong), 0)
            rest = np.maximum(float(others) - wrong, 0) * shrink
            with np.errstate(invalid="ignore"):
                miss = np.where(leading + rest > 0, rest / (leading + rest), 0.0)
            if np.all((leading + rest)[: made + 1] <= 0):
                break
            law[1:] = law[1:] * (1 - miss[1:]) + law[:-1] * miss[:-1]
            law[0] *= 1 - miss[0]
            made += 1
    for removed in range(prunes):
        leading = np.maximum(made - removed - wrong, 0) * np.exp(-prune_lead)
        with np.errstate(invalid="ignore"):
            hit = np.where(leading + wrong > 0, wrong / (leading + wrong), 0.0)
        law = law * (1 - hit) + np.append(law[1:] * hit[1:], 0.0)
    return law


def last_is_kept(
    others: int, prices: Sequence[Fraction], prunes: int, lead: int, prune_lead: float
) -> float:
    """The chance that the last item of the top k is picked and survives, the others far ahead.

    ``prices`` are those of the picks that are left when the k − 1 items far ahead have been
    taken, one more than there are prunes.

    >>> last_is_kept(1, [Fraction(1)], 0, 0, 0.0)
    0.5
    """
    missed = 1.0
    for turn, price in enumerate(prices):
        rest = max(float(others - turn), 0.0) * math.exp(-float(price) * lead)
        missed *= rest / (1 + rest)
    kept = 1 - missed
    for left in range(min(prunes, others), 0, -1):
        kept *= left / (left + math.exp(-prune_lead))
    return kept
