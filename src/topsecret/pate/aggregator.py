"""The aggregator: teachers' votes in, private label sets out, until a budget is used up.

>>> import numpy as np
>>> from topsecret.pate import Aggregator, StableLabels
>>> rule = StableLabels(labels=3, teachers=200, selection_scale=20, test_scale=20, failure=1e-9)
>>> aggregator = Aggregator(rule, epsilon=4, delta=1e-6)
>>> votes = np.zeros((200, 3), dtype=bool)
>>> votes[:195, 1] = True
>>> answer = aggregator.answer(votes)
>>> answer.labels, answer.number
((1,), 1)

**What is proven.** Every answer costs the same ``rule.loss``, whatever the votes and whatever the
answer (nothing included): no cost depends on the data, so all of them may be shown. The aggregator
fixes beforehand how many queries it will answer (``capacity``, a public number) so that all of them
together keep to (epsilon, delta); queries may depend on earlier answers; one more is refused.

``answer.epsilon`` and ``spent()`` are the guarantee of the answers so far, for a number of queries
that was not chosen by looking at the answers; whoever stops at an answer that pleases relies on the
whole budget. ``answer.epsilon`` is cheap (a Rényi bound, see ``accounting/running.py``) and at most
a few percent above ``spent()``, which asks the full accountant and may take seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from topsecret.accounting.running import RunningEpsilon, most_steps
from topsecret.accounting.weak_privacy import check_strength
from topsecret.errors import BudgetExceeded, InvalidParameter
from topsecret.exact.rounding import Number, exact, up
from topsecret.mechanisms import parameters
from topsecret.noise.bits import BitSource, SystemBits
from topsecret.pate.ballots import Counts, as_ballots, as_counts, count_votes, cut_ballots
from topsecret.pate.rules import VoteRule
from topsecret.pate.shares import NoisyShares

BATCH = 64
"""How many queries of a stream are drawn for together: their noise fits the processor's cache."""

MOST_QUERIES = 10**7


