"""What a mechanism does at scale 0: rank by score, equal scores in uniformly random order."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from itertools import groupby

import numpy as np
from flint import arb

from topsecret.mechanisms.plackett_luce import plackett_luce
from topsecret.mechanisms.selection import Outcome
from topsecret.noise.screening import ScoreGroups


def best_groups(field: ScoreGroups, k: int) -> list[int]:
    """The groups in order of score, each as often as it has items."""
    groups: list[int] = []
    for group in np.argsort(-field.scores, kind="stable"):
        groups += [int(group)] * min(field.size(int(group)), k - len(groups))
        if len(groups) == k:
            break
    return groups


def ranked_law(scores: Sequence[tuple[Hashable, Fraction]], k: int) -> dict[Outcome, arb]:
    """Best first, equal scores in uniformly random order."""
    law: dict[Outcome, arb] = {(): arb(1)}
    ranked = sorted(scores, key=lambda pair: -pair[1])
    for _, tied in groupby(ranked, key=lambda pair: pair[1]):
        items = [(item, arb(1)) for item, _ in tied]
        law = {
            (*before, *after): chance * more
            for before, chance in law.items()
            for after, more in plackett_luce(items, k - len(before)).items()
        }
    return law
