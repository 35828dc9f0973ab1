"""What a budget buys in PATE, and the public rule behind ``method="auto"``. No votes are looked at.

>>> plan = plan_answers(labels=22, teachers=400, queries=500, epsilon=2, delta=1e-6)
>>> plan.method, plan.max_votes
('shares', 4)
>>> print(plan)  # doctest: +ELLIPSIS
22 labels, 400 teachers, epsilon = 2, delta = 1e-06, replace: method 'shares', max_votes 4
  queries  share ±    whole ±  stable answers at a gap of 60%/80%/100%
      500    0.353      0.585    0%/  0%/  0%
...

**The rule**, found on made data and fixed before it met a real set. Soft answers always: they hold
all that the hard ones hold, at the same price. Ballots are cut to τ = max(4, half of the expected
labels per row) votes, or left whole where that costs no more (2τ ≥ labels under replace) or the
noise of a whole share is below `SMALL` anyway. The number of queries hardly matters to a student
that learns shares: the noise of a share grows with its root, and so does what the student averages;
so all public rows up to `MOST`. The hard rules want few queries with little noise each."""

from __future__ import annotations

import math
from dataclasses import dataclass

from topsecret.accounting import calibrate_zcdp
from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, down, exact, root_up
from topsecret.mechanisms import parameters
from topsecret.pate.calibration import noisy_shares
from topsecret.pate.rules import StableLabels

SMALL = 0.1
"""The noise of a share below which nothing needs to be cut."""
MOST = 2000
"""Queries that `queries=None` asks for at most: beyond, a student gains little and takes long."""
LEAST = 100
TOLERABLE = 0.15
"""The noise of a share, in teachers, with which a hard majority is still mostly right."""
AGREEMENTS = (0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True)
class Row:
    """What one number of queries buys."""

    queries: int
    """How many queries are answered."""
    share_deviation: float
    """The noise of a share with the chosen cut."""
    whole_deviation: float
    """The noise of a share of whole ballots: that of method "pate"."""
    stable_answers: tuple[float, ...]
    """The share of queries that "stable" answers if the leading labels are ahead of the rest by .6,
    .8 or all of the teachers."""


@dataclass(frozen=True, slots=True)
class PatePlan:
    """A recommendation with the numbers behind it. Public."""

    labels: int
    """How many labels there are."""
    teachers: int
    """How many vote."""
    epsilon: float
    """Of all answers together."""
    delta: float
    """Of all answers together."""
    adjacency: str
    """Whether a private row is replaced, or added and removed."""
    method: str
    """The recommended one."""
    max_votes: int | None
    """To how many labels a ballot is cut; None for whole ballots."""
    queries: int
    """How many public rows it asks about."""
    rows: tuple[Row, ...]
    """What this number of queries, and smaller ones, would buy."""

    def __str__(self) -> str:
        cut = "whole ballots" if self.max_votes is None else f"max_votes {self.max_votes}"
        lines = [
            f"{self.labels} labels, {self.teachers} teachers, epsilon = {self.epsilon:g}, "
            f"delta = {self.delta:g}, {self.adjacency}: method {self.method!r}, {cut}",
            "  queries  share ±    whole ±  stable answers at a gap of 60%/80%/100%",
        ]
        for row in self.rows:
            answers = "/".join(f"{chance:4.0%}" for chance in row.stable_answers)
            noise = f"{row.share_deviation:7.3f}  {row.whole_deviation:9.3f}"
            lines.append(f"  {row.queries:7}  {noise}  {answers}")
        return "\n".join(lines)


def plan_answers(
    labels: int,
    teachers: int,
    *,
    queries: int,
    epsilon: Number,
    delta: Number,
    expected_labels: float | None = None,
    adjacency: parameters.Adjacency = "replace",
) -> PatePlan:
    """The recommended method and cut, and what these and fewer queries would buy.

    Parameters: ``labels``: how many labels there are; ``teachers``: how many vote; ``queries``: how
    many public rows are asked about; ``epsilon``: of all answers together; ``delta``: of all
    answers together; ``expected_labels``: how many labels a row has, about, if that is public;
    ``adjacency``: whether a private row is replaced, or added and removed.
    """
    budget = (epsilon, delta, adjacency)
    cut = recommended_cut(labels, teachers, queries, *budget, expected_labels=expected_labels)
    numbers = sorted({max(1, queries // part) for part in (1, 2, 4, 10)}, reverse=True)
    rows = tuple(_row(labels, teachers, number, cut, *budget) for number in numbers)
    return PatePlan(
        labels,
        teachers,
        float(epsilon),
        float(delta),
        adjacency,
        "shares",
        cut,
        queries,
        rows,
    )


def recommended_cut(
    labels: int,
    teachers: int,
    queries: int,
    epsilon: Number,
    delta: Number,
    adjacency: parameters.Adjacency,
    *,
    expected_labels: float | None = None,
) -> int | None:
    """τ of the rule, or None for whole ballots."""
    if expected_labels is not None and not 0 < expected_labels <= labels:
        raise InvalidParameter(
            f"expected_labels={expected_labels} must be above 0 and at most labels={labels}"
        )
    cut = max(4, math.ceil((expected_labels or 0) / 2))
    if parameters.directions(adjacency) * cut >= labels:
        return None
    whole = noisy_shares(
        labels, teachers, queries=queries, epsilon=epsilon, delta=delta, adjacency=adjacency
    )
    return None if whole.share_deviation <= SMALL else cut


def recommended_queries(
    method: str,
    labels: int,
    teachers: int,
    available: int,
    epsilon: Number,
    delta: Number,
    adjacency: parameters.Adjacency,
    max_votes: int | None = None,
) -> int:
    """How many of the public rows ``queries=None`` asks about."""
    if method == "shares":
        return min(available, MOST)
    if method == "stable":  # each answer costs about what two labels of a majority cost
        max_votes = 2
    one = noisy_shares(
        labels,
        teachers,
        queries=1,
        epsilon=epsilon,
        delta=delta,
        max_votes=max_votes,
        adjacency=adjacency,
    )
    affordable = int((TOLERABLE / one.share_deviation) ** 2)
    return min(available, max(LEAST, affordable))


def _row(
    labels: int,
    teachers: int,
    queries: int,
    cut: int | None,
    epsilon: Number,
    delta: Number,
    adjacency: parameters.Adjacency,
) -> Row:
    def deviation(max_votes: int | None) -> float:
        return noisy_shares(
            labels,
            teachers,
            queries=queries,
            epsilon=epsilon,
            delta=delta,
            max_votes=max_votes,
            adjacency=adjacency,
        ).share_deviation

    # By zCDP, which is quick and a few percent above the noise that would be drawn.
    half = exact(delta) / 2
    rho = exact(calibrate_zcdp(epsilon, half)) / queries
    scale = parameters.directions(adjacency) * root_up(1 / rho)
    stable = StableLabels(
        max(2, labels), teachers, scale, scale, down(half / queries), adjacency=adjacency
    )
    chances = []
    for agreement in AGREEMENTS:
        chance = stable.tester.chance(math.floor(agreement * teachers)).ball(64)
        chances.append(float(chance))
    return Row(queries, deviation(cut), deviation(None), tuple(chances))
