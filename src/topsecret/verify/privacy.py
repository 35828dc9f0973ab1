"""The exhaustive neighbour check: a mechanism's exact laws against its own claim.

For every small histogram, every neighbour and every epsilon, Σ (P(o) − e^epsilon·Q(o))₊ must be
at most the delta that the mechanism's ``loss`` claims. What exactly a pass proves is written in
``docs/proofs/verification.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from topsecret.errors import VerificationFailed
from topsecret.exact.rounding import down, up
from topsecret.mechanisms.mechanism import Mechanism
from topsecret.verify.between import settle
from topsecret.verify.divergence import (
    LARGEST_EPSILON,
    Verdict,
    decide,
    largest_ratio,
    lower_bounds,
    upper_bounds,
)
from topsecret.verify.laws import Floats, Laws, families
from topsecret.verify.neighbours import Indices, Neighbourhood
from topsecret.verify.report import Comparison, PrivacyReport, described

_GRID = 17
_DELTAS = (0.0, 1e-9, 1e-6, 1e-3, 1e-2, 1e-1)
_MIDPOINTS = 2000


def check_privacy(
    mechanism: Mechanism,
    *,
    items: int = 4,
    max_count: int = 4,
    tall: int = 16,
    neighbourhood: Neighbourhood | None = None,
) -> PrivacyReport:
    """Compare all laws on small histograms with the claimed loss, without a tolerance.

    The histograms are those of at most ``items`` items with counts up to ``max_count``, and
    those of two items with counts up to ``tall``. The answer is a report in either case;
    ``report.require()`` raises.

    Parameters: ``mechanism``: whose claim is checked; ``items``: how many items a histogram has, at
    most; ``max_count``: how large a count is, at most; ``tall``: the same where there are two
    items; ``neighbourhood``: which histograms are compared; without it what the mechanism says of
    itself (``adjacency``, ``max_items``, ``sensitivity``).
    """
    neighbourhood = neighbourhood or neighbourhood_of(mechanism)
    checks = []
    for family in families(mechanism, items, max_count, tall):
        checks.append(_FamilyCheck(Laws(mechanism, family), neighbourhood))
        checks[-1].run()
        if checks[-1].broken is not None:
            break
    tightest = [check.tightest for check in checks if check.tightest is not None]
    return PrivacyReport(
        mechanism=described(mechanism),
        neighbourhood=neighbourhood,
        items=items,
        max_count=max_count,
        tall=tall,
        histograms=sum(len(check.laws.family) for check in checks),
        pairs=sum(len(check.first) for check in checks),
        outcomes=max(len(check.laws.outcomes) for check in checks),
        points=sum(check.points for check in checks),
        comparisons=sum(check.comparisons for check in checks),
        tightest=max(tightest, key=_share, default=None),
        broken=checks[-1].broken,
        undecided=tuple(one for check in checks for one in check.undecided),
        equality_proved=bool(getattr(mechanism, "meets_claim_exactly", False)),
        between=max(check.between for check in checks),
    )


def neighbourhood_of(mechanism: Mechanism) -> Neighbourhood:
    """The relation under which the mechanism claims its loss, from its public parameters."""
    return Neighbourhood(
        adjacency=str(getattr(mechanism, "adjacency", "add-remove")),
        max_items=getattr(mechanism, "max_items", None),
        sensitivity=math.floor(getattr(mechanism, "sensitivity", 1)),
    )


class _FamilyCheck:
    """The check on the histograms of one family."""

    def __init__(self, laws: Laws, neighbourhood: Neighbourhood) -> None:
        self.laws = laws
        self.first, self.second = laws.family.pairs(neighbourhood)
        self.claim = _claim_of(laws.mechanism)
        self.points = 0
        self.comparisons = 0
        self.tightest: Comparison | None = None
        self.broken: Comparison | None = None
        self.undecided: list[Comparison] = []
        self.between = 0.0

    def run(self) -> None:
        """Compare at the points, then settle what lies between them."""
        points, claims = self._points()
        uppers = upper_bounds(self.laws, self.first, self.second, points)
        everyone = np.arange(len(self.first))
        for column, (epsilon, claim) in enumerate(zip(points, claims, strict=True)):
            self._compare(everyone, uppers[:, column], epsilon, claim)
        if self.broken is None and len(everyone):
            _, self.between = settle(points, claims, uppers, self.claim, self._evaluate, _MIDPOINTS)

    def _points(self) -> tuple[list[float], list[float]]:
        """Where all pairs are compared, and the claims there.

        The grid reaches as far as the ratios do: beyond it every divergence is constant, and
        ``LARGEST_EPSILON`` is compared too. The promises that ``epsilon`` makes for usual deltas
        are claims like those of ``delta``; after the point where a pure claim begins comes the
        next float, from which on nothing may be left. A negative x says nothing of its own:
        D(−x) = 1 − e^(−x)·(1 − mirror's D(x)), and both directions are compared.
        """
        reach = largest_ratio(self.laws, self.first, self.second)
        grid = np.linspace(0.0, reach, _GRID).tolist()
        claims = {epsilon: self.claim(epsilon) for epsilon in (*grid, LARGEST_EPSILON)}
        for delta in _DELTAS:
            epsilon = float(self.laws.mechanism.loss.epsilon(delta))
            if epsilon <= LARGEST_EPSILON:
                claims[epsilon] = min(delta, self.claim(epsilon))
            if delta == 0 and epsilon < LARGEST_EPSILON:
                claims[math.nextafter(epsilon, math.inf)] = 0.0
        points = sorted(claims)
        return points, [claims[point] for point in points]

    def _evaluate(self, pairs: Indices, epsilon: float, claim: float) -> Floats:
        uppers = upper_bounds(self.laws, self.first[pairs], self.second[pairs], [epsilon])[:, 0]
        self._compare(pairs, uppers, epsilon, claim)
        return uppers

    def _compare(self, pairs: Indices, uppers: Floats, epsilon: float, claim: float) -> None:
        self.points += 1
        self.comparisons += len(pairs)
        if not len(pairs):
            return
        if claim > 0:
            # Above the claim a float bound only says "look closer": that comes next.
            largest = int(uppers.argmax())
            bound = min(float(uppers[largest]), claim)
            if self.tightest is None or bound / claim > _share(self.tightest):
                self.tightest = self._comparison(pairs[largest], epsilon, bound, claim)
        doubtful = np.flatnonzero(uppers > claim)
        if not len(doubtful):
            return
        first, second = self.first[pairs[doubtful]], self.second[pairs[doubtful]]
        lowers = lower_bounds(self.laws, first, second, [epsilon])[:, 0]
        worst = int(lowers.argmax())
        if lowers[worst] > claim:
            self._break(self._comparison(pairs[doubtful[worst]], epsilon, lowers[worst], claim))
            return
        for pair in pairs[doubtful]:
            self._decide(int(pair), epsilon, claim)

    def _decide(self, pair: int, epsilon: float, claim: float) -> None:
        first, second = int(self.first[pair]), int(self.second[pair])
        verdict, divergence = decide(self.laws, first, second, epsilon, claim)
        if verdict is Verdict.BROKEN:
            self._break(self._comparison(pair, epsilon, down(divergence), claim))
        elif verdict is Verdict.UNDECIDED:
            self.undecided.append(self._comparison(pair, epsilon, up(divergence), claim))

    def _break(self, comparison: Comparison) -> None:
        if self.broken is None or comparison.margin < self.broken.margin:
            self.broken = comparison

    def _comparison(self, pair: int, epsilon: float, divergence: float, claim: float) -> Comparison:
        show = self.laws.family.show
        return Comparison(
            histogram=show(int(self.first[pair])),
            neighbour=show(int(self.second[pair])),
            epsilon=epsilon,
            divergence=float(divergence),
            claim=claim,
        )


def _claim_of(mechanism: Mechanism) -> Callable[[float], float]:
    loss = mechanism.loss

    def claim(epsilon: float) -> float:
        delta = float(loss.delta(epsilon))
        if not 0 <= delta <= 1:
            raise VerificationFailed(
                f"{described(mechanism)} claims delta={delta} at epsilon={epsilon}; "
                "it must be in [0, 1]"
            )
        return delta

    return claim


def _share(comparison: Comparison) -> float:
    return comparison.divergence / comparison.claim
