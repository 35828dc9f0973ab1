"""The API for schedules of saved questions: begin, list, end."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from topsecret.service import shapes
from topsecret.service.api import Reader, checked
from topsecret.service.api_saved import Saver, kept
from topsecret.service.auth.dependencies import limited
from topsecret.service.auth.people import User
from topsecret.service.middleware import API
from topsecret.service.preview import worst_case
from topsecret.service.problems import RESPONSES
from topsecret.service.saved_questions import Saved
from topsecret.service.schedules import MOST_RUNS, Every, Schedule, no_such_schedule, run_times
from topsecret.service.state import Parts, blocking, parts

schedules_api = APIRouter(prefix=API, responses=RESPONSES, tags=["saved questions"])
Times = Annotated[int, Field(strict=True, ge=1, le=MOST_RUNS)]


class NewScheduleShape(shapes.Strict):
    """When a saved question is asked, and how often."""

    every: Every = "week"
    times: Times = Field(description="At most so often; all of it is paid for now.")
    start: datetime | None = Field(
        default=None, description="The first time, in UTC unless it says otherwise; now if empty."
    )


class RunShape(BaseModel):
    """One time of a schedule."""

    number: int
    at: str
    state: str = Field(description="waiting, asked, ended, skipped, refused or given up.")
    answer: str | None = Field(description="The id of its answer.")
    message: str | None


class ScheduleShape(BaseModel):
    """A question and the times at which it is asked."""

    id: str
    account: str
    name: str
    dataset: str
    words: str
    every: str
    runs: list[RunShape]


@schedules_api.post("/saved/{name}/schedule", response_model=ScheduleShape, status_code=201)
async def begin_schedule(
    request: Request, person: Saver, name: shapes.SavedName, given: NewScheduleShape
) -> dict[str, Any]:
    """Ask a saved question at set times, and pay for all of them now."""
    one = await kept(request, person, name)
    begun = await scheduled(request, person, one, given.every, given.times, given.start)
    return begun.to_dict()


@schedules_api.get("/schedules", response_model=list[ScheduleShape])
async def list_schedules(
    request: Request, person: Reader, dataset: shapes.OfDataset = None
) -> list[dict[str, Any]]:
    """The account's schedules; of a data set that it decides about, everybody's."""
    found = parts(request).schedules
    if dataset is not None and person.manages(dataset):
        listed = await blocking(partial(found.of_dataset, dataset))
    else:
        mine = await blocking(partial(found.of_user, person.name))
        listed = [one for one in mine if dataset in (None, one.dataset)]
    return [one.to_dict() for one in listed]


@schedules_api.delete("/schedules/{schedule}", response_model=shapes.DoneShape)
async def end_schedule(
    request: Request, person: Saver, schedule: shapes.Identity
) -> dict[str, bool]:
    """Give up the runs to come: what is held for them is given back."""
    await ended(request, person, schedule)
    return {"done": True}


async def scheduled(
    request: Request, person: User, one: Saved, every: str, times: int, start: datetime | None
) -> Schedule:
    """A new schedule of a saved question, paid for."""
    limited(request, "question", person.name)
    service, now = parts(request), datetime.now(UTC)
    return await blocking(
        partial(
            _begun, service, person.name, one, every, run_times(start or now, every, times, now)
        ),
        service.planning,
    )


def _begun(service: Parts, user: str, one: Saved, every: str, times: list[datetime]) -> Schedule:
    dataset = checked(service, user, one.dataset, one.asked)
    budget = service.datasets.account(one.dataset).budget
    wanted = (one.asked.k, one.asked.epsilon, one.asked.counts, one.asked.at_least)
    cost = worst_case(dataset, budget, *wanted, one.asked.ranked_by)
    named = (user, one.name, one.dataset, one.asked)
    return service.schedules.begin(*named, cost=cost, times=times, every=every)


async def ended(request: Request, person: User, schedule: str) -> Schedule:
    """End a schedule of the account's, or of a data set that it decides about."""
    service = parts(request)
    found = await blocking(partial(service.schedules.get, schedule))
    if found.user != person.name and not person.manages(found.dataset):
        raise no_such_schedule()
    await blocking(partial(service.schedules.end, schedule))
    return found
