"""The pages of saved questions: the list, and what is done with each."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from topsecret.errors import InvalidParameter
from topsecret.service import shapes
from topsecret.service.api import asked, previewed
from topsecret.service.api_saved import kept, of_answer
from topsecret.service.api_schedules import When, ended, scheduled
from topsecret.service.auth.dependencies import changer, user
from topsecret.service.auth.people import User
from topsecret.service.preview import part_of_allowance
from topsecret.service.problems import Problem
from topsecret.service.schedule import MOST_RUNS
from topsecret.service.state import blocking, in_turn, parts
from topsecret.service.web.rendering import render

saved_pages = APIRouter(prefix="/saved", include_in_schema=False)
Person = Annotated[User, Depends(user)]
Changer = Annotated[User, Depends(changer)]


@saved_pages.get("")
async def saved(request: Request, person: Person) -> Response:
    """The visitor's saved questions."""
    service = parts(request)
    found = await blocking(partial(service.saved.all, person.name))

    def page() -> Response:
        begun, again = service.schedules.of_user(person.name), secrets.token_hex(12)
        return render(request, "saved.html", person, saved=found, schedules=begun, again=again)

    return await in_turn(service, person.name, page)


@saved_pages.post("")
async def save(
    request: Request,
    person: Changer,
    name: Annotated[str, Form(pattern=shapes.NAME)],
    answer: Annotated[str, Form(pattern=shapes.IDENTITY)],
) -> Response:
    """Keep the question of an answer under a name."""
    dataset, question = await of_answer(request, person, answer)
    try:
        await blocking(partial(parts(request).saved.save, person, name, dataset, question))
    except InvalidParameter as error:
        raise Problem(400, "invalid", f"{str(error)[:1].upper()}{str(error)[1:]}.") from None
    return RedirectResponse("/saved", 303)


@saved_pages.post("/{name}/ask")
async def ask(
    request: Request,
    person: Person,
    name: shapes.SavedName,
    request_id: Annotated[str, Form(pattern=shapes.REQUEST_ID)],
) -> Response:
    """Ask it again; the answer's page shows the progress."""
    one = await kept(request, person, name)
    job, _ = await asked(request, person, one.dataset, one.asked, request_id)
    return RedirectResponse(f"/answers/{job.id}", 303)


@saved_pages.get("/{name}/schedule")
async def schedule_form(request: Request, person: Person, name: shapes.SavedName) -> Response:
    """What it would take to ask it at set times."""
    start = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M")
    filled = {"every": "week", "times": "12", "start": start, "request_id": secrets.token_hex(12)}
    return await _form(request, person, name, filled)


async def _form(
    request: Request,
    person: User,
    name: str,
    filled: Mapping[str, str],
    status: int = 200,
    wrong: str = "",
) -> Response:
    one = await kept(request, person, name)
    plan = await previewed(parts(request), person.name, one.dataset, one.asked)
    more = {"plan": plan, "part": part_of_allowance(plan.cost), "most": MOST_RUNS, "wrong": wrong}
    return render(request, "schedule.html", person, status, one=one, **more, **filled)


@saved_pages.post("/{name}/schedule")
async def schedule(
    request: Request,
    person: Changer,
    name: shapes.SavedName,
    every: Annotated[str, Form(max_length=10)],
    times: Annotated[str, Form(max_length=10)],
    request_id: Annotated[str, Form(pattern=shapes.REQUEST_ID)],
    start: Annotated[str, Form(max_length=40)] = "",
) -> Response:
    """Ask it at set times, paid for now; a double click schedules once."""
    filled = {"every": every, "times": times, "start": start, "request_id": request_id}
    one = await kept(request, person, name)
    try:
        begin = datetime.fromisoformat(start) if start.strip() else None
        number = int(times)
    except ValueError:
        words = "Write a number of times and a day with its time."
        return await _form(request, person, name, filled, 400, words)
    try:
        await scheduled(request, person, one, When(every, number, begin, request_id))
    except InvalidParameter as error:
        words = f"{str(error)[:1].upper()}{str(error)[1:]}."
        return await _form(request, person, name, filled, 400, words)
    except Problem as problem:
        if problem.error != "budget_exceeded":
            raise
        return await _form(request, person, name, filled, problem.status, problem.message)
    return RedirectResponse("/saved", 303)


@saved_pages.post("/schedules/{schedule}/end")
async def end_schedule(request: Request, person: Changer, schedule: shapes.Identity) -> Response:
    """Give up what is to come."""
    found = await ended(request, person, schedule)
    back = "/saved" if found.user == person.name else f"/owner/datasets/{found.dataset}"
    return RedirectResponse(back, 303)


@saved_pages.post("/{name}/delete")
async def forget(request: Request, person: Changer, name: shapes.SavedName) -> Response:
    """Forget it."""
    await blocking(partial(parts(request).saved.delete, person, name))
    return RedirectResponse("/saved", 303)
