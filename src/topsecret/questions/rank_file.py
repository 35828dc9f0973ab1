"""Rank the items of a file of comparisons: the place where such a file and a ranking meet.

As in ``query.py``, everything that can be wrong with the parameters is found before a row is read.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, exact

if TYPE_CHECKING:
    from topsecret.ranking import Ranking


def rank_file(
    path: str | os.PathLike[str],
    *,
    winner: str,
    loser: str,
    epsilon: Number,
    k: int | None = None,
    tie: str | None = None,
    method: Literal["counting", "spectral"] = "counting",
    teleport: Number | None = None,
    delta: Number | None = None,
) -> Ranking:
    """Rank by who beat whom in a file with one comparison per row (CSV, TSV, JSON lines, Parquet).

    Naming the columns declares the schedule, who met whom and how often, public; the receipt
    says so. ``teleport`` (0.3 by default) and ``delta`` are for ``method="spectral"``.

    *Guarantee.* (``epsilon``, ``delta``)-DP for neighbours that differ in one comparison's outcome.
    """
    if method not in ("counting", "spectral"):
        raise InvalidParameter(f"method={method!r} must be 'counting' or 'spectral'")
    if exact(epsilon, "epsilon") <= 0:
        raise InvalidParameter(f"epsilon={epsilon} must be above 0; 1 is a common choice")
    if k is not None and k < 1:
        raise InvalidParameter(f"k={k} must be at least 1; ask for one item or more")
    if method == "counting" and (delta is not None or teleport is not None):
        raise InvalidParameter("counting has no delta and no teleport; leave them out")
    if method == "spectral" and k is None:
        raise InvalidParameter(
            "spectral needs a k, since its noise grows with the length of the list; "
            "pass k=10, or use counting for all items"
        )
    from topsecret.ranking import Comparisons, counting, spectral
    from topsecret.ranking.sensitivity import teleport_of
    from topsecret.sources.match_file import MatchFile

    theta = teleport_of(0.3 if teleport is None else teleport)
    read = MatchFile(path).read(winner, loser, tie)
    comparisons = Comparisons.from_codes(
        read.winners,
        read.losers,
        items=read.items,
        ties=read.ties,
        counts=read.counts,
        schedule="public",
    )
    if k is None or method == "counting":
        return counting(comparisons, k=k, epsilon=epsilon)
    return spectral(comparisons, k=k, epsilon=epsilon, delta=delta, teleport=theta)
