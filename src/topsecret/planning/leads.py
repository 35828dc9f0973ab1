"""The lead that an item needs: the fewest people more than the rest that make naming it likely.

Where items are ranked by rows or sums, a lead is in multiples of what one person adds at most: in
these units everything but the weights of ``max_total`` is as with people.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from topsecret.calibration import PUBLIC_DOMAIN, Prepared, Question, prepare
from topsecret.mechanisms import (
    ChosenBound,
    LimitedDomain,
    Mechanism,
    TestedOrWeighted,
    TestedTopK,
)
from topsecret.planning import chances
from topsecret.planning.tested import answer_chance, last_chance

LIKELY = 0.95
"""The probability that a needed lead gives."""

_FARTHEST = 2**62


@dataclass(frozen=True, slots=True)
class Leads:
    """Needed leads over the rest, in people; None when no lead is enough."""

    one: int | None
    """For the last item of the top k to be named with 95% probability, the others far ahead."""
    every: int | None
    """For all k items, level with each other, to be named together with 95% probability."""
    any_answer: int | None = None
    """For k level items not to be answered by nothing with 95% probability, where that is known."""


@lru_cache(maxsize=256)
def needed(name: str, question: Question) -> Leads:
    """The leads that the mechanism needs at these public numbers.

    >>> needed("limited-domain", Question.of(k=1, epsilon=1.0))
    Leads(one=21, every=21, any_answer=None)
    """
    question = _in_bounds(question)
    prepared = prepare(name, question)
    mechanism = _picks(prepared.mechanism)
    return Leads(
        needed_by_one(name, question),
        smallest(lambda lead: chance(prepared, lead).every),
        smallest(lambda lead: answer_chance(mechanism.schedule, mechanism.slots, lead))
        if isinstance(mechanism, TestedTopK)
        else None,
    )


@lru_cache(maxsize=256)
def needed_by_one(name: str, question: Question) -> int | None:
    """The first of the leads alone: all that a choice among mechanisms or a preview looks at."""
    return lead_of_one(prepare(name, _in_bounds(question)))


def lead_of_one(prepared: Prepared) -> int | None:
    """The same for what was calibrated already."""
    mechanism = _picks(prepared.mechanism)
    if isinstance(mechanism, TestedTopK):  # the other scene takes most of the time
        k = prepared.question.length
        return smallest(lambda lead: last_chance(mechanism.schedule, mechanism.slots, lead, k))
    return smallest(lambda lead: chance(prepared, lead).one)


def in_bounds(prepared: Prepared) -> Prepared:
    """What was calibrated already, in multiples of what one person adds at most."""
    mechanism = prepared.mechanism
    if isinstance(mechanism, LimitedDomain):  # the others' leads are in multiples anyway
        mechanism = replace(mechanism, sensitivity=1)
    return replace(prepared, question=_in_bounds(prepared.question), mechanism=mechanism)


def _in_bounds(question: Question) -> Question:
    """The question about people that needs the same leads, in multiples of the bound."""
    fixed = not question.bounds and not question.total
    return question.ranked_by(None) if fixed else question


def _picks(mechanism: Mechanism) -> Mechanism:
    """What draws the list, behind a private choice."""
    if isinstance(mechanism, TestedOrWeighted):
        return mechanism.branches.tested
    return mechanism.options[0] if isinstance(mechanism, ChosenBound) else mechanism


def chance(prepared: Prepared, lead: int) -> chances.Chances:
    """The chances in the two scenes, with ``lead`` people more than the rest."""
    question = prepared.question
    if isinstance(question.k, str):  # which k has the gap makes no difference
        return chances.of(prepared.mechanism, lead, 1, question.k_bar)
    weighs = prepared.name == "weighted"
    if (weighs or prepared.name in PUBLIC_DOMAIN) and question.domain_size is not None:
        rest = question.domain_size - question.k
    else:
        rest = prepared.rows - 1 - question.k
    return chances.of(prepared.mechanism, lead, question.k, rest)


def smallest(likely: Callable[[int], float]) -> int | None:
    """The smallest lead that is likely enough; chances grow with the lead."""
    high = 1
    while likely(high) < LIKELY:
        high *= 2
        if high > _FARTHEST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if likely(middle) >= LIKELY:
            high = middle
        else:
            low = middle
    return high
