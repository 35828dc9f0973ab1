"""What a service released, and what it keeps, as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service released."""

    id: str
    """Under which the service keeps it."""
    items: tuple[Any, ...]
    """The released items, best first when ``ordered``."""
    ordered: bool
    """Whether the order of the items is part of the answer."""
    complete: bool
    """Whether all items that were asked for are named."""
    epsilon: float
    """Of the privacy guarantee, as proven, rounded up."""
    delta: float
    """Of the privacy guarantee, as proven, rounded up."""
    counts: tuple[int, ...] | None
    """Noisy counts, where they were asked for."""
    half_width: int | None
    """Each true count lies within this of its noisy one with 95% probability."""
    at_least: tuple[int, ...] | None
    """How many people each item surely has, with k="all"."""
    receipt: Mapping[str, str]
    """What the answer promises and what it cost, line by line, in words."""


@dataclass(frozen=True, slots=True)
class Answers(Mapping[str | int, Answer]):
    """One answer for each group, by the group's value, in the order that was asked for."""

    id: str
    """Under which the service keeps them."""
    by: str
    """The column that defines the groups."""
    groups: Mapping[str | int, Answer]
    """The answer for each group, by the group's value."""
    composition: str
    """``parallel`` where each person was kept in one group alone, else ``sequential``."""
    epsilon: float
    """Of all groups together."""
    delta: float
    """Of all groups together, too."""
    together: str
    """What all groups cost together, in words."""

    def __getitem__(self, group: str | int) -> Answer:
        return self.groups[group]

    def __iter__(self) -> Iterator[str | int]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)


@dataclass(frozen=True, slots=True)
class Budget:
    """What is left for the account of a key."""

    state: str
    """Whether questions are admitted: open or closed."""
    epsilon: float
    """Of all answers together that the dataset's budget ever pays for, whoever asks."""
    delta: float
    """Of all answers together that the dataset's budget ever pays for, whoever asks."""
    summary: str
    """What is left for the account, in words."""
    left: float
    """Which part of the account's share is left, from 0 to 1, rounded down."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a question would buy and cost; no data are read for it."""

    fits: bool
    """Whether the question fits into what is left."""
    lead: int | None
    """How many people an item must be ahead to be named with 95% probability."""
    again: int
    """How many such questions fit into what is left."""
    answer: str
    """What comes back, in words."""
    buys: str
    """How large a lead gets an item named, in words."""
    protects: str
    """What is promised to each person, in words."""
    takes: str
    """What it takes from the account's share, in words."""


@dataclass(frozen=True, slots=True)
class SavedQuestion:
    """A question that the account keeps at the service."""

    name: str
    """Under which the account keeps it."""
    dataset: str
    """The dataset that it is about."""
    words: str
    """What it asks, in a few words."""


@dataclass(frozen=True, slots=True)
class Run:
    """One time of a schedule: a question of its own, with its own charge and stored answer."""

    number: int
    """Which time it is, from 1 on."""
    at: datetime
    """When it is due."""
    state: str
    """waiting, asked, ended, skipped, refused or given up."""
    answer: str | None
    """The id of its answer, for ``answer``."""
    message: str | None
    """Why there is no answer, in words; None if nothing went wrong."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A saved question and the times at which it is asked."""

    id: str
    """Under which the service keeps it."""
    name: str
    """The name of the saved question."""
    dataset: str
    """The dataset that it is about."""
    words: str
    """What it asks, in a few words."""
    every: str
    """How often it is asked: day, week or month."""
    runs: tuple[Run, ...]
    """Its times, each with what became of it."""


def answer_of(identity: str, found: Mapping[str, Any]) -> Answer:
    """One list as the service tells it.

    Parameters: ``identity``: the answer's id; ``found``: what the service replied.
    """

    def numbers(name: str) -> tuple[int, ...] | None:
        return None if found[name] is None else tuple(found[name])

    return Answer(
        str(identity),
        tuple(found["items"]),
        found["ordered"],
        found["complete"],
        found["epsilon"],
        found["delta"],
        numbers("counts"),
        found["half_width"],
        numbers("at_least"),
        dict(found["receipt"]),
    )


def budget_of(found: Mapping[str, Any]) -> Budget:
    """What is left, and which part of the share that is: of what is left the least of."""
    limits, left = found["limits"], found["left"]
    part = min((Fraction(left.get(name, 0)) / Fraction(limits[name]) for name in limits), default=0)
    known = (found["state"], found["epsilon"], found["delta"], found["summary"])
    return Budget(*known, max(0, int(1000 * part)) / 1000)


def answers_of(job: Mapping[str, Any]) -> Answers:
    """The lists of a question with groups."""
    found = job["answer"]
    lists = {one["group"]: answer_of(job["id"], one["release"]) for one in found["groups"]}
    terms = (found["composition"], found["epsilon"], found["delta"], found["together"])
    return Answers(str(job["id"]), found["by"], lists, *terms)


def either(job: Mapping[str, Any]) -> Answer | Answers:
    """Whichever the question asked for."""
    return answers_of(job) if "groups" in job["answer"] else answer_of(job["id"], job["answer"])


def schedule_of(found: Mapping[str, Any]) -> Schedule:
    """A schedule as the service tells it."""
    runs = tuple(
        Run(
            one["number"],
            datetime.fromisoformat(one["at"]),
            one["state"],
            one["answer"],
            one["message"],
        )
        for one in found["runs"]
    )
    named = (found["id"], found["name"], found["dataset"], found["words"], found["every"])
    return Schedule(*named, runs)