@dataclass(frozen=True, slots=True)
class Answer:
    """One released label set with the guarantee of all answers up to it. Free to be shown."""

    number: int
    """1 for the first query."""
    labels: tuple[int, ...] | None
    """The labels in their public order; None for nothing: the votes are too close to call."""
    epsilon: float
    """Of all answers up to this one."""
    delta: float
    """Of all answers up to this one."""
    shares: tuple[float, ...] | None = None
    """Of a soft rule: the noisy share of the teachers for each label; ``labels`` are those above
    one half."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """An (epsilon, delta) with the name of the bound that proves it."""

    epsilon: float
    """Rounded up."""
    delta: float
    """Rounded up."""
    bound: str
    """By its name in the accounting."""


class Aggregator:
    """Answers queries by one rule until (epsilon, delta) is used up.

    Parameters: ``rule``: how votes become an answer; ``epsilon``: of all answers together;
    ``delta``: of all answers together; ``queries``: how many will be answered; as many as the
    budget allows without it; ``bits``: for tests; a release draws from the operating system;
    ``stream``: the votes of each query in turn; ``batch``: how many queries are read before their
    answers come out.
    """

    def __init__(
        self,
        rule: VoteRule,
        *,
        epsilon: Number,
        delta: Number,
        queries: int | None = None,
        bits: BitSource | None = None,
    ) -> None:
        parameters.positive(epsilon, "epsilon")
        self._budget = exact(epsilon)
        self._delta = parameters.probability(delta, "delta")
        check_strength(epsilon, delta)
        self.rule = rule
        self._bits = bits
        if queries is None:
            self._capacity = most_steps(rule.loss, self._budget, self._delta, MOST_QUERIES)
        else:
            self._capacity = parameters.whole(queries, "queries")
            if (self._capacity * rule.loss).epsilon(self._delta) > self._budget:
                raise InvalidParameter(
                    f"queries={queries} do not fit into epsilon={float(epsilon):g} and "
                    f"delta={float(delta):g} with this noise; ask fewer, raise the budget, or "
                    "add noise (see stable_labels and noisy_majority)"
                )
        self._running = RunningEpsilon(rule.loss, self._delta)
        # All answers together are proven to keep to the budget, so none of them says more.
        self._most = up(self._budget)
        self._asked = 0

    @property
    def capacity(self) -> int:
        """How many queries the budget allows in all. Public: it does not depend on votes."""
        return self._capacity

    @property
    def asked(self) -> int:
        """How many queries have been answered, nothing included."""
        return self._asked

    @property
    def left(self) -> int:
        """How many queries may still be asked."""
        return self._capacity - self._asked

    def spent(self) -> Guarantee:
        """What the answers so far have cost, by the full accountant (this may take seconds)."""
        explanation = (self._asked * self.rule.loss).explain(self._delta)
        return Guarantee(explanation.epsilon, up(self._delta), explanation.winner.name)

    def answer(self, votes: Any) -> Answer:
        """Answer one query from a matrix of teachers × labels."""
        return self._decide([self._count(votes)])[0]

    def answer_counts(self, counts: Any) -> Answer:
        """Answer one query from votes that are already added up, one number per label."""
        return self._decide([self._check(counts)])[0]

    def answers(self, stream: Iterable[Any], batch: int = BATCH) -> Iterator[Answer]:
        """Answer a stream of matrices of teachers × labels, in its order.

        Memory does not grow with the length of the stream. :class:`BudgetExceeded` is raised at the
        first query too many, after all earlier answers have been given.
        """
        return self._answers((self._count(votes) for votes in stream), batch)

    def answers_of_counts(self, stream: Iterable[Any], batch: int = BATCH) -> Iterator[Answer]:
        """The same for a stream of votes that are already added up."""
        return self._answers((self._check(counts) for counts in stream), batch)

    def _answers(self, stream: Iterator[Counts], batch: int) -> Iterator[Answer]:
        parameters.whole(batch, "batch")
        waiting: list[Counts] = []
        for counts in stream:
            waiting.append(counts)
            if len(waiting) == batch or len(waiting) > self.left:
                excess = waiting[self.left :]
                yield from self._decide(waiting[: self.left])
                waiting.clear()
                if excess:
                    self._refuse()
        yield from self._decide(waiting)

    def _count(self, votes: Any) -> Counts:
        ballots = as_ballots(votes, self.rule.teachers, self.rule.labels)
        if isinstance(self.rule, NoisyShares):
            return self.rule.count(ballots)
        if self.rule.max_votes is not None:
            ballots = cut_ballots(ballots, self.rule.max_votes)
        return count_votes(ballots)

    def _check(self, counts: Any) -> Counts:
        bounds = {"max_votes": self.rule.max_votes}
        if isinstance(self.rule, NoisyShares):
            bounds["weight_limit"] = self.rule.weight_limit
        for name, bound in bounds.items():
            if bound is not None:
                raise InvalidParameter(
                    f"{name}={bound} is enforced on each ballot, and counts have none "
                    f"left; pass the votes themselves, or a rule without {name}"
                )
        return as_counts(counts, self.rule.teachers, self.rule.labels)

    def _decide(self, rows: list[Counts]) -> list[Answer]:
        if not rows:
            return []
        if len(rows) > self.left:
            self._refuse()
        # Counted before anything is drawn: an answer that gets lost on the way is spent.
        first = self._asked + 1
        self._asked += len(rows)
        # A source of its own for each batch: a buffer that outlived a fork would be used twice.
        bits = SystemBits() if self._bits is None else self._bits
        shares: list[tuple[float, ...] | None] = [None] * len(rows)
        if isinstance(self.rule, NoisyShares):
            drawn = self.rule.shares(np.stack(rows), bits)
            shares = [tuple(row) for row in drawn.tolist()]
            chosen, answered = drawn > 0.5, np.ones(len(rows), dtype=np.bool_)
        else:
            chosen, answered = self.rule.decide(np.stack(rows), bits)
        return [
            Answer(
                number=first + row,
                labels=tuple(np.flatnonzero(chosen[row]).tolist()) if answered[row] else None,
                epsilon=min(self._most, self._running.after(first + row)),
                delta=up(self._delta),
                shares=shares[row],
            )
            for row in range(len(rows))
        ]

    def _refuse(self) -> None:
        raise BudgetExceeded(
            f"all {self._capacity} queries that epsilon={float(self._budget):g} and "
            f"delta={float(self._delta):g} allow have been answered; "
            "start with a larger budget or more noise per query"
        )

    def __repr__(self) -> str:
        return f"<Aggregator: {self._asked} of {self._capacity} queries answered, {self.rule}>"
