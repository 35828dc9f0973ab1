"""The API for schedules of saved questions: begin, list, end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from topsecret.service import shapes
from topsecret.service.api import Reader, checked
from topsecret.service.api_saved import Saver, kept
from topsecret.service.auth.dependencies import limited
from topsecret.service.auth.people import User
from topsecret.service.auth.standing import guarded
from topsecret.service.middleware import API
from topsecret.service.preview import worst_case
from topsecret.service.problems import RESPONSES
from topsecret.service.saved_questions import Saved
from topsecret.service.schedule import MOST_RUNS, Every, Schedule, run_times
from topsecret.service.schedules import no_such_schedule
from topsecret.service.state import Parts, blocking, in_turn, parts

schedules_api = APIRouter(prefix=API, responses=RESPONSES, tags=["saved questions"])
Times = Annotated[int, Field(strict=True, ge=1, le=MOST_RUNS)]
Before = Annotated[
    str | None, Query(pattern=shapes.IDENTITY, description="Older than this schedule.")
]


class NewScheduleShape(shapes.AgainShape):
    """When a saved question is asked, and how often."""

    every: Every = "week"
    """How often it is asked."""
    times: Times = Field(description="At most this many times; all of it is paid for now.")
    start: datetime | None = Field(
        default=None, description="The first time, in UTC unless it says otherwise; now if empty."
    )


class RunShape(BaseModel):
    """One time of a schedule."""

    number: int
    """1 for the first."""
    at: str
    """When it is due."""
    state: str = Field(description="waiting, asked, ended, skipped, refused or given up.")
    answer: str | None = Field(description="The id of its answer.")
    message: str | None
    """Why there is no answer, in words; None if nothing went wrong."""


class ScheduleShape(BaseModel):
    """A question and the times at which it is asked."""

    id: str
    """By which it is ended."""
    account: str
    """Whose it is."""
    name: str
    """Of the saved question."""
    dataset: str
    """What it asks about."""
    words: str
    """What it asks, in a few words."""
    every: str
    """How often: day, week or month."""
    runs: list[RunShape]
    """Its times, first to last."""


@schedules_api.post(
    "/saved/{name}/schedule",
    response_model=ScheduleShape,
    status_code=201,
    responses={200: {"model": ScheduleShape, "description": "Scheduled before"}},
)
async def begin_schedule(
    request: Request, person: Saver, name: shapes.SavedName, given: NewScheduleShape
) -> Response:
    """Ask a saved question at set times, and pay for all of them now, once per request id."""
    one = await kept(request, person, name)
    when = When(given.every, given.times, given.start, given.request_id)
    begun, new = await scheduled(request, person, one, when)
    text = json.dumps(begun.to_dict())
    return Response(text, 201 if new else 200, media_type="application/json")


@schedules_api.get("/schedules", response_model=list[ScheduleShape])
async def list_schedules(
    request: Request,
    person: Reader,
    dataset: shapes.OfDataset = None,
    before: Before = None,
    limit: shapes.AnswersLength = shapes.MOST_ANSWERS,
) -> Response:
    """The account's schedules, newest first; of a dataset that it decides about, everybody's.

    A page ends after ``limit``, or after 100: the id of its last schedule, as ``before``, gives the
    next one, whose address is in the header ``Link``.
    """
    service, most = parts(request), min(limit, shapes.MOST_ANSWERS)
    whose = None if dataset is not None and person.manages(dataset) else person.name

    def page() -> tuple[str, str]:
        found = service.schedules.latest(whose, dataset, most, before)
        last = found[-1].id if len(found) == most else ""
        return f"[{', '.join(json.dumps(one.to_dict()) for one in found)}]", last

    body, last = await in_turn(service, person.name, page)
    of = "" if dataset is None else f"&dataset={dataset}"
    link = {"link": f'<?limit={limit}{of}&before={last}>; rel="next"'} if last else None
    return Response(body, headers=link, media_type="application/json")


@schedules_api.delete("/schedules/{schedule}", response_model=shapes.DoneShape)
async def end_schedule(
    request: Request, person: Saver, schedule: shapes.Identity
) -> dict[str, bool]:
    """Give up the runs to come: what is held for them is given back."""
    await ended(request, person, schedule)
    return {"done": True}


@dataclass(frozen=True, slots=True)
class When:
    """When a question is asked, as somebody wants it."""

    every: str
    times: int
    start: datetime | None
    request: str | None


async def scheduled(
    request: Request, person: User, one: Saved, when: When
) -> tuple[Schedule, bool]:
    """The schedule of a saved question, paid for, and whether it is new."""
    limited(request, "question", person.name)
    service, now = parts(request), datetime.now(UTC)
    times = run_times(when.start or now, when.every, when.times, now)
    admit = partial(limited, request, "run", person.name, len(times))
    begin = partial(_begun, service, person, one, when, times, admit)
    async with service.planning.turn(person.name):
        return await blocking(begin)


def _begun(
    service: Parts,
    person: User,
    one: Saved,
    when: When,
    times: list[datetime],
    admit: Callable[[], None],
) -> tuple[Schedule, bool]:
    dataset = checked(service, person.name, one.dataset, one.asked)
    budget = service.datasets.account(one.dataset).budget
    cost = worst_case(dataset, budget, one.asked)
    schedules = guarded(service.schedules, person)
    begin = partial(schedules.begin, person.name, one.name, one.dataset, one.asked)
    return begin(cost=cost, times=times, every=when.every, request=when.request, admit=admit)


async def ended(request: Request, person: User, schedule: str) -> Schedule:
    """End a schedule of the account's, or of a dataset that it decides about."""
    service = parts(request)
    found = await blocking(partial(service.schedules.get, schedule))
    if not person.may_end(found.user, found.dataset):
        raise no_such_schedule()
    await blocking(partial(guarded(service.schedules, person).end, schedule))
    return found
