"""One question in short: the mechanism that would answer it, what it needs and what it loses.

>>> seen = outlook(k=1, epsilon=1.0, delta=1e-6)
>>> seen.name, seen.lead
('limited-domain', 21)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from topsecret.accounting import Loss
from topsecret.calibration import Prepared, Question, prepare, prepare_at
from topsecret.calibration.calibrated import calibrated
from topsecret.calibration.counts import CountsBudget
from topsecret.calibration.prepared import Calibrated
from topsecret.calibration.question import Measured, Scores
from topsecret.planning.leads import in_bounds, lead_of_one, needed_by_one
from topsecret.planning.rule import recommended_name


@dataclass(frozen=True, slots=True)
class Summary:
    """What a question would bring, from public numbers alone."""

    name: str
    """The mechanism that ``mechanism="auto"`` uses."""
    answer: str
    """What comes back, in words."""
    named_when: str
    lead: int | None
    """The lead that a given item of the top k needs to be named with 95% probability."""
    over_rank: int | None
    """The rank that the lead is over; None for the next item after a drop."""
    loss: Loss
    epsilon: float
    """What is proven."""
    lead_in: str = "people"
    """What the lead counts."""


def outlook(
    k: int | Literal["auto", "all"],
    epsilon: float,
    delta: float,
    max_items: int | None = None,
    *,
    counts: bool = False,
    at_least: int | None = None,
    measure: Measured | None = None,
) -> Summary:
    """For a question that brings its own (ε, δ), of which noisy counts may take a part."""
    question = _question(k, epsilon, delta, max_items, at_least, measure)
    if counts:  # as in ``answer``: counts come with picks
        question = question.choosing("public")
    name = recommended_name(question)
    if counts:
        return outlook_of(calibrated(name, question, CountsBudget()))
    return _outlook(prepare(name, question), needed_by_one(name, question))


def outlook_of(each: Calibrated) -> Summary:
    """For a list that is calibrated already, of which noisy counts may take a part."""
    return _outlook(each.selection, lead_of_one(in_bounds(each.selection)), each.loss)


def outlook_at(
    k: int | Literal["auto"],
    epsilon: float,
    delta: float,
    price: float,
    share: float,
    max_items: int | None = None,
    measure: Measured | None = None,
) -> Summary:
    """For a question at a price per pick and a threshold delta that are fixed already."""
    question = _question(k, epsilon, delta, max_items, None, measure)
    return _outlook(prepare_at("limited-domain", question, price, share), None)


def _question(
    k: int | Literal["auto", "all"],
    epsilon: float,
    delta: float,
    max_items: int | None,
    at_least: int | None,
    measure: Measured | None,
) -> Question:
    asked = Question.of(k=k, epsilon=epsilon, delta=delta, max_items=max_items, at_least=at_least)
    return asked if measure is None else asked.ranked_by(Scores.of(measure))


def _outlook(prepared: Prepared, lead: int | None, whole: Loss | None = None) -> Summary:
    """``whole``: what the list costs together with its counts, where there are any."""
    loss, scores, lead_in = whole or prepared.mechanism.loss, prepared.question.scores, "people"
    if scores is not None:
        lead_in = "times the bound" if scores.bounds else scores.noun
        lead = lead if lead is None or scores.bounds else scores.wholes(lead)
    elif prepared.name == "weighted" and not _in_full(prepared.parameters):
        lead_in = "weighted people"
    return Summary(
        prepared.name,
        prepared.answer,
        prepared.named_when,
        lead,
        prepared.over_rank,
        loss,
        loss.epsilon(prepared.question.delta),
        lead_in,
    )


def _in_full(weights: Mapping[str, object]) -> bool:
    """Whether every item of a person that is counted counts in full."""
    return weights["full_items"] == weights["most_items"]
